-- offcpu: how long tasks are off the CPU, and by which calls they got there
--
-- An interval begins with the sched:sched_switch that takes a task off its CPU, and ends with the
-- one that puts it on a CPU again, whichever that is. The kernel's stack at the beginning says what
-- the task did: it waits for something (a disk, a lock, the network, a timer), or it was pushed
-- aside while it could have gone on.
--   --state blocked    it waits. The default
--   --state runnable   it could have gone on: preempted, or it gave its turn away
--   --state all        both
--
-- Usage
--   luatrace offcpu.lua [--state blocked|runnable|all] [--pid PID] [--comm NAME] [--min US]
--                       [--user] [--top N] [--stacks N] [--folded] [--flame FILE]
--   luatrace -d 10 offcpu.lua                      for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make' offcpu.lua --folded         lines for other tools
--   luatrace -d 10 offcpu.lua --flame offcpu.svg   a picture, beside the table
--   luatrace -i trace.dat offcpu.lua               of sched_switch recorded with its stacks
--
-- Sample output
--   task        pid intervals   total     avg     p99     max
--   sleep     21390         1   501ms   501ms   501ms   501ms
--   load-naps 21391        23  26.0ms  1.13ms  1.32ms  1.32ms
--   ...
--   ... and 41 more tasks
--
--   502 intervals, 4.10s; 0 unseen, 0 voided, 57 still off
--
--   26.0ms in 23 intervals: load-naps
--      entry_SYSCALL_64_after_hwframe
--       ...
--      hrtimer_nanosleep
--      do_nanosleep
--      schedule
--      __schedule
--
--   task, pid   the task, under the name that it had when it went
--   intervals   that have ended; behind them their sum, average, percentile (to 1 %) and maximum
--   unseen      went twice without having come back: some kernels of virtual machines do not
--               record the switch from an idle CPU to a task
--   voided      given up, because events were lost meanwhile
--   still off   not back when the run ended: long waits are not in the sums before they are over.
--               Tasks that have ended are not in it
--
--   Then the stacks with the longest time in all, the outermost function first; "[no stack]" where
--   the kernel recorded none. With --user the program's functions stand before them, as far as
--   it can be told: programs that were built without frame pointers show one or two.
--   --folded prints nothing but the lines "task;function;...;function NANOSECONDS", and --flame
--   writes them as a flame graph, a width for a time. Of each task the idle time of its CPU is not
--   part, nor are the CPUs' idle tasks.
--
--   With luatrace -f json tasks and stacks are objects, with times in ns; with -f csv rows.
--
-- Overhead
--   A switch costs the traced programs about 2 us: 0.4 us for the event, the rest for its stack,
--   and as much again with --user; about 5 us of CPU time here, for names. With --pid or --comm
--   the others are not recorded. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local core = require "tracefs.core"
local glob = require "tracefs.glob"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"
local tracefs = require "tracefs"
local units = require "tracefs.units"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local parser = argparse("offcpu", "How long tasks are off the CPU, and by which calls.")
  :help_max_width(79)
parser:option("--state", "Waiting, able to run, or both.")
  :choices({ "blocked", "runnable", "all" }):default("blocked")
parser:option("--pid", "Only this task."):argname("PID"):convert(whole_number)
parser:option("--comm", "Only tasks of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:option("--min", "Only intervals of so many microseconds."):argname("US")
  :convert(whole_number)
parser:flag("--user", "The program's functions, too.")
parser:option("--top", "Lines of the table."):argname("N"):default("10"):convert(whole_number)
parser:option("--stacks", "Stacks below the table."):argname("N"):default("5")
  :convert(whole_number)
parser:flag("--folded", "Nothing but folded stacks with their ns.")
parser:option("--flame", "Write a flame graph to this file."):argname("FILE")
local options = parser:parse(trace.args)
if options.comm and options.comm:find('"', 1, true) then
  parser:error("--comm: a name with a quote in it cannot be told to the kernel")
end

-- Both sides are asked for: the same event is the end of one interval and the start of another.
local conditions = {}
if options.pid then
  conditions[#conditions + 1] = ("(prev_pid == %d || next_pid == %d)"):format(options.pid,
    options.pid)
end
if options.comm then
  conditions[#conditions + 1] = ('(prev_comm ~ "%s" || next_comm ~ "%s")'):format(options.comm,
    options.comm)
end

local is_named, why = glob.matcher(options.comm)
if not is_named then
  parser:error("--comm: " .. why)
end

-- What a task has that was pushed aside, whatever it was about to wait for; and one that has ended
-- (X, Z). That never comes back: the next of its pid is another task.
local PREEMPTED <const>, ENDED <const> = 0x100, 0x30

local function is_wanted(delta, pid, start)
  local waits = start.prev_state ~= 0 and start.prev_state & PREEMPTED == 0
  return pid ~= 0
    and start.prev_state & ENDED == 0
    and (not options.pid or pid == options.pid)
    and is_named(start.prev_comm)
    and (options.state == "all" or waits == (options.state == "blocked"))
    and (not options.min or delta >= options.min * 1000)
end

local tasks = aggregate.new {
  name = "offcpu", "count", "sum", "average", "p99", "maximum", by = { "comm", "pid" },
  unit = "ns", max = 100000,
  titles = { count = "intervals", sum = "total", comm = "task" },
}
local times = tracefs.folded { title = ("Off the CPU (%s)"):format(options.state), unit = "ns" }
local intervals_by_stack = tracefs.folded()
local sum_ns, intervals, unseen = 0, 0, 0

local function ended(delta, pid, start)
  if not is_wanted(delta, pid, start) then
    return
  end
  local comm, stack = start.prev_comm, { start.common_user_stack or "", start.common_stack }
  intervals, sum_ns = intervals + 1, sum_ns + delta
  tasks:add(delta, comm, pid)
  times:add(stack, delta, comm)
  intervals_by_stack:add(stack, 1, comm)
end

local switch = {
  event = "sched:sched_switch",
  filter = #conditions > 0 and table.concat(conditions, " && ") or nil,
}
local pair = trace:pair {
  name = "offcpu", start = switch, stop = switch, key = { start = "prev_pid", stop = "next_pid" },
  carry = {
    "prev_comm", "prev_state", "common_stack", options.user and "common_user_stack" or nil,
  },
  max = 1000000,
  on_match = ended,
  on_dropped = function(how, pid, start)
    if how == "replaced" and is_wanted(math.maxinteger, pid, start) then
      unseen = unseen + 1
    end
  end,
}

local function still_off()
  local count = 0
  for _, start in ipairs(pair:open()) do
    if is_wanted(math.maxinteger, start.key, start.values) then
      count = count + 1
    end
  end
  return count
end

local function print_stacks()
  local counts = {}
  for _, row in ipairs(intervals_by_stack:rows()) do
    counts[row.stack] = row.count
  end
  for _, row in ipairs(times:rows { sort = "count", top = options.stacks }) do
    local task, frames = row.stack:match("^([^;]*);?(.*)$")
    print()
    print(("%s in %d intervals: %s"):format(units.format(row.count, "ns"), counts[row.stack],
      task))
    for frame in frames:gmatch("[^;]+") do
      print("   " .. (#frame > 72 and frame:sub(1, 69) .. "..." or frame))
    end
  end
end

local function print_objects(sums)
  for _, row in ipairs(tasks:rows { sort = "sum" }) do
    trace:print {
      type = "task", comm = row.comm or "(other)", pid = row.pid, intervals = row.count,
      total_ns = row.sum, avg_ns = math.floor(row.average), p99_ns = row.p99, max_ns = row.maximum,
    }
  end
  for _, row in ipairs(times:rows { sort = "count" }) do
    trace:print { type = "stack", stack = row.stack, total_ns = row.count }
  end
  sums.type = "offcpu"
  trace:print(sums)
end

trace:at_end(function()
  local counts = pair:counts()
  local sums = {
    intervals = intervals, total_ns = sum_ns, unseen = unseen,
    voided = counts.voided + counts.evicted, still_off = still_off(),
  }
  if trace.format == "svg" then
    trace:print(times)
  end
  if options.folded then
    io.write(times:text())
  elseif trace.format == "json" or trace.format == "csv" then
    print_objects(sums)
  else
    if intervals == 0 then
      print("no interval")
    else
      print(tasks:text { sort = "sum", top = options.top })
      if #tasks > options.top then
        print(("... and %d more tasks"):format(#tasks - options.top))
      end
    end
    print()
    print(("%d intervals, %s; %d unseen, %d voided, %d still off"):format(sums.intervals,
      units.format(sums.total_ns, "ns"), sums.unseen, sums.voided, sums.still_off))
    print_stacks()
  end
  -- Behind all else, which is there also when the file cannot be written.
  if options.flame then
    assert(core.replace(options.flame, times:flame()))
  end
end)
