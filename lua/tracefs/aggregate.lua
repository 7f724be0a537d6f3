--- Counts, sums, averages, extremes, variances, percentiles and histograms by key, in bounded
--- memory. Adding is C's; this file has what is made of it for people and programs.
local core = require "tracefs.core"
local escape = require "tracefs.escape"
local units = require "tracefs.units"

local aggregate = {}

-- Gets each aggregate that is made with a name: set by the command for outputs that show them from
-- the start.
---@type fun(made: tracefs.aggregate)?
aggregate._on_named = nil

-- The columns, and how their heads are written.
local TITLES <const> = {
  count = "count", sum = "sum", average = "avg", minimum = "min", maximum = "max",
  variance = "variance", deviation = "dev",
}
-- Columns that are no values of the unit.
local PLAIN <const> = { count = true, variance = true }
local KNOWN <const> = {
  by = true, unit = true, max = true, titles = true, scale = true, error = true, from = true,
  to = true, width = true, unsigned = true, name = true,
}
local MAX_BITS <const> = 11
local MAX_BUCKETS <const> = 65536
local MAX_KEYS <const> = 8
-- What a line of text may take, and the keys of it.
local WIDTH <const> = 79
local KEYS_WIDTH <const> = 40

-- "p99.9" is 99.9.
local function percent_of(column)
  local percent = tonumber(type(column) == "string" and column:match "^p(%d+%.?%d*)$")
  return percent and percent <= 100 and percent or nil
end

local function fail(text, ...)
  error("aggregate: " .. text:format(...), 0)
end

local function check_columns(options)
  local columns = {}
  for i, column in ipairs(options) do
    if not TITLES[column] and column ~= "histogram" and not percent_of(column) then
      fail("unknown column '%s'; there is: count, sum, average, minimum, maximum, variance, "
        .. "deviation, p50 (any percentile), histogram", tostring(column))
    end
    columns[i] = column
  end
  if #columns == 0 then
    fail 'columns are needed, such as { "count", "average", "p99" }'
  end
  for key in pairs(options) do
    local in_list = math.type(key) == "integer" and key >= 1 and key <= #columns
    if not in_list and not KNOWN[key] then
      fail("unknown option '%s'", tostring(key))
    end
  end
  return columns
end

local function check_names(by)
  if by == nil then
    return {}
  end
  local names = type(by) == "table" and table.move(by, 1, #by, 1, {}) or { by }
  if #names == 0 or #names > MAX_KEYS then
    fail("by: from 1 to %d names, not %d", MAX_KEYS, #names)
  end
  local seen = {}
  for _, name in ipairs(names) do
    if type(name) ~= "string" then
      fail("by: names are strings, not %s", type(name))
    elseif seen[name] or TITLES[name] or percent_of(name) or name == "histogram" then
      fail("by: '%s' is the name of a column already", name)
    end
    seen[name] = true
  end
  return names
end

local function whole(options, name, least, default)
  local value = options[name]
  if value == nil then
    value = default
  end
  local number = math.tointeger(value)
  if math.type(value) == nil or not number or number < least then
    fail("%s: a whole number from %d is needed, not %s", name, least, tostring(value))
  end
  return number
end

-- How many halvings of a power of two keep a percentile within the error.
local function bits_for(error_share)
  if type(error_share) ~= "number" or not (error_share >= 2.0 ^ -MAX_BITS and error_share <= 1) then
    fail("error: a share from %.4f to 1 is needed, not %s", 2.0 ^ -MAX_BITS, tostring(error_share))
  end
  local bits = 0
  while 2.0 ^ -bits > error_share do
    bits = bits + 1
  end
  return bits
end

local function choose_buckets(options, core_options)
  local scale = options.scale or "log-linear"
  if scale ~= "linear" then
    for _, name in ipairs { "from", "to", "width" } do
      if options[name] ~= nil then
        fail('%s: only buckets of the scale "linear" have it', name)
      end
    end
  end
  if scale ~= "log-linear" and options.error ~= nil then
    fail 'error: only buckets of the scale "log-linear" have it'
  end
  if scale == "log-linear" then
    core_options.scale, core_options.bits = "log", bits_for(options.error or 0.01)
  elseif scale == "log2" then
    core_options.scale, core_options.bits = "log", 0
  elseif scale == "linear" then
    local from, width = whole(options, "from", math.mininteger, 0), whole(options, "width", 1)
    local to = whole(options, "to", from + 1)
    core_options.scale, core_options.from, core_options.width = "linear", from, width
    -- from -2^63 to 2^63 - 1 is further than an integer
    local span = to - from
    local count = (span > 0 and span - 1 or to + 0.0 - from) // width + 1
    if count > MAX_BUCKETS then
      fail("from, to and width: %.0f buckets; at most %d, with a larger width", count, MAX_BUCKETS)
    end
    core_options.count = math.tointeger(count)
  else
    fail('scale: "log-linear", "log2" or "linear", not %s', tostring(scale))
  end
end

local function core_options_of(options)
  if type(options) ~= "table" then
    fail("the options must be a table, not %s", type(options))
  end
  local columns = check_columns(options)
  local names = check_names(options.by)
  if options.unit ~= nil and not units.known(options.unit) then
    fail("unit: ns, us, ms, s or bytes, not %s", tostring(options.unit))
  end
  if options.name ~= nil and (type(options.name) ~= "string" or options.name == "") then
    fail("name: a word is needed, not %s", tostring(options.name))
  end
  local result = {
    name = options.name or "values",
    columns = columns, by = names, unit = options.unit, titles = options.titles or {},
    parts = #names, max = whole(options, "max", 1, 1000), unsigned = options.unsigned,
    scale = "none", percents = {},
  }
  for _, column in ipairs(columns) do
    local percent = percent_of(column)
    if column == "variance" or column == "deviation" then
      result.variance = true
    elseif column == "histogram" or percent then
      result.has_buckets = true
      result.percents[#result.percents + 1] = percent
    end
  end
  if result.has_buckets then
    choose_buckets(options, result)
  else
    for _, name in ipairs { "scale", "error", "from", "to", "width" } do
      if options[name] ~= nil then
        fail("%s: without percentiles and histogram there are no buckets", name)
      end
    end
  end
  return result
end

local methods = {}

-- The value of a column of a cell; nil where there is none.
local function column_value(cell, column)
  if column == "deviation" then
    return cell.variance and math.sqrt(cell.variance)
  end
  return cell[percent_of(column) or column]
end

-- Keys of different types have an order too: numbers before strings.
local function key_before(a, b)
  if type(a) == type(b) then
    return a < b
  end
  return type(a) == "number"
end

-- A key may be called "other", too, but is never true.
local function is_other(row)
  return row.other == true
end

-- Above is above: the greatest first, of equal ones the smaller key, "other" last.
local function sorter(names, column, unsigned)
  return function(a, b)
    if is_other(a) ~= is_other(b) then
      return is_other(b)
    end
    local x, y = a[column], b[column]
    if column and x ~= y then
      if x == nil or y == nil then
        return y == nil
      elseif unsigned and math.type(x) == "integer" and math.type(y) == "integer" then
        return math.ult(y, x)
      end
      return x > y
    end
    for _, name in ipairs(names) do
      if a[name] ~= b[name] then
        return key_before(a[name], b[name])
      end
    end
    return false
  end
end

--- What it knows, as a list of plain tables: the keys by their names, the columns by theirs, but
--- for the histogram. Values of keys beyond `max` are in a last row, which has `other = true`
--- instead of keys.
---@param options? { sort?: string, top?: integer } a column, the greatest first; without it in the
---  order of the keys. The first `top` only.
---@return table[] rows
function methods:rows(options)
  local settings = self:options()
  options = options or {}
  if type(options) ~= "table" then
    error("rows: a table of options is needed, not " .. type(options), 2)
  elseif options.top ~= nil and (math.type(options.top) ~= "integer" or options.top < 0) then
    error("rows: top: a whole number from 0 is needed, not " .. tostring(options.top), 2)
  elseif options.sort and not TITLES[options.sort] and not percent_of(options.sort) then
    error("rows: no column '" .. tostring(options.sort) .. "' to sort by", 2)
  end
  local rows = {}
  for _, cell in ipairs(self:cells(settings.has_buckets and settings.percents or nil)) do
    if cell.count > 0 then
      local row = { other = cell.keys == nil or nil }
      for i, name in ipairs(cell.keys and settings.by or {}) do
        row[name] = cell.keys[i]
      end
      for _, column in ipairs(settings.columns) do
        row[column] = column_value(cell, column)
      end
      local sort = options.sort
      if sort and row[sort] == nil then
        row[sort] = column_value(cell, sort)
      end
      rows[#rows + 1] = row
    end
  end
  table.sort(rows, sorter(settings.by, options.sort, settings.unsigned))
  if options.top and #rows > options.top then
    table.move({}, 1, #rows - options.top, options.top + 1, rows)
  end
  return rows
end

local function digits(value, unsigned)
  if value >= 0 or not unsigned then
    return ("%d"):format(value)
  end
  local tenth = (value >> 1) // 5
  return ("%d%d"):format(tenth, value - tenth * 10)
end

-- Buckets without a value between those that have one: a gap in the values is to be seen.
local function with_empty(buckets, settings)
  local filled = {}
  for i, bucket in ipairs(buckets) do
    local before = buckets[i - 1]
    if before and settings.scale == "log" and before.from >= 0 then
      local to = before.to
      while to + 1 ~= bucket.from do
        filled[#filled + 1] = { from = to + 1, to = 2 * to + 1, count = 0 }
        to = 2 * to + 1
      end
    elseif before and settings.scale == "linear" then
      local from, missing = before.to + 1, (bucket.from - before.to - 1) // settings.width
      for k = 0, math.min(missing, 100) - 1 do
        filled[#filled + 1] = {
          from = from + k * settings.width, to = from + (k + 1) * settings.width - 1, count = 0,
        }
      end
    end
    filled[#filled + 1] = bucket
  end
  return filled
end

--- The histogram of one key as text: a line for each bucket from the least value's to the
--- greatest's, a power of two each unless the scale is linear.
---@param ... string|integer the key
---@return string[] lines below 80 columns; none when there is no value
function methods:lines(...)
  local settings = self:options()
  local buckets = with_empty(self:buckets(...), settings)
  local labels, label_width, greatest = {}, 0, 0
  for i, bucket in ipairs(buckets) do
    labels[i] = digits(bucket.from, settings.unsigned) .. " .. "
      .. digits(bucket.to, settings.unsigned)
    label_width, greatest = math.max(label_width, #labels[i]), math.max(greatest, bucket.count)
  end
  local count_width = #("%d"):format(greatest)
  local room = math.max(1, WIDTH - label_width - count_width - 4)
  local lines = {}
  for i, bucket in ipairs(buckets) do
    local length = math.floor(bucket.count / greatest * room)
    local bar = length == 0 and bucket.count > 0 and "." or ("#"):rep(length)
    lines[i] = ("%" .. label_width .. "s  %" .. count_width .. "d |%s")
      :format(labels[i], bucket.count, bar)
  end
  return lines
end


-- A value as text. From 2^63 on an unsigned one is a negative integer.
local function written(value, column, settings)
  local unit = not PLAIN[column] and settings.unit or nil
  if not (settings.unsigned and math.type(value) == "integer" and value < 0) then
    return units.format(value, unit)
  end
  return unit and units.format(value + 2.0 ^ 64, unit) or digits(value, true)
end

-- The heads and the rows of the table as texts: { keys..., values... } each.
local function cells_of(settings, rows)
  local columns, lines = {}, {}
  for _, column in ipairs(settings.columns) do
    if column ~= "histogram" then
      columns[#columns + 1] = column
    end
  end
  local keys = #settings.by
  lines[1] = {}
  for i, name in ipairs(settings.by) do
    lines[1][i] = settings.titles[name] or name
  end
  for i, column in ipairs(columns) do
    lines[1][keys + i] = settings.titles[column] or TITLES[column] or column
  end
  for r, row in ipairs(rows) do
    local texts = {}
    for i, name in ipairs(settings.by) do
      texts[i] = is_other(row) and (i == 1 and "(other)" or "") or escape.line(tostring(row[name]))
    end
    for i, column in ipairs(columns) do
      local value = row[column]
      texts[keys + i] = value == nil and "-" or written(value, column, settings)
    end
    lines[r + 1] = texts
  end
  return lines, keys
end

-- In columns of the terminal, as far as characters have one each.
local function width_of(text)
  return utf8.len(text) or #text
end

-- A key that is too long for its column gets a line of its own.
local function write_row(texts, keys, from, to, widths, result)
  local parts = {}
  for i = 1, keys do
    local text = texts[i]
    if width_of(text) > widths[i] then
      result[#result + 1] = text
      text = ""
    end
    local room = (" "):rep(widths[i] - width_of(text))
    parts[i] = widths.of_numbers[i] and room .. text or text .. room
  end
  for i = from, to do
    parts[#parts + 1] = (" "):rep(widths[i] - width_of(texts[i])) .. texts[i]
  end
  result[#result + 1] = (table.concat(parts, " "):gsub(" +$", ""))
end

-- Columns that do not fit beside the others come in a table of their own below.
local function aligned(lines, keys)
  local widths, result, keys_width = { of_numbers = {} }, {}, 0
  for i = 1, #lines[1] do
    widths[i] = i > keys and 7 or 0
    widths.of_numbers[i] = true
    for r, texts in ipairs(lines) do
      if r > 1 and not texts[i]:find "^%-?%d*$" then
        widths.of_numbers[i] = false
      end
      local width = width_of(texts[i])
      if i > keys or width <= KEYS_WIDTH // keys then
        widths[i] = math.max(widths[i], width)
      end
    end
    keys_width = keys_width + (i <= keys and widths[i] + 1 or 0)
  end
  local from = keys + 1
  while from <= #lines[1] do
    local to, width = from, keys_width + widths[from]
    while to < #lines[1] and width + 1 + widths[to + 1] <= WIDTH do
      to = to + 1
      width = width + 1 + widths[to]
    end
    if from > keys + 1 then
      result[#result + 1] = ""
    end
    for _, texts in ipairs(lines) do
      write_row(texts, keys, from, to, widths, result)
    end
    from = to + 1
  end
  return result
end

-- The bars of one row, under a line that says whose they are.
local function add_bars(self, settings, row, lines)
  local key, names = {}, {}
  for i, name in ipairs(settings.by) do
    key[i], names[i] = row[name], escape.line(tostring(row[name]))
  end
  if #lines > 0 then
    lines[#lines + 1] = ""
  end
  local head = table.concat(names, " ")
  if settings.unit then
    head = head .. (#names > 0 and ", " or "") .. settings.unit
  end
  if #head > WIDTH then
    head = table.concat(names, "\n")
  end
  if head ~= "" then
    lines[#lines + 1] = head
  end
  local bars = self:lines(table.unpack(key))
  table.move(bars, 1, #bars, #lines + 1, lines)
end

local function count_of_other(self)
  local cells = self:cells()
  return cells[#cells].count
end

--- An aligned table with a line for each key. With the column "histogram" bars behind it.
---@param options? { sort?: string, top?: integer } as for rows()
---@return string text without a line break at the end
function methods:text(options)
  local settings = self:options()
  local rows = self:rows(options)
  local cells, keys = cells_of(settings, rows)
  local lines = aligned(cells, keys)
  for _, column in ipairs(settings.columns) do
    for _, row in ipairs(column == "histogram" and rows or {}) do
      if not is_other(row) then
        add_bars(self, settings, row, lines)
      elseif #settings.columns == 1 then
        -- no line of a table tells of them
        lines[#lines + 1] = ""
        lines[#lines + 1] = ("(other): %d values of further keys"):format(count_of_other(self))
      end
    end
  end
  return table.concat(lines, "\n")
end

local function install(class)
  local index = class.__index
  for name, method in pairs(methods) do
    index[name] = method
  end
  class.__tostring = methods.text
end

--- Makes an empty one.
---
---     local sizes = aggregate.new { "count", "average", "p99", by = "comm", unit = "bytes" }
---     sizes:add(4096, "dd")
---     print(sizes)
---
--- The list says which columns there are: "count", "sum", "average", "minimum", "maximum",
--- "variance", "deviation", "histogram", and percentiles such as "p50" and "p99.99". Values are
--- whole numbers; floats are cut to the one below.
---@class tracefs.aggregate_options
---@field by? string|string[] names of the parts of the key; without it there is one row
---@field name? string what programs get it as ("values")
---@field unit? tracefs.unit how values are written for people
---@field max? integer keys that are kept apart (1000); the values of further ones are in "other"
---@field titles? table<string, string> heads of columns, by their names
---@field scale? "log-linear"|"log2"|"linear" how percentiles and histogram are kept
---@field error? number log-linear: the greatest error of a percentile, as a share of it (0.01)
---@field from? integer linear: where the buckets begin (0)
---@field to? integer linear: where they end
---@field width? integer linear: of a bucket
---@field unsigned? boolean integers are unsigned: 2^63 and more count as such
---@param options tracefs.aggregate_options
---@return tracefs.aggregate
function aggregate.new(options)
  local ok, made = pcall(function()
    return core.aggregate(core_options_of(options))
  end)
  if not ok then
    error(made, 2)
  end
  local class = getmetatable(made)
  if not class.__index.rows then
    install(class)
  end
  if options.name and aggregate._on_named then
    aggregate._on_named(made)
  end
  return made
end

return aggregate
