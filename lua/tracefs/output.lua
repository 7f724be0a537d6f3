--- Where a run's output goes: standard output or a file, in one of several formats. What is shown
--- is the same in all of them: records, tables, aggregates, the matches of pairs, losses.
---
--- Every failed write is noticed. The first one raises a `tracefs.output.failure`, which ends the
--- run; what is printed after it (by handlers of at_end, say) goes nowhere.
local core = require "tracefs.core"
local escape = require "tracefs.escape"
local events = require "tracefs.output.events"
local text = require "tracefs.output.text"

local output = {}

---@alias tracefs.output.format "text"|"json"|"csv"|"prometheus"|"perfetto"|"svg"
output.FORMATS = { "text", "json", "csv", "prometheus", "perfetto", "svg" }

local MODULES <const> = {
  json = "tracefs.output.ndjson", csv = "tracefs.output.csv",
  prometheus = "tracefs.output.prometheus", perfetto = "tracefs.output.perfetto",
  svg = "tracefs.output.svg",
}

---@class tracefs.output.failure
---@field message string
local Failure = {}
Failure.__index = Failure
Failure.__name = "tracefs.output.failure"
function Failure.__tostring(failure)
  return failure.message
end

---@class tracefs.output
---@field format tracefs.output.format
---@field failure? tracefs.output.failure what went wrong first
---@field writer tracefs.output.writer of the format
---@field private file file*
---@field private name string for messages
---@field private is_terminal boolean
local Output = {}
Output.__index = Output

---@class tracefs.output.options
---@field path? string a file instead of standard output; emptied first
---@field format? tracefs.output.format
---@field input? string the trace file that is read: it has to be one, and the output is another

-- What a format has no place for.
local function write_beside(shown)
  io.stderr:write(core.isatty(io.stderr) and escape.text(shown) or shown)
end

--- Opens the output. With a path nil and a message when the file cannot be made.
---@param options? tracefs.output.options
---@return tracefs.output?
---@return string? message
---@return integer? errno
function output.open(options)
  options = options or {}
  local format = options.format or "text"
  if format ~= "text" and not MODULES[format] then
    error(("output: format: one of %s, not %s"):format(table.concat(output.FORMATS, ", "),
      tostring(format)), 2)
  end
  local file, name = io.stdout, "standard output"
  if options.path then
    local message, errno
    -- Emptied is only what is not read, and only when there is something to read.
    if options.input then
      local input <close>, why, code = core.datafile(options.input)
      if not input then
        return nil, why, code
      elseif input:is_at(options.path) then
        return nil, ("cannot write to %s: it is the recording that is read"):format(options.path)
      end
    end
    local replaced = true
    if format == "prometheus" then
      -- written as a whole, by the name
      replaced, message, errno = core.replace(options.path, "")
    else
      file, message, errno = io.open(options.path, "wb")
      message = message and "cannot write to " .. message
    end
    if not file or not replaced then
      return nil, message, errno
    end
    name = "'" .. options.path .. "'"
  end
  local is_terminal = core.isatty(file) and true or false
  file:setvbuf(is_terminal and "line" or "full", not is_terminal and 65536 or nil)
  local out = setmetatable({
    format = format,
    file = file,
    name = name,
    is_terminal = is_terminal,
  }, Output)
  if format == "text" then
    out.writer = text.new(function(shown)
      out:write(shown)
    end)
  else
    out.writer = require(MODULES[format]).new(out, text.new(write_beside), options)
  end
  return out
end

function Output:fail(message)
  local failure = setmetatable({
    message = ("cannot write to %s: %s"):format(self.name, message),
  }, Failure)
  self.failure = failure
  return failure
end

--- The same with a message that says where already.
function Output:fail_with(message)
  self.failure = setmetatable({ message = message }, Failure)
  return self.failure
end

local function is_aggregate(value)
  local class = type(value) == "userdata" and getmetatable(value)
  return type(class) == "table" and class.__name == "tracefs.aggregate"
end

-- Whoever has one has loaded its module.
local function is_folded(value)
  local folded = package.loaded["tracefs.folded"]
  return folded ~= nil and folded.is(value)
end

--- Writes the text as it is.
---@param shown string
function Output:write_raw(shown)
  if self.failure then
    return
  end
  local ok, message = self.file:write(shown)
  if not ok then
    error(self:fail(message), 0)
  end
end

--- Writes the text; on a terminal what could steer it comes as \xNN.
---@param shown string
function Output:write(shown)
  if self.is_terminal then
    shown = escape.text(shown)
  end
  self:write_raw(shown)
end

--- A record: the kernel's line, or what the format makes of it.
---@param record userdata
function Output:record(record)
  self.writer:record(record)
end

--- Fields of a record that were asked for by name.
---@param names string[]
---@param values any[]
---@param label? string the event, which knows what is unsigned
---@param timestamp? integer
---@param cpu? integer
function Output:values(names, values, label, timestamp, cpu)
  self.writer:values(names, values, label and events.unsigned(label), label, timestamp, cpu)
end

--- What trace:print does: a record, a table, an aggregate, counts by stack as the format has them,
--- anything else as print does.
---@param value any
function Output:show(value)
  local kind = type(value)
  if kind == "userdata" and core.is_record(value) then
    self.writer:record(value)
  elseif kind == "userdata" and is_aggregate(value) then
    self.writer:aggregate(value)
  elseif is_folded(value) then
    self.writer:folded(value)
  elseif kind == "table" then
    self.writer:object(value)
  else
    self:print(value)
  end
end

--- print for the script. An aggregate or counts by stack that are printed alone are shown as such.
function Output:print(...)
  local count = select("#", ...)
  local line
  if count == 1 then
    if self.format ~= "text" and is_aggregate((...)) then
      self.writer:aggregate((...))
      return
    elseif is_folded((...)) then
      self.writer:folded((...))
      return
    end
    line = tostring((...))
  else
    local parts = { ... }
    for i = 1, count do
      parts[i] = tostring(parts[i])
    end
    line = table.concat(parts, "\t")
  end
  self.writer:line(line)
end

--- A gap in the stream.
---@param lost tracefs.loss
function Output:lost(lost)
  self.writer:lost(lost)
end

--- What a session's run has come to, at its end.
---@param stats tracefs.stats
function Output:stats(stats)
  self.writer:stats(stats)
end

--- Answers requests for the metrics on a socket, for as long as the session runs; its statistics
--- are among them. Raises why it cannot, such as a port that is taken.
---@param session tracefs.session
---@param address string "PORT", on the loopback device, or "ADDRESS:PORT"
---@return string url
function Output:listen(session, address)
  if self.format ~= "prometheus" then
    error(("listen: there are metrics with the format prometheus, not %s"):format(self.format), 2)
  end
  self.writer.read_stats = self.writer.read_stats or function()
    local ok, stats = pcall(session.stats, session)
    return ok and stats or nil
  end
  return self.writer:listen(session, address)
end

--- Options of a pair whose matches are part of the output, with what the script does with them.
--- The session is the one that the pair is made with.
---@param options tracefs.pair_options
---@param session tracefs.session
---@return tracefs.pair_options
function Output:pair(options, session)
  return require("tracefs.output.matches").watch(self, options, session)
end

--- Writes out what is buffered, and notices what has gone wrong.
---@return tracefs.output.failure? failure the first one, also an earlier one
function Output:flush()
  if not self.failure then
    local ok, failure = pcall(self.writer.flush, self.writer)
    if not ok and not output.is_failure(failure) then
      error(failure, 0)
    end
  end
  if not self.failure then
    local ok, message = self.file:flush()
    if not ok then
      self:fail(message)
    end
  end
  return self.failure
end

--- Flushes and, if it is a file of its own, closes. May be called again.
---@return tracefs.output.failure? failure
function Output:close()
  if io.type(self.file) ~= "file" or self.is_closed then
    return self.failure
  end
  self.is_closed = true
  if not self.failure then
    local ok, failure = pcall(self.writer.finish, self.writer)
    if not ok and not output.is_failure(failure) then
      self:fail(tostring(failure))
    end
  end
  self:flush()
  if self.file ~= io.stdout then
    if io.output() == self.file then
      io.output(io.stdout)
    end
    local ok, message = self.file:close()
    if not ok and not self.failure then
      self:fail(message)
    end
  end
  return self.failure
end

--- Puts this output behind print and io.write of the Lua state.
function Output:install()
  io.output(self.file)
  function _G.print(...)
    self:print(...)
  end

  local write = io.write
  rawset(io, "write", function(...)
    local target = io.output()
    if target ~= self.file then
      return write(...)
    end
    for i = 1, select("#", ...) do
      local value = select(i, ...)
      if type(value) == "number" then
        value = tostring(value)
      elseif type(value) ~= "string" then
        error(("bad argument #%d to 'write' (string expected, got %s)"):format(i, type(value)), 2)
      end
      if self.format == "text" or self.format == "json" then
        self:write(value)
      else
        write_beside(value)
      end
    end
    return target
  end)
end

--- Is this error value a failed write?
---@param value any
---@return boolean
function output.is_failure(value)
  return getmetatable(value) == Failure
end

--- What programs call; the rest is the command's.
output.methods = {
  show = Output.show, print = Output.print, lost = Output.lost, pair = Output.pair,
  stats = Output.stats, listen = Output.listen, flush = Output.flush, close = Output.close,
}

return output
