-- make bench: what an event costs in each way of reading it, and what starting costs.
-- Usage: lua spec/bench/run.lua BUILD-FOLDER [--quick] [--runs N] [--only LETTERS]
-- Every way reads its own recording of the same load, in a process of its own, buffer filled
-- and tracing off before the clock starts. The ways take turns, run after run.
local build, options = nil, { runs = 5, events = 400000, only = "abcdefghijklm",
  file_events = 5400000 }
do
  local i = 1
  while arg[i] do
    if arg[i] == "--quick" then
      options.runs, options.events, options.file_events = 1, 20000, 20000
    elseif arg[i] == "--runs" then
      i = i + 1
      options.runs = assert(math.tointeger(arg[i]), "--runs needs a whole number")
    elseif arg[i] == "--only" then
      i = i + 1
      options.only = assert(arg[i], "--only needs letters, such as abc")
    elseif not build and arg[i]:sub(1, 1) ~= "-" then
      build = arg[i]
    else
      io.stderr:write("usage: lua spec/bench/run.lua BUILD [--quick] [--runs N] [--only LETTERS]\n")
      os.exit(2)
    end
    i = i + 1
  end
  build = build or os.getenv("LUATRACE_BUILD") or "build"
end

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/?.so;" .. package.cpath
local files = dofile("spec/bench/files.lua")
local traced = dofile("spec/bench/traced.lua")
local booted = dofile("spec/bench/booted.lua")
local process = dofile("spec/bench/process.lua")
local tracefs = require("tracefs")

local quote, command, parse, run = process.quote, process.command, process.parse, process.run
local read_file = process.read_file

local function capture(text)
  local pipe = assert(io.popen(text))
  local output = pipe:read("a")
  pipe:close()
  return output
end

local function has_program(name)
  return os.execute("command -v " .. quote(name) .. " >/dev/null 2>&1") == true
end

-- ------------------------------------------------------------------------------------------
-- The loads
-- ------------------------------------------------------------------------------------------

local pid = math.tointeger(read_file("/proc/self/stat"):match("^%d+"))
local cpu = math.tointeger(capture("nproc --all")) - 1
-- No kernel has a system call of this number: nobody else makes it, and it is traced all the same.
local NR = 0x100000 + pid

local LOADS = {
  {
    label = "raw_syscalls:sys_enter",
    fields = { "id", "common_pid" },
    filter = ("id == %d"):format(NR),
    fill = command(build .. "/support/load", "--cpu", cpu, "--nr", NR, "syscalls", options.events),
  },
  {
    label = "sched:sched_switch",
    fields = { "prev_pid", "next_pid" },
    filter = 'prev_comm ~ "load-p?ng"',
    fill = command(build .. "/support/load", "--cpu", cpu, "threads", 1, options.events // 2),
  },
}
-- The records of both are below 80 bytes, headers included.
local BUFFER_KB = options.events * 80 // 1024 + 4096

local function work_file(name)
  return ("%s/bench-%d-%s"):format(build, pid, name)
end

local function lua_command(script, ...)
  return ("LUA_PATH=%s LUA_CPATH=%s %s"):format(
    quote("lua/?.lua;lua/?/init.lua;;"),
    quote(build .. "/?.so;;"),
    command(arg[-1], script, ...)
  )
end

-- ------------------------------------------------------------------------------------------
-- The ways of reading. Each returns { events=, cpu_ns= } or nil and the reason.
-- ------------------------------------------------------------------------------------------

local LARGEST_SUBBUF_KB = 64

-- Something reads an instance that is filled already: read(name, system, event, load).
local function filled(read)
  return function(load, subbuf_kb)
    local instance <close> = assert(tracefs.instance_create(("luatrace-bench-%d"):format(pid)))
    local system, name = load.label:match("^(.-):(.*)$")
    assert(instance:trace_off())
    assert(instance:set_clock("mono"))
    if instance:get_subbuf_kb() then
      assert(instance:set_subbuf_kb(subbuf_kb))
    end
    assert(instance:set_buffer_kb(BUFFER_KB))
    assert(instance:set_filter(system, name, load.filter))
    assert(instance:enable(system, name))
    assert(instance:trace_on())
    assert(run(load.fill))
    assert(instance:trace_off())
    local result, why = read(instance:name(), system, name, load)
    if result then
      result.subbuf_kb = instance:get_subbuf_kb() or 4
    end
    return result, why
  end
end

local function through_program(program)
  return filled(function(instance, system, event, load)
    return run(command(build .. "/bench/" .. program, instance, system, event, load.fields[1],
      load.fields[2]))
  end)
end

-- Into a file: `line` is the command for an instance and that file.
local function into_file(line)
  return filled(function(instance)
    local path = work_file("recorded")
    local result, why = run(line(instance, path))
    os.remove(path)
    return result, why
  end)
end

local function through_lua(method)
  return function(load, subbuf_kb)
    return run(
      lua_command(
        "spec/bench/consume.lua", method, load.label, load.fields[1], load.fields[2],
        subbuf_kb, BUFFER_KB, load.filter, load.fill
      )
    )
  end
end

local function through_perf(load)
  local data = work_file("perf.data")
  local ok, why = run(
    command("perf", "record", "-q", "-m", 4096, "-e", load.label, "--filter", load.filter,
      "-o", data) .. " " .. load.fill
  )
  local result
  if ok then
    result, why = run(command("perf", "script", "-s", "spec/bench/perf_handler.py", "-i", data))
  end
  os.remove(data)
  return result, why
end

local function perf_missing()
  if not has_program("perf") then
    return "perf is not installed"
  elseif not capture("perf version --build-options 2>/dev/null"):find("libpython: %[ on") then
    return "this perf cannot run Python"
  end
end

local WAYS = {
  -- libtracefs before 1.8 reads nothing from sub-buffers that are larger than the top level's.
  { letter = "a", what = "C loop: tracefs_iterate_raw_events", subbuf_kb = 4,
    read = through_program("iterate") },
  { letter = "b", what = "the engine alone, in C", target = 0.5, subbuf_kb = LARGEST_SUBBUF_KB,
    read = through_program("engine") },
  { letter = "b", what = "the engine alone, in C", subbuf_kb = 4,
    read = through_program("engine") },
  { letter = "c", what = "Lua value handler", target = 0.9, subbuf_kb = LARGEST_SUBBUF_KB,
    read = through_lua("value") },
  { letter = "c", what = "Lua value handler", subbuf_kb = 4,
    read = through_lua("value") },
  { letter = "d", what = "Lua record handler", target = 2, subbuf_kb = LARGEST_SUBBUF_KB,
    read = through_lua("record") },
  { letter = "e", what = "for ev in session:events()", subbuf_kb = LARGEST_SUBBUF_KB,
    read = through_lua("loop") },
  { letter = "h", what = "session:pair into an aggregate", subbuf_kb = LARGEST_SUBBUF_KB,
    read = through_lua("pair") },
  { letter = "f", what = "perf script, Python handler", target_of_c = 30,
    missing = perf_missing, read = through_perf },
  -- Pages are moved, no event is looked at.
  { letter = "k", what = "plain splice loop into a file", subbuf_kb = 4,
    read = into_file(function(instance, path)
      return command(build .. "/bench/splice", instance, path)
    end) },
  { letter = "k", what = "luatrace record, into its file", target_of_k = 1.2, subbuf_kb = 4,
    read = into_file(function(instance, path)
      return lua_command("spec/bench/record.lua", instance, path)
    end) },
}

-- ------------------------------------------------------------------------------------------
-- Without a kernel
-- ------------------------------------------------------------------------------------------

local REPEATS = options.events * 5

local MEMORY = {}
local function pairs_in_c(open, order)
  return function()
    return run(command(build .. "/bench/pairing", open, REPEATS, order))
  end
end
for _, open in ipairs({ 10, 10000, 1000000 }) do
  MEMORY[#MEMORY + 1] = {
    letter = "h", what = ("pairs in C, %d open"):format(open), target_ns = 1000 / 3,
    is_pair = true, read = pairs_in_c(open, "oldest"),
  }
end
-- Where each access goes to memory that no cache has: looked at ahead, as the records of a stream
-- are, and not.
MEMORY[#MEMORY + 1] = {
  letter = "h", what = "  the last, ended in any order", target_ns = 1000 / 3,
  read = pairs_in_c(1000000, "ahead"),
}
MEMORY[#MEMORY + 1] = {
  letter = "h", what = "  the same, without looking ahead", read = pairs_in_c(1000000, "random"),
}
MEMORY[#MEMORY + 1] = {
  letter = "i", what = "adding to a histogram, from Lua", target_ns = 60,
  read = function()
    return run(lua_command("spec/bench/add.lua", REPEATS))
  end,
}

-- ------------------------------------------------------------------------------------------
-- Starting
-- ------------------------------------------------------------------------------------------

-- A process that attaches one event and ends: { wall_ns=, peak_kb= } or nil and the reason.
local function whole_process(...)
  return process.measure(build .. "/bench/measure", work_file("measure"), ...)
end

local STARTS = {
  {
    letter = "g",
    what = "luatrace -e, one event, to the end",
    target_ms = 60,
    target_mb = 12,
    read = function()
      return whole_process(build .. "/luatrace", "-q", "-e",
        'on("sched:sched_switch", function() end) at_start(stop)')
    end,
  },
  {
    letter = "g",
    what = "bpftrace -e, one event, to the end",
    missing = function()
      return not has_program("bpftrace") and "bpftrace is not installed" or nil
    end,
    read = function()
      return whole_process("bpftrace", "-e",
        "BEGIN { exit(); } tracepoint:sched:sched_switch { @ = count(); }")
    end,
  },
}

-- ------------------------------------------------------------------------------------------
-- Runs
-- ------------------------------------------------------------------------------------------

local rows = {}
for _, load in ipairs(LOADS) do
  for _, way in ipairs(WAYS) do
    if options.only:find(way.letter, 1, true) then
      rows[#rows + 1] = { load = load, way = way, samples = {} }
    end
  end
end
for _, memory in ipairs(MEMORY) do
  if options.only:find(memory.letter, 1, true) then
    rows[#rows + 1] = { memory = memory, samples = {} }
  end
end
local bench = {
  build = build, runs = options.runs, events = options.events, file_events = options.file_events,
  nr = NR, cpu = cpu,
  work_file = work_file, command = command, lua_command = lua_command, run = run,
  measure = whole_process,
  has_program = has_program, perf_missing = perf_missing,
  read_figures = function(path) return parse(read_file(path)) end,
}
for _, file in ipairs(options.only:find("j", 1, true) and files.rows(bench) or {}) do
  rows[#rows + 1] = { file = file, samples = {} }
end
for _, way in ipairs(options.only:find("l", 1, true) and traced.rows(bench) or {}) do
  rows[#rows + 1] = { traced = way, samples = {} }
end
for _, way in ipairs(options.only:find("m", 1, true) and booted.rows(bench) or {}) do
  rows[#rows + 1] = { traced = way, samples = {} }
end
if options.only:find("g", 1, true) then
  for _, start in ipairs(STARTS) do
    rows[#rows + 1] = { start = start, samples = {} }
  end
end
-- What a row is of, whichever kind it is.
local function subject_of(row)
  return row.way or row.memory or row.file or row.traced or row.start
end
for _, row in ipairs(rows) do
  local missing = subject_of(row).missing
  row.why_not = missing and missing() or nil
end

for i = 1, options.runs do
  io.stderr:write(("run %d of %d\n"):format(i, options.runs))
  for _, row in ipairs(rows) do
    if not row.why_not then
      local result, why
      if row.way then
        result, why = row.way.read(row.load, row.way.subbuf_kb)
        if result and (result.events or 0) == 0 then
          result, why = nil, "it read no event"
        end
      else
        result, why = subject_of(row).read()
      end
      if result then
        row.samples[#row.samples + 1] = result
      else
        row.why_not = why
      end
    end
  end
end
files.clean(bench)

-- ------------------------------------------------------------------------------------------
-- The table
-- ------------------------------------------------------------------------------------------

local function spread(samples, value)
  local values = {}
  for i, sample in ipairs(samples) do
    values[i] = value(sample)
  end
  table.sort(values)
  local n = #values
  return (values[(n + 1) // 2] + values[n // 2 + 1]) / 2, values[1], values[n]
end

local function cost(sample)
  return sample.cpu_ns / sample.events
end

for _, row in ipairs(rows) do
  if (row.way or row.memory) and not row.why_not then
    row.median, row.least, row.most = spread(row.samples, cost)
  elseif row.file and not row.why_not then
    files.settle(row, spread)
  elseif row.traced and not row.why_not then
    traced.settle(row, spread)
  end
end

-- The measured row of a letter on the same load, the first one of that letter.
local function median_of(letter, load)
  for _, row in ipairs(rows) do
    if row.way and row.way.letter == letter and row.load == load then
      return row.median
    end
  end
end

local function grouped(number)
  local digits = ("%d"):format(math.floor(number + 0.5))
  return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

local function verdict(missed_by)
  return missed_by <= 0 and "met" or ("missed by %.0f %%"):format(missed_by * 100)
end

local lines = {}
local LINE = "%-1s  %-36s %7s %9s %17s %12s %7s  %-12s %s"
local function add(...)
  lines[#lines + 1] = (LINE:format(...):gsub("%s+$", ""))
end

local function add_way(row)
  local way = row.way
  local base, value_handler = median_of("a", row.load), median_of("c", row.load)
  local target, result = "", ""
  if way.target then
    target = ("<= %.1f a"):format(way.target)
    result = base and verdict(row.median / base / way.target - 1) or "a was not measured"
  elseif way.target_of_k then
    local splice = median_of("k", row.load)
    target = ("<= %.1f splice"):format(way.target_of_k)
    result = splice and verdict(row.median / splice / way.target_of_k - 1)
      or "the loop was not measured"
  elseif way.target_of_c then
    local times = value_handler and row.median / value_handler
    target = (">= %d c"):format(way.target_of_c)
    result = times and ("%s, %.0f c"):format(verdict(1 - times / way.target_of_c), times)
      or "c was not measured"
  end
  local subbuf_kb = row.samples[1].subbuf_kb
  add(
    way.letter, way.what,
    subbuf_kb and ("%d KiB"):format(subbuf_kb) or "",
    ("%.1f"):format(row.median),
    ("%.1f - %.1f"):format(row.least, row.most),
    grouped(1e9 / row.median),
    base and ("%.2f"):format(row.median / base) or "-",
    target, result
  )
end

local function add_start(row)
  local start = row.start
  local ms, least, most = spread(row.samples, function(sample) return sample.wall_ns / 1e6 end)
  local mb = spread(row.samples, function(sample) return sample.peak_kb / 1024 end)
  local function row_of(what, unit, value, low, high, target)
    add("g", what, unit, ("%.1f"):format(value), low and ("%.1f - %.1f"):format(low, high) or "",
      "", "", target and ("<= %d %s"):format(target, unit) or "",
      target and verdict(value / target - 1) or "")
  end
  row_of(start.what, "ms", ms, least, most, start.target_ms)
  row_of("  its peak memory", "MB", mb, nil, nil, start.target_mb)
end

local function add_memory(row)
  local memory = row.memory
  add(memory.letter, memory.what, "", ("%.1f"):format(row.median),
    ("%.1f - %.1f"):format(row.least, row.most), grouped(1e9 / row.median), "",
    memory.target_ns and ("<= %.0f ns"):format(memory.target_ns) or "",
    memory.target_ns and verdict(row.median / memory.target_ns - 1) or "")
end

-- How the cost of a pair grows with the number of those that are open.
local function add_growth()
  local least, most
  for _, row in ipairs(rows) do
    if row.memory and row.memory.is_pair and row.median then
      least = math.min(least or row.median, row.median)
      most = math.max(most or row.median, row.median)
    end
  end
  if least then
    add("h", "slowest to fastest of these", "", ("%.1f"):format(most / least), "", "", "", "<= 3",
      verdict(most / least / 3 - 1))
  end
end

local kernel = read_file("/proc/sys/kernel/osrelease"):gsub("%s+$", "")
lines[1] = ("luatrace bench: Linux %s, %s, medians of %d interleaved run%s, %s events each"):format(
  kernel, _VERSION, options.runs, options.runs == 1 and "" or "s", grouped(options.events))
if options.only:find("j", 1, true) then
  lines[1] = ("%s, %s in a file"):format(lines[1], grouped(options.file_events))
end
lines[2] = "CPU time (user + system) of the reading thread, two fields read of every event"
lines[3] = ""
add("", "way of reading", "sub-buf", "ns/event", "least - most", "events/s", "of a", "target", "")

local section
for at, row in ipairs(rows) do
  local heading = row.load and row.load.label
    or row.file and "file: the whole process, for each event of a trace file"
    or row.traced and row.traced.heading
    or row.memory and "memory: in the process alone, for each pair or value"
    or "starting: wall time and memory of the process"
  if heading ~= section then
    section = heading
    add("", heading, "", "", "", "", "", "", "")
  end
  if row.why_not then
    local subject = subject_of(row)
    add(subject.letter, subject.what, "", "-", "", "", "", "", row.why_not)
  elseif row.way then
    add_way(row)
  elseif row.memory then
    add_memory(row)
  elseif row.file then
    files.add(rows, row, add)
  elseif row.traced then
    traced.add(rows, row, add)
  else
    add_start(row)
  end
  if (row.memory or {}).is_pair and not (rows[at + 1] and (rows[at + 1].memory or {}).is_pair) then
    add_growth()
  end
end
print(table.concat(lines, "\n"))
