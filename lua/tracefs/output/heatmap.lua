--- How many values fell where, over time: a grid that grows coarser as time goes on, so that it
--- takes the same memory after a second and after a week.
local heatmap = {}

local COLUMNS <const> = 120
-- Of a column at first, in ns.
local WIDTH <const> = 1000
-- A power of two is cut into 2^BITS rows.
local BITS <const> = 2

local Map = {}
Map.__index = Map

-- The row of a value: those below 2^(BITS + 1) one by one.
local function row_of(value)
  local shift = 0
  value = math.max(value, 0)
  while value >> shift >= 2 << BITS do
    shift = shift + 1
  end
  return shift * (1 << BITS) + (value >> shift)
end

--- The least value of a row.
---@param row integer
---@return integer
function heatmap.from(row)
  if row < 2 << BITS then
    return row
  end
  local shift = (row >> BITS) - 1
  return (1 << BITS) + (row & (1 << BITS) - 1) << shift
end

--- Twice as wide columns, half as many.
function Map:widen()
  local cells = {}
  for column, rows in pairs(self.cells) do
    local into = cells[column // 2] or {}
    cells[column // 2] = into
    for row, count in pairs(rows) do
      into[row] = (into[row] or 0) + count
    end
  end
  self.cells, self.width = cells, self.width * 2
end

---@param time integer
---@param value integer
function Map:add(time, value)
  self.first = self.first or time
  -- what is late belongs to the beginning
  local offset = math.max(0, time - self.first)
  while offset // self.width >= COLUMNS do
    self:widen()
  end
  local column, row = offset // self.width, row_of(value)
  local rows = self.cells[column] or {}
  self.cells[column] = rows
  rows[row] = (rows[row] or 0) + 1
end

--- The greatest count, and the first and the last row that are used.
---@return integer most
---@return integer? low
---@return integer? high
function Map:range()
  local most, low, high = 0, nil, nil
  for _, rows in pairs(self.cells) do
    for row, count in pairs(rows) do
      most = math.max(most, count)
      low, high = math.min(low or row, row), math.max(high or row, row)
    end
  end
  return most, low, high
end

--- How many columns are used at the width that they have now.
---@return integer
function Map:used()
  local used = 0
  for column in pairs(self.cells) do
    used = math.max(used, column + 1)
  end
  return used
end

---@return table map with add(time, value), cells[column][row], width, first
function heatmap.new()
  return setmetatable({ cells = {}, width = WIDTH }, Map)
end

return heatmap
