-- wakelat: time from the wakeup of a task to the switch that runs it, task by task
--
-- The clock of a wakeup starts at ONE event, and stops at the sched:sched_switch that puts the
-- task on a CPU, whichever CPU that is:
--   --from waking   sched:sched_waking: the waker has begun. The way to the other CPU's run queue
--                   is part of the latency. The default.
--   --from wakeup   sched:sched_wakeup: the task is on the run queue. Only the wait there.
-- Only that one is turned on, so a wakeup is never counted twice; a new task (fork, clone) has
-- neither of the two, its clock starts at sched:sched_wakeup_new.
--
-- Usage
--   luatrace wakelat.lua [--from waking|wakeup] [--by task|comm] [--top N]
--                        [--sort max|avg|p99|count] [--pid PID] [--comm NAME] [--no-histogram]
--   luatrace -d 10 wakelat.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make -j4' wakelat.lua --by comm --sort count
--
-- Sample output
--   task     pid wakeups     min     avg     p50     p99     max
--   lua5.4 26019      92  2.90us  1.37ms  88.1us  19.7ms  19.7ms
--   sh     26251       1  16.3ms  16.3ms  16.3ms  16.3ms  16.3ms
--   ...
--   ... and 377 more tasks
--
--   3530 wakeups, 3 repeated, 49 still running, 0 unseen, 0 voided, 2 open
--
--   all wakeups, ns
--           1024 .. 2047   15 |.
--           2048 .. 4095  721 |#############################################
--   ...
--
--   task, pid      the woken task, under the name that it had when it was woken
--   wakeups        that ended on a CPU; behind them their latencies, percentiles exact to 1 %
--   repeated       woken again before it ran, as far as was seen: only a task that has run in
--                  between can be. The clock starts anew
--   still running  woken before it had left its CPU: there was nothing to wait for
--   unseen         woken, and the next that was recorded is the switch away from it: some kernels
--                  of virtual machines do not record the switch from an idle CPU to a task, and
--                  with --comm a task may have got the name while it ran
--   voided         given up: events were lost while the clock was running, or came late, or a
--                  million tasks were waiting
--   open           woken and not yet on a CPU when the table was printed
--
--   With luatrace -f json every task is an object, with times in ns; with -f csv a row.
--
-- Overhead
--   An event for each wakeup and one for each switch, which cost the traced programs about 0.4 us
--   each; about 0.5 us of CPU time an event here. With --pid or --comm the others are not recorded.
--   See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local parser = argparse("wakelat", "Time from the wakeup of a task to the switch that runs it.")
  :help_max_width(79)
parser:option("--from", "What starts the clock."):choices({ "waking", "wakeup" }):default("waking")
parser:option("--by", "One line for each task, or for all tasks of a name.")
  :choices({ "task", "comm" }):default("task")
parser:option("--top", "Lines of the table."):argname("N"):default("10"):convert(whole_number)
parser:option("--sort", "What decides who is on top."):choices({ "max", "avg", "p99", "count" })
  :default("max")
parser:option("--pid", "Only this task."):argname("PID"):convert(whole_number)
parser:option("--comm", "Only tasks of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:flag("--no-histogram", "Only the table.")
local options = parser:parse(trace.args)
if options.comm and options.comm:find('"', 1, true) then
  parser:error("--comm: a name with a quote in it cannot be told to the kernel")
end

-- The kernel drops other tasks' events. prev_ and next_ are both asked for in sched_switch:
-- a task that goes off its CPU is of interest too.
local function task_filter(pid_fields, comm_fields)
  local function any(fields, template, value)
    local terms = {}
    for _, field in ipairs(fields) do
      terms[#terms + 1] = template:format(field, value)
    end
    return "(" .. table.concat(terms, " || ") .. ")"
  end
  local conditions = {}
  if options.pid then
    conditions[#conditions + 1] = any(pid_fields, "%s == %d", options.pid)
  end
  if options.comm then
    conditions[#conditions + 1] = any(comm_fields, '%s ~ "%s"', options.comm)
  end
  return #conditions > 0 and table.concat(conditions, " && ") or nil
end

local latencies = aggregate.new {
  name = "wakeup", "count", "minimum", "average", "p50", "p99", "maximum",
  by = options.by == "task" and { "comm", "pid" } or "comm", unit = "ns", max = 100000,
  titles = { count = "wakeups", comm = "task" },
}
local all = aggregate.new { "count", "histogram", unit = "ns" }
-- By CPU, the task that the last switch recorded there has put on it.
local on_cpu = {}
local still_running, unseen = 0, 0

local switch_filter = task_filter({ "prev_pid", "next_pid" }, { "prev_comm", "next_comm" })
local wakeup_filter = task_filter({ "pid" }, { "comm" })

local wakeups = trace:pair {
  start = {
    { event = "sched:sched_" .. options.from, filter = wakeup_filter },
    { event = "sched:sched_wakeup_new", filter = wakeup_filter },
  },
  stop = { event = "sched:sched_switch", filter = switch_filter, key = "next_pid" },
  cancel = { event = "sched:sched_switch", filter = switch_filter, key = "prev_pid" },
  key = "pid",
  max = 1000000,
  into = { latencies, all },
  on_dropped = function(how, pid, _, switch)
    if how == "cancelled" then
      if on_cpu[switch.common_cpu] == pid then
        -- It was woken while it ran, and went on running: what follows is another story.
        still_running = still_running + 1
      else
        unseen = unseen + 1
      end
    end
  end,
}

-- Behind the pair, which is told first who was on the CPU before.
trace:on("sched:sched_switch", { "next_pid", "common_cpu", filter = switch_filter },
  function(next_pid, cpu) on_cpu[cpu] = next_pid end)

trace:on_lost(function(lost) on_cpu[lost.cpu] = nil end)

local COLUMN <const> = { max = "maximum", avg = "average", p99 = "p99", count = "count" }

local function print_table()
  print(latencies:text { sort = COLUMN[options.sort], top = options.top })
  if #latencies > options.top then
    print(("... and %d more %s"):format(
      #latencies - options.top, options.by == "task" and "tasks" or "names"))
  end
end

-- Under -f json: an object for each task, all of them, and one for the sums.
local function print_objects(sums)
  for _, row in ipairs(latencies:rows { sort = COLUMN[options.sort] }) do
    trace:print {
      type = "latency",
      comm = row.comm or "(other)",
      pid = row.pid,
      wakeups = row.count,
      min_ns = row.minimum,
      avg_ns = math.floor(row.average),
      p50_ns = row.p50,
      p99_ns = row.p99,
      max_ns = row.maximum,
    }
  end
  sums.type = "wakeups"
  trace:print(sums)
end

trace:at_end(function()
  local counts = wakeups:counts()
  local sums = {
    wakeups = counts.matched, repeated = counts.replaced, still_running = still_running,
    unseen = unseen, voided = counts.voided + counts.evicted, open = counts.open,
  }
  if trace.format == "json" or trace.format == "csv" then
    print_objects(sums)
    return
  end
  if sums.wakeups == 0 then
    print("no wakeup")
  else
    print_table()
  end
  print()
  print(("%d wakeups, %d repeated, %d still running, %d unseen, %d voided, %d open"):format(
    sums.wakeups, sums.repeated, still_running, unseen, sums.voided, sums.open))
  if sums.wakeups > 0 and not options.no_histogram then
    print()
    print("all wakeups, ns")
    print(table.concat(all:lines(), "\n"))
  end
end)
