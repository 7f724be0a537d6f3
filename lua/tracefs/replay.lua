--- A trace file as the source of a session: what selection and running ask an instance for,
--- answered from the file. Everything else that an instance can do is refused by its name.
local core = require "tracefs.core"

---@class tracefs.replay
---@field file tracefs.datafile
local replay = {}

local methods = {}

local function label_of(path)
  return path:match("^events/([^/]+)/([^/]+)/format$")
end

--- Files of an instance that a recording has too: the formats of its events.
function methods:read(path)
  local system, name = label_of(path)
  if system then
    return self.file:format(system, name)
  end
  return nil, ("%s has no %s"):format(self.path, path)
end

function methods.has(_, path)
  return path:find("^events/[^/]+/[^/]+/enable$") ~= nil
end

function methods:_id(system, name)
  for _, event in ipairs(self:event_list()) do
    if event.system == system and event.name == name then
      return event.id
    end
  end
end

function methods:enable(system, name)
  self.stream:select(self:_id(system, name), true)
  return true
end

-- The tracer's own are there without being asked for, as in a live session.
function methods:disable(system, name)
  if system ~= "ftrace" then
    self.stream:select(self:_id(system, name), false)
  end
  return true
end

function methods:set_filter(system, name, filter)
  local event, message = self.file:describe(self.catalog, system, name)
  if not event then
    return nil, message
  end
  return self.stream:set_filter(event, filter)
end

function methods:clear_filter(system, name)
  return self:set_filter(system, name, nil)
end

--- All events of the file, sorted.
---@return tracefs.events.entry[]
function methods:event_list()
  if not self.events then
    self.events = self.file:events()
    table.sort(self.events, function(a, b)
      if a.system ~= b.system then
        return a.system < b.system
      end
      return a.name < b.name
    end)
  end
  return self.events
end

function methods.trace_on()
  return true
end
methods.trace_off = methods.trace_on

function methods:name()
  return self.path
end

function methods:destroy()
  self.file:close()
  return true
end

local meta = { __name = "tracefs.replay" }

function meta.__index(self, key)
  local method = methods[key]
  if method or type(key) ~= "string" or key:find("^_") then
    return method
  end
  local path = rawget(self, "path")
  return function()
    error(("%s: %s is a recording; this needs a live kernel"):format(key, path), 0)
  end
end

function meta.__tostring(self)
  return ("tracefs.replay (%s)"):format(self.path)
end

--- Opens the file that the options name, and its stream. Raises what is wrong.
---@param options table checked session options
---@return tracefs.replay source
---@return tracefs.stream stream
---@return tracefs.catalog catalog
---@return string clock
---@return boolean in_ns
function replay.open(options)
  local file, message = core.datafile(options.file)
  if not file then
    error(message, 0)
  end
  local buffers, first = file:buffers(), nil
  for _, buffer in ipairs(buffers) do
    local is_wanted = not buffer.is_text and (options.buffer or buffer.name) == buffer.name
    if is_wanted and (not first or #first.cpus == 0) then
      first = buffer
    elseif buffer.is_text and not first then
      message = ("%s holds the text of a latency tracer, and no records: luatrace report shows it")
        :format(options.file)
    end
  end
  if not first and message then
    error(message, 0)
  end
  local in_ns = not first or first.clock_in_ns
  local catalog, stream
  catalog, message = file:catalog()
  if catalog then
    stream, message = file:stream(catalog, {
      buffer = options.buffer,
      partial = options.partial,
      clock_in_ns = in_ns,
      migrate_column = true,
    })
  end
  if not stream then
    error(message, 0)
  end
  local source = setmetatable({
    file = file,
    path = options.file,
    catalog = catalog,
    stream = stream,
    events = false,
  }, meta)
  for _, event in ipairs(source:event_list()) do
    if event.system == "ftrace" then
      stream:select(event.id, true)
    end
  end
  return source, stream, catalog, first and first.clock or "", in_ns
end

return replay
