--- Output as a trace for Perfetto and Chrome's about:tracing (Trace Event Format, JSON): events
--- that are printed are instants on the track of their CPU, matches of pairs are slices, and so are
--- tables that say when and how long.
local json = require "tracefs.json"
local record_json = require "tracefs.record_json"
local rows = require "tracefs.output.rows"
local text = require "tracefs.output.text"
local u64 = require("tracefs").u64

local perfetto = {}

-- The process that stands for the CPUs; the pairs' come behind it.
local CPUS <const> = 1
-- Viewers read numbers as floats: what has more digits keeps them in a string.
local MAX_DIGITS <const> = 15
-- Times are written from a multiple of this, so that a float of microseconds keeps every ns.
local GRID <const> = 1 << 50

local Trace = text.derive()
Trace.wants_matches = true

-- ns as microseconds with all their digits.
local function microseconds(ns)
  local sign = ns < 0 and "-" or ""
  ns = math.abs(ns)
  return ("%s%d.%03d"):format(sign, ns // 1000, ns % 1000)
end

local function exact(number)
  return #number > MAX_DIGITS and number:find "^%-?%d+$" and '"' .. number .. '"' or number
end

-- { name =, json = or value =, text = } of a list as an object.
local function arguments(...)
  local parts, names = {}, {}
  for _, list in ipairs { ... } do
    for _, item in ipairs(list) do
      local name = item.name
      while names[name] do
        name = name .. "'"
      end
      names[name] = true
      parts[#parts + 1] = json.string(name) .. ":"
        .. exact(item.json or item.text or record_json.encode(item.value))
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function Trace:put(line)
  self.out:write_raw((self.count == 0 and '{"displayTimeUnit":"ns","traceEvents":[\n' or ",\n")
    .. line)
  self.count = self.count + 1
end

function Trace:name(kind, process, thread, name)
  self:put(('{"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}}'):format(
    kind, process, thread, json.string(name)))
end

-- A timestamp as the trace has it.
function Trace:time(ns)
  if not self.base then
    self.base = ns >= 2 * GRID and (ns // GRID - 1) * GRID or 0
  end
  return microseconds(ns - self.base)
end

function Trace:put_instant(name, timestamp, process, thread, args)
  self:put(('{"name":%s,"cat":%s,"ph":"i","s":"t","ts":%s,"pid":%d,"tid":%d,"args":%s}'):format(
    json.string(name), json.string(name:match "^[^:]*"), self:time(timestamp), process, thread,
    args))
end

function Trace:instant(name, timestamp, cpu, args)
  if not self.cpus[cpu] then
    if not next(self.cpus) then
      self:name("process_name", CPUS, 0, "CPUs")
    end
    self.cpus[cpu] = true
    self:name("thread_name", CPUS, cpu, ("CPU %d"):format(cpu))
  end
  self:put_instant(name, timestamp, CPUS, cpu, args)
end

function Trace:record(record)
  self:instant(record.common_event, record.common_timestamp, record.common_cpu, arguments({
    { name = "common_comm", value = record.common_comm or "<...>" },
    { name = "common_pid", value = record.common_pid },
  }, record_json.fields(record)))
end

function Trace:values(names, values, signs, label, timestamp, cpu)
  if not timestamp then
    self.beside:values(names, values, signs)
    return
  end
  local list = {}
  for i, name in ipairs(names) do
    list[i] = { name = name, value = values[i], json = rows.json(values[i], signs, name) }
  end
  self:instant(label, timestamp, cpu, arguments(list))
end

-- The track of a slice: the one whose last slice has ended latest before this one begins. Slices of
-- a track never overlap. Lanes are in the order of their ends.
local function lane_for(lanes, start, stop)
  local low, high = 0, #lanes
  while low < high do
    local middle = (low + high + 1) // 2
    if lanes[middle].stop <= start then
      low = middle
    else
      high = middle - 1
    end
  end
  local lane = low > 0 and table.remove(lanes, low) or nil
  local is_new = not lane
  if is_new then
    lanes.count = lanes.count + 1
    lane = { number = lanes.count }
  end
  lane.stop = stop
  local place = #lanes + 1
  while place > 1 and lanes[place - 1].stop > stop do
    place = place - 1
  end
  table.insert(lanes, place, lane)
  return lane.number, is_new
end

function Trace:slice(name, process, thread, start, duration, args)
  self:put(('{"name":%s,"cat":"pair","ph":"X","ts":%s,"dur":%s,"pid":%d,"tid":%d,"args":%s}')
    :format(json.string(name), self:time(start), microseconds(duration), process, thread, args))
end

-- The process that stands for all slices of a name.
function Trace:group(name)
  local group = self.groups[name]
  if not group then
    self.group_count = self.group_count + 1
    group = { process = CPUS + self.group_count, lanes = { count = 0 } }
    self.groups[name] = group
    self:name("process_name", group.process, 0, name)
  end
  return group
end

-- A slice on the track of its group that has room for it.
function Trace:put_slice(name, start, stop, args)
  local group = self:group(name)
  local lane, is_new = lane_for(group.lanes, start, stop)
  if is_new then
    self:name("thread_name", group.process, lane, ("track %d"):format(lane))
  end
  self:slice(name, group.process, lane, start, stop - start, args)
  return group.process, lane
end

-- A table that says when: an instant, or a slice that ends there when it says how long, too.
function Trace:object(object)
  local stop, duration = object.time_ns, object.duration_ns
  if math.type(stop) ~= "integer" then
    self.beside:object(object)
    return
  end
  local name, list = type(object.type) == "string" and object.type or "table", {}
  for key, value in pairs(object) do
    if key ~= "type" and key ~= "time_ns" and key ~= "duration_ns" then
      list[#list + 1] = { name = tostring(key), value = value }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  if math.type(duration) == "integer" and duration >= 0 then
    self:put_slice(name, stop - duration, stop, arguments(list))
    return
  end
  local group = self:group(name)
  if not group.has_instants then
    group.has_instants = true
    self:name("thread_name", group.process, 0, name)
  end
  self:put_instant(name, stop, group.process, 0, arguments(list))
end

---@param match tracefs.output.match
function Trace:match(match)
  local process, lane = self:put_slice(match.name, match.start, match.stop,
    arguments(match.keys, match.values, { { name = "stop_cpu", value = match.cpu } }))
  local start = match.start
  for i, duration in ipairs(match.stages) do
    self:slice(("leg %d"):format(i), process, lane, start, duration, "{}")
    start = start + duration
  end
end

local function number(name, value)
  return { name = name, json = value and u64(value) or "null" }
end

function Trace:lost(lost)
  local timestamp = lost.before_ts or lost.after_ts
  if timestamp then
    self:instant(("lost: %s events"):format(lost.count or "unknown number of"), timestamp, lost.cpu,
      arguments({ number("cpu", lost.cpu), number("count", lost.count),
        number("after_ts", lost.after_ts), number("before_ts", lost.before_ts),
        { name = "why", value = lost.why } }))
  end
end

function Trace:failed(message)
  self.data.error = message
end

function Trace:stats(stats)
  self.data.delivered, self.data.lost = stats.delivered, stats.lost
end

function Trace:finish()
  if self.count == 0 then
    self.out:write_raw '{"displayTimeUnit":"ns","traceEvents":[\n'
  end
  self.data.begins_at_ns = ("%d"):format(self.base or 0)
  self.out:write_raw('\n],"otherData":' .. json.encode(self.data) .. "}\n")
end

---@param out tracefs.output
---@param beside tracefs.output.writer
---@return tracefs.output.writer
function perfetto.new(out, beside)
  return setmetatable({
    out = out, beside = beside, count = 0, cpus = {}, groups = {}, group_count = 0, data = {},
  }, Trace)
end

return perfetto
