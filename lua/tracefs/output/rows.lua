--- What all formats make of the same things: rows of aggregates with their keys and values, and
--- the numbers in them.
local u64 = require("tracefs").u64

local rows = {}

local function list_text(numbers)
  return "[" .. table.concat(numbers, ",") .. "]"
end

--- The digits of an unsigned 64-bit number, a list of such numbers in brackets; anything else as
--- it is.
---@param value any
---@param is_unsigned? any
---@return any
function rows.number(value, is_unsigned)
  if not is_unsigned then
    return value
  elseif math.type(value) == "integer" and value < 0 then
    return u64(value)
  elseif type(value) == "table" then
    local digits = {}
    for i, number in ipairs(value) do
      digits[i] = u64(number)
    end
    return list_text(digits)
  end
  return value
end

--- A number by its name, with its digits where it is unsigned and too large for an integer.
---@param name string
---@param value any
---@param is_unsigned? any
---@return { name: string, value: any, text?: string }
function rows.item(name, value, is_unsigned)
  local text = rows.number(value, is_unsigned)
  return { name = name, value = value, text = text ~= value and text or nil }
end

--- The JSON of a field's value that its description knows better than its type; or nil.
---@param value any
---@param names? table<string, boolean|string> of tracefs.output.events
---@param name string
---@return string? json
function rows.json(value, names, name)
  local how = names and names[name]
  if how == "bytes" and type(value) == "string" then
    return list_text { value:byte(1, -1) }
  elseif how == "list" then
    -- else an empty one would be an object
    return type(value) == "table" and #value == 0 and "[]" or nil
  end
  local text = rows.number(value, how)
  return text ~= value and text or nil
end

-- Values that are as large as those that were added: unsigned where those are.
local SIGNED <const> = { count = true, average = true, variance = true, deviation = true }

---@class tracefs.output.row
---@field keys { name: string, value: string|integer }[] none in the row of other keys
---@field values { name: string, value: number, text?: string }[] text: the digits, if unsigned
---@field other? boolean
---@field key (string|integer)[] for methods of the aggregate

--- The rows of an aggregate in the order of its keys, each with its keys and columns in theirs.
---@param aggregate tracefs.aggregate
---@return tracefs.output.row[]
---@return table options of the aggregate
function rows.of(aggregate)
  local options, list = aggregate:options(), {}
  for i, row in ipairs(aggregate:rows()) do
    local made = { keys = {}, values = {}, key = {}, other = row.other == true or nil }
    for k, name in ipairs(not made.other and options.by or {}) do
      made.keys[k] = { name = name, value = row[name] }
      made.key[k] = row[name]
    end
    for _, column in ipairs(options.columns) do
      if row[column] ~= nil then
        made.values[#made.values + 1] = rows.item(column, row[column],
          options.unsigned and not SIGNED[column])
      end
    end
    list[i] = made
  end
  return list, options
end

--- Does it have the column "histogram"?
---@param options table
---@return boolean
function rows.has_histogram(options)
  for _, column in ipairs(options.columns) do
    if column == "histogram" then
      return true
    end
  end
  return false
end

--- A writer's method: counts by stack, as an object for each.
---@param writer tracefs.output.writer
---@param folded tracefs.folded
function rows.put_stacks(writer, folded)
  for _, row in ipairs(folded:rows()) do
    writer:object { type = "stack", stack = row.stack, count = row.count }
  end
end

return rows
