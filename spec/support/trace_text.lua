--- What an example should find, from the text that the kernel itself makes of the same records: its
--- files `trace` of the run's own instance, which nothing of this project has read or written.
local assert = require "luassert"
local helper = require "spec.support.helper"

local trace_text = {}

-- Before luatrace reads anything: makes the load, ends the recording, and has the kernel print all
-- of it twice, with fields and with whole nanoseconds.
local PRINT <const> = [[
  set -e
  echo $PPID >$2/own
  sh -c "$1" >&2
  echo 0 >$3/tracing_on
  cat $3/per_cpu/cpu*/stats >$2/stats
  cat $3/trace >$2/text
  echo 1 >$3/options/raw
  cat $3/trace >$2/raw
]]

local SCRIPT <const> = [[
  local trace = require "tracefs.script"
  trace:at_start(function()
    assert(os.execute("exec " .. %q .. trace.instance:dir()))
    trace:finish()
  end)
  dofile %q
]]

---@class trace_text.line
---@field ns integer
---@field pid integer
---@field cpu integer
---@field flags string what the kernel shows of the context: "h" at its third place is an interrupt
---@field event string
---@field text string what the event's own format makes of its fields
---@field stack? string the kernel's, if it was recorded: functions with ";" between them, the
--- outermost first

local HEAD <const> = "^.*%-(%d+) +%[(%d+)%] (%S+) +%d+%.%d+: "

-- The lines without those about the file, and by line the functions below it. Names of tasks may
-- have line ends in them.
local function lines_of(path, head)
  local list, stacks = {}, {}
  for line in helper.read_file(path):gmatch "[^\n]+" do
    local frame = line:match "^ => (%S+)"
    if frame then
      stacks[#list] = frame .. (stacks[#list] and ";" .. stacks[#list] or "")
    elseif line:find(head) then
      list[#list + 1] = line
    elseif #list > 0 and not line:find "^#" then
      list[#list] = list[#list] .. "\n" .. line
    end
  end
  return list, stacks
end

-- Without what luatrace has done itself, and how many lines that were. Of an interrupt it does not
-- know, and the switches of tasks are everybody's.
local function parse(dir)
  local own = math.tointeger(helper.read_file(dir .. "/own"))
  local formatted, stacks = lines_of(dir .. "/text", HEAD)
  local raw = lines_of(dir .. "/raw", "^%d+ %d+ %d+ ")
  local found, last, left_out = {}, {}, 0
  assert(#formatted == #raw, ("%d lines, %d of them with ns"):format(#formatted, #raw))
  for i, line in ipairs(formatted) do
    local pid, cpu, flags, event, text = line:match(HEAD .. "([%w_<]+):? ?(.*)$")
    local same_pid, same_cpu, ns = raw[i]:match "^(%d+) (%d+) (%d+) "
    assert(pid and tonumber(pid) == tonumber(same_pid) and tonumber(cpu) == tonumber(same_cpu),
      line .. "\n" .. raw[i])
    pid = math.tointeger(pid)
    if event == "<stack" then
      last[cpu].stack = stacks[i]
    else
      last[cpu] = {
        ns = math.tointeger(ns), pid = pid, cpu = math.tointeger(cpu), flags = flags, event = event,
        text = text,
      }
      local is_own = pid == own and flags:find "^..%." and event ~= "sched_switch"
      left_out = left_out + (is_own and 1 or 0)
      found[#found + 1] = not is_own and last[cpu] or nil
    end
  end
  return found, left_out
end

--- Runs an example with JSON as its output, and gives both sides.
---@param load string the load, as a command of the shell; what it says is on stderr
---@param words table the example and its options
---@return table objects what the example has printed, by type a list
---@return trace_text.line[] lines
---@return string err
function trace_text.run(load, words)
  local dir = helper.tmpdir()
  helper.write_file(dir .. "/print.sh", PRINT)
  helper.write_file(dir .. "/script.lua", SCRIPT:format(
    ("sh %s/print.sh %s %s "):format(dir, helper.quote(load), dir), words[1]))
  local status, out, err = helper.run(table.move(words, 2, #words, 6, {
    "-f", "json", "-b", "16384", dir .. "/script.lua", timeout = 60,
  }))
  assert(status == 0, err)
  local stats = helper.read_file(dir .. "/stats")
  for _, name in ipairs { "read events", "overrun", "dropped events" } do
    for count in stats:gmatch(name .. ": (%d+)") do
      assert(count == "0", ("the text is not whole: %s %s"):format(count, name))
    end
  end
  local objects = setmetatable({}, { __index = function(known, kind)
    known[kind] = {}
    return known[kind]
  end })
  for line in out:gmatch "[^\n]+" do
    local object = assert(require("dkjson").decode(line))
    table.insert(objects[object.type], object)
  end
  local lines, own = parse(dir)
  assert.equal(objects.stats[1].own, own, "what luatrace has done itself")
  return objects, lines, err
end

--- Whole numbers, and what an aggregate says of them.
---@param list integer[]
---@return table sums count, sum, min, max, avg, and percentile(p)
function trace_text.sums(list)
  table.sort(list)
  local sum = 0
  for _, value in ipairs(list) do
    sum = sum + value
  end
  return {
    count = #list, sum = sum, min = list[1], max = list[#list], avg = sum // math.max(#list, 1),
    -- the smallest value that so many are not above
    percentile = function(p) return list[math.max(math.ceil(#list * p / 100), 1)] end,
  }
end

--- Is a row of an example what the list makes? Percentiles may be too large by 1 %.
---@param list integer[]
---@param row table
---@param count string the row's name for how many there are
function trace_text.check(list, row, count)
  local sums = trace_text.sums(list)
  local names = { min_ns = sums.min, max_ns = sums.max, avg_ns = sums.avg, total_ns = sums.sum }
  assert.equal(sums.count, row[count])
  for name, value in pairs(names) do
    assert.equal(row[name] and value, row[name], name)
  end
  for name, value in pairs(row) do
    local p = name:match "^p([%d.]+)_ns$"
    if p then
      local exact = sums.percentile(tonumber(p))
      assert.is_true(value >= exact and (value - exact) * 100 <= exact,
        ("%s is %d, not %d"):format(name, value, exact))
    end
  end
end

--- Intervals from a start to a stop: the latest start of each key counts, and counts once.
---@param lines trace_text.line[]
---@param start fun(line: trace_text.line): string? the key of a line that is a start
---@param stop fun(line: trace_text.line): string? the key of one that is a stop
---@param group fun(from: trace_text.line, to: trace_text.line): string?
---@return table<string, integer[]> by group
function trace_text.intervals(lines, start, stop, group)
  local began, found = {}, {}
  for _, line in ipairs(lines) do
    local key = stop(line)
    local from = key and began[key]
    if from then
      began[key] = nil
      local name = group(from, line)
      if name then
        found[name] = found[name] or {}
        table.insert(found[name], line.ns - from.ns)
      end
    end
    key = start(line)
    if key then
      began[key] = line
    end
  end
  return found
end

return trace_text
