--- session:record of a session on a file: what it hands out, as a file of its own.
local tracefile = require "tracefs.tracefile"

---@class tracefs.session
local cutting = {}

--- Runs a cut to its end.
---@param stream tracefs.stream of a file
---@param path string
---@param options table what tracefile.check_options gives, with partial and only_delivered
---@param progress? fun(done: integer, all: integer)
---@return integer? records nil when it failed; nothing is left of the file then
---@return string? message
---@return integer? errno
function cutting.run(stream, path, options, progress)
  local cut, message, code = stream:cut(path, options)
  if not cut then
    return nil, message, code
  end
  local closing <close> = cut
  local more
  repeat
    more, message, code = cut:step()
    if progress and more then
      progress(cut:progress())
    end
  until not more
  if more == nil then
    return nil, message, code
  end
  return closing:records()
end

local methods = {}
cutting.methods = methods

--- Writes the records that the run hands out into a trace file as well: those of the session's
--- events that its filters let through. The file is made when the run has ended, or when the
--- session is closed.
---@param path string what is there is replaced
---@param options? tracefs.record_options
function methods:record(path, options)
  self:_check_open()
  tracefile.check_path(path, self._record_to)
  self._record_to = {
    path = path,
    options = tracefile.check_options(options),
  }
end

function methods:_end_recording()
  local wanted = self._record_to
  if not wanted or not self._stream then
    return true
  end
  self._record_to = nil
  for label, plan in pairs(self._samples) do
    if not plan.by_kernel then
      return nil, ('%s: the sample "%s" of %s is chosen while it is read, and cannot be again for '
        .. 'a file; one "of" a field can, when its scale is a power of two'):format(wanted.path,
        plan.text, label)
    end
  end
  local settings = wanted.options
  settings.partial = self._partial
  settings.only_delivered = true
  -- Collected with the session the stream may be closed already: then there is no file.
  local called, records, message, code = pcall(cutting.run, self._stream, wanted.path, settings)
  if not called then
    return nil, records
  elseif not records then
    return nil, message, code
  end
  return true
end

function methods._begin_recording() end

return cutting
