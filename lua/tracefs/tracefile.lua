--- What every recording shares, beside handlers or at full speed: its options, and its end.
local core = require "tracefs.core"

local tracefile = {}

---@class tracefs.record_options
---@field version? integer of the file: 7 (default), or 6 for readers from before 2022
---@field compress? boolean default: in version 7, when libzstd is there

local rules = {
  version = function(value)
    return value == 6 or value == 7, "6 or 7"
  end,
  compress = function(value)
    return type(value) == "boolean", "true or false"
  end,
}

--- Checks the name of a file to record into. Raises at the caller's caller.
---@param path any
---@param other? { path: string } what the session is recorded into already
function tracefile.check_path(path, other)
  if type(path) ~= "string" or path == "" then
    error("record(file): the name of a file is needed, not " .. tostring(path), 3)
  elseif path:find("\0", 1, true) then
    error("record(file): the name has a zero byte", 3)
  elseif other then
    error(("record(file): the session is recorded already, into %s"):format(other.path), 3)
  end
end

--- Checks options of a recording and fills in what was left out. Raises at the caller's caller.
---@param options? tracefs.record_options
---@return table options for core.recording
function tracefile.check_options(options)
  if options ~= nil and type(options) ~= "table" then
    error("record: the options must be a table, not " .. type(options), 3)
  end
  local checked = { version = 7 }
  for name, value in pairs(options or {}) do
    local rule = rules[name]
    if not rule then
      error(("record: unknown option '%s'; there are: compress, version"):format(tostring(name)), 3)
    end
    local ok, needed = rule(value)
    if not ok then
      error(("record: %s must be %s, not %s"):format(name, needed, tostring(value)), 3)
    end
    checked[name] = value
  end
  if checked.compress and checked.version == 6 then
    error("record: files of version 6 are not compressed", 3)
  elseif checked.compress and not core.can_compress() then
    error("record: this build cannot compress: build luatrace with libzstd, or leave compress out",
      3)
  end
  if checked.compress == nil then
    checked.compress = checked.version == 7 and core.can_compress()
  end
  return checked
end

--- Runs the part of a recording that comes behind its last page.
---@param file tracefs.recording
---@param events? table list of { system, name } besides what is on
---@param progress? fun(done: integer, all: integer, left_out: integer)
---@return boolean? ok
---@return string? message
---@return integer? errno
function tracefile.complete(file, events, progress)
  local ok, message, code = file:finish(events)
  local more = ok
  while more do
    more, message, code = file:step()
    if more == nil then
      ok = nil
    elseif progress then
      local all, done, left_out = file:bytes()
      progress(done, all, left_out)
    end
  end
  file:close()
  if not ok then
    return nil, message, code
  end
  return true
end

return tracefile
