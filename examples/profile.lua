-- profile: what the CPUs are busy with, by samples of their stacks
--
-- A sample is a tick of the kernel's clock, seen as timer:hrtimer_expire_entry of the function that
-- handles it: on every busy CPU at one rate (CONFIG_HZ, 100 to 1000 a second), with the kernel's
-- stack, and the program's with --user. It is what tracefs has, without a hardware counter.
--
-- What is not sampled, or not where it happened
--   - Idle CPUs have no ticks, and what ticks they have is left out. The sum of all samples is the
--     time that CPUs were busy.
--   - Code that runs with interrupts off: its tick comes when they are on again, and shows the
--     function that turned them on (spin_unlock_irqrestore, a system call's exit). When several
--     ticks are due by then, only one comes. The same for a virtual CPU that was not running.
--   - A CPU of nohz_full with one task has no ticks.
--   - What goes on in step with the tick, such as work that each tick wakes, is seen always or
--     never. Tools with a counter of their own (perf) sample at 99 a second to avoid that.
--   - Kernels without high resolution timers have no such event: no samples.
--   For time off the CPU see offcpu.lua.
--
-- Usage
--   luatrace profile.lua [--pid PID] [--comm NAME] [--user] [--top N] [--stacks N] [--folded]
--                        [--flame FILE]
--   luatrace -d 10 profile.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make' profile.lua --user --flame cpu.svg
--   luatrace -d 10 profile.lua --folded            lines for other tools
--   luatrace -i trace.dat profile.lua              of this event recorded with its stacks
--
-- Sample output
--   task     samples  share  kernel
--   cc1          171  42.8%   11.1%
--   make          12   3.0%   83.3%
--   ...
--   ... and 12 more tasks
--
--   400 samples, 0 without a stack; 71.5 % in programs, 28.5 % in the kernel
--
--   12 samples: cc1
--      entry_SYSCALL_64_after_hwframe
--      do_syscall_64
--      ...
--
--   samples   that hit a thread of this name
--   share     of all samples
--   kernel    share of its samples that hit the kernel: a system call, a page fault, an interrupt
--
--   Then the stacks with most samples, the outermost function first, without the interrupt of
--   the tick itself. "[program]" stands for what a program did by itself; with --user its functions
--   stand there, as far as it can be told: programs that were built without frame pointers show
--   one or two, stripped ones "[name of the file]".
--   --folded prints nothing but the lines "task;function;...;function SAMPLES", and --flame writes
--   them as a flame graph; so does luatrace -f svg -o FILE.
--
--   With luatrace -f json tasks and stacks are objects; with -f csv rows. As metrics
--   (-f prometheus) there are the samples of each task, in the kernel and in its program.
--
-- Overhead
--   An event with a stack for each tick, some 2 us, which at 250 ticks a second is 0.05 % of a
--   CPU, and for each timer of the kernel's high resolution ones that runs out: programs that set
--   thousands of those a second pay as much for each. About 10 us of CPU time a sample here.
--   See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local core = require "tracefs.core"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"
local tracefs = require "tracefs"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local parser = argparse("profile", "What the CPUs are busy with, by samples of their stacks.")
  :help_max_width(79)
parser:option("--pid", "Only this thread."):argname("PID"):convert(whole_number)
parser:option("--comm", "Only threads of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:flag("--user", "The program's functions, too.")
parser:option("--top", "Lines of the table."):argname("N"):default("10"):convert(whole_number)
parser:option("--stacks", "Stacks below the table."):argname("N"):default("5")
  :convert(whole_number)
parser:flag("--folded", "Nothing but folded stacks with their samples.")
parser:option("--flame", "Write a flame graph to this file."):argname("FILE")
local options = parser:parse(trace.args)

-- The function of the tick has had two names.
local TICKS <const> = { tick_nohz_handler = true, tick_sched_timer = true }

-- Where an interrupt comes in: x86, its older kernels, arm64.
local ENTRIES <const> = {
  "^asm_sysvec_", "^asm_common_interrupt$", "^apic_timer_interrupt$", "^ret_from_intr$",
  "^common_interrupt$", "^el1h?_64_irq$", "^el0t_64_irq$", "^el[01]_irq$",
}

local function is_entry(frame)
  for _, pattern in ipairs(ENTRIES) do
    if frame:find(pattern) then
      return true
    end
  end
  return false
end

-- What was interrupted by the tick: all up to the last entry, as interrupts interrupt what
-- another one has left to do. "" when that was a program.
local function interrupted(stack)
  local at, last = 1, nil
  for frame, next_at in stack:gmatch("([^;]+);?()") do
    if is_entry(frame) then
      last = at
    end
    at = next_at
  end
  return last and stack:sub(1, math.max(last - 2, 0)) or stack
end

local samples, without_stack, in_kernel = 0, 0, 0
local tasks, cut = {}, {}
local folded = tracefs.folded { title = "Busy CPUs" }
-- As metrics; by its name it is one.
local counted = trace.format == "prometheus" and aggregate.new {
  "count", by = { "comm", "where" }, name = "samples", max = 10000,
}

local function count(comm, where)
  if counted then
    counted:count(comm, where)
  end
end

local function sample(comm, stack, user_stack)
  samples = samples + 1
  local task = tasks[comm] or { comm = comm, samples = 0, kernel = 0 }
  tasks[comm] = task
  task.samples = task.samples + 1
  if not stack then
    without_stack = without_stack + 1
    count(comm, "unknown")
    folded:add(false, 1, comm)
    return
  end
  local kernel = cut[stack]
  if not kernel then
    kernel = interrupted(stack)
    cut[stack] = kernel
  end
  count(comm, kernel ~= "" and "kernel" or "program")
  if kernel ~= "" then
    in_kernel = in_kernel + 1
    task.kernel = task.kernel + 1
  end
  local program = options.user and user_stack or ""
  if program == "" and kernel == "" then
    program = "[program]"
  end
  folded:add({ program, kernel }, 1, comm)
end

local conditions = { "common_pid != 0" }
if options.pid then
  conditions[1] = ("common_pid == %d"):format(options.pid)
end
if options.comm then
  conditions[#conditions + 1] = ('COMM ~ "%s"'):format(options.comm)
end

-- By the address in the event: is it the tick's?
local is_tick = {}

trace:on("timer:hrtimer_expire_entry", {
  filter = table.concat(conditions, " && "), stack = true, user_stack = options.user or false,
}, function(ev)
  local address = ev["function"]
  if is_tick[address] == nil then
    is_tick[address] = TICKS[tracefs.text(ev, "function")] or false
  end
  if is_tick[address] then
    sample(ev.common_comm, ev.common_stack, ev.common_user_stack)
  end
end)

local function percent(part, whole)
  return whole > 0 and 100 * part / whole or 0
end

local function sorted_tasks()
  local list = {}
  for _, task in pairs(tasks) do
    list[#list + 1] = task
  end
  table.sort(list, function(a, b)
    if a.samples ~= b.samples then
      return a.samples > b.samples
    end
    return a.comm < b.comm
  end)
  return list
end

local function print_table(list)
  local width = 4
  for i = 1, math.min(options.top, #list) do
    width = math.max(width, #escape.line(list[i].comm))
  end
  print(("%-" .. width .. "s  samples   share  kernel"):format("task"))
  for i = 1, math.min(options.top, #list) do
    local task = list[i]
    print(("%-" .. width .. "s  %7d  %5.1f%%  %5.1f%%"):format(escape.line(task.comm), task.samples,
      percent(task.samples, samples), percent(task.kernel, task.samples)))
  end
  if #list > options.top then
    print(("... and %d more tasks"):format(#list - options.top))
  end
end

local function print_stacks()
  for _, row in ipairs(folded:rows { sort = "count", top = options.stacks }) do
    local task, frames = row.stack:match("^([^;]*);?(.*)$")
    print()
    print(("%d samples: %s"):format(row.count, task))
    for frame in frames:gmatch("[^;]+") do
      print("   " .. (#frame > 72 and frame:sub(1, 69) .. "..." or frame))
    end
  end
end

local function print_objects(list)
  for _, task in ipairs(list) do
    trace:print { type = "task", comm = task.comm, samples = task.samples, kernel = task.kernel }
  end
  for _, row in ipairs(folded:rows { sort = "count" }) do
    trace:print { type = "stack", stack = row.stack, samples = row.count }
  end
  trace:print {
    type = "profile", samples = samples, kernel = in_kernel, without_stack = without_stack,
  }
end

trace:at_end(function()
  local list = sorted_tasks()
  if trace.format == "svg" then
    trace:print(folded)
  end
  if options.folded then
    io.write(folded:text())
  elseif trace.format == "json" or trace.format == "csv" then
    print_objects(list)
  elseif samples == 0 then
    print("no sample")
  else
    print_table(list)
    print()
    print(("%d samples, %d without a stack; %.1f %% in programs, %.1f %% in the kernel"):format(
      samples, without_stack, percent(samples - in_kernel - without_stack, samples),
      percent(in_kernel, samples)))
    print_stacks()
  end
  -- Behind all else, which is there also when the file cannot be written.
  if options.flame then
    assert(core.replace(options.flame, folded:flame()))
  end
end)
