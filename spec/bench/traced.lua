--- make bench, letter l: how much more CPU time a load takes when its switches are traced, and what
--- who traces it takes. Two tasks on one CPU pass a byte to and fro, and do nothing else.
local traced = {}

-- From the wakeup of a task to the switch to it, matched here or by the kernel.
local PAIR <const> = [[
  local waits = require("tracefs.aggregate").new { "count", "p50", "p99", "histogram", unit = "ns" }
  local filter = { wakeup = 'comm ~ "load-p?ng"', switch = 'next_comm ~ "load-p?ng"' }
  local pair = pair {
    where = "WHERE", key = { start = "pid", stop = "next_pid" }, into = waits,
    start = { event = "sched:sched_waking", filter = filter.wakeup },
    stop = { event = "sched:sched_switch", filter = filter.switch },
  }
  at_end(function() print(waits:text {}) end)
]]

-- What bpftrace's own runqlat asks for, in the syntax of all of its versions.
local BPFTRACE <const> = [[
  tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @since[args->pid] = nsecs; }
  tracepoint:sched:sched_switch {
    if (args->prev_state == 0) { @since[args->prev_pid] = nsecs; }
    $since = @since[args->next_pid];
    if ($since) { @usecs = hist((nsecs - $since) / 1000); }
    delete(@since[args->next_pid]);
  }
]]

---@param bench table what spec/bench/run.lua has for it: build, events, cpu, work_file, command,
---  measure, read_figures, has_program
---@return table[] rows with letter, what, read
function traced.rows(bench)
  local luatrace = bench.build .. "/luatrace"
  local inner = bench.work_file "load"
  -- an event is a switch, and two of them are one to and fro
  -- in plain words: bpftrace's -c knows no quotes
  local load = ("%s/bench/measure %s %s/support/load --cpu %d threads 1 %d"):format(bench.build,
    inner, bench.build, bench.cpu, bench.events // 2)

  -- The tracer runs the load; what is left of its CPU time without the load's is its own.
  local function tracing(...)
    local words = table.pack(...)
    return function()
      local whole, why = bench.measure(table.unpack(words, 1, words.n))
      local figures = bench.read_figures(inner)
      os.remove(inner)
      if not whole then
        return nil, why
      elseif figures.status ~= 0 then
        return nil, "the load did not run"
      end
      local own = whole.user_ns + whole.sys_ns - figures.user_ns - figures.sys_ns
      return {
        events = bench.events, load_ns = figures.user_ns + figures.sys_ns,
        own_ns = math.max(own, 0),
      }
    end
  end

  local function pair(where)
    return tracing(luatrace, "-q", "-o", "/dev/null", "-c", load, "-e",
      (PAIR:gsub("WHERE", where)))
  end

  local function without_bpftrace()
    return not bench.has_program "bpftrace" and "bpftrace is not installed" or nil
  end

  return {
    { letter = "l", what = "not traced", is_base = true, read = tracing("sh", "-c", load) },
    { letter = "l", what = "luatrace runqlat.lua", is_runqlat = true,
      read = tracing(luatrace, "-q", "-o", "/dev/null", "-c", load, "examples/runqlat.lua") },
    { letter = "l", what = "bpftrace, the same question", is_peer = true,
      missing = without_bpftrace,
      read = tracing("bpftrace", "-q", "-o", "/dev/null", "-c", load, "-e", BPFTRACE) },
    { letter = "l", what = 'a pair, where = "lua"', read = pair "lua" },
    { letter = "l", what = 'a pair, where = "kernel"', read = pair "kernel" },
  }
end

local function median_of(rows, flag)
  for _, row in ipairs(rows) do
    if row.traced and row.traced[flag] then
      return row.median
    end
  end
end

--- The medians of a row that has been measured, before any line is added.
---@param row table
---@param spread fun(samples: table[], value: fun(sample: table): number): number, number, number
function traced.settle(row, spread)
  row.median, row.least, row.most = spread(row.samples, function(sample)
    return sample.load_ns / sample.events
  end)
  row.own = spread(row.samples, function(sample) return sample.own_ns / sample.events end)
end

--- Adds the lines of a row that has been measured: the load's time for an event, and the tracer's.
---@param rows table[] all of the benchmark
---@param row table
---@param add fun(...) the columns of a line
function traced.add(rows, row, add)
  local way = row.traced
  local base, peer = median_of(rows, "is_base"), median_of(rows, "is_peer")
  local target, result = "", ""
  if way.is_runqlat and base then
    target = "<= bpftrace"
    result = peer and ("%s, %+.0f and %+.0f ns"):format(row.median <= peer and "met" or "missed",
      row.median - base, peer - base) or "nothing to compare with"
  end
  add("l", way.what, "", ("%.1f"):format(row.median),
    ("%.1f - %.1f"):format(row.least, row.most), ("%d"):format(1e9 // row.median),
    base and ("%.2f"):format(row.median / base) or "-", target, result)
  if not way.is_base then
    add("l", "  its own CPU time", "", ("%.1f"):format(row.own), "", "", "", "", "")
  end
end

return traced
