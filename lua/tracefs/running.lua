--- How a session runs: starting, handling records, ticks and losses, the loop, the end.
local core = require "tracefs.core"

---@class tracefs.session
local running = {}

local NS = 1000000000

local function default_message_handler(err)
  if type(err) == "string" then
    return debug.traceback(err, 2)
  end
  return err
end

--- What must not be called by a handler: it would run handlers itself.
function running:_check_outside(what)
  if self._inside then
    error(what .. " was called from inside a handler", 3)
  end
end

--- xpcall with the handler's traceback; step() and its like are refused meanwhile.
function running:_guard(fn, ...)
  local outer = self._inside
  self._inside = true
  local ok, a, b, c = xpcall(fn, self.message_handler or default_message_handler, ...)
  self._inside = outer
  return ok, a, b, c
end

--- Calls one of the script's functions under the session's policy for errors.
function running:_call(fn, ...)
  local ok, err = self:_guard(fn, ...)
  if not ok then
    self:_failed(err, true)
  end
end

--- Calls all of the script's functions of one kind. One that raises does not keep the others
--- from being called; its error comes out behind them. One that closes the session does, but for
--- the at_end handlers.
function running:_call_all(functions, ...)
  local first
  for _, fn in ipairs(functions) do
    if not self._stream and functions ~= self._end_handlers then
      break
    end
    local ok, err = pcall(self._call, self, fn, ...)
    if not ok and type(err) ~= "string" then
      error(err, 0)
    end
    first = first or err
  end
  if first then
    error(first, 0)
  end
end

--- An error in a handler: raises it, or counts it. What is no string is never swallowed, nor
--- what did not come from a handler: reading that fails once mostly fails again.
function running:_failed(err, in_handler)
  local record, in_record_handler
  if self._stream then
    record, in_record_handler = self._stream:failed()
  end
  in_handler = in_handler or in_record_handler
  if record and type(err) == "string" then
    err = ("%s\nwhile handling: %s"):format(err, tostring(record))
  end
  if self._close_wanted then
    self:close()
  end
  if self.on_error ~= "warn" or type(err) ~= "string" or not in_handler then
    error(err, 0)
  end
  self._errors = self._errors + 1
  self._first_error = self._first_error or err
  if self.on_warn then
    local ok, failure = self:_guard(self.on_warn, err)
    if not ok then
      error(failure, 0)
    end
  end
end

--- Tells the stream when the next tick is due.
function running:_set_tick()
  local due = 0
  for _, tick in ipairs(self._ticks) do
    if due == 0 or tick.due < due then
      due = tick.due
    end
  end
  self._tick_due = due
  self._stream:set_tick(due)
end

--- Calls the functions that are due; the next tick is set before, so that it comes whatever
--- they do.
function running:_run_ticks(ts)
  local due, functions = self._tick_due, {}
  for _, tick in ipairs(self._ticks) do
    if tick.due <= due then
      functions[#functions + 1] = tick.fn
      tick.due = tick.due + tick.period
      if not self._clock_readable then
        tick.due = math.max(tick.due, core.now "mono")
      end
    end
  end
  self:_set_tick()
  self:_call_all(functions, ts)
end

--- Starts recording, all events with one write. run, events and step do it by themselves.
function running:start()
  self:_check_open()
  if self._started then
    return
  end
  self:_begin_recording()
  if not self._finishing then
    local ok, message = self.instance:trace_on()
    if not ok then
      error(message, 0)
    end
    self:_switch_top(true)
    self:_begin_hists()
  end
  self._started = self:_time()
  for _, tick in ipairs(self._ticks) do
    tick.due = self._started + tick.period
  end
  self:_set_tick()
  self:_call_all(self._start_handlers)
end

--- Ends the run before the next record. The rest stays readable: run again to go on.
function running:stop()
  self:_check_open()
  self._stream:stop()
end

--- Stops recording. Everything that is in the buffers is still delivered, then the run ends.
function running:finish()
  self:_check_open()
  if self._finishing then
    return
  end
  if self._started then
    self:_finish_hists()
    local ok, message = self.instance:trace_off()
    if not ok then
      error(message, 0)
    end
    self:_switch_top(false)
    self._recorded_until = not self._recorded and self:_time() or nil
  end
  self._finishing = true
  self._stream:finish()
end

--- Has a function called whenever a descriptor is readable: by step(), run() and the loop before
--- each look at the buffers. fileno() is readable then too. Take the descriptor out before it is
--- closed.
---@param fd integer
---@param fn? fun() nil: no more
function running:watch(fd, fn)
  self:_check_open()
  if math.type(fd) ~= "integer" or fd < 0 then
    error("watch(descriptor, function): a descriptor is a number from 0, not " .. tostring(fd), 2)
  end
  if fn == nil then
    if self._watched[fd] then
      self._watched[fd] = nil
      self._stream:unwatch(fd)
    end
    return
  end
  if type(fn) ~= "function" then
    error("watch(descriptor, function): a function is needed, not " .. type(fn), 2)
  end
  if not self._watched[fd] then
    local ok, message = self._stream:watch(fd)
    if not ok then
      error(message, 2)
    end
  end
  self._watched[fd] = fn
end

function running:_look_at_watched()
  local fds = {}
  for fd in pairs(self._watched) do
    fds[#fds + 1] = fd
  end
  if #fds == 0 then
    return
  end
  for _, fd in ipairs(core.poll(fds, 0) or {}) do
    local fn = self._watched[fd]
    if fn and self._stream then
      self:_call(fn)
    end
  end
end

local function deadline_after(seconds)
  return seconds and core.now "mono" + math.floor(seconds * NS)
end

--- Handles what is there and returns; never blocks.
---@param max? integer at most so many records (default 10000)
---@param seconds? number after this time no further record is begun (default: no limit)
---@return integer count of records that were handled
---@return "more"|"idle"|"stop"|"end" why there are no more
function running:step(max, seconds)
  self:_check_open()
  self:_check_outside "step()"
  if max == nil then
    max = 10000
  elseif math.type(max) ~= "integer" or max < 1 then
    error("step(max): a whole number from 1 is needed, not " .. tostring(max), 2)
  end
  if seconds ~= nil
    and (type(seconds) ~= "number" or not (seconds > 0 and seconds <= math.huge)) then
    error("step(max, seconds): seconds above 0 are needed, not " .. tostring(seconds), 2)
  end
  local deadline = seconds and seconds < 1e6 and deadline_after(seconds)
  self:start()
  if self._stream then
    self:_look_at_watched()
  end
  local stream, count = self._stream, 0
  while self._stream do
    local before = stream:delivered()
    local left = deadline and math.max(deadline - core.now "mono", 1)
    local ok, n, why, what = self:_guard(stream.step, stream, max - count, left)
    if not ok then
      count = count + stream:delivered() - before
      self:_failed(n)
    else
      count = count + n
    end
    if self._close_wanted then
      self:close()
      break
    elseif not ok or why == "lost" then
      if ok then
        self:_call_all(self._lost_handlers, what)
      end
      if (count >= max or left == 1) and self._stream then
        stream:kick()
        return count, "more"
      end
    elseif why == "tick" then
      -- back to the caller, who may have something to do that a tick must not keep waiting
      self:_run_ticks(what)
      if self._stream then
        stream:kick()
        return count, "more"
      end
    else
      if why == "end" then
        self:_must_end_recording()
      end
      return count, why
    end
  end
  return count, "stop"
end

--- One descriptor to poll: readable when step() has something to do.
---@return integer fd
function running:fileno()
  self:_check_open()
  return self._stream:fileno()
end

--- Waits until step() has something to do.
---@param seconds? number at most so long
---@return boolean ready false when the time has passed, or a signal has come
function running:wait(seconds)
  self:_check_open()
  if seconds ~= nil and (type(seconds) ~= "number" or seconds ~= seconds) then
    error("wait(seconds): a number is needed, not " .. tostring(seconds), 2)
  end
  return self._stream:wait(seconds or math.huge)
end

--- Runs the at_end handlers, once. run() and a loop that ends by itself do it.
function running:run_at_end()
  if self._ended then
    return
  end
  self._ended = true
  self:_call_all(self._end_handlers)
end

--- Calls a function that ends the run when it raises: the at_end handlers run before the error
--- comes out.
function running:_ending_on_error(fn, ...)
  local ok, result = pcall(fn, ...)
  if not ok then
    pcall(self.run_at_end, self)
    error(result, 0)
  end
  return result
end

local function check_seconds(options, name)
  local seconds = options[name]
  if seconds ~= nil and (type(seconds) ~= "number" or not (seconds >= 0 and seconds < 1e9)) then
    error(name .. ": a number of seconds is needed, not " .. tostring(seconds), 3)
  end
  return seconds
end

local function check_keys(options, known, what)
  if type(options) ~= "table" then
    error(("%s: the options must be a table, not %s"):format(what, type(options)), 3)
  end
  for key in pairs(options) do
    if not known[key] then
      error(("%s: unknown option '%s'"):format(what, tostring(key)), 3)
    end
  end
end

--- When a run that starts now is over. A file is read up to the trace time that is so much later.
function running:_deadline_after(seconds)
  if not seconds then
    return nil
  elseif not self._recorded then
    return deadline_after(seconds)
  end
  self:_set_duration(seconds)
end

--- On a file: nothing is handled that is later than so long after where it starts.
function running:_set_duration(seconds)
  if not self._clock_in_ns then
    error(("duration: the clock of %s, %s, does not count time"):format(
      self._recorded, self._clock), 0)
  end
  self._stream:set_range(0, self:_time() + math.floor(seconds * NS))
end

--- Finishes the run when its time is over; returns how long it may still wait.
function running:_check_deadline(deadline)
  if not deadline or self._finishing then
    return math.huge
  end
  local left = deadline - core.now "mono"
  if left <= 0 then
    self:finish()
    return 0
  end
  return left / NS
end

function running:_run(duration)
  self:start()
  local deadline = self:_deadline_after(duration)
  while self._stream do
    local left = self:_check_deadline(deadline)
    local _, why = self:step()
    if why == "end" or why == "stop" then
      break
    end
    if why == "idle" then
      self:wait(left)
    end
  end
end

--- Handles records until stop(), until finish() has delivered everything, or for a duration.
--- Then runs the at_end handlers. An error in a handler is raised when they have run.
---@param options? { duration?: number } seconds
---@return table stats see stats()
function running:run(options)
  self:_check_open()
  self:_check_outside "run()"
  options = options or {}
  check_keys(options, { duration = true }, "run")
  local duration = check_seconds(options, "duration")
  self._stream:resume()
  self:_ending_on_error(self._run, self, duration)
  self:run_at_end()
  return self:stats()
end

--- The records as a loop: `for ev in session:events{ timeout = 10 } do ... end`. An event's
--- handlers run before the loop's body gets it.
---@param options? { duration?: number, timeout?: number } seconds: end after so long; when there
--- was nothing for so long
---@return fun(): tracefs.record? iterator
---@return tracefs.session session what the iterator needs
function running:events(options)
  self:_check_open()
  self:_check_outside "events()"
  options = options or {}
  check_keys(options, { duration = true, timeout = true }, "events")
  local duration = check_seconds(options, "duration")
  local timeout = check_seconds(options, "timeout")
  self._stream:resume()
  self:_ending_on_error(self.start, self)
  if not self._stream then
    self:run_at_end()
    return function() end, self
  end
  self._loop = {
    deadline = self:_deadline_after(duration),
    timeout = timeout,
    delivered = -1,
  }
  return self._stream:iterator(), self
end

--- How long the loop may wait for its next record; nil when it has waited long enough.
function running:_loop_patience(loop)
  local left = self:_check_deadline(loop.deadline)
  if not loop.timeout then
    return left
  end
  local now, delivered = core.now "mono", self._stream:delivered()
  if delivered ~= loop.delivered then
    loop.delivered = delivered
    loop.quiet_at = now + math.floor(loop.timeout * NS)
  end
  if now >= loop.quiet_at then
    return nil
  end
  return math.min(left, (loop.quiet_at - now) / NS)
end

--- Runs the handlers of the loop's current record, behind one that raised too.
function running:_run_handlers()
  local stream = self._stream
  repeat
    local ok, err = self:_guard(stream.run_handlers, stream)
    if not ok then
      self:_failed(err)
    end
  until ok or not self._stream
end

--- Returns whether the loop goes on.
function running:_between(why, what)
  local loop, goes_on = self._loop, true
  if why == "look" then
    self:_look_at_watched()
    if self._stream then
      self:_check_deadline(loop.deadline)
    end
  elseif why == "handlers" then
    self:_run_handlers()
  elseif why == "lost" then
    self:_call_all(self._lost_handlers, what)
  elseif why == "tick" then
    self:_run_ticks(what)
  elseif why == "idle" then
    local patience = self:_loop_patience(loop)
    if patience then
      self:wait(patience)
    end
    goes_on = patience ~= nil
  else
    if why == "end" then
      self:_must_end_recording()
    end
    goes_on = false
  end
  if self._close_wanted then
    self:close()
  end
  return goes_on and self._stream ~= nil
end

--- What the loop does between two records. Returns whether it goes on. "look" comes before
--- each look at the kernel's buffers, also when there is no time to rest.
function running:_pump(why, what)
  local goes_on = self:_ending_on_error(self._between, self, why, what)
  if not goes_on then
    self:run_at_end()
  end
  return goes_on
end

return running
