--- What a session has the kernel count and measure: histograms, synthetic events, latencies. What
--- makes each of them is loaded when one is made: most scripts start without.
local core = require "tracefs.core"
local raising = require "tracefs.raising"

---@class tracefs.session
---@field on_write? fun(file: string, text: string) gets each command that is written to make or
---  change probes, histograms and synthetic events
local aggregation = {}

local function check_self(self, name)
  if type(self) ~= "table" or not self._check_open then
    error(("%s is a method: it is called with a colon, session:%s(...)"):format(name, name), 0)
  end
  self:_check_open(0)
end

local function tell(self, file, text)
  if self.on_write then
    self.on_write(file, text)
  end
end

-- ---------------------------------------------------------------------------
-- Synthetic events
-- ---------------------------------------------------------------------------

local function make_synthetic(self, name, fields)
  check_self(self, "synthetic")
  local synthetic = require "tracefs.synthetic"
  local parsed = synthetic.fields(fields)
  local file <close> = io.open(self._dir .. "/synthetic_events")
  if not file then
    error(("synthetic: this kernel has no synthetic events: %s/synthetic_events is not there (it "
      .. "was built without CONFIG_SYNTH_EVENTS)"):format(self._dir), 0)
  end
  self._synthetic = self._synthetic or {}
  if self._synthetic[name] then
    error(("synthetic: this session has an event '%s' already"):format(name), 0)
  end
  local full = ("%s_%s"):format(self._dynevents:name(), tostring(name))
  local command = synthetic.command(full, name, parsed)
  tell(self, "dynamic_events", command)
  local ok, message = self._dynevents:add(command)
  if not ok then
    error(message, 0)
  end
  self._synthetic[name] = { full = full, fields = parsed }
  -- Whoever runs when it is made is not who it is about: the tracer's own are kept.
  self._stream:keep(self:_id("synthetic", full))
  return "synthetic:" .. name
end

--- Makes an event that hist triggers fill: onmatch, onmax and onchange with `trace`. It is the
--- session's own and goes away with it; `on`, `enable` and `hist` take it by the label returned.
---@param name string
---@param fields string|string[] "u64 lat; char comm[16]", or { "u64 lat", "char comm[16]" }
---@return string label "synthetic:NAME"
function aggregation:synthetic(name, fields)
  local label = raising.at_caller(2, make_synthetic, self, name, fields)
  return label
end

--- The event that a label of a synthetic event of this session means.
---@param label string
---@return tracefs.events.entry?
function aggregation:_find_synthetic(label)
  local name = label:match "^synthetic:([%w_]+)$"
  local own = name and self._synthetic and self._synthetic[name]
  return own and { system = "synthetic", name = own.full }
end

-- The kernel's name of the event that an action makes, and whether its values are as many.
local function synthetic_of(self, name, with)
  local own = self._synthetic and self._synthetic[name]
  if not own then
    if self.instance:has(("events/synthetic/%s"):format(name)) then
      return name
    end
    local names = {}
    for known in pairs(self._synthetic or {}) do
      names[#names + 1] = known
    end
    table.sort(names)
    error(("hist: actions: no synthetic event '%s'; %s"):format(name, #names > 0
      and "this session has: " .. table.concat(names, ", ")
      or "session:synthetic() makes one"), 0)
  elseif #own.fields ~= #with then
    local fields = {}
    for i, field in ipairs(own.fields) do
      fields[i] = field.type .. " " .. field.name
    end
    error(("hist: actions: %s has %d fields (%s), and 'with' has %d values"):format(
      name, #own.fields, table.concat(fields, "; "), #with), 0)
  end
  return own.full
end

-- ---------------------------------------------------------------------------
-- Histograms
-- ---------------------------------------------------------------------------

local function one_event(self, label)
  if type(label) ~= "string" then
    error(('hist: an event is a string such as "sched:sched_switch", not %s'):format(
      type(label)), 0)
  end
  local found = self:_match(label)
  if #found > 1 then
    error(("hist: '%s' means %d events, and a histogram is of one: %s:%s, ..."):format(
      label, #found, found[1].system, found[1].name), 0)
  end
  return found[1]
end

-- Flags of a record that was made in an interrupt, as the stream looks at them too.
local INTERRUPT <const> = 0x58

-- The tracer's own events are left out as they are in the stream.
local function others_only(self, event)
  if self._own_events or event.system == "synthetic" or event.name == "sched_switch"
    or core.in_pid_namespace() then
    return nil
  end
  local file <close> = io.open "/proc/thread-self/stat"
  local thread = file and file:read "n"
  return thread and ("common_pid != %d || common_flags & 0x%x"):format(thread, INTERRUPT)
end

local function check_pids(self)
  local pids = self.instance:read "set_event_pid"
  if pids and pids:find "%d" then
    error("hist: the kernel's histograms do not look at set_event_pid (luatrace -p): they would "
      .. "count everybody. Leave -p away and give the histogram a filter with common_pid", 0)
  end
end

-- Makes a histogram in the session: with its names, clock and time.
local function add_hist(self, label, options)
  check_pids(self)
  local made = require("tracefs.hist").add({
    instance = self.instance,
    clock = self._clock,
    find = function(name)
      return one_event(self, name)
    end,
    describe = function(system, name)
      return self:_describe(system, name)
    end,
    synthetic = function(name, with)
      return synthetic_of(self, name, with)
    end,
    tell = function(file, text)
      tell(self, file, text)
    end,
    filter = function(event)
      return others_only(self, event)
    end,
    check = function(new)
      if new.timestamps and self._started then
        error("hist: common_timestamp makes the kernel empty the session's buffer: "
          .. "make the histogram before the session starts", 0)
      end
    end,
    waits = not self._started,
  }, label, options)
  self._hists = self._hists or {}
  self._hists[#self._hists + 1] = made
  return made
end

local function make_hist(self, label, options)
  check_self(self, "hist")
  return add_hist(self, label, options)
end

--- Has the kernel count an event by keys, from the session's start to its end; no record is
--- copied. Raises what is refused. The histogram's read() gives what has been counted.
---@param label string "system:event"
---@param options tracefs.hist.options
---@return tracefs.hist
function aggregation:hist(label, options)
  local made = raising.at_caller(2, make_hist, self, label, options)
  return made
end

local function make_latency(self, options)
  check_self(self, "kernel_latency")
  if self._started then
    error("kernel_latency: make it before the session starts: timestamps make the kernel empty "
      .. "the session's buffer", 0)
  end
  return require("tracefs.kernel_latency").new({
    find = function(label)
      return one_event(self, label)
    end,
    describe = function(event)
      return self:_describe(event.system, event.name)
    end,
    synthetic = function(name, fields)
      return make_synthetic(self, name, fields)
    end,
    hist = function(label, hist_options)
      return add_hist(self, label, hist_options)
    end,
  }, options)
end

--- What tracefs.kernel_pair builds on.
---@return table
function aggregation:_kernel_target()
  return {
    match = function(pattern)
      return self:_match(pattern)
    end,
    describe = function(event)
      return self:_describe(event.system, event.name)
    end,
    synthetic = function(name, fields)
      return make_synthetic(self, name, fields)
    end,
    -- the one that was made last
    drop = function(name)
      self._dynevents:drop()
      self._synthetic[name] = nil
    end,
    hist = function(label, options)
      return add_hist(self, label, options)
    end,
  }
end

--- Has the kernel measure the time between two events with the same key, and count the times.
--- A start that is followed by another one of its key counts from the later one.
---@param options tracefs.latency.options
---@return tracefs.latency
function aggregation:kernel_latency(options)
  local made = raising.at_caller(2, make_latency, self, options)
  return made
end

--- The histograms that wait for the session's start begin to count.
function aggregation:_begin_hists()
  for _, made in ipairs(self._hists or {}) do
    made:_begin()
  end
end

--- Those that have begun stop.
function aggregation:_finish_hists()
  for _, made in ipairs(self._hists or {}) do
    made:_finish()
  end
end

return aggregation
