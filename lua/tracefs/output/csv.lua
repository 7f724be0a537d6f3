--- Output as one table of comma-separated values (RFC 4180). The first row that is printed decides
--- which columns there are; what later rows have beyond them is in the last column as JSON.
local escape = require "tracefs.escape"
local record_json = require "tracefs.record_json"
local rows = require "tracefs.output.rows"
local text = require "tracefs.output.text"
local u64 = require("tracefs").u64

local csv = {}

-- Losses that come before the first row wait for it: they do not decide the columns.
local MAX_WAITING <const> = 1000
local REST <const> = "more"

local Csv = text.derive()

local function field(value)
  value = escape.utf8(value)
  if value:find('[",\r\n]') then
    return '"' .. value:gsub('"', '""') .. '"'
  end
  return value
end

-- Strings as they are, all else as in JSON.
local function cell(value)
  if type(value) == "string" then
    return value
  elseif value == nil then
    return ""
  end
  return record_json.encode(value)
end

-- Fields and keys have any name, those of the columns before them too.
local function append(row, item, prefix)
  local names = row.names
  if not names then
    names = {}
    for _, other in ipairs(row) do
      names[other.name] = true
    end
    row.names = names
  end
  while names[item.name] or item.name == REST do
    item.name = prefix .. "." .. item.name
  end
  names[item.name] = true
  row[#row + 1] = item
end

function Csv:put(parts)
  for i, part in ipairs(parts) do
    parts[i] = field(part)
  end
  self.write(table.concat(parts, ",") .. "\r\n")
end

function Csv:set_columns(row)
  self.columns, self.places = {}, {}
  for i, item in ipairs(row) do
    self.columns[i] = item.name
    self.places[item.name] = i
  end
  local last = #row + 1
  self.rest = last
  self.columns[last] = REST
  self:put(table.move(self.columns, 1, last, 1, {}))
  for _, waiting in ipairs(self.waiting) do
    self:put_row(waiting)
  end
  self.waiting = {}
end

--- A row as a list of { name =, value = or json = }.
function Csv:put_row(row)
  local parts, rest = {}, {}
  for i = 1, self.rest do
    parts[i] = ""
  end
  for _, item in ipairs(row) do
    local place = self.places[item.name]
    if place then
      parts[place] = item.json or cell(item.value)
    elseif item.json or item.value ~= nil then
      rest[#rest + 1] = ("%s:%s"):format(record_json.encode(item.name),
        item.json or record_json.encode(item.value))
    end
  end
  parts[self.rest] = #rest > 0 and "{" .. table.concat(rest, ",") .. "}" or ""
  self:put(parts)
end

function Csv:row(row)
  if not self.columns then
    self:set_columns(row)
  end
  self:put_row(row)
end

--- A row that is not what was asked for.
function Csv:aside(row)
  if self.columns then
    self:put_row(row)
    return
  end
  self.waiting[#self.waiting + 1] = row
  if #self.waiting >= MAX_WAITING then
    self:set_columns { { name = "type" } }
  end
end

function Csv:record(record)
  local row = { { name = "type", value = "event" } }
  for _, name in ipairs { "common_event", "common_timestamp", "common_cpu", "common_comm",
    "common_pid" } do
    row[#row + 1] = { name = name, value = record[name] }
  end
  row[3].json = u64(record.common_timestamp)
  for _, item in ipairs(record_json.fields(record)) do
    local is_text = type(item.value) == "string" and item.kind ~= "bytes"
    append(row, {
      name = item.name, value = is_text and item.value or nil,
      json = not is_text and item.value ~= nil and item.json or nil,
    }, "fields")
  end
  self:row(row)
end

local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then
      return true
    end
  end
  return false
end

local function digits(item)
  return { name = item.name, value = item.value, json = item.text }
end

function Csv:values(names, values, signs, label)
  local row = { { name = "type", value = "values" } }
  if label and not contains(names, "common_event") then
    row[2] = { name = "common_event", value = label }
  end
  for i, name in ipairs(names) do
    append(row, { name = name, value = values[i], json = rows.json(values[i], signs, name) },
      "fields")
  end
  self:row(row)
end

function Csv:object(object)
  local names, row = {}, { { name = "type", value = object.type } }
  for name in pairs(object) do
    if name ~= "type" then
      names[#names + 1] = name
    end
  end
  table.sort(names, function(a, b)
    if type(a) == type(b) and type(a) ~= "boolean" then
      return a < b
    end
    return tostring(a) < tostring(b)
  end)
  for _, name in ipairs(names) do
    append(row, { name = tostring(name), value = object[name] }, "fields")
  end
  self:row(row)
end

function Csv:aggregate(aggregate)
  local list, options = rows.of(aggregate)
  for _, row in ipairs(list) do
    local line = { { name = "type", value = "row" }, { name = "name", value = options.name } }
    for i, name in ipairs(options.by) do
      local key = row.keys[i]
      append(line, { name = name, value = key and key.value }, "keys")
    end
    append(line, { name = "other", value = row.other }, "row")
    append(line, { name = "unit", value = options.unit }, "row")
    for _, value in ipairs(row.values) do
      append(line, digits(value), "values")
    end
    self:row(line)
  end
end

Csv.folded = rows.put_stacks

---@param match tracefs.output.match
function Csv:match(match)
  local row = {
    { name = "type", value = "pair" }, { name = "name", value = match.name },
    { name = "start", json = match.start_digits }, { name = "stop", json = match.stop_digits },
    { name = "delta", value = match.delta }, { name = "cpu", value = match.cpu },
  }
  for _, item in ipairs(match.keys) do
    append(row, digits(item), "key")
  end
  for _, item in ipairs(match.values) do
    append(row, digits(item), "values")
  end
  if #match.stages > 0 then
    append(row, { name = "stages", value = match.stages }, "pair")
  end
  self:row(row)
end

function Csv:lost(lost)
  local row = { { name = "type", value = "lost" } }
  for _, name in ipairs { "cpu", "count", "after_ts", "before_ts", "why" } do
    row[#row + 1] = { name = name, value = lost[name] }
  end
  self:aside(row)
end

function Csv:failed(message)
  self:aside { { name = "type", value = "error" }, { name = "message", value = message } }
end

function Csv:finish()
  if not self.columns and #self.waiting > 0 then
    self:set_columns { { name = "type" } }
  end
end

---@param out tracefs.output
---@param beside tracefs.output.writer
---@return tracefs.output.writer
function csv.new(out, beside)
  return setmetatable({
    beside = beside,
    waiting = {},
    write = function(line)
      out:write(line)
    end,
  }, Csv)
end

return csv
