--- Numbers for people: three digits and a unit, in at most 8 columns.
local units = {}

---@alias tracefs.unit "ns"|"us"|"ms"|"s"|"bytes"

-- { how many of the unit before, name }, from the smallest on.
local TIME <const> = { { 1, "ns" }, { 1000, "us" }, { 1000, "ms" }, { 1000, "s" } }
local BYTES <const> = {
  { 1, "B" }, { 1024, "KiB" }, { 1024, "MiB" }, { 1024, "GiB" }, { 1024, "TiB" }, { 1024, "PiB" },
  { 1024, "EiB" },
}
local SCALES <const> = {
  ns = { steps = TIME, factor = 1 },
  us = { steps = TIME, factor = 1e3 },
  ms = { steps = TIME, factor = 1e6 },
  s = { steps = TIME, factor = 1e9 },
  bytes = { steps = BYTES, factor = 1 },
}

--- Is it the name of a unit?
---@param name any
---@return boolean
function units.known(name)
  return name ~= nil and SCALES[name] ~= nil
end

local function three_digits(value)
  return ((value < 9.995 and "%.2f" or value < 99.95 and "%.1f" or "%.0f")):format(value)
end

--- A value with its unit scaled to three digits: "812ns", "4.21us", "1.05s", "1.50KiB"; without a
--- unit the digits of an integer, or a float with three digits behind the point
--- (none from 1000 on).
---@param value number
---@param unit? tracefs.unit
---@return string
function units.format(value, unit)
  local scale = SCALES[unit]
  if value ~= value or value == math.huge or value == -math.huge then
    return tostring(value)
  elseif not scale then
    local whole = math.tointeger(value)
    return whole and ("%d"):format(whole)
      or (math.abs(value) < 1000 and "%.3f" or "%.0f"):format(value)
  elseif value < 0 then
    return "-" .. units.format(0.0 - value, unit)
  end
  local steps, at = scale.steps, 1
  value = value * scale.factor
  -- what three digits would round up to the next unit is written in that; the smallest unit's
  -- whole numbers are not rounded
  while at < #steps and value >= steps[at + 1][1] - (at == 1 and 0 or 0.5) do
    at = at + 1
    value = value / steps[at][1]
  end
  if at == 1 then
    return ("%.0f%s"):format(value, steps[1][2])
  end
  return three_digits(value) .. steps[at][2]
end

return units
