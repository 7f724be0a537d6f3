--- Output as text, for people. What other formats have no place for is written so to
--- standard error.
local rows = require "tracefs.output.rows"
local units = require "tracefs.units"

local text = {}

---@class tracefs.output.writer
---@field wants_matches boolean the matches of every pair are part of the output
---@field private write fun(text: string)
local Text = {}
Text.__index = Text

-- A value behind "key=": quoted when it would not be read as one word.
local function word(value)
  local kind = type(value)
  if kind == "table" then
    return require("tracefs.record_json").encode(value)
  elseif kind == "string" and (value == "" or value:find('[%s="]')) then
    return require("tracefs.json").string(value)
  end
  return tostring(value)
end

--- "name=value", the value as one word.
---@param name string
---@param value any
---@return string
function text.pair(name, value)
  return name .. "=" .. word(value)
end

-- The values of a table, numbered ones first without their keys, then pairs sorted by key.
local function words(value)
  local parts, keys, texts = {}, {}, {}
  for i, item in ipairs(value) do
    parts[i] = word(item)
  end
  local count = #parts
  for key, item in pairs(value) do
    local is_numbered = math.type(key) == "integer" and key >= 1 and key <= count
    if not is_numbered then
      local name = tostring(key)
      keys[#keys + 1] = name
      texts[name] = text.pair(name, item)
    end
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    parts[#parts + 1] = texts[key]
  end
  return table.concat(parts, " ")
end

-- As the kernel's trace file has it: the innermost function first.
local function stack_lines(head, stack)
  local lines = {}
  for name in stack:gmatch("[^;]+") do
    table.insert(lines, 1, " => " .. name .. "\n")
  end
  return head .. "\n" .. table.concat(lines)
end

function Text:record(record)
  local line = tostring(record) .. "\n"
  local stack, user_stack = record.common_stack, record.common_user_stack
  if stack then
    line = line .. stack_lines("<stack trace>", stack)
  end
  if user_stack then
    line = line .. stack_lines("<user stack trace>", user_stack)
  end
  self.write(line)
end

--- Fields of a record that were asked for by their names; `signs` says which are unsigned.
function Text:values(names, values, signs)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = text.pair(name, rows.number(values[i], signs and signs[name] == true))
  end
  self.write(table.concat(parts, " ") .. "\n")
end

function Text:object(object)
  self.write(words(object) .. "\n")
end

function Text:aggregate(aggregate)
  self.write(aggregate:text() .. "\n")
end

---@param folded tracefs.folded
function Text:folded(folded)
  self.write(folded:text())
end

-- Where and when, as the kernel's trace file has it.
local function place_of(match)
  local time = match.stop_digits
  if match.in_ns and match.stop >= 0 then
    local us = (match.stop + 500) // 1000
    time = ("%d.%06d"):format(us // 1000000, us % 1000000)
  end
  return ("[%03d] %s:"):format(match.cpu, time)
end

---@param match tracefs.output.match
function Text:match(match)
  local parts = { place_of(match), match.name, match.in_ns and units.format(match.delta, "ns")
    or ("%d"):format(match.delta) }
  for _, key in ipairs(match.keys) do
    parts[#parts + 1] = text.pair(key.name, key.text or key.value)
  end
  for _, value in ipairs(match.values) do
    parts[#parts + 1] = text.pair(value.name, value.text or value.value)
  end
  self.write(table.concat(parts, " ") .. "\n")
end

function Text:line(line)
  self.write(line .. "\n")
end

function Text:lost(lost)
  local count = lost.count and lost.count .. " " or ""
  self.write(("CPU:%d [LOST %sEVENTS]\n"):format(lost.cpu, count))
end

-- What the run ended with is on standard error in any case.
function Text.failed() end
function Text.stats() end
--- Called when the program is about to wait.
function Text.flush() end
--- Called once, before the output is closed.
function Text.finish() end

---@param write fun(text: string)
---@return tracefs.output.writer
function text.new(write)
  return setmetatable({ write = write }, Text)
end

--- A class of writers that writes to standard error, as text, what it does not define itself.
---@return table class
function text.derive()
  local class = {}
  class.__index = class
  for _, name in ipairs { "record", "values", "object", "aggregate", "folded", "match", "line",
    "lost" } do
    class[name] = function(self, ...)
      local beside = self.beside
      beside[name](beside, ...)
    end
  end
  for _, name in ipairs { "failed", "stats", "flush", "finish" } do
    class[name] = function() end
  end
  return class
end

return text
