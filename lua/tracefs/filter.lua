--- Kernel filters from Lua values: strings are quoted, sets become alternatives, and what the event
--- does not have, or could never be, is refused.
local filter = {}

-- include/linux/trace_events.h: MAX_FILTER_STR_VAL, with the zero at its end.
local LONGEST_STRING <const> = 255

-- What the kernel calls what records have under our names.
local KERNEL_NAMES <const> = { common_cpu = "CPU", common_comm = "COMM" }

-- In the order in which they are written.
local NUMBER_OPERATORS <const> = { "==", "!=", "<", "<=", ">", ">=", "&" }
local STRING_OPERATORS <const> = { "==", "!=", "~" }

local function fail(...)
  error("filter: " .. string.format(...), 0)
end

local function show(value)
  return type(value) == "string" and ("%q"):format(value):gsub("\\\n", "\\n") or tostring(value)
end

local function set_of(list)
  local set = {}
  for _, word in ipairs(list) do
    set[word] = true
  end
  return set
end

local IS_OPERATOR <const> = set_of {
  "==", "!=", "<", "<=", ">", ">=", "&", "~",
}

-- ---------------------------------------------------------------------------
-- Fields
-- ---------------------------------------------------------------------------

-- What a field takes: its kind ("number", "string"), and a number's size and sign. Without an
-- event nothing is known but what the value itself says.
local function find_field(name, event)
  if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") then
    fail("bad name of a field: %s", show(name))
  end
  if name == "common_cpu" or name == "CPU" then
    return { name = "CPU", kind = "number", size = 4, signed = false }
  elseif name == "common_comm" or name == "COMM" then
    return { name = "COMM", kind = "string" }
  elseif not event then
    return { name = KERNEL_NAMES[name] or name }
  end
  local names = {}
  for _, field in ipairs(event:fields()) do
    names[#names + 1] = field.name
    if field.name == name then
      if field.kind ~= "int" and field.kind ~= "string" then
        fail("%s is %s in %s: the kernel compares numbers and strings only", name,
          field.kind == "bytes" and "an array of bytes" or "of type " .. field.type, event:label())
      end
      return {
        name = name,
        kind = field.kind == "int" and "number" or "string",
        size = field.size,
        signed = field.signed,
        type = field.type,
      }
    end
  end
  fail("%s has no field '%s'; it has: %s, common_cpu, common_comm", event:label(), name,
    table.concat(names, ", "))
end

-- ---------------------------------------------------------------------------
-- Values
-- ---------------------------------------------------------------------------

local function quoted(field, value)
  if value:find("\0", 1, true) then
    fail("%s: a string with a zero byte: the kernel's strings end there", field.name)
  elseif #value > LONGEST_STRING then
    fail("%s: a string of %d bytes; the kernel compares %d at most", field.name, #value,
      LONGEST_STRING)
  end
  -- There is no escape inside the quotes.
  local quote = not value:find('"', 1, true) and '"' or not value:find("'", 1, true) and "'"
  if not quote then
    fail("%s: %s has both kinds of quotes, which the kernel's language cannot say; "
      .. "compare it in the handler", field.name, show(value))
  end
  return quote .. value .. quote
end

local function in_range(field, value)
  if not field.size or field.size >= 8 then
    return true
  end
  local bits = field.size * 8
  if field.signed then
    return value >= -(1 << bits - 1) and value < 1 << bits - 1
  end
  return value >= 0 and value < 1 << bits
end

local function number(field, value)
  local integer = math.tointeger(value)
  if not integer then
    fail("%s: %s is no whole number", field.name, show(value))
  elseif not in_range(field, integer) then
    fail("%s: %d is nothing that %s of %d byte%s holds", field.name, integer,
      field.signed and "a signed number" or "an unsigned number", field.size,
      field.size == 1 and "" or "s")
  elseif field.signed == false and integer < 0 then
    return require("tracefs").u64(integer)
  end
  return ("%d"):format(integer)
end

-- The text of a value, and whether it is a number or a string.
local function value_text(field, value)
  if type(value) == "boolean" then
    value = value and 1 or 0
  end
  local kind = type(value)
  if kind ~= "number" and kind ~= "string" then
    fail("%s: a number, a string or a boolean is needed, not %s", field.name, kind)
  elseif field.kind and field.kind ~= kind then
    fail("%s is a %s%s, and %s is a %s", field.name, field.kind,
      field.type and (" (%s)"):format(field.type) or "", show(value), kind)
  end
  return kind == "number" and number(field, value) or quoted(field, value), kind
end

-- ---------------------------------------------------------------------------
-- Conditions
-- ---------------------------------------------------------------------------

local function compare(field, operator, value)
  local text, kind = value_text(field, value)
  local known = kind == "number" and NUMBER_OPERATORS or STRING_OPERATORS
  if not set_of(known)[operator] then
    fail("%s: '%s' does not compare %ss; there is: %s", field.name, operator, kind,
      table.concat(known, " "))
  end
  return ("%s %s %s"):format(field.name, operator, text)
end

local function joined(parts, joint)
  if #parts == 1 then
    return parts[1]
  end
  return "(" .. table.concat(parts, joint) .. ")"
end

-- A set of values: one of them. With "!=" none of them.
local function one_of(field, operator, values)
  local parts = {}
  for i, value in ipairs(values) do
    parts[i] = compare(field, operator, value)
  end
  if #parts == 0 then
    fail("%s: an empty set of values: nothing is in it", field.name)
  end
  return joined(parts, operator == "!=" and " && " or " || ")
end

-- { [">="] = 1, ["<"] = 5 }
local function operators(field, value)
  local parts = {}
  for operator in pairs(value) do
    if not IS_OPERATOR[operator] then
      fail("%s: unknown operator %s; there is: == != < <= > >= & ~", field.name, show(operator))
    end
  end
  for _, operator in ipairs { "==", "!=", "<", "<=", ">", ">=", "&", "~" } do
    local operand = value[operator]
    if type(operand) == "table" then
      parts[#parts + 1] = one_of(field, operator, operand)
    elseif operand ~= nil then
      parts[#parts + 1] = compare(field, operator, operand)
    end
  end
  if #parts == 0 then
    fail("%s: an empty condition", field.name)
  end
  return joined(parts, " && ")
end

local function condition(name, value, event)
  local field = find_field(name, event)
  if type(value) ~= "table" then
    return compare(field, "==", value)
  elseif #value > 0 or next(value) == nil then
    return one_of(field, "==", value)
  end
  return operators(field, value)
end

local JOINTS <const> = { ["and"] = " && ", ["or"] = " || ", ["not"] = " && " }

local build

-- The parts of a table: its fields by name, then the tables in its list.
local function collect(conditions, event, first)
  local names, parts = {}, {}
  for key in pairs(conditions) do
    if math.type(key) ~= "integer" then
      names[#names + 1] = key
    elseif key < 1 or key > #conditions then
      fail("the list of conditions has a gap before number %d", key)
    end
  end
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for i, name in ipairs(names) do
    parts[i] = condition(name, conditions[name], event)
  end
  for i = first, #conditions do
    local part = conditions[i]
    if type(part) ~= "table" then
      fail("number %d of the conditions: a table is needed, not %s (\"and\", \"or\" and \"not\" "
        .. "stand first)", i, show(part))
    end
    parts[#parts + 1] = build(part, event)
  end
  return parts
end

function build(conditions, event)
  local word = conditions[1]
  local joint = JOINTS[word]
  local parts = collect(conditions, event, joint and 2 or 1)
  if #parts == 0 then
    fail("there is no condition in it")
  end
  local text = joined(parts, joint or " && ")
  if word == "not" then
    return "!" .. (text:find("^%(") and text or "(" .. text .. ")")
  end
  return text
end

--- The kernel's filter for conditions in Lua. A string comes back as it is.
---@param conditions table|string
---@param event? tracefs.event whose fields it is checked against
---@return string text raises when it cannot be said, or the event lacks a field
function filter.text(conditions, event)
  if type(conditions) == "string" then
    return conditions
  end
  local text = build(conditions, event)
  -- The outermost brackets are not needed.
  if text:find("^%b()$") then
    text = text:sub(2, -2)
  end
  return text
end

return filter
