-- execsnoop: programs that are started, by whom
--
-- A line for each successful exec, from sched:sched_process_exec. Who started the process is
-- taken from sched:sched_process_fork: no look into /proc, which comes too late for a program
-- that has ended. Attempts that fail (no such file) are not seen.
--
-- Usage
--   luatrace execsnoop.lua [--file GLOB] [--summary]
--   luatrace -d 10 execsnoop.lua              for ten seconds; without -d until Ctrl-C
--   luatrace execsnoop.lua --file '/usr/bin/*'
--   luatrace -c 'make' execsnoop.lua --summary
--
-- Sample output (luatrace -c 'for i in 1 2; do /bin/true; done' execsnoop.lua)
--      time     pid  parent file
--     0.000   23335       - /bin/sh
--     0.010   23336   23335 /bin/true
--     0.091   23337   23335 /bin/true
--
--   3 programs started
--
--   time    seconds since the first line
--   parent  the process that made this one, of several threads the one that did it; "-" when
--           that was before the trace began, or when events were lost since. A process that was
--           there already, or execs again, has the parent that it had.
--   file    as the caller named it, which may be relative to where the caller was; control
--           characters and other bytes that are no text are shown as escapes
--
--   With --summary there is a line for each file instead, with how often it was started.
--   With luatrace -f json every line is an object, with time_ns of the trace's clock; with -f csv
--   a row, with -f perfetto an instant. With -f svg the files are bars, with -f prometheus
--   counters.
--
-- Overhead
--   Three events for each process that is started. That costs a few microseconds beside the
--   hundreds that a fork, an exec and an exit take.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local trace = require "tracefs.script"

local parser = argparse("execsnoop", "Programs that are started, by whom."):help_max_width(79)
parser:option("--file", "Only files whose name matches, as '/usr/bin/*'."):argname("GLOB")
parser:flag("--summary", "How often each file was started, instead of a line for each.")
local options = parser:parse(trace.args)

if options.file and options.file:find '"' then
  error("--file: a name with a quote in it cannot be told to the kernel", 0)
end

local files = aggregate.new {
  "count", by = "file", name = "programs started", titles = { count = "starts" },
}
local parents, started, first_ts = {}, 0, nil

trace:on("sched:sched_process_fork", { "parent_pid", "child_pid" }, function(parent, child)
  parents[child] = parent
end)

trace:on("sched:sched_process_exit", { "pid" }, function(pid)
  parents[pid] = nil
end)

-- A pid may have been used again in the gap.
trace:on_lost(function() parents = {} end)

-- The first row of a CSV table says which columns there are.
local absent = trace.format == "csv" and "" or nil
local has_objects = trace.format == "json" or trace.format == "csv"
-- Metrics and pictures are of how often.
local has_sums = options.summary or trace.format == "prometheus" or trace.format == "svg"

local function show(ts, pid, file)
  if has_objects or trace.format == "perfetto" then
    trace:print {
      type = "exec", time_ns = ts, pid = pid, parent = parents[pid] or absent, file = file,
    }
    return
  end
  if not first_ts then
    first_ts = ts
    print("    time     pid  parent file")
  end
  print(("%8.3f %7d %7s %s"):format((ts - first_ts) / 1e9, pid, parents[pid] or "-",
    escape.line(file)))
end

trace:on("sched:sched_process_exec", {
  "common_timestamp", "pid", "filename",
  filter = options.file and { filename = { ["~"] = options.file } } or nil,
}, function(ts, pid, file)
  started = started + 1
  if has_sums then
    files:count(file)
  else
    show(ts, pid, file)
  end
end)

trace:at_end(function()
  if has_objects then
    for _, row in ipairs(options.summary and files:rows() or {}) do
      trace:print { type = "file", file = row.file or "(other)", starts = row.count }
    end
    if trace.format ~= "csv" then
      trace:print { type = "total", starts = started }
    end
    return
  end
  if trace.format == "svg" or trace.format == "prometheus" then
    trace:print(files)
  elseif options.summary and started > 0 then
    print(files:text { sort = "count" })
  end
  if started > 0 then
    print()
  end
  print(("%d programs started"):format(started))
end)
