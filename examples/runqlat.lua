-- runqlat: how long tasks that could run waited for a CPU
--
-- A task waits from when it is on a run queue (sched:sched_wakeup, sched:sched_wakeup_new), or from
-- when another one took its CPU although it had more to do, to the sched:sched_switch that puts it
-- on a CPU. wakelat.lua has the first kind alone, from the waker's side, task by task.
--
-- Usage
--   luatrace runqlat.lua [--by after|comm|task|cpu] [--comm NAME] [--top N] [--interval SECONDS]
--   luatrace -d 10 runqlat.lua                  for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make -j4' runqlat.lua --by comm
--
-- Sample output
--   after      waits     min     avg     p50     p99     max
--   wakeup       781  1.22us  1.06ms  26.2us  11.3ms  15.7ms
--   preemption   254  3.13us  4.02ms  2.94ms  12.1ms  16.0ms
--
--   1035 waits, 12 not seen, 0 voided, 3 open
--
--   all waits, ns
--           1024 .. 2047    8 |#
--           2048 .. 4095  107 |##############
--   ...
--
--   after     what the wait began with; with --by the task, its name, or the CPU that it got
--   waits     that have ended on a CPU; behind it their times, percentiles exact to 1 %
--   not seen  on a run queue, and the next is a switch away from it or one more wakeup: it was
--             woken before it had left its CPU and did not wait, or the switch to it was not
--             recorded, as some kernels of virtual machines do when a CPU was idle
--   voided    given up, because events were lost or came late
--   open      still waiting when the table was printed
--
--   With luatrace -f json every line of the table is an object, with times in ns, and the sums are
--   another; with -f csv a row. As metrics (-f prometheus) the times are there all the time. With
--   --interval every table covers the time since the one before it, and objects and rows have
--   time_ns, its end by the trace's clock.
--
-- Overhead
--   An event for each wakeup and each switch, which cost the traced programs about 0.4 us each;
--   about 1 us of CPU time an event here. With --comm the others are not recorded. See
--   docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"

local function positive(name, whole)
  return function(text)
    local number = tonumber(text)
    number = whole and math.tointeger(number) or not whole and number or nil
    if not number or number <= 0 then
      return nil, ("%s takes a number above 0, not '%s'"):format(name, text)
    end
    return number
  end
end

local parser = argparse("runqlat", "How long tasks waited for a CPU."):help_max_width(79)
parser:option("--by", "Lines of the table.")
  :choices({ "after", "comm", "task", "cpu" }):default("after")
parser:option("--comm", "Only tasks of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:option("--top", "Lines of the table."):argname("N"):default("10")
  :convert(positive("--top", true))
parser:option("--interval", "Print every SECONDS, and start anew."):argname("SECONDS")
  :convert(positive "--interval")
local options = parser:parse(trace.args)

local wakeup_filter, switch_filter
if options.comm then
  if options.comm:find('"', 1, true) then
    parser:error("--comm: a name with a quote in it cannot be told to the kernel")
  end
  wakeup_filter = ('comm ~ "%s"'):format(options.comm)
  switch_filter = ('prev_comm ~ "%s" || next_comm ~ "%s"'):format(options.comm, options.comm)
end

local waits = aggregate.new {
  "count", "minimum", "average", "p50", "p99", "maximum", name = "wait",
  by = options.by == "task" and { "comm", "pid" } or options.by, unit = "ns", max = 100000,
  titles = { count = "waits", comm = "task" },
}
local all = aggregate.new { "count", "histogram", unit = "ns" }
local not_seen = 0

-- The states of a task that sleeps, as the event has them; without them it was preempted.
local ASLEEP <const> = 0xff

local function preempted(switch)
  local pid = switch.prev_pid
  return switch.prev_state & ASLEEP == 0 and pid ~= 0 and pid or nil
end

local SWITCH <const> = "sched:sched_switch"

-- By pid, since when it waits: it was preempted on its way to sleep, and was woken then.
local put_off = {}

local function whole_wait(delta_ns, pid, start)
  local since = put_off[pid]
  if since then
    put_off[pid] = nil
    delta_ns = delta_ns + start.common_timestamp - since
  end
  all:add(delta_ns)
  return delta_ns, (since or start.common_event == SWITCH) and "preemption" or "wakeup"
end

local COUNT <const> = {
  after = function(delta_ns, pid, start) waits:add(whole_wait(delta_ns, pid, start)) end,
  comm = function(delta_ns, pid, start, switch)
    waits:add((whole_wait(delta_ns, pid, start)), switch.next_comm)
  end,
  task = function(delta_ns, pid, start, switch)
    waits:add((whole_wait(delta_ns, pid, start)), switch.next_comm, pid)
  end,
  cpu = function(delta_ns, pid, start, switch)
    waits:add((whole_wait(delta_ns, pid, start)), switch.common_cpu)
  end,
}

-- Only a task that has run can be woken once more: then it has not waited since the first time.
local function dropped(how, pid, start)
  put_off[pid] = nil
  if how == "replaced" and start.common_event == SWITCH then
    put_off[pid] = start.common_timestamp
  elseif how == "replaced" or how == "cancelled" then
    not_seen = not_seen + 1
  end
end

-- With a filter the other task of a switch may be anybody.
local pattern = options.comm and require("tracefs.glob").matcher(options.comm)
local function is_wanted(switch)
  return not pattern or pattern(switch.prev_comm)
end

local runs = trace:pair {
  start = {
    { event = "sched:sched_wakeup", filter = wakeup_filter },
    { event = "sched:sched_wakeup_new", filter = wakeup_filter },
    { event = "sched:sched_switch", filter = switch_filter, key = function(switch)
      return is_wanted(switch) and preempted(switch) or nil
    end },
  },
  stop = { event = "sched:sched_switch", filter = switch_filter, key = "next_pid" },
  cancel = { event = "sched:sched_switch", filter = switch_filter, key = "prev_pid" },
  key = "pid", carry = { "common_event", "common_timestamp" }, max = 1000000,
  on_match = COUNT[options.by],
  on_dropped = dropped,
}

-- With --interval: the end of the time that is reported.
local tick

local function print_objects()
  for _, row in ipairs(waits:rows { sort = "maximum" }) do
    trace:print {
      type = "wait", after = row.after, comm = row.comm, pid = row.pid, cpu = row.cpu,
      waits = row.count, min_ns = row.minimum, avg_ns = math.floor(row.average), p50_ns = row.p50,
      p99_ns = row.p99, max_ns = row.maximum, time_ns = tick,
    }
  end
end

local voided_before = 0

local function report()
  local counts, sum = runs:counts(), all:get()
  local voided = counts.voided + counts.evicted
  local sums = {
    type = "waits", waits = sum and sum.count or 0, not_seen = not_seen,
    voided = voided - voided_before, open = counts.open, time_ns = tick,
  }
  voided_before = voided
  if trace.format == "json" or trace.format == "csv" then
    print_objects()
    trace:print(sums)
    return
  end
  if sum then
    print(waits:text { sort = "maximum", top = options.top })
    if #waits > options.top then
      print(("... and %d more lines"):format(#waits - options.top))
    end
    print()
  end
  print(("%d waits, %d not seen, %d voided, %d open"):format(sums.waits, sums.not_seen,
    sums.voided, sums.open))
  if sum then
    print()
    print("all waits, ns")
    print(table.concat(all:lines(), "\n"))
  end
end

if options.interval then
  trace:every(options.interval, function(now)
    tick = now
    report()
    tick = nil
    -- metrics go on counting
    if trace.format ~= "prometheus" then
      waits:reset()
      all:reset()
      not_seen = 0
    end
    if trace.format == "text" then
      print()
    end
  end)
end
trace:at_end(report)
