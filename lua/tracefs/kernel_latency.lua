--- The time between two events, measured by the kernel: the first one keeps its time in a
--- variable of a histogram, the second one takes it and makes a synthetic event of the
--- difference, and a histogram counts these.
local synthetic = require "tracefs.synthetic"

local kernel_latency = {}

---@class tracefs.latency.options
---@field start string label of the event that a time begins with
---@field stop string label of the event that it ends with
---@field key string|{ start: string|string[], stop: string|string[] } the fields that must be equal
---@field start_filter? string in the kernel's filter language
---@field stop_filter? string
---@field by? string|string[] fields of the stop event: a histogram for each of their values
---@field buckets? "log2"|integer powers of two, or so many ns wide; default "log2"
---@field size? integer starts with different keys that there is place for, default 16384
---@field rows? integer rows of the result that there is place for, default 2048

---@class tracefs.latency.row
---@field low integer ns, of the bucket
---@field high integer ns
---@field count integer
---@field sum integer ns, of all that are in it

---@class tracefs.latency.group
---@field by table<string, any> the values of the fields of `by`
---@field count integer pairs
---@field sum integer ns
---@field average number? ns
---@field rows tracefs.latency.row[] by time

---@class tracefs.latency.result: tracefs.latency.group all groups together
---@field groups tracefs.latency.group[] the one with most pairs first; one when there is no `by`
---@field starts integer start events that were kept, before the session's start too
---@field dropped integer starts, stops and times that found no place: pairs are missing

---@class tracefs.latency
---@field starts tracefs.hist of the start event
---@field stops tracefs.hist of the stop event
---@field times tracefs.hist of the times between them
local Latency = {}
Latency.__index = Latency
Latency.__name = "tracefs.latency"

local function refuse(...)
  error("kernel_latency: " .. (...):format(select(2, ...)), 0)
end

local KNOWN <const> = {
  start = "string", stop = "string", key = "table", start_filter = "string",
  stop_filter = "string", by = "table", buckets = "integer", size = "integer", rows = "integer",
}

local function check(options)
  if type(options) ~= "table" then
    refuse("the options must be a table, not %s", type(options))
  end
  for name, value in pairs(options) do
    local kind = KNOWN[name]
    if not kind then
      local names = {}
      for known in pairs(KNOWN) do
        names[#names + 1] = known
      end
      table.sort(names)
      refuse("unknown option '%s'; there are: %s", tostring(name), table.concat(names, ", "))
    elseif type(value) ~= kind and math.type(value) ~= kind
      and not ((kind == "table" or name == "buckets") and type(value) == "string") then
      refuse("%s: a %s is needed, not %s", name, kind == "table" and "name or a list" or kind,
        type(value))
    end
  end
  for _, name in ipairs { "start", "stop", "key" } do
    if not options[name] then
      refuse('%s is missing: start = "system:event", stop = "system:event", key = "field"', name)
    end
  end
  local buckets = options.buckets
  if buckets and buckets ~= "log2" and (math.type(buckets) ~= "integer" or buckets < 1) then
    refuse('buckets: "log2" or a width in ns is needed, not %s', tostring(buckets))
  end
end

local function list(value)
  return type(value) == "string" and { value } or value
end

local function keys_of(key)
  if type(key) == "string" or #key > 0 then
    return list(key), list(key)
  elseif not key.start or not key.stop then
    refuse('key: a field, a list of fields, or { start = ..., stop = ... } is needed')
  end
  local start, stop = list(key.start), list(key.stop)
  if #start ~= #stop then
    refuse("key: start has %d fields, and stop %d", #start, #stop)
  end
  return start, stop
end

-- The fields of a synthetic event that are those of `by`.
local function carried(target, label, by)
  local event = target.describe(target.find(label))
  local known, names = {}, {}
  for _, field in ipairs(event:fields()) do
    known[field.name] = field
    names[#names + 1] = field.name
  end
  local fields = {}
  for i, name in ipairs(by) do
    if not known[name] then
      refuse("by: %s has no field '%s'; it has: %s", event:label(), tostring(name),
        table.concat(names, ", "))
    end
    -- the common_ fields are every event's own
    fields[i] = ("%s by_%s"):format(synthetic.type_for(known[name]), name)
  end
  return fields
end

local made = 0

-- What two CPUs do at once can be counted in the other order than it has happened in. Such a
-- difference is below 0, which would spoil the sums.
local FORWARD <const> = "lat < 0x8000000000000000"

local function build(self, target, options)
  local start_keys, stop_keys = keys_of(options.key)
  local by = options.by and list(options.by) or {}
  local fields = carried(target, options.stop, by)
  table.insert(fields, 1, "u64 lat")
  local start_event = target.find(options.start)

  -- the names of variables are those of the whole instance
  made = made + 1
  local time, latency = "t" .. made, "lat" .. made
  local name = "lat" .. made
  local size = options.size or 16384
  local label = target.synthetic(name, fields)
  self._by = by
  self.starts = target.hist(options.start, {
    keys = start_keys, variables = { [time] = "common_timestamp" }, size = size,
    filter = options.start_filter,
  })
  local with = { "$" .. latency, table.unpack(by) }
  self.stops = target.hist(options.stop, {
    keys = stop_keys, variables = { [latency] = "common_timestamp-$" .. time }, size = size,
    filter = options.stop_filter,
    actions = {
      { onmatch = ("%s:%s"):format(start_event.system, start_event.name), trace = name,
        with = with },
    },
  })
  local buckets = options.buckets or "log2"
  local keys = { buckets == "log2" and "lat.log2" or ("lat.buckets=%d"):format(buckets) }
  for i, field in ipairs(by) do
    keys[i + 1] = "by_" .. field
  end
  self.times = target.hist(label, {
    keys = keys, values = "lat", size = options.rows, filter = FORWARD,
  })
end

--- Sets the measurement up. Raises what is refused; then nothing of it counts.
---@param target table of functions: find, describe, synthetic, hist
---@param options tracefs.latency.options
---@return tracefs.latency
function kernel_latency.new(target, options)
  check(options)
  local self = setmetatable({}, Latency)
  local ok, message = pcall(build, self, target, options)
  if not ok then
    self:remove()
    error(message, 0)
  end
  return self
end

local function new_group(by)
  return { by = by, count = 0, sum = 0, rows = {} }
end

local function add(group, bucket, count, sum)
  group.count = group.count + count
  group.sum = group.sum + sum
  local row = group[bucket.low]
  if not row then
    row = { low = bucket.low, high = bucket.high, count = 0, sum = 0 }
    group[bucket.low] = row
    group.rows[#group.rows + 1] = row
  end
  row.count = row.count + count
  row.sum = row.sum + sum
end

local function settle(group)
  for _, row in ipairs(group.rows) do
    group[row.low] = nil
  end
  table.sort(group.rows, function(a, b)
    return a.low < b.low
  end)
  group.average = group.count > 0 and group.sum / group.count or nil
end

--- What has been measured until now.
---@return tracefs.latency.result? result
---@return string? message
---@return integer? errno
function Latency:read()
  local parts = {}
  if not self.times then
    error("the measurement has been removed", 2)
  end
  for _, part in ipairs { "starts", "stops", "times" } do
    local read, message, errno = self[part]:read()
    if not read then
      return nil, message, errno
    end
    parts[part] = read
  end
  local result, groups, order = new_group({}), {}, {}
  for _, row in ipairs(parts.times.rows) do
    local by, words = {}, {}
    for i, name in ipairs(self._by) do
      by[name] = row.keys["by_" .. name]
      words[i] = ("%q"):format(by[name])
    end
    local key = table.concat(words, "\0")
    if not groups[key] then
      groups[key] = new_group(by)
      order[#order + 1] = groups[key]
    end
    local count, sum = row.values.hitcount, row.values.lat
    add(groups[key], row.keys.lat, count, sum)
    add(result, row.keys.lat, count, sum)
  end
  for _, group in ipairs(order) do
    settle(group)
  end
  table.sort(order, function(a, b)
    return a.count > b.count
  end)
  settle(result)
  result.groups = order
  result.starts = parts.starts.hits
  result.dropped = parts.starts.dropped + parts.stops.dropped + parts.times.dropped
  return result
end

--- Ends the measurement.
---@return true?
---@return string? message
---@return integer? errno
function Latency:remove()
  for _, part in ipairs { "times", "stops", "starts" } do
    if self[part] then
      local ok, message, errno = self[part]:remove()
      if not ok then
        return nil, message, errno
      end
      self[part] = nil
    end
  end
  return true
end

function Latency:__tostring()
  if not self.times then
    return "tracefs.latency (removed)"
  end
  return ("tracefs.latency (%s to %s)"):format(self.starts:event(), self.stops:event())
end

kernel_latency.methods = Latency

return kernel_latency
