--- Output as one JSON object a line. docs/api.md has the schema.
local json = require "tracefs.json"
local record_json = require "tracefs.record_json"
local rows = require "tracefs.output.rows"

local ndjson = {}

local Lines = {}
Lines.__index = Lines

local function number(item)
  return item.text or json.encode(item.value)
end

-- { name =, value =, text = } of a list as an object.
local function object_of(list)
  local parts = {}
  for i, item in ipairs(list) do
    parts[i] = json.string(item.name) .. ":" .. number(item)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function Lines:record(record)
  self.write(record_json.record(record) .. "\n")
end

function Lines:values(names, values, signs, label)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = json.string(name) .. ":"
      .. (rows.json(values[i], signs, name) or record_json.encode(values[i]))
  end
  self.write(('{"type":"values",%s"fields":{%s}}\n'):format(
    label and ('"common_event":%s,'):format(json.string(label)) or "", table.concat(parts, ",")))
end

function Lines:object(object)
  self.write(record_json.encode(object) .. "\n")
end

local function buckets_of(aggregate, row, options)
  local parts = {}
  for i, bucket in ipairs(aggregate:buckets(table.unpack(row.key))) do
    parts[i] = ('{"from":%s,"to":%s,"count":%d}'):format(
      rows.number(bucket.from, options.unsigned), rows.number(bucket.to, options.unsigned),
      bucket.count)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

function Lines:aggregate(aggregate)
  local list, options = rows.of(aggregate)
  local with_buckets = rows.has_histogram(options)
  for _, row in ipairs(list) do
    local parts = { '{"type":"row","name":', json.string(options.name) }
    parts[#parts + 1] = ',"keys":' .. object_of(row.keys)
    parts[#parts + 1] = row.other and ',"other":true' or ""
    parts[#parts + 1] = ',"unit":' .. (options.unit and json.string(options.unit) or "null")
    parts[#parts + 1] = ',"values":' .. object_of(row.values)
    if with_buckets and not row.other then
      parts[#parts + 1] = ',"buckets":' .. buckets_of(aggregate, row, options)
    end
    self.write(table.concat(parts) .. "}\n")
  end
end

Lines.folded = rows.put_stacks

---@param match tracefs.output.match
function Lines:match(match)
  local stages = {}
  for i, stage in ipairs(match.stages) do
    stages[i] = ("%d"):format(stage)
  end
  self.write(('{"type":"pair","name":%s,"start":%s,"stop":%s,"delta":%d,"cpu":%d,"key":%s,'
    .. '"values":%s,"stages":[%s]}\n'):format(json.string(match.name), match.start_digits,
    match.stop_digits, match.delta, match.cpu, object_of(match.keys), object_of(match.values),
    table.concat(stages, ",")))
end

function Lines:line(line)
  self:object { type = "print", text = line }
end

function Lines:lost(lost)
  self.write(record_json.lost(lost) .. "\n")
end

function Lines:failed(message)
  self:object { type = "error", message = message }
end

function Lines:stats(stats)
  self.write(record_json.stats(stats) .. "\n")
end

function Lines.flush() end
function Lines.finish() end

---@param out tracefs.output
---@return tracefs.output.writer
function ndjson.new(out)
  return setmetatable({
    write = function(line)
      out:write_raw(line)
    end,
  }, Lines)
end

return ndjson
