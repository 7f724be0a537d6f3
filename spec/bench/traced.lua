--- make bench, letters l and m: how much more CPU time a load takes when its switches are traced,
--- and what who traces it takes. Two tasks on one CPU pass a byte to and fro, and do nothing else.
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

---@param bench table what spec/bench/run.lua has for it: build, events, cpu, work_file, measure,
---  read_figures, has_program; marginal: what starting and ending take is not to be in the figures
---@return table[] rows with letter, what, read; is_booted: those that booted_guest.lua takes too
function traced.rows(bench)
  local luatrace = bench.build .. "/luatrace"
  local inner = bench.work_file "load"

  -- An event is a switch, and two of them are one to and fro. In plain words: bpftrace's -c knows
  -- no quotes.
  local function load_of(events)
    return ("%s/bench/measure %s %s/support/load --cpu %d threads 1 %d"):format(bench.build, inner,
      bench.build, bench.cpu, events // 2)
  end

  -- The tracer runs the load; what is left of its CPU time without the load's is its own.
  local function measure(words, events)
    words = table.move(words, 1, words.n, 1, {})
    for i, word in ipairs(words) do
      words[i] = word == traced and load_of(events) or word
    end
    local whole, why = bench.measure(table.unpack(words))
    local figures = bench.read_figures(inner)
    os.remove(inner)
    if not whole then
      return nil, why
    elseif figures.status ~= 0 then
      return nil, "the load did not run"
    end
    local load_ns = figures.user_ns + figures.sys_ns
    return { events = events, load_ns = load_ns, own_ns = whole.user_ns + whole.sys_ns - load_ns }
  end

  -- The word `traced` of the tracer's command line is the load.
  local function tracing(...)
    local words = table.pack(...)
    return function()
      local sample, why = measure(words, bench.events)
      local small
      if sample and bench.marginal then
        small, why = measure(words, bench.events // 10)
      end
      if why then
        return nil, why
      end
      small = small or { events = 0, load_ns = 0, own_ns = 0 }
      return {
        events = sample.events - small.events, load_ns = sample.load_ns - small.load_ns,
        own_ns = math.max(sample.own_ns - small.own_ns, 0),
      }
    end
  end

  local function pair(where)
    return tracing(luatrace, "-q", "-o", "/dev/null", "-c", traced, "-e",
      (PAIR:gsub("WHERE", where)))
  end

  local function without_bpftrace()
    return not bench.has_program "bpftrace" and "bpftrace is not installed" or nil
  end

  local rows = {
    { letter = "l", what = "not traced", is_base = true, is_booted = true,
      read = tracing("sh", "-c", traced) },
    { letter = "l", what = "luatrace runqlat.lua", is_runqlat = true,
      read = tracing(luatrace, "-q", "-o", "/dev/null", "-c", traced, "examples/runqlat.lua") },
    { letter = "l", what = "bpftrace, the same question", is_peer = true,
      missing = without_bpftrace,
      read = tracing("bpftrace", "-q", "-o", "/dev/null", "-c", traced, "-e", BPFTRACE) },
    { letter = "l", what = 'a pair, where = "lua"', is_booted = true, read = pair "lua" },
    { letter = "l", what = 'a pair, where = "kernel"', is_booted = true, read = pair "kernel" },
  }
  for _, row in ipairs(rows) do
    row.heading = "traced: CPU time of the load, for each switch of its two tasks"
  end
  return rows
end

local function median_of(rows, letter, flag)
  for _, row in ipairs(rows) do
    if row.traced and row.traced.letter == letter and row.traced[flag] then
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
  local base = median_of(rows, way.letter, "is_base")
  local peer = median_of(rows, way.letter, "is_peer")
  local target, result = "", ""
  if way.is_runqlat and base then
    target = "<= bpftrace"
    result = peer and ("%s, %+.0f and %+.0f ns"):format(row.median <= peer and "met" or "missed",
      row.median - base, peer - base) or "nothing to compare with"
  end
  add(way.letter, way.what, "", ("%.1f"):format(row.median),
    ("%.1f - %.1f"):format(row.least, row.most), ("%d"):format(1e9 // row.median),
    base and ("%.2f"):format(row.median / base) or "-", target, result)
  if not way.is_base then
    add(way.letter, "  the tracer's own", "", ("%.1f"):format(row.own), "", "", "", "", "")
  end
end

return traced
