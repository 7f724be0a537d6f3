-- counts: how often events happen
--
-- Counts any events of the kernel, as `perf stat -e` does, and says how many that is a second.
--
-- Usage
--   luatrace counts.lua EVENT... [--filter EXPR] [--by event|cpu|comm] [--interval SECONDS]
--                       [--command]
--   luatrace -d 10 counts.lua sched:sched_switch 'irq:*'   of the whole machine, ten seconds
--   luatrace -c 'make' counts.lua --command sched:sched_process_exec 'exceptions:page_fault_*'
--   luatrace counts.lua raw_syscalls:sys_enter --by comm --interval 1
--
-- Sample output (luatrace -c 'make lint' counts.lua --command ...)
--          count       each s event
--           1217           17 sched:sched_process_wait
--            960           14 signal:signal_deliver
--            761           11 sched:sched_process_fork
--              0            0 block:block_rq_issue
--
--   2938 events in 71.05 s
--
--   count   how often; an event without * or ? in its name is there also when it did not happen
--   each s  of the time since the table before, or the start
--
--   EVENT is as luatrace -l takes it: system:name, with * and ? for others, or a system. Without
--   --command the whole machine is counted, also while -c COMMAND runs. The tracer is left out.
--   "N events lost" is said when the table does not have them all: a larger buffer (-b) helps.
--   With luatrace -f json every line is an object; with -f csv a row. As metrics (-f prometheus)
--   the counts are there all the time. With --interval objects and rows have time_ns, the end of
--   their time by the trace's clock.
--
-- Overhead
--   Every event is recorded, which costs its task about 0.4 us, and counted here, which takes about
--   0.3 us. Where the kernel has histograms, syscount.lua shows how it counts by itself.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local core = require "tracefs.core"
local escape = require "tracefs.escape"
local trace = require "tracefs.script"

local parser = argparse("counts", "How often events happen."):help_max_width(79)
parser:argument("event", "As system:name; * and ? stand for others."):args("+"):argname("EVENT")
parser:option("--filter", "Only those that this kernel filter lets through."):argname("EXPR")
parser:option("--by", "A line for each event, and each CPU, or each name of a task.")
  :choices({ "event", "cpu", "comm" }):default("event")
parser:option("--interval", "Print every SECONDS, and start anew."):argname("SECONDS")
  :convert(function(text)
    local seconds = tonumber(text)
    if not seconds or seconds <= 0 then
      return nil, ("--interval takes seconds above 0, not '%s'"):format(text)
    end
    return seconds
  end)
parser:flag("--command", "Only in the command of luatrace -c and what it starts.")
local options = parser:parse(trace.args)

local BY <const> = { cpu = "common_cpu", comm = "common_comm" }
local field = BY[options.by]

local counts = aggregate.new {
  "count", name = "events", by = { "event", field and options.by or nil }, max = 100000,
}

-- The command waits, as our child, until everything is on.
if options.command then
  if core.in_pid_namespace() then
    error("counts: --command: the kernel's tracer has other pids than this container", 0)
  end
  local own <close> = assert(io.open("/proc/self/stat"))
  local children = assert(core.descendants(math.tointeger(own:read("n"))))
  if #children == 0 then
    parser:error("--command: there is none: luatrace -c COMMAND counts.lua ...")
  end
  assert(trace.instance:set_event_pids(children, true))
end

-- Two patterns may mean one event.
local counted_by = {}
for i, pattern in ipairs(options.event) do
  trace:on(pattern, { "common_event", field, filter = options.filter }, function(event, who)
    counted_by[event] = counted_by[event] or i
    if counted_by[event] ~= i then
      return
    elseif field then
      counts:count(event, who)
    else
      counts:count(event)
    end
  end)
end

-- Those that are asked for by name and did not happen.
local function missing(rows)
  local seen, names = {}, {}
  for _, row in ipairs(rows) do
    seen[row.event or ""] = true
  end
  for _, pattern in ipairs(options.event) do
    if not seen[pattern] and pattern:find("^[^:*?%[]+:[^*?%[]+$") then
      seen[pattern] = true
      names[#names + 1] = pattern
    end
  end
  return names
end

-- With --interval: the end of the time that is reported.
local tick

local function print_objects(rows)
  for _, row in ipairs(rows) do
    trace:print {
      type = "count", event = row.event or "(other)", cpu = row.cpu, comm = row.comm,
      count = row.count, time_ns = tick,
    }
  end
  for _, event in ipairs(missing(rows)) do
    trace:print { type = "count", event = event, count = 0, time_ns = tick }
  end
end

local function print_table(rows, seconds, lost)
  print(("%12s %12s %s%s"):format("count", "each s", options.by ~= "event"
    and ("%-16s "):format(options.by) or "", "event"))
  local sum = 0
  for _, row in ipairs(rows) do
    local who = row.cpu or row.comm and escape.line(row.comm)
    sum = sum + row.count
    print(("%12d %12.0f %s%s"):format(row.count, row.count / math.max(seconds, 1e-9),
      who and ("%-16s "):format(who) or "", row.event or "(other)"))
  end
  for _, event in ipairs(missing(rows)) do
    print(("%12d %12d %s%s"):format(0, 0, field and (" "):rep(17) or "", event))
  end
  print(("\n%d events in %.2f s%s"):format(sum, seconds,
    lost > 0 and (", %d events lost"):format(lost) or ""))
end

-- The seconds that the tables before this one were of.
local covered, lost_before = 0, 0

local function report(seconds)
  local stats = trace:stats()
  local lost = stats.lost - lost_before
  seconds = seconds or math.max(stats.elapsed - covered, 0)
  local rows = counts:rows { sort = "count" }
  if trace.format == "json" or trace.format == "csv" then
    print_objects(rows)
  else
    print_table(rows, seconds, lost)
  end
  covered, lost_before = covered + seconds, stats.lost
end

if options.interval then
  local before
  trace:every(options.interval, function(now)
    tick = now
    -- in the time of the events: several may be looked at in one go
    report(before and (now - before) / 1e9 or options.interval)
    tick = nil
    before = now
    -- metrics go on counting
    if trace.format ~= "prometheus" then
      counts:reset()
    end
    if trace.format == "text" then
      print()
    end
  end)
end
trace:at_end(function() report() end)
