--- A session: a private instance or a trace file, and the ordered stream of its records.
local aggregation = require "tracefs.aggregation"
local core = require "tracefs.core"
local cutting = require "tracefs.cutting"
local events = require "tracefs.events"
local functions = require "tracefs.functions"
local pair = require "tracefs.pair"
local recording = require "tracefs.recording"
local replay = require "tracefs.replay"
local running = require "tracefs.running"
local selection = require "tracefs.selection"
local settings = require "tracefs.settings"
local toplevel = require "tracefs.toplevel"
local triggers = require "tracefs.triggers"

---@class tracefs.session
---@field instance tracefs.instance for everything that the session has no method for
---@field on_error "raise"|"warn" what an error in a handler does: end the run, or be counted
---@field on_warn? fun(message: string) called with each counted error
---@field on_notice? fun(message: string) called when a file does not have an event, and at the end
---  when an answer is empty or not whole
---@field on_choice? fun(message: string) told what has been chosen where there was a choice
---@field message_handler? fun(err: any): any makes the traceback of a handler's error
local session_methods = {}

local parts = { recording, selection, running, aggregation, functions, triggers, pair.methods }
for _, part in ipairs(parts) do
  for name, method in pairs(part) do
    session_methods[name] = method
  end
end

local session_meta = { __index = session_methods, __name = "tracefs.session" }

local NS = 1000000000

local function blank(options, fields)
  local self = {
    on_error = options.on_error,
    _descriptions = {},
    _labels = {},
    _filters = {},
    _samples = {},
    _probes = {},
    _probe_groups = {},
    _shown_systems = {},
    _stack_triggers = {},
    _ticks = {},
    _start_handlers = {},
    _end_handlers = {},
    _lost_handlers = {},
    _watched = {},
    _errors = 0,
    _own_events = options.own_events,
  }
  for name, value in pairs(fields) do
    self[name] = value
  end
  return setmetatable(self, session_meta)
end

local function connect(self, stream)
  self._stream = stream
  -- weak: the stream must not keep a forgotten session alive
  local weak = setmetatable({ session = self }, { __mode = "v" })
  stream:callbacks(function(id)
    return weak.session and weak.session:_resolve(id)
  end, function(why, what)
    return weak.session and weak.session:_pump(why, what)
  end)
  return self
end

-- What has a method here and needs a live kernel.
local function refuse_live_methods(self, path)
  for _, part in ipairs { aggregation, functions, triggers } do
    for name in pairs(part) do
      if name:sub(1, 1) ~= "_" then
        self[name] = function()
          error(("%s: %s is a recording; this needs a live kernel"):format(name, path), 2)
        end
      end
    end
  end
  for name, method in pairs(cutting.methods) do
    self[name] = method
  end
  return self
end

-- On a file: the same but for where things come from, and for what time is.
local function replayed(options)
  local ok, source, stream, catalog, clock, in_ns = pcall(replay.open, options)
  if not ok then
    error(source, 4)
  end
  local self = blank(options, {
    instance = source,
    _catalog = catalog,
    _recorded = options.file,
    _partial = options.partial,
    _clock = clock,
    _clock_in_ns = in_ns,
    _clock_readable = true,
  })
  return connect(refuse_live_methods(self, options.file), stream)
end

---@param tracefs tracefs
---@param options? tracefs.session_options
---@return tracefs.session
local function new(tracefs, options)
  options = settings.check(options)
  if options.file then
    local session = replayed(options)
    return session
  end
  local dir, dir_error = tracefs.tracing_dir()
  if not dir then
    error(dir_error, 3)
  end
  core.remove_stale(dir)
  core.remove_stale_dynevents(dir)
  toplevel.undo_stale(dir)

  local self = blank(options, {
    _catalog = core.catalog(),
    _dir = dir,
    -- Made before the instance, so that it is collected behind it: what the instance has turned
    -- on cannot be removed.
    _dynevents = core.dynevents(dir),
  })
  self._catalog:set_live(dir)

  local instance, message = core.instance_create(dir, options.name)
  if not instance then
    error(message, 3)
  end
  self.instance = instance
  local ok, stream_options = pcall(settings.apply, instance, options)
  local stream
  if ok then
    stream, message = core.stream(instance, self._catalog, stream_options)
  else
    message = stream_options
  end
  if not stream then
    instance:destroy()
    error(message, 3)
  end
  self._kept = events.kept_ids(instance)
  for _, id in ipairs(self._kept) do
    stream:keep(id)
  end
  self._clock = stream_options.clock
  self._own_events = options.own_events
  self._clock_readable = stream_options.clock_readable
  return connect(self, stream)
end

--- What is wrong with the session's file, with its offset, as far as it has been read; nil when
--- nothing is, and for a live session.
---@return string?
function session_methods:damage()
  return self._recorded and (self._damage or self._stream and self.instance.file:damage())
end

--- The time that ticks are due by: now, on the clock "mono"; of a file where it has been read to.
function session_methods:_time()
  if not self._recorded then
    return core.now "mono"
  end
  local last = self._stream:last_ts()
  return last ~= 0 and last or self._stream:first_ts() or 0
end

--- Does its clock count nanoseconds?
function session_methods:_counts_ns()
  if self._recorded then
    return self._clock_in_ns
  end
  return (core.clock_info(self._clock))
end

--- For methods: raises with the position of their caller, unless another level is given.
function session_methods:_check_open(level)
  if not self._stream then
    error("the session is closed", level or 3)
  end
end

local function check_function(self, fn, what)
  if type(self) ~= "table" or not self._end_handlers then
    error(("%s is a method: it is called with a colon, session:%s"):format(
      what:match("^[^(]+"), what), 3)
  elseif not self._stream then
    error("the session is closed", 3)
  end
  if type(fn) ~= "function" then
    error(what .. ": a function is needed, not " .. type(fn), 3)
  end
end

--- Has a function called every so often, in trace time: between the records before and behind
--- the time it is called for. With a clock that cannot be read it comes with the next look at
--- the buffers.
---@param seconds number
---@param fn fun(ts: integer) the time in the trace clock (CLOCK_MONOTONIC if that is unreadable)
function session_methods:every(seconds, fn)
  check_function(self, fn, "every(seconds, function)")
  if type(seconds) ~= "number" or not (seconds >= 0.001 and seconds <= 1e6) then
    error("every(seconds, function): from 0.001 to 1000000 seconds, not " .. tostring(seconds), 2)
  end
  if self._recorded and not self._clock_in_ns then
    error(("every(seconds, function): the clock of %s, %s, does not count time"):format(
      self._recorded, self._clock), 2)
  end
  local tick = { period = math.floor(seconds * NS), fn = fn }
  self._ticks[#self._ticks + 1] = tick
  if self._started then
    tick.due = self:_time() + tick.period
    self:_set_tick()
  end
end

--- Has a function called once, when everything is on and before the first record is handled.
---@param fn fun()
function session_methods:at_start(fn)
  check_function(self, fn, "at_start(function)")
  self._start_handlers[#self._start_handlers + 1] = fn
end

--- Has a function called once when the run has ended, whatever ended it.
---@param fn fun()
function session_methods:at_end(fn)
  check_function(self, fn, "at_end(function)")
  self._end_handlers[#self._end_handlers + 1] = fn
end

--- Has a function called for each gap, at its place in the stream: right behind the last
--- record of that CPU before the gap.
---@param fn fun(lost: tracefs.loss)
function session_methods:on_lost(fn)
  check_function(self, fn, "on_lost(function)")
  self._lost_handlers[#self._lost_handlers + 1] = fn
end

--- Counters, in all and per CPU. delivered + lost + pending = produced, always; pending is 0
--- after a run that was not stopped by stop(). The tracer's own events are not in it (own).
---@return table stats
function session_methods:stats()
  if not self._stream then
    return self._final_stats
  end
  local per_cpu, late = self._stream:counts()
  if not per_cpu then
    error(late, 2)
  end
  local stats = {
    produced = 0,
    delivered = 0,
    lost = 0,
    pending = 0,
    own = 0,
    skipped = 0,
    overrun = 0,
    dropped = 0,
    commit_overrun = 0,
  }
  for _, counts in pairs(per_cpu) do
    for name, value in pairs(counts) do
      stats[name] = stats[name] + value
    end
  end
  stats.per_cpu = per_cpu
  stats.samples = self:_sample_counts()
  stats.late = late
  stats.errors = self._errors
  stats.first_error = self._first_error
  stats.elapsed = self._started
    and ((self._recorded_until or self:_time()) - self._started) / NS or 0
  return stats
end

--- Writes a line into the session's buffer, as the event ftrace:print.
---@param text string
---@return integer? written how many bytes the kernel took
---@return string? message
---@return integer? errno
function session_methods:marker(text)
  self:_check_open()
  return self.instance:marker(text)
end

--- The kernel's name of a system call, by its number in raw_syscalls:sys_enter. Of a recording of
--- another kind of machine there are none; a 32-bit program on a machine of 64 has other numbers.
---@param number integer
---@return string? name as "sys_openat"
function session_methods:syscall_name(number)
  self:_check_open()
  local file = self.instance.file
  if file and not self._machine then
    self._machine = (file:info().uname or ""):match "%S*$"
  end
  return core.syscall(number, self._machine)
end

--- Removes everything that the session made. Calling it again is fine.
---@return boolean? ok
---@return string? message
---@return integer? errno
function session_methods:close()
  local recorded, record_message, record_code = true, nil, nil
  if self._stream then
    if self._recorded then
      recorded, record_message, record_code = self:_end_recording()
    end
    -- while a handler runs the stream closes by itself as soon as it can
    local ok, stats = pcall(self.stats, self)
    if ok then
      self._final_stats = stats
    end
    if not self._stream:close() then
      self._close_wanted = true
      return true
    end
    self._damage = self:damage()
    self._stream = nil
    self._close_wanted = false
  end
  -- The instance still has to tell what its events look like.
  if not self._recorded then
    recorded, record_message, record_code = self:_end_recording()
  end
  local ok, message, errno = true, nil, nil
  if self.instance then
    ok, message, errno = self.instance:destroy()
  end
  local released, problem = self:_release_top()
  -- Turned on in an instance that is still there they cannot be removed.
  local removed, why, code = true, nil, nil
  if self._dynevents then
    removed, why, code = self._dynevents:close()
  end
  if not ok then
    return nil, message, errno
  elseif not removed then
    return nil, why, code
  elseif not released then
    return nil, problem
  end
  return recorded, record_message, record_code
end

function session_meta:__close()
  self:close()
end

function session_meta:__gc()
  self:close()
end

function session_meta:__tostring()
  return ("tracefs.session (%s)"):format(self._stream and self.instance:name() or "closed")
end

return { new = new, methods = session_methods }
