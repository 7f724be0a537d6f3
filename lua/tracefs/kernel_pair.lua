--- A pair that the kernel matches: the start keeps its time and what it carries in variables of a
--- histogram, the stop takes them and makes a synthetic event of them, and its records are the
--- matches. Lua and the ring buffer see a record for each match instead of two for each pair.
local filters = require "tracefs.filter"
local synthetic = require "tracefs.synthetic"

local kernel_pair = {}

---@class tracefs.kernel_pair
---@field private session tracefs.session
---@field private starts tracefs.hist
---@field private stops tracefs.hist
local KernelPair = {}
KernelPair.__index = KernelPair
KernelPair.__name = "tracefs.kernel_pair"

-- kernel/trace/trace_events_hist.c, tracing_map.h: the most that a histogram can have
local MAX_KEYS <const> = 3
local MAX_VARIABLES <const> = 16
local MAX_SIZE <const> = 131072
local DEFAULT_SIZE <const> = 16384

-- What two CPUs do at once may be seen by the kernel in the other order.
local FORWARD <const> = "delta < 0x8000000000000000"

local function refuse(text, ...)
  error(("pair: where: the kernel cannot do this: " .. text):format(...), 0)
end

local FUNCTIONS <const> = {
  on_expired = "it does not look at open starts again",
  on_dropped = "it does not tell of starts that end without a match",
  on_unmatched = "it does not tell of stops without a start",
}

-- What needs no look at events: options that only the matching here has.
local function check_options(options, events, stages)
  for _, name in ipairs { "on_expired", "on_dropped", "on_unmatched" } do
    if options[name] then
      refuse("%s: %s", name, FUNCTIONS[name])
    end
  end
  if options.same_cpu then
    refuse("same_cpu: its starts are those of all CPUs")
  elseif options.timeout then
    refuse("timeout: a start stays until its stop, or the next start with its key")
  elseif options.again == "first" then
    refuse('again = "first": the last start of a key counts')
  elseif options.cancel then
    refuse("cancel: a start ends by a stop only")
  elseif stages > 0 then
    refuse("through: it measures from one event to one other")
  elseif (options.max or 0) > MAX_SIZE then
    refuse("max: there is place for %d starts at most, not %d", MAX_SIZE, options.max)
  end
  local seen = {}
  for _, event in ipairs(events) do
    if seen[event.role] then
      refuse("%s: it measures from one event to one other, and these are several", event.role)
    end
    seen[event.role] = event
    if type(event.key) == "function" then
      refuse("key: a function; a key is of fields there")
    elseif #event.key > MAX_KEYS then
      refuse("key: %d fields; there are %d at most", #event.key, MAX_KEYS)
    elseif event.sample then
      refuse("sample: it counts every event")
    end
  end
  return seen.start, seen.stop
end

local function field_of(event, name, what)
  for _, field in ipairs(event:fields()) do
    if field.name == name then
      return field
    end
  end
  if event:has(name) then
    refuse("%s: '%s' is no field of %s but what luatrace knows of its records", what, name,
      event:label())
  end
  local names = {}
  for i, field in ipairs(event:fields()) do
    names[i] = field.name
  end
  error(("pair: %s: %s has no field '%s'; it has: %s"):format(what, event:label(), name,
    table.concat(names, ", ")), 0)
end

local function type_of(event, name, what)
  local field = field_of(event, name, what)
  if field.kind ~= "int" and field.kind ~= "string" then
    refuse("%s: '%s' (%s) is neither a number nor a string", what, name, field.type)
  end
  return synthetic.type_for(field)
end

local function one_event(target, event)
  local found = target.match(event.pattern)
  if #found > 1 then
    refuse("%s: '%s' means %d events; it measures from one event to one other", event.role,
      event.pattern, #found)
  end
  return found[1], target.describe(found[1])
end

-- Keys of so many bytes are pids, CPUs, numbers of calls: few, and the same ones again and again.
local SMALL_KEY <const> = 4

-- Who has not chosen the kernel is not to miss what finds no place in its tables.
local function check_place(event, keys)
  for _, name in ipairs(keys) do
    local field = field_of(event, name, "key")
    if field.kind ~= "int" or field.size > SMALL_KEY then
      refuse("key: '%s' (%s) may have more values than its tables have place for, and it never "
        .. 'forgets a key: where = "kernel" with a large max takes that', name, field.type)
    end
  end
end

local function size_for(max)
  local size = 128
  while size < (max or DEFAULT_SIZE) do
    size = size * 2
  end
  return size
end

local made = 0

-- What is written, and whether the kernel can have it.
local function plan(target, options, parts, is_choice)
  local start, stop = check_options(options, parts.events, parts.stages)
  local start_entry, start_event = one_event(target, start)
  local stop_entry, stop_event = one_event(target, stop)
  if #parts.carry + 1 > MAX_VARIABLES then
    refuse("carry: %d fields; there are %d at most", #parts.carry, MAX_VARIABLES - 1)
  end
  local max = options.max
  if is_choice then
    check_place(start_event, start.key)
    -- here `max` is of starts that are open, there of all keys that ever come
    max = math.max(max or 0, DEFAULT_SIZE)
  end
  made = made + 1
  local name = "pair" .. made
  local self = {
    name = name, start = start, stop = stop, start_entry = start_entry, stop_entry = stop_entry,
    fields = { "u64 delta" }, names = { "delta" }, variables = {}, with = { "$pd" .. made },
    start_filter = start.filter and filters.text(start.filter, start_event),
    stop_filter = stop.filter and filters.text(stop.filter, stop_event),
    size = size_for(max),
  }
  -- names of variables are those of the whole instance
  self.variables["pt" .. made] = "common_timestamp"
  local function add(kind, event, field, value)
    local column = ("%s_%s"):format(kind, field)
    self.fields[#self.fields + 1] = ("%s %s"):format(type_of(event, field,
      kind == "key" and "key" or "carry"), column)
    self.names[#self.names + 1] = column
    self.with[#self.with + 1] = value
  end
  for _, field in ipairs(start.key) do
    type_of(start_event, field, "key")
  end
  for _, field in ipairs(stop.key) do
    add("key", stop_event, field, field)
  end
  for i, field in ipairs(parts.carry) do
    local variable = ("pc%d_%d"):format(made, i)
    self.variables[variable] = field
    add("start", start_event, field, "$" .. variable)
  end
  return self
end

-- Has the kernel begin. Nothing of it is left when it refuses.
local function build(self, target, how)
  local number = how.name:match "%d+"
  self.label = target.synthetic(how.name, how.fields)
  self.starts = target.hist(how.start.pattern, {
    keys = how.start.key, variables = how.variables, size = how.size, filter = how.start_filter,
  })
  self.stops = target.hist(how.stop.pattern, {
    keys = how.stop.key, size = how.size, filter = how.stop_filter,
    variables = { ["pd" .. number] = ("common_timestamp-$pt%s"):format(number) },
    actions = { {
      onmatch = ("%s:%s"):format(how.start_entry.system, how.start_entry.name),
      trace = how.name, with = how.with,
    } },
  })
end

-- The handler of the synthetic event: its record, or only values when nobody wants that.
local function deliverer(self, options, parts, wants_record)
  local carry, report = parts.carry, parts.report
  local key_count = #self.how.stop.key
  local into, on_match = parts.into, options.on_match
  -- A table only where there is no way without one: this is called for each match.
  local function add(delta, ...)
    for _, one in ipairs(into) do
      local aggregate, places = one[1], one[2]
      if #places == 0 then
        aggregate:add(delta)
      elseif #places == 1 then
        aggregate:add(delta, (select(key_count + places[1], ...)))
      else
        local values, by = { ... }, {}
        for i, place in ipairs(places) do
          by[i] = values[key_count + place]
        end
        aggregate:add(delta, table.unpack(by, 1, #places))
      end
    end
  end
  local function take(record, delta, ...)
    self.matched = self.matched + 1
    add(delta, ...)
    if on_match then
      local values = { ... }
      local key, carried = values[1], nil
      if key_count > 1 then
        key = table.move(values, 1, key_count, 1, {})
      end
      if report > 0 then
        carried = {}
        for i = 1, report do
          carried[carry[i]] = values[key_count + i]
        end
      end
      on_match(delta, key, carried, record, record and { delta } or nil)
    end
  end
  if not wants_record then
    return function(...)
      take(nil, ...)
    end
  end
  local names = self.how.names
  return function(record)
    local values = {}
    for i, name in ipairs(names) do
      values[i] = record[name]
    end
    take(record, table.unpack(values, 1, #names))
  end
end

--- Does a function of the pair want the record of the stop?
---@param options tracefs.pair_options
---@return boolean
function kernel_pair.wants_record(options)
  local info = options.on_match and debug.getinfo(options.on_match, "u")
  return info and (info.isvararg or info.nparams >= 4) or false
end

--- Sets the pair up. Raises what the kernel cannot do, by its name, and what it refuses.
---@param session tracefs.session
---@param target table of functions: match, describe, synthetic, hist, drop
---@param options tracefs.pair_options
---@param parts table what tracefs.pair has made of them: events, stages, carry, report, into
---@param is_choice? boolean nobody has asked for the kernel: it takes only what it surely can
---@return tracefs.kernel_pair
function kernel_pair.new(session, target, options, parts, is_choice)
  local how = plan(target, options, parts, is_choice)
  local self = setmetatable({ session = session, how = how, matched = 0 }, KernelPair)
  local ok, message = pcall(build, self, target, how)
  if not ok then
    for _, part in ipairs { "stops", "starts" } do
      if self[part] then
        self[part]:remove()
      end
    end
    if self.label then
      target.drop(how.name)
    end
    error(message, 0)
  end
  local wants_record = kernel_pair.wants_record(options)
  local handler = deliverer(self, options, parts, wants_record)
  if wants_record then
    session:on(self.label, { filter = FORWARD }, handler)
  else
    local selection = { filter = FORWARD }
    table.move(how.names, 1, #how.names, 1, selection)
    session:on(self.label, selection, handler)
  end
  return self
end

local function hits(self)
  local result = {}
  for _, part in ipairs { "starts", "stops" } do
    local read, message = self[part]:read()
    if not read then
      error(message, 0)
    end
    result[part], result[part .. "_dropped"] = read.hits, read.dropped
  end
  return result
end

--- Events that came before the session began are not its own.
function KernelPair:_begin()
  self.before = hits(self)
end

--- What the kernel's tables say is noted while they are there.
function KernelPair:_finish()
  self.last = hits(self)
end

--- The counters of a pair, as far as the kernel has them: `open` are all starts without a match,
--- those that were started again among them; `dropped` is what found no place in its tables.
--- `unmatched` is nil: a stop without a start is none for the kernel's histogram, which needs the
--- start's time to count it.
---@return tracefs.pair_counts
function KernelPair:counts()
  local now = self.last or self.session._stream and hits(self) or self.before
  local before = self.before or now
  local counts = {}
  for _, name in ipairs { "replaced", "repeated", "cancelled", "incomplete", "expired", "evicted",
    "voided", "late", "doubtful" } do
    counts[name] = 0
  end
  counts.matched = self.matched
  counts.starts = math.max(now.starts - before.starts, self.matched)
  counts.open = counts.starts - self.matched
  counts.dropped = now.starts_dropped + now.stops_dropped
  return counts
end

---@return "kernel"
---@return string? why
function KernelPair:where()
  return "kernel", self.why
end

for _, name in ipairs { "open", "expire", "feed", "lost", "side" } do
  KernelPair[name] = function()
    error(("pair:%s(): the kernel has this pair, and does not tell"):format(name), 2)
  end
end

function KernelPair:__tostring()
  return ("tracefs.kernel_pair (%s)"):format(self.label)
end

kernel_pair.methods = KernelPair

return kernel_pair
