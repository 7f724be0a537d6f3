--- JSON text, written by dkjson: integers of 64 bits exactly, any bytes in strings, keys sorted
--- ("type" first).
---
--- What kernel records need beside what dkjson does: floats that lose nothing, and valid JSON for
--- strings that are no UTF-8. Their odd bytes come as \u00NN, the character of the same number.
local found, dkjson = pcall(require, "dkjson")
if not found then
  error("JSON output needs the Lua module dkjson, which is not there: install lua-dkjson " ..
    "(apk: lua5.4-dkjson), or: luarocks install dkjson", 0)
end
local escape = require "tracefs.escape"

local json = {}

-- A value that stands in the output as this text.
local function raw(text)
  return setmetatable({}, {
    __tojson = function()
      return text
    end,
  })
end

local function unicode(byte)
  return ("\\u%04x"):format(byte:byte())
end

---@param text string
---@return string json with its quotes
function json.string(text)
  -- dkjson passes bytes from 0x80 on as they are
  return (escape.invalid_bytes(dkjson.quotestring(text), unicode))
end

---@param number number not a number and the infinities, which JSON has not, give null
---@return string
function json.number(number)
  if math.type(number) == "integer" then
    return ("%d"):format(number)
  end
  if number ~= number or number == math.huge or number == -math.huge then
    return "null"
  end
  local text = ("%.15g"):format(number)
  if tonumber(text) ~= number then
    text = ("%.17g"):format(number)
  end
  return (text:gsub(",", "."))
end

local function is_list(value)
  local meta = getmetatable(value)
  if type(meta) == "table" and meta.__jsontype == "array" then
    return true
  end
  local count, seen = #value, 0
  for _ in pairs(value) do
    seen = seen + 1
  end
  return count > 0 and seen == count
end

local function key_text(key)
  local kind = type(key)
  if kind == "number" or kind == "boolean" then
    return tostring(key)
  elseif kind ~= "string" then
    error(("a %s cannot be a key in JSON"):format(kind), 0)
  end
  return escape.invalid_bytes(key, function(byte)
    return utf8.char(byte:byte())
  end)
end

-- What kind of object it is comes first, for people who read it.
local function before(a, b)
  if a == "type" or b == "type" then
    return a == "type" and b ~= "type"
  end
  return a < b
end

local prepare

-- A copy that dkjson writes as we want it.
local function prepare_table(value, other, inside)
  if inside[value] then
    error("a table that contains itself has no JSON", 0)
  end
  inside[value] = true
  local copy
  if is_list(value) then
    copy = setmetatable({}, { __jsontype = "array" })
    for i, item in ipairs(value) do
      copy[i] = prepare(item, other, inside)
    end
  else
    local keys = {}
    copy = setmetatable({}, { __jsontype = "object", __jsonorder = keys })
    for key, item in pairs(value) do
      local text = key_text(key)
      keys[#keys + 1] = text
      copy[text] = prepare(item, other, inside)
    end
    table.sort(keys, before)
  end
  inside[value] = nil
  return copy
end

function prepare(value, other, inside)
  local kind = type(value)
  if kind == "string" then
    return utf8.len(value) and value or raw(json.string(value))
  elseif kind == "number" then
    return raw(json.number(value))
  elseif kind == "nil" then
    return dkjson.null
  elseif kind == "boolean" then
    return value
  elseif kind == "table" then
    return prepare_table(value, other, inside)
  end
  local text = other and other(value)
  if not text then
    error(("a %s has no JSON"):format(kind), 0)
  end
  return raw(text)
end

--- Any value of strings, numbers, booleans and tables. A table whose keys are 1 to n is an array,
--- and so is one whose metatable has `__jsontype = "array"` (as dkjson gives it to what it reads);
--- any other, the empty one too, an object. Raises for what JSON cannot hold.
---@param value any
---@param other? fun(value: any): string? the JSON of values of other types
---@return string
function json.encode(value, other)
  return (dkjson.encode(prepare(value, other, {})))
end

return json
