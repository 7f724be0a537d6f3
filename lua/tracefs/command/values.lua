--- Values of options: nil and what is wrong where the text is none.
local values = {}

local TIME_UNITS <const> = { [""] = 1, ms = 0.001, s = 1, m = 60, h = 3600 }

--- A time as options take it: "10", "0.5", "200ms", "10m".
---@param text string
---@param zero? string what is wrong with no time at all
---@return number? seconds above 0, or nil and what is wrong
---@return string? message
function values.seconds(text, zero)
  local number, unit = text:match("^(%d*%.?%d*)(%a*)$")
  local value, factor = tonumber(number), TIME_UNITS[unit or "?"]
  local wrong = ("'%s' is no time: seconds, or a number with ms, s, m or h"):format(text)
  if not value or not factor then
    return nil, wrong
  elseif value <= 0 then
    return nil, zero or ("a time above 0 is needed, not '%s'"):format(text)
  end
  return value * factor
end

local function positive(text, limit)
  local value = text:match("^%d+$") and math.tointeger(text)
  return value and value > 0 and value <= limit and value
end

---@param text string
---@return integer? pid
---@return string? message
function values.pid(text)
  local value = positive(text, 0x7fffffff)
  if not value then
    return nil, ("'%s' is no pid"):format(text)
  end
  return value
end

---@param text string
---@param limit? integer what is above it is none
---@return integer? kb
---@return string? message
function values.kb(text, limit)
  local value = positive(text, limit or math.maxinteger)
  if not value then
    return nil, ("'%s' is no size in KB"):format(text)
  end
  return value
end

return values
