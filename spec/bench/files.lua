--- make bench, letter j: one trace file, read by luatrace, trace-cmd and perf, each in a process
--- of its own; the CPU time of the whole process counts.
local files = {}

local LABEL <const> = "raw_syscalls:sys_enter"

-- Formats are parsed when they are first used.
local OPEN_MS <const> = 30

-- In this order; "base" is what the targets are in terms of.
local WAYS <const> = {
  { name = "handler", what = "luatrace -i, two-field handler", faster = 8, than = "base" },
  { name = "report", what = "luatrace report", faster = 2, than = "base" },
  { name = "base", what = "trace-cmd report", program = "trace-cmd" },
  { name = "perf", what = "perf script, Python, two fields", program = "perf", slower = 30,
    than = "handler" },
}

-- Reads two fields of every record, and says how many there were.
local HANDLER <const> = [[
  local count, sum = 0, 0
  on("raw_syscalls:sys_enter", { "id", "common_pid" }, function(id, pid)
    count, sum = count + 1, sum + id + pid
  end)
  at_end(function() print("events=" .. count) end)
]]

---@param bench table what spec/bench/run.lua has for it: build, file_events, nr, cpu, work_file,
---  command, lua_command, run, measure, has_program, perf_missing
---@return table[] rows with letter, what, read
function files.rows(bench)
  local luatrace, total = bench.build .. "/luatrace", bench.file_events
  local big, small = bench.work_file "big.dat", bench.work_file "small.dat"
  local perf_data = bench.work_file "kept-perf.data"
  -- by file, once it is made
  local counts, problem = {}, nil

  local function load_command(events)
    return bench.build .. "/support/load", "--cpu", bench.cpu, "--nr", bench.nr, "--limit", 300,
      "syscalls", events
  end

  local function count_of(path)
    local said, why = bench.run(bench.command(luatrace, "-q", "-i", path, "-e", HANDLER))
    return said and said.events, why
  end

  local function make(path, events)
    if counts[path] or problem then
      return counts[path], problem
    end
    local ok, why = bench.run(bench.command(luatrace, "record", "-q", "-e", LABEL, "-f",
      ("id == %d"):format(bench.nr), "-b", 65536, "-o", path, load_command(events)))
    if ok then
      counts[path], why = count_of(path)
    end
    -- the rare loss on a busy machine takes nothing away
    if (counts[path] or 0) < events // 2 then
      counts[path], problem = nil, "no file of events: " .. tostring(why)
    end
    return counts[path], problem
  end

  local function make_perf()
    if counts[perf_data] then
      return counts[perf_data]
    end
    local ok, why = bench.run(bench.command("perf", "record", "-q", "-m", 4096, "-e", LABEL,
      "--filter", ("id == %d"):format(bench.nr), "-o", perf_data, load_command(total // 10)))
    counts[perf_data] = ok and total // 10
    return counts[perf_data], why
  end

  local function measured(count, ...)
    local result, why = bench.measure(...)
    if not result then
      return nil, why
    end
    result.events, result.cpu_ns = count, result.user_ns + result.sys_ns
    return result
  end

  local function reader(path, events, ...)
    local words = table.pack(...)
    return function()
      local count, why = make(path, events)
      if not count then
        return nil, why
      end
      return measured(count, table.unpack(words, 1, words.n))
    end
  end

  local commands = {
    handler = reader(big, total, luatrace, "-q", "-i", big, "-e", HANDLER),
    report = reader(big, total, luatrace, "report", "-q", "-o", "/dev/null", big),
    base = reader(big, total, "sh", "-c", 'exec trace-cmd report "$0" >/dev/null', big),
    perf = function()
      local count, why = make_perf()
      if not count then
        return nil, why
      end
      return measured(count, "perf", "script", "-s", "spec/bench/perf_handler.py", "-i", perf_data)
    end,
  }
  local rows = {}
  for _, way in ipairs(WAYS) do
    rows[#rows + 1] = {
      letter = "j", what = way.what, way = way, read = commands[way.name],
      missing = function()
        if way.name == "perf" then
          return bench.perf_missing()
        elseif way.program and not bench.has_program(way.program) then
          return way.program .. " is not installed"
        end
      end,
    }
  end
  rows[#rows + 1] = {
    letter = "j", what = "opening it, to the first record", is_opening = true,
    read = function()
      local count, why = make(big, total)
      if not count then
        return nil, why
      end
      return bench.run(bench.lua_command("spec/bench/open.lua", big, LABEL, "id"))
    end,
  }
  rows[#rows + 1] = {
    letter = "j", what = "memory for a tenth of the events", is_memory = true,
    read = reader(small, total // 10, luatrace, "-q", "-i", small, "-e", HANDLER),
  }
  rows[#rows + 1] = {
    letter = "j", what = "memory for all of them", is_memory = true, is_large = true,
    read = reader(big, total, luatrace, "-q", "-i", big, "-e", HANDLER),
  }
  return rows
end

--- Removes what was made.
---@param bench table as for rows()
function files.clean(bench)
  for _, name in ipairs { "big.dat", "small.dat", "kept-perf.data" } do
    os.remove(bench.work_file(name))
  end
end

local function median_of(rows, matches)
  for _, row in ipairs(rows) do
    if row.file and matches(row.file) then
      return row.median
    end
  end
end

-- How many times faster or slower it is than another way, held against the target.
local function compare(rows, row)
  local way = row.file.way
  local other = way and way.than and median_of(rows, function(file)
    return file.way and file.way.name == way.than
  end)
  if not other then
    return way and way.than and "nothing to compare with" or "", nil
  end
  local times = way.faster and other / row.median or row.median / other
  local wanted = way.faster or way.slower
  return ("%s, %.1f times"):format(times >= wanted and "met" or ("missed by %.0f %%"):format(
    (1 - times / wanted) * 100), times),
    (">= %dx"):format(wanted)
end

--- The median of a row that has been measured, before any line is added.
---@param row table
---@param spread fun(samples: table[], value: fun(sample: table): number): number, number, number
function files.settle(row, spread)
  row.median, row.least, row.most = spread(row.samples, function(sample)
    if row.file.is_memory then
      return sample.peak_kb / 1024
    end
    return row.file.is_opening and sample.cpu_ns / 1e6 or sample.cpu_ns / sample.events
  end)
end

--- Adds the line of a row that has been measured.
---@param rows table[] all of the benchmark
---@param row table
---@param add fun(...) the columns of a line
function files.add(rows, row, add)
  local file = row.file
  local value, range = ("%.1f"):format(row.median), ("%.1f - %.1f"):format(row.least, row.most)
  if file.is_opening then
    add("j", file.what, "ms", value, range, "", "", ("<= %d ms"):format(OPEN_MS),
      row.median <= OPEN_MS and "met"
        or ("missed by %.0f %%"):format((row.median / OPEN_MS - 1) * 100))
  elseif file.is_memory then
    local tenth = file.is_large and median_of(rows, function(other)
      return other.is_memory and not other.is_large
    end)
    local times = tenth and row.median / tenth
    add("j", file.what, "MB", value, range, "", "", times and "<= 1.2 times" or "",
      times and ("%s, %.2f times"):format(times <= 1.2 and "met" or "missed", times) or "")
  else
    local result, target = compare(rows, row)
    add("j", file.what, "", value, range, ("%d"):format(1e9 // row.median), "", target or "",
      result)
  end
end

return files
