--- Records, losses and statistics as JSON objects.
---
--- A record is
---   {"type":"event","common_event":"sched:sched_switch","common_timestamp":1,"common_cpu":0,...,
---    "fields":{"prev_comm":"bash",...}}
--- because events have fields of any name, `type` too. Unsigned integers of 64 bits come as what
--- they are, arrays of bytes (addresses) as arrays of numbers, sets of CPUs as arrays; what lies
--- outside the record is null.
local core = require "tracefs.core"
local events = require "tracefs.output.events"
local json = require "tracefs.json"
local u64 = require("tracefs").u64

local record_json = {}

local COMMON <const> = {
  "common_flags",
  "common_preempt_count",
  "common_pid",
}

local STACKS <const> = { "common_stack", "common_user_stack" }

local function unsigned_array(list)
  local parts = {}
  for i, number in ipairs(list) do
    parts[i] = u64(number)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function byte_array(text)
  local parts = {}
  for i = 1, #text do
    parts[i] = text:byte(i)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

-- An empty one, too, is a list.
local function any_list(list)
  return #list > 0 and json.encode(list) or "[]"
end

-- How the values of a field are written, by what the event's description says of it.
local function encoder(field)
  if field.kind == "int" then
    return field.signed and json.number or u64
  elseif field.kind == "bytes" then
    return byte_array
  elseif field.kind == "array" and not field.signed then
    return unsigned_array
  end
  return events.LISTS[field.kind] and any_list or json.encode
end

-- By who describes events, and event label: field names, their JSON names with the colon, their
-- encoders.
local layouts = setmetatable({}, { __mode = "k" })

local function layout(record)
  local label, finder = record.common_event, events.finder()
  layouts[finder] = layouts[finder] or {}
  local found = layouts[finder][label]
  if found then
    return found
  end
  found = {}
  local event = finder(label)
  if event then
    for _, field in ipairs(event:fields()) do
      if not field.common then
        found[#found + 1] = {
          name = field.name,
          key = json.string(field.name) .. ":",
          encode = encoder(field),
          kind = field.kind,
        }
      end
    end
  else
    -- A dynamic event that is gone: the record itself still knows its fields.
    for name in pairs(record) do
      if not name:find("^common_") then
        found[#found + 1] = { name = name, key = json.string(name) .. ":", encode = json.encode }
      end
    end
  end
  layouts[finder][label] = found
  return found
end

---@param record userdata
---@return string
function record_json.record(record)
  local parts = {
    '{"type":"event","common_event":',
    json.string(record.common_event),
    ',"common_timestamp":',
    u64(record.common_timestamp),
    ',"common_cpu":',
    json.number(record.common_cpu),
    ',"common_comm":',
    json.string(record.common_comm or "<...>"),
  }
  for _, name in ipairs(COMMON) do
    parts[#parts + 1] = (',"%s":%s'):format(name, json.encode(record[name]))
  end
  if record.common_late then
    parts[#parts + 1] = ',"common_late":true'
  end
  if record.common_scale then
    parts[#parts + 1] = (',"common_scale":%d'):format(record.common_scale)
  end
  for _, name in ipairs(STACKS) do
    local stack = record[name]
    if stack ~= nil then
      parts[#parts + 1] = (',"%s":%s'):format(name, json.encode(stack))
    end
  end
  parts[#parts + 1] = ',"fields":{'
  for i, field in ipairs(layout(record)) do
    local value = record[field.name]
    parts[#parts + 1] = i > 1 and "," .. field.key or field.key
    parts[#parts + 1] = value == nil and "null" or field.encode(value)
  end
  parts[#parts + 1] = "}}"
  return table.concat(parts)
end

--- The fields of a record in their order, with their values as they are and as JSON.
---@param record userdata
---@return { name: string, value: any, kind?: string, json: string }[]
function record_json.fields(record)
  local list = {}
  for i, field in ipairs(layout(record)) do
    local value = record[field.name]
    list[i] = {
      name = field.name, value = value, kind = field.kind,
      json = value == nil and "null" or field.encode(value),
    }
  end
  return list
end

local function other(value)
  if core.is_record(value) then
    return record_json.record(value)
  end
end

--- Any value of a script, records inside tables too.
---@param value any
---@return string
function record_json.encode(value)
  return json.encode(value, other)
end

local function optional(number)
  return number and u64(number) or "null"
end

---@param lost tracefs.loss
---@return string
function record_json.lost(lost)
  return ('{"type":"lost","cpu":%d,"count":%s,"after_ts":%s,"before_ts":%s,"why":%s}'):format(
    lost.cpu,
    optional(lost.count),
    optional(lost.after_ts),
    optional(lost.before_ts),
    json.string(lost.why)
  )
end

--- session:stats() with its CPUs as a list.
---@param stats table
---@return string
function record_json.stats(stats)
  local object, cpus = { type = "stats" }, {}
  for name, value in pairs(stats) do
    if name ~= "per_cpu" then
      object[name] = value
    end
  end
  for cpu, counts in pairs(stats.per_cpu or {}) do
    local entry = { cpu = cpu }
    for name, value in pairs(counts) do
      entry[name] = value
    end
    cpus[#cpus + 1] = entry
  end
  table.sort(cpus, function(a, b) return a.cpu < b.cpu end)
  object.per_cpu = cpus
  return json.encode(object)
end

return record_json
