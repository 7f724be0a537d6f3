-- hardirqs: how often and how long the handlers of interrupts run
--
-- A device interrupts a CPU, and a handler of its driver runs: from irq:irq_handler_entry to
-- irq:irq_handler_exit of that CPU, whatever task is there. What handlers leave for a little later
-- is seen by softirqs.lua. What CPUs send to each other, and on x86 the timer of each, are no
-- interrupts of devices and have other events (irq_vectors:*).
--
-- Usage
--   luatrace hardirqs.lua [--per-cpu] [--sort total|max|count] [--interval SECONDS]
--   luatrace -d 10 hardirqs.lua                    for ten seconds; without -d until Ctrl-C
--   luatrace -c 'sync' hardirqs.lua --per-cpu
--
-- Sample output
--   irq name             runs   total     avg     p50     p99     max
--    36 virtio1-req.0     101   128us  1.27us   735ns  4.77us  26.5us
--    39 virtio2-output.0   12  19.1us  1.59us  1.21us  3.90us  3.90us
--
--   113 runs, 147us in all; 0 open, 0 voided
--
--   irq     its number, as in /proc/interrupts, and the name that the driver has given it; one
--           number may have the handlers of several drivers, which all run
--   runs    that have begun and ended; behind it their times, percentiles exact to 1 %
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

local COLUMN <const> = { total = "sum", max = "maximum", count = "count" }

local parser = argparse("hardirqs", "How often and how long the handlers of interrupts run.")
  :help_max_width(79)
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
  "count", "sum", "average", "p50", "p99", "maximum", name = "hardirq",
  by = { "irq", "name", options.per_cpu and "cpu" or nil }, unit = "ns",
  titles = { count = "runs", sum = "total", average = "avg", maximum = "max" }, max = 100000,
}

local runs = trace:pair {
  start = "irq:irq_handler_entry", stop = "irq:irq_handler_exit",
  -- Of one number there is one handler at a time on a CPU.
  key = { "common_cpu", "irq" }, same_cpu = true, carry = "name",
  on_match = function(delta_ns, key, entry)
    if options.per_cpu then
      times:add(delta_ns, key[2], entry.name, key[1])
    else
      times:add(delta_ns, key[2], entry.name)
    end
  end,
}

-- With --interval: the end of the time that is reported.
local tick

local function print_objects(rows)
  for _, row in ipairs(rows) do
    trace:print {
      type = "hardirq", irq = row.irq, name = row.name or "(other)", cpu = row.cpu,
      runs = row.count, total_ns = row.sum, avg_ns = math.floor(row.average), p50_ns = row.p50,
      p99_ns = row.p99, max_ns = row.maximum, time_ns = tick,
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
