-- softirqs: how often and how long the kernel's softirqs run
--
-- Softirqs are what interrupts leave for a little later: received packets (NET_RX), ended disk
-- requests (BLOCK), timers (TIMER, HRTIMER), balancing of tasks (SCHED), freeing of what nobody
-- reads any more (RCU). Their time belongs to nobody: it is taken from whatever task is there.
-- Each run lasts from irq:softirq_entry to irq:softirq_exit of its CPU.
--
-- Usage
--   luatrace softirqs.lua [--per-cpu] [--sort total|max|count] [--interval SECONDS]
--   luatrace -d 10 softirqs.lua                    for ten seconds; without -d until Ctrl-C
--   luatrace -c 'ping -f -c 1000 127.0.0.1 -q' softirqs.lua --per-cpu
--
-- Sample output
--   softirq    runs   total     avg     p50     p99     max
--   RCU          98  1.13ms  11.6us  7.62us  66.0us  66.0us
--   NET_RX      997   506us   508ns   451ns   501ns  36.5us
--   TIMER        23   177us  7.69us  5.18us  55.8us  55.8us
--   SCHED         7  92.0us  13.1us  10.7us  23.7us  23.7us
--
--   1125 runs, 1.91ms in all; 0 open, 0 voided
--
--   runs    that have begun and ended; behind it their times, percentiles exact to 1 %. What an
--           interrupt takes in between is part of them
--   open    still running when the table was printed
--   voided  given up, because events were lost
--
--   With luatrace -f json every line is an object, with times in ns; with -f csv a row. As metrics
--   (-f prometheus) the times are there all the time. With --interval every table covers the time
--   since the one before it, and objects and rows have time_ns, its end by the trace's clock.
--
-- Overhead
--   Two events a run, about 0.4 us each, which the interrupted task pays, and about 1 us of CPU
--   time a run here. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local trace = require "tracefs.script"
local units = require "tracefs.units"

-- enum in include/linux/interrupt.h, from 0 on.
local NAMES <const> = {
  [0] = "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
  "RCU",
}
local COLUMN <const> = { total = "sum", max = "maximum", count = "count" }

local parser = argparse("softirqs", "How often and how long softirqs run."):help_max_width(79)
parser:flag("--per-cpu", "A line for each CPU.")
parser:option("--sort", "What comes first."):choices({ "total", "max", "count" }):default("total")
parser:option("--interval", "Print every SECONDS, and start anew."):argname("SECONDS")
  :convert(function(text)
    local seconds = tonumber(text)
    if not seconds or seconds <= 0 then
      return nil, ("--interval takes seconds above 0, not '%s'"):format(text)
    end
    return seconds
  end)
local options = parser:parse(trace.args)

local times = aggregate.new {
  "count", "sum", "average", "p50", "p99", "maximum", name = "softirq",
  by = options.per_cpu and { "softirq", "cpu" } or "softirq", unit = "ns",
  titles = { count = "runs", sum = "total", average = "avg", maximum = "max" }, max = 100000,
}

local function add(delta_ns, vec, cpu)
  local name = NAMES[vec] or tostring(vec)
  if options.per_cpu then
    times:add(delta_ns, name, cpu)
  else
    times:add(delta_ns, name)
  end
end

local runs = trace:pair {
  start = "irq:softirq_entry", stop = "irq:softirq_exit",
  -- Of one kind there is one at a time on a CPU.
  key = { "common_cpu", "vec" }, same_cpu = true,
  on_match = function(delta_ns, key) add(delta_ns, key[2], key[1]) end,
}

-- With --interval: the end of the time that is reported.
local tick

local function print_objects(rows)
  for _, row in ipairs(rows) do
    trace:print {
      type = "softirq", softirq = row.softirq or "(other)", cpu = row.cpu, runs = row.count,
      total_ns = row.sum, avg_ns = math.floor(row.average), p50_ns = row.p50, p99_ns = row.p99,
      max_ns = row.maximum, time_ns = tick,
    }
  end
end

local function report()
  local rows = times:rows { sort = COLUMN[options.sort] }
  if trace.format == "json" or trace.format == "csv" then
    print_objects(rows)
    return
  end
  local count, sum = 0, 0
  for _, row in ipairs(rows) do
    count, sum = count + row.count, sum + row.sum
  end
  if count > 0 then
    print(times:text { sort = COLUMN[options.sort] })
    print()
  end
  local counts = runs:counts()
  print(("%d runs, %s in all; %d open, %d voided"):format(count, units.format(sum, "ns"),
    counts.open, counts.voided))
end

if options.interval then
  trace:every(options.interval, function(now)
    tick = now
    report()
    tick = nil
    -- metrics go on counting
    if trace.format ~= "prometheus" then
      times:reset()
    end
    if trace.format == "text" then
      print()
    end
  end)
end
trace:at_end(report)
