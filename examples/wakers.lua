-- wakers: who wakes whom, and after what sleep
--
-- A task that sleeps waits for somebody: for the one that writes into its pipe, releases its lock,
-- answers its request, or for an interrupt. Who that was is in sched:sched_waking; how long the
-- task had slept then is known from the sched:sched_switch that took it off its CPU.
--
-- Usage
--   luatrace wakers.lua [--by comm|task] [--comm NAME] [--top N] [--sort count|slept|max]
--   luatrace -d 10 wakers.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace wakers.lua --comm mysqld --sort slept
--   luatrace -c 'seq 100000 | sort -n | tail -1' wakers.lua
--
-- Sample output (luatrace -c 'seq 100000 | sort -n | tail -1' wakers.lua)
--   waker                woken                wakeups  asleep   slept    avg    max
--   (softirq)            rcu_preempt               97      95   633ms 6.67ms 11.8ms
--   sort                 tail                      55      55   387ms 7.03ms  380ms
--   sort                 seq                       15      15   155ms 10.3ms 33.5ms
--   (hardirq)            sleep                      7       7   201ms 28.7ms 50.1ms
--   ...
--   ... and 33 more lines
--
--   882 wakeups
--
--   waker    the task that was running on the CPU where it happened, under the name that it is
--            known by. What an interrupt does is not that task's: (hardirq) for devices and
--            timers, (softirq) for what they leave for later, as packets
--   woken    the task that was woken, under its name then
--   wakeups  all; a new task is not woken but made, and not here
--   asleep   how many of these ended a sleep whose begin was seen; behind it those sleeps: their
--            sum, average and maximum. The others had not left their CPU yet, or had slept since
--            before the trace, or since before events were lost
--
--   With --by task different tasks of a name have lines of their own.
--   With luatrace -f json every line is an object, with times in ns; with -f csv a row.
--
-- Overhead
--   An event for each wakeup and each switch, which cost the traced programs about 0.4 us each;
--   about 1 us of CPU time an event here. With --comm those of others are not recorded. See
--   docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"
local units = require "tracefs.units"

local parser = argparse("wakers", "Who wakes whom, and after what sleep."):help_max_width(79)
parser:option("--by", "A line for each pair of names, or of tasks.")
  :choices({ "comm", "task" }):default("comm")
parser:option("--comm", "Only wakeups of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:option("--top", "Lines of the table."):argname("N"):default("20"):convert(function(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("--top takes a whole number above 0, not '%s'"):format(text)
  end
  return number
end)
parser:option("--sort", "What comes first."):choices({ "count", "slept", "max" }):default("count")
local options = parser:parse(trace.args)

local waking_filter, switch_filter
if options.comm then
  if options.comm:find('"', 1, true) then
    parser:error("--comm: a name with a quote in it cannot be told to the kernel")
  end
  waking_filter = ('comm ~ "%s"'):format(options.comm)
  switch_filter = ('prev_comm ~ "%s" || next_comm ~ "%s"'):format(options.comm, options.comm)
end

-- include/linux/trace_events.h: what was interrupted is not who wakes.
local HARDIRQ <const>, SOFTIRQ <const>, NMI <const> = 0x08, 0x10, 0x40
-- The states of a task that sleeps, as sched_switch has them; without them it was preempted.
local ASLEEP <const> = 0xff

local by_task = options.by == "task"
local key = by_task and { "waker", "waker_pid", "woken", "woken_pid" } or { "waker", "woken" }
local wakeups = aggregate.new { "count", by = key, name = "wakeups", max = 100000 }
local sleeps = aggregate.new {
  "count", "sum", "average", "maximum", by = key, name = "sleep", unit = "ns", max = 100000,
}

local function waker_of(waking)
  local flags = waking.common_flags
  if flags & (HARDIRQ | NMI) ~= 0 then
    return "(hardirq)", 0
  elseif flags & SOFTIRQ ~= 0 then
    return "(softirq)", 0
  end
  return waking.common_comm, waking.common_pid
end

local function count(waking, slept_ns)
  local waker, waker_pid = waker_of(waking)
  if by_task then
    wakeups:count(waker, waker_pid, waking.comm, waking.pid)
  else
    wakeups:count(waker, waking.comm)
  end
  if slept_ns and by_task then
    sleeps:add(slept_ns, waker, waker_pid, waking.comm, waking.pid)
  elseif slept_ns then
    sleeps:add(slept_ns, waker, waking.comm)
  end
end

trace:pair {
  start = { event = "sched:sched_switch", filter = switch_filter, key = "prev_pid" },
  stop = { event = "sched:sched_waking", filter = waking_filter, key = "pid" },
  -- It runs, and whoever has woken it was not seen.
  cancel = { event = "sched:sched_switch", filter = switch_filter, key = "next_pid" },
  key = "pid", carry = "prev_state", max = 1000000,
  on_match = function(delta_ns, _, off, waking)
    count(waking, off.prev_state & ASLEEP ~= 0 and delta_ns or nil)
  end,
  on_unmatched = function(_, waking) count(waking) end,
}

local COLUMN <const> = { count = "wakeups", slept = "slept_ns", max = "max_ns" }

local function lines()
  local list = {}
  for _, row in ipairs(wakeups:rows()) do
    local line = {
      type = "wakeups", waker = row.waker or "(other)", waker_pid = row.waker_pid,
      woken = row.woken or "(other)", woken_pid = row.woken_pid, wakeups = row.count, asleep = 0,
      slept_ns = 0, max_ns = 0,
    }
    local slept
    if not row.other then
      slept = by_task and sleeps:get(row.waker, row.waker_pid, row.woken, row.woken_pid)
        or not by_task and sleeps:get(row.waker, row.woken)
    end
    if slept then
      line.asleep, line.slept_ns, line.max_ns = slept.count, slept.sum, slept.maximum
    end
    list[#list + 1] = line
  end
  local column = COLUMN[options.sort]
  table.sort(list, function(a, b)
    if a[column] ~= b[column] then
      return a[column] > b[column]
    elseif a.waker ~= b.waker then
      return a.waker < b.waker
    elseif a.woken ~= b.woken then
      return a.woken < b.woken
    end
    return (a.woken_pid or 0) < (b.woken_pid or 0)
  end)
  return list
end

local function task(comm, pid)
  -- a long name is cut to what the column has left for it
  local name = escape.line(comm)
  return pid and pid > 0 and ("%s/%d"):format(name:sub(1, 19 - #tostring(pid)), pid) or name
end

local function print_table(list)
  local total = 0
  for i, line in ipairs(list) do
    if i == 1 then
      print(("%-20s %-20s %7s %7s %7s %6s %6s"):format("waker", "woken", "wakeups", "asleep",
        "slept", "avg", "max"))
    end
    if i <= options.top then
      local function time(ns)
        return line.asleep > 0 and units.format(ns, "ns") or "-"
      end
      print(("%-20s %-20s %7d %7d %7s %6s %6s"):format(task(line.waker, line.waker_pid),
        task(line.woken, line.woken_pid), line.wakeups, line.asleep, time(line.slept_ns),
        time(line.slept_ns / line.asleep), time(line.max_ns)))
    end
    total = total + line.wakeups
  end
  if #list > options.top then
    print(("... and %d more lines"):format(#list - options.top))
  end
  if total > 0 then
    print()
  end
  print(("%d wakeups"):format(total))
end

trace:at_end(function()
  local list = lines()
  if trace.format == "json" or trace.format == "csv" then
    for _, line in ipairs(list) do
      trace:print(line)
    end
  else
    print_table(list)
  end
end)
