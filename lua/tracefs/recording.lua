--- Recording beside the handlers: every sub-buffer that the session reads goes into a trace file
--- too, which trace-cmd, KernelShark and a session on a file read.
local core = require "tracefs.core"
local tracefile = require "tracefs.tracefile"

---@class tracefs.session
local recording = {}

-- What the session has turned on, also what it has turned off since.
local function known_events(self)
  local events = {}
  for id, event in pairs(self._labels) do
    if math.type(id) == "integer" then
      events[#events + 1] = { event.system, event.name }
    end
  end
  return events
end

--- Writes what the session reads into a trace file as well. The file is begun when the session
--- starts, or at once when it has started; it is complete when everything has been delivered, or
--- when the session is closed. What ends the program before that leaves a file with everything
--- up to the last second.
---@param path string what is there is replaced
---@param options? tracefs.record_options
function recording:record(path, options)
  self:_check_open()
  tracefile.check_path(path, self._record_to)
  if self._top and self._top.is_traced then
    error("record(file): this kernel has function_graph at the top level only, and a recording has "
      .. "the instance's records alone: choose one of the two", 2)
  end
  self._record_to = { path = path, options = tracefile.check_options(options) }
  if self._started then
    local ok, message = pcall(self._begin_recording, self)
    if not ok then
      self._record_to = nil
      error(message, 2)
    end
  end
end

function recording:_begin_recording()
  local wanted = self._record_to
  if not wanted or self._recording then
    return
  end
  local options = {
    version = wanted.options.version,
    compress = wanted.options.compress,
    own_events = self._own_events,
    kept = self._kept,
  }
  local file, message = core.recording(self.instance, wanted.path, options, known_events(self))
  if not file then
    error(message, 0)
  end
  self._recording = file
  self._stream:record(file)
end

--- Everything has been read: completes the file. A second call does nothing.
function recording:_end_recording()
  local file = self._recording
  if not file then
    return true
  end
  self._recording = nil
  if self._stream then
    self._stream:record(nil)
  end
  -- Collected with the session it is closed already, and stays as it was at a checkpoint.
  local called, ok, message, code = pcall(tracefile.complete, file, known_events(self))
  if not called then
    return nil, ok
  end
  return ok, message, code
end

--- The end of a run: raises when the file cannot be completed.
function recording:_must_end_recording()
  local ok, message = self:_end_recording()
  if not ok then
    error(message, 0)
  end
end

return recording
