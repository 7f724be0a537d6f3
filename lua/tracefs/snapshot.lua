--- Reads the snapshot of an instance: what its buffer held when the snapshot was taken, as records
--- in the order of time.
local core = require "tracefs.core"
local event_patterns = require "tracefs.events"
local selection = require "tracefs.selection"
local must = require("tracefs.raising").must

local snapshot = {}

-- The head of the kernel's text tells the layout of its lines. (The file `trace` would do as well,
-- but on some kernels nothing is recorded while that is open.)
local function has_migrate_column(instance)
  local file <close> = io.open(instance:dir() .. "/snapshot")
  local head = file and file:read(4096) or ""
  return head:find("migrate-disable", 1, true) ~= nil
end

local function stream_options(instance)
  local clock = must(instance:get_clock())
  local in_ns, readable = core.clock_info(clock)
  return {
    clock = clock,
    clock_in_ns = in_ns,
    clock_readable = readable,
    margin = 0,
    interval = 0.1,
    memory_mb = 64,
    buffer_percent = 0,
    overwrite = true,
    own_events = true,
    snapshot = true,
    migrate_column = has_migrate_column(instance),
  }
end

local Reader = {}
Reader.__index = Reader
Reader._describe, Reader._note = selection._describe, selection._note

-- The snapshot may hold events that are off by now, so all that there are have to be known.
function Reader:_resolve(id)
  local found = selection._resolve(self, id)
  if not found and not self.all_noted then
    self.all_noted = true
    for _, entry in ipairs(event_patterns.list(self.instance) or {}) do
      self:_note(entry.system, entry.name)
    end
    found = selection._resolve(self, id)
  end
  return found
end

function Reader:pump(why, what)
  if why == "idle" then
    self.stream:wait(0.1)
  elseif why == "lost" and self.on_lost then
    self.on_lost(what)
  end
  return why ~= "end" and why ~= "stop"
end

local function open(instance, dir, on_lost)
  if not instance:has "snapshot" then
    error(must(instance:has_snapshot()), 0)
  end
  local reader = setmetatable({
    instance = instance,
    on_lost = on_lost,
    _catalog = core.catalog(),
    _descriptions = {},
    _labels = {},
    _shown_systems = {},
  }, Reader)
  reader._catalog:set_live(dir)
  reader.stream = must(core.stream(instance, reader._catalog, stream_options(instance)))
  reader.stream:callbacks(function(id)
    return reader:_resolve(id)
  end, function(why, what)
    return reader:pump(why, what)
  end)
  reader.stream:finish()
  return reader
end

--- The iterator over a snapshot's records. Reading takes them out of the snapshot.
---@param dir string the tracing directory
---@param instance tracefs.instance
---@param options? { on_lost?: fun(lost: tracefs.loss) }
---@return fun(): tracefs.record? iterator
---@return any, any
---@return any closer the generic for closes it
function snapshot.events(dir, instance, options)
  if type(instance) ~= "userdata" then
    error("snapshot_events(instance, options): an instance is needed, not " .. type(instance), 3)
  end
  for name in pairs(options or {}) do
    if name ~= "on_lost" then
      error(("snapshot_events: unknown option '%s'; there is: on_lost"):format(tostring(name)), 3)
    end
  end
  local ok, reader = pcall(open, instance, dir, options and options.on_lost)
  if not ok then
    error(reader, type(reader) == "string" and 3 or 0)
  end
  local closer = setmetatable({}, {
    __close = function()
      reader.stream:close()
    end,
  })
  return reader.stream:iterator(), nil, nil, closer
end

return snapshot
