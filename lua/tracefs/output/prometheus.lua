--- Output as metrics in Prometheus' text format: into a file that is replaced as a whole, for
--- node_exporter's textfile collector, and for whoever asks on a socket.
---
--- What was printed is what there is: an aggregate stays in the metrics with the values that it has
--- when they are written, of tables the last value of each field.
local aggregate = require "tracefs.aggregate"
local core = require "tracefs.core"
local escape = require "tracefs.escape"
local text = require "tracefs.output.text"
local u64 = require("tracefs").u64

local prometheus = {}

-- Seconds between two writes of a file when nothing is printed.
local INTERVAL <const> = 5
-- Tables can have any number of different strings; what is beyond is counted and not kept.
local MAX_SERIES <const> = 10000

local UNITS <const> = {
  ns = { suffix = "_seconds", digits = 9 }, us = { suffix = "_seconds", digits = 6 },
  ms = { suffix = "_seconds", digits = 3 }, s = { suffix = "_seconds", digits = 0 },
  bytes = { suffix = "_bytes", digits = 0 },
}
local NO_UNIT <const> = { suffix = "", digits = 0 }

local Metrics = text.derive()
Metrics.wants_named = true

-- A part of a metric's name, or of a label's.
local function word(name)
  name = name:gsub("[^%w_]+", "_"):gsub("_+", "_"):gsub("^_", ""):gsub("_$", "")
  return name == "" and "unnamed" or name
end

local function label_name(name)
  name = word(name)
  if name == "le" or name == "quantile" or name:find("^%d") then
    return "key_" .. name
  end
  return name
end

local ESCAPES <const> = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function label_value(value)
  return (escape.utf8(value):gsub('[\\"\n]', ESCAPES))
end

-- A number of a unit that is 10^-digits of the base unit. Integers keep all their digits.
local function scaled(value, unit, is_unsigned)
  if math.type(value) == "integer" then
    local sign, digits = "", is_unsigned and u64(value) or ("%d"):format(value)
    if digits:sub(1, 1) == "-" then
      sign, digits = "-", digits:sub(2)
    end
    if unit.digits == 0 then
      return sign .. digits
    end
    digits = ("0"):rep(unit.digits + 1 - #digits) .. digits
    local fraction = digits:sub(-unit.digits):gsub("0+$", "")
    return sign .. digits:sub(1, -unit.digits - 1) .. (fraction ~= "" and "." .. fraction or "")
  elseif value ~= value then
    return "NaN"
  elseif value == math.huge or value == -math.huge then
    return value > 0 and "+Inf" or "-Inf"
  end
  return (("%.15g"):format(value / 10.0 ^ unit.digits):gsub(",", "."))
end

-- Families in the order in which they came, each with its samples together.
local Page = {}
Page.__index = Page

function Page:family(name, kind, help)
  local family = self.by_name[name]
  if not family then
    family = { name = name, kind = kind, help = help, lines = {} }
    self.by_name[name] = family
    self[#self + 1] = family
  end
  return family
end

local function add(family, suffix, labels, value)
  family.lines[#family.lines + 1] = ("%s%s%s %s"):format(family.name, suffix,
    labels ~= "" and "{" .. labels .. "}" or "", value)
end

function Page:text()
  local lines = {}
  for _, family in ipairs(self) do
    lines[#lines + 1] = ("# HELP %s %s"):format(family.name, family.help)
    lines[#lines + 1] = ("# TYPE %s %s"):format(family.name, family.kind)
    table.move(family.lines, 1, #family.lines, #lines + 1, lines)
  end
  lines[#lines + 1] = ""
  return table.concat(lines, "\n")
end

-- Labels of a list of { name, value }. Different keys may look the same when their bytes are no
-- UTF-8: `seen` makes them differ, because a series may be there only once.
local function labels_of(pairs_list, seen)
  local parts, names = {}, {}
  for i, pair in ipairs(pairs_list) do
    local name = label_name(pair[1])
    while names[name] do
      name = name .. "_"
    end
    names[name] = true
    parts[i] = ('%s="%s"'):format(name, label_value(tostring(pair[2])))
  end
  local labels = table.concat(parts, ",")
  local count = (seen[labels] or 0) + 1
  seen[labels] = count
  if count > 1 then
    labels = labels .. (labels == "" and "" or ",") .. ('same="%d"'):format(count)
  end
  return labels
end

local function with(labels, name, value)
  return labels .. (labels == "" and "" or ",") .. ('%s="%s"'):format(name, value)
end

local function shape_of(options)
  local shape = { is_counter = true, percents = {} }
  for _, column in ipairs(options.columns) do
    shape[column] = true
    local percent = tonumber(column:match "^p(%d+%.?%d*)$")
    if percent then
      shape.percents[#shape.percents + 1] = { percent = percent, column = column }
    end
    shape.is_counter = shape.is_counter and column == "count"
  end
  return shape
end

-- Both edges of each bucket, so that what is between two is not spread over the gap.
local function add_buckets(family, object, cell, labels, unit, options)
  local sum, edge = 0, nil
  for _, step in ipairs(cell.keys and object:steps(table.unpack(cell.keys)) or {}) do
    if step.from - 1 ~= edge and step.from ~= math.mininteger
      and not (options.unsigned and step.from == 0) then
      local below = scaled(step.from - 1, unit, options.unsigned)
      add(family, "_bucket", with(labels, "le", below), ("%d"):format(sum))
    end
    sum, edge = sum + step.count, step.to
    add(family, "_bucket", with(labels, "le", scaled(step.to, unit, options.unsigned)),
      ("%d"):format(sum))
  end
  add(family, "_bucket", with(labels, "le", "+Inf"), ("%d"):format(cell.count))
end

local GAUGES <const> = { minimum = "min", maximum = "max", deviation = "deviation" }

function Metrics.add_cell(page, base, object, cell, labels, shape)
  local options = object:options()
  local unit = UNITS[options.unit] or NO_UNIT
  local help = "From the aggregate " .. base:gsub("^luatrace_", "") .. "."
  if shape.is_counter then
    add(page:family(base .. "_total", "counter", help), "", labels, ("%d"):format(cell.count))
    return
  end
  local kind = shape.histogram and "histogram" or "summary"
  local family = page:family(base .. unit.suffix, kind, help)
  if shape.histogram then
    add_buckets(family, object, cell, labels, unit, options)
  end
  for _, quantile in ipairs(shape.percents) do
    local value = scaled(cell[quantile.percent], unit, options.unsigned)
    if shape.histogram then
      add(page:family(("%s_%s%s"):format(base, word(quantile.column), unit.suffix), "gauge", help),
        "", labels, value)
    else
      add(family, "", with(labels, "quantile", ("%.10g"):format(quantile.percent / 100)), value)
    end
  end
  add(family, "_sum", labels, scaled(cell.sum, unit, options.unsigned))
  add(family, "_count", labels, ("%d"):format(cell.count))
  for column, name in pairs(GAUGES) do
    local value = column == "deviation" and cell.variance and math.sqrt(cell.variance)
      or cell[column]
    if shape[column] and value then
      add(page:family(("%s_%s%s"):format(base, name, unit.suffix), "gauge", help), "", labels,
        scaled(value, unit, options.unsigned and column ~= "deviation"))
    end
  end
end

function Metrics:add_aggregates(page)
  local names = {}
  for _, object in ipairs(self.aggregates) do
    local options = object:options()
    local name = word(options.name)
    local count = (names[name] or 0) + 1
    names[name] = count
    local base = "luatrace_" .. name .. (count > 1 and "_" .. count or "")
    local shape, percents, seen = shape_of(options), {}, {}
    for i, quantile in ipairs(shape.percents) do
      percents[i] = quantile.percent
    end
    for _, cell in ipairs(object:cells(#percents > 0 and percents or nil)) do
      local keys = {}
      for i, by in ipairs(options.by) do
        keys[i] = { by, cell.keys and cell.keys[i] or "(other)" }
      end
      if cell.count > 0 then
        self.add_cell(page, base, object, cell, labels_of(keys, seen), shape)
      end
    end
  end
end

local COUNTERS <const> = { "produced", "delivered", "lost" }

function Metrics:add_run(page)
  local stats = self.read_stats and self.read_stats() or self.last_stats
  if stats then
    for _, name in ipairs(COUNTERS) do
      local family = page:family(("luatrace_events_%s_total"):format(name), "counter",
        ("Events of the kernel's buffers: %s."):format(name))
      for cpu, counts in pairs(stats.per_cpu) do
        add(family, "", with(self.run, "cpu", cpu), ("%d"):format(counts[name]))
      end
    end
    for label, sample in pairs(stats.samples or {}) do
      add(page:family("luatrace_sample_scale", "gauge",
        "Only some of the event's records were looked at: each stands for so many."), "",
        with(self.run, "event", label_value(label)), ("%d"):format(sample.scale))
    end
    add(page:family("luatrace_handler_errors_total", "counter", "Errors in handlers."), "",
      self.run, ("%d"):format(stats.errors or 0))
  end
  if self.dropped > 0 then
    add(page:family("luatrace_values_dropped_total", "counter",
      ("Values of tables that found no place: there are %d series."):format(MAX_SERIES)), "",
      self.run, ("%d"):format(self.dropped))
  end
  add(page:family("luatrace_failed", "gauge", "Whether the run has ended with an error."), "",
    self.run, self.has_failed and "1" or "0")
end

--- The metrics as they are now.
---@return string
function Metrics:page()
  local page = setmetatable({ by_name = {} }, Page)
  self:add_aggregates(page)
  for _, series in ipairs(self.series) do
    add(page:family(series.name, series.kind, series.help), "", series.labels, series.value)
  end
  self:add_run(page)
  return page:text()
end

-- One value of a table, or a count of records.
function Metrics:set(name, kind, help, labels, value)
  local key = name .. "{" .. labels
  local series = self.series[key]
  if not series then
    if #self.series >= MAX_SERIES then
      self.dropped, self.is_dirty = self.dropped + 1, true
      return
    end
    series = { name = name, kind = kind, help = help, labels = labels, number = 0 }
    self.series[key] = series
    self.series[#self.series + 1] = series
  end
  series.value = value or ("%d"):format(series.number + 1)
  series.number = series.number + 1
  self.is_dirty = true
end

function Metrics:count_event(label)
  self:set("luatrace_events_total", "counter", "Events that were printed.",
    with(self.run, "event", label_value(label or "?")))
end

function Metrics:record(record)
  self:count_event(record.common_event)
end

function Metrics:values(_, _, _, label)
  self:count_event(label)
end

function Metrics:object(object)
  local numbers, labels = {}, {}
  for name, value in pairs(object) do
    if type(value) == "number" and type(name) == "string" then
      numbers[#numbers + 1] = name
    elseif name ~= "type" and type(name) == "string" and type(value) ~= "table" then
      labels[#labels + 1] = { name, value }
    end
  end
  if #numbers == 0 then
    self.beside:object(object)
    return
  end
  table.sort(numbers)
  table.sort(labels, function(a, b) return a[1] < b[1] end)
  local kind = word(type(object.type) == "string" and object.type or "value")
  local text_of_labels = labels_of(labels, {})
  for _, name in ipairs(numbers) do
    local stem, suffix = name:match("^(.*)_(%a+)$")
    local unit = UNITS[suffix]
    unit = unit and unit.suffix == "_seconds" and unit or nil
    self:set(("luatrace_%s_%s%s"):format(kind, word(unit and stem or name),
      unit and unit.suffix or ""), "gauge", "From a table that was printed.",
      text_of_labels, scaled(object[name], unit or NO_UNIT))
  end
end

--- From now on the aggregate is part of the metrics.
---@param object tracefs.aggregate
function Metrics:aggregate(object)
  self.is_dirty = true
  if not self.aggregates[object] then
    self.aggregates[object] = true
    self.aggregates[#self.aggregates + 1] = object
  end
end

--- So are the aggregates that pairs fill.
function Metrics:into(list)
  for _, object in ipairs(type(list) == "table" and list or { list }) do
    self:aggregate(object)
  end
end

---@param match tracefs.output.match
function Metrics:match(match)
  local histogram = self.matched[match.name]
  if not histogram then
    histogram = aggregate.new { "count", "histogram", name = match.name, error = 0.05,
      unit = match.in_ns and "ns" or nil }
    self.matched[match.name] = histogram
    self:aggregate(histogram)
  end
  histogram:add(match.delta)
end

-- Losses are in the statistics.
function Metrics.lost() end

function Metrics:failed()
  self.has_failed = true
end

function Metrics:stats(stats)
  self.last_stats = stats
end

function Metrics:write_file()
  self.is_dirty, self.written = false, os.time()
  local ok, message = core.replace(self.path, self:page())
  if not ok then
    error(self.out:fail_with(message), 0)
  end
end

function Metrics:flush()
  if self.server then
    self.server:turn()
  end
  if self.path and (self.is_dirty or os.time() - self.written >= INTERVAL) then
    self:write_file()
  end
end

function Metrics:finish()
  if self.server then
    self.server:close()
    self.server = nil
  end
  if self.path then
    self:write_file()
  elseif not self.is_served then
    self.out:write(self:page())
  end
end

--- Answers requests on a socket, for as long as the session runs.
---@param session tracefs.session
---@param address string "[ADDRESS:]PORT"
---@return string url
function Metrics:listen(session, address)
  self.server = require("tracefs.output.http").listen(session, address, function()
    return self:page()
  end)
  self.is_served = true
  return self.server.url
end

-- What tells the metrics that every run has from those of the other files in the folder, which
-- their reader puts together.
local function run_label(path)
  local file = path and path:match "[^/]*$"
  return file and with("", "run", label_value(file:match "^(.+)%.[^.]*$" or file)) or ""
end

---@param out tracefs.output
---@param beside tracefs.output.writer
---@param options tracefs.output.options
---@return tracefs.output.writer
function prometheus.new(out, beside, options)
  return setmetatable({
    out = out, beside = beside, path = options.path, run = run_label(options.path),
    written = os.time(), is_dirty = true, aggregates = {}, series = {}, matched = {}, dropped = 0,
  }, Metrics)
end

return prometheus
