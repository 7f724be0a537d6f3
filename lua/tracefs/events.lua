--- Which events there are, and which of them a pattern means.
local core = require "tracefs.core"
local glob = require "tracefs.glob"
local nearest = require "tracefs.nearest"

local events = {}

local EPERM, ENOENT, EACCES, ENOTDIR, EINVAL = 1, 2, 13, 20, 22

---@class tracefs.events.entry
---@field system string
---@field name string
---@field always_on? boolean recorded without being enabled, as ftrace:print is by markers

--- The top of tracefs that an instance belongs to.
---@param where string|tracefs.instance
---@return string
local function tracing_dir(where)
  if type(where) == "string" then
    return where
  end
  return (where:dir():gsub("/instances/[^/]+$", ""))
end

local function quote(pattern)
  return (("%q"):format(pattern):gsub("\\\n", "\\n"))
end

local HINTS = {
  [EPERM] = " (root too is refused: by a lockdown of the kernel, a container or a security module)",
  [ENOENT] = " (is tracefs mounted there?)",
  [EACCES] = " (not for this user: run as root)",
}

local function refused(what, why, errno)
  return nil, ("cannot %s: %s%s"):format(what, why, HINTS[errno] or ""), errno
end

-- The whole of a file; `what` says what it is read for, should that be refused.
local function read_file(path, what)
  local text, why, errno = core.read_file(path)
  if not text then
    return refused(what, why, errno)
  end
  return text
end

--- All events that can be enabled.
---@param where string|tracefs.instance tracing directory, or an instance in it
---@return tracefs.events.entry[]? entries sorted by system, then name
---@return string? message
---@return integer? errno
function events.list(where)
  local text, why, errno = read_file(tracing_dir(where) .. "/available_events", "list the events")
  if not text then
    return nil, why, errno
  end
  local list = {}
  for system, name in text:gmatch("([^:\n]+):([^:\n]+)") do
    list[#list + 1] = { system = system, name = name }
  end
  table.sort(list, function(a, b)
    if a.system ~= b.system then
      return a.system < b.system
    end
    return a.name < b.name
  end)
  return list
end

-- ---------------------------------------------------------------------------
-- Patterns
-- ---------------------------------------------------------------------------

---@class tracefs.events.query
---@field system? string nil: any
---@field name? string nil: any
---@field either? string the name of an event or of a system

-- As set_event reads it: "sys:name", "sys:" and "sys:*", ":name", and "word" alone.
local function parse(pattern)
  if pattern == "" then
    return nil, 'it is empty; "*" means all events'
  end
  local system, name = pattern:match("^([^:]*):(.*)$")
  if not system then
    return { either = pattern }
  end
  if name:find(":", 1, true) then
    return nil, "it has more than one colon; the form is system:name"
  end
  if system == "" and name == "" then
    return nil, 'it names nothing; "*" means all events'
  end
  return { system = system ~= "" and system or nil, name = name ~= "" and name or nil }
end

-- ---------------------------------------------------------------------------
-- Nearest names
-- ---------------------------------------------------------------------------

local function entry_score(query, entry)
  if query.either then
    return nearest.score(query.either, entry.name)
  end
  local system, name = 0, 0
  if query.system then
    -- The right name in the wrong system is a likely mistake too.
    system = nearest.score(query.system, entry.system) or query.name == entry.name and 3
  end
  if query.name then
    name = nearest.score(query.name, entry.name)
  end
  return system and name and system + name
end

--- Labels of events that may have been meant, the likeliest first.
---@param list tracefs.events.entry[]
---@param pattern string
---@param most? integer 3 by default
---@return string[]
function events.nearest(list, pattern, most)
  local query = parse((pattern:gsub("[*?%[%]]+", "")))
  if not query then
    return {}
  end
  local found, systems = {}, {}
  for _, entry in ipairs(list) do
    local score = entry_score(query, entry)
    if score and query.name == nil and query.either == nil then
      -- A whole system was asked for: name it once.
      if not systems[entry.system] then
        systems[entry.system] = true
        found[#found + 1] = { name = entry.system .. ":*", score = score }
      end
    elseif score then
      found[#found + 1] = { name = entry.system .. ":" .. entry.name, score = score }
    end
    local whole = query.either and not systems[entry.system]
      and nearest.score(query.either, entry.system)
    if whole then
      systems[entry.system] = true
      found[#found + 1] = { name = entry.system .. ":*", score = whole }
    end
  end
  return nearest.first(found, most)
end

-- ---------------------------------------------------------------------------
-- Matching
-- ---------------------------------------------------------------------------

local function no_such_event(where, pattern, list)
  local labels = events.nearest(list, pattern)
  local hint = "No name is like it (a module's events are there when it is loaded)."
  if #labels > 0 then
    hint = ("Did you mean %s?"):format(table.concat(labels, ", "))
  end
  return nil, ("no event %s in %s/events. %s tracefs.events() lists all, luatrace -l in the shell")
    :format(quote(pattern), tracing_dir(where), hint), ENOENT
end

-- One event by its exact names, without listing the thousands that there are.
local function match_exact(where, system, name)
  local dir = ("%s/events/%s/%s"):format(
    type(where) == "string" and where or where:dir(), system, name)
  -- The name of a directory entry, and nothing that leads elsewhere.
  if (system .. name):find("/", 1, true) or name:find("^%.+$") or system:find("^%.+$") then
    return nil
  end
  if type(where) ~= "string" and core.dropped_rights() then
    local below = ("events/%s/%s/"):format(system, name)
    if where:has(below .. "enable") then
      return { { system = system, name = name } }
    end
    return where:has(below .. "format") and { { system = system, name = name, always_on = true } }
      or nil
  end
  local file, why, errno = io.open(dir .. "/enable")
  if file then
    file:close()
    return { { system = system, name = name } }
  end
  if errno ~= ENOENT and errno ~= ENOTDIR then
    return refused("look for the event", why, errno)
  end
  file = io.open(dir .. "/format")
  if file then
    file:close()
    return { { system = system, name = name, always_on = true } }
  end
  return nil
end

local function entry_matcher(query)
  if query.either then
    local either, why = glob.matcher(query.either)
    return either and function(entry)
      return either(entry.name) or either(entry.system)
    end, why
  end
  local system, bad_system = glob.matcher(query.system)
  local name, bad_name = glob.matcher(query.name)
  return system and name and function(entry)
    return system(entry.system) and name(entry.name)
  end, bad_system or bad_name
end

--- The events that a pattern means.
---
--- `system:name` is one event. `*`, `?` and `[...]` work in both parts as in a shell. A word
--- without a colon is the name of an event in any system, or of a system, as for the kernel's
--- set_event; `system:` is the whole system.
---@param where string|tracefs.instance tracing directory, or an instance in it
---@param pattern string
---@return tracefs.events.entry[]? entries at least one, sorted
---@return string? message no such event (with the nearest names), a bad pattern, not permitted
---@return integer? errno
function events.match(where, pattern)
  if type(pattern) ~= "string" then
    error(("event pattern: string expected, got %s"):format(type(pattern)), 2)
  end
  local query, why = parse(pattern)
  local matches
  if query then
    matches, why = entry_matcher(query)
  end
  if not matches then
    return nil, ("bad event pattern %s: %s"):format(quote(pattern), why), EINVAL
  end
  if query.system and query.name and not glob.has(pattern) then
    local found, message, errno = match_exact(where, query.system, query.name)
    if found or message then
      return found, message, errno
    end
  end
  local list, message, errno = events.list(where)
  if not list then
    return nil, message, errno
  end
  local found = {}
  for _, entry in ipairs(list) do
    if matches(entry) then
      found[#found + 1] = entry
    end
  end
  if #found > 0 then
    return found
  end
  if query.system == "ftrace" then
    return nil, ("no event %s that can be enabled: the tracer's own events are named one by one, "
      .. "as ftrace:print"):format(quote(pattern)), ENOENT
  end
  return no_such_event(where, pattern, list)
end

--- The same in a list of events, those of a file. None is no error there, but a message.
---@param list tracefs.events.entry[]
---@param pattern string
---@param where string what the list is of
---@return tracefs.events.entry[]? entries
---@return string? message a bad pattern, or none of these events
---@return boolean? missing there is none of them
function events.match_in(list, pattern, where)
  local query, why = parse(pattern)
  local matches
  if query then
    matches, why = entry_matcher(query)
  end
  if not matches then
    return nil, ("bad event pattern %s: %s"):format(quote(pattern), why)
  end
  local found = {}
  for _, entry in ipairs(list) do
    local is_exact = query.system == entry.system and query.name == entry.name
    -- the tracer's own are named one by one
    if is_exact or (entry.system ~= "ftrace" and matches(entry)) then
      found[#found + 1] = entry
    end
  end
  if #found > 0 then
    return found
  end
  local likely = events.nearest(list, pattern)
  return found, ("no event %s in %s%s"):format(quote(pattern), where,
    #likely > 0 and (": did you mean %s?"):format(table.concat(likely, ", ")) or ""), true
end

-- One catalog for each tracing directory, so that an event has one description.
local catalogs = {}

local function catalog_of(dir)
  if not catalogs[dir] then
    local catalog = core.catalog()
    catalog:set_live(dir)
    catalogs[dir] = catalog
  end
  return catalogs[dir]
end

--- What one event looks like.
---@param where string|tracefs.instance tracing directory, or an instance in it
---@param label string "system:name", or a pattern that means one event
---@return tracefs.event? event
---@return string? message
---@return integer? errno
function events.describe(where, label)
  local found, message, errno = events.match(where, label)
  if not found then
    return nil, message, errno
  end
  if #found > 1 then
    return nil, ("%s means %d events, from %s:%s to %s:%s: name one"):format(
      quote(label), #found, found[1].system, found[1].name, found[#found].system,
      found[#found].name), EINVAL
  end
  local system, name = found[1].system, found[1].name
  local dir = tracing_dir(where)
  local text, why, code = read_file(("%s/events/%s/%s/format"):format(dir, system, name),
    "read the event's format")
  if not text then
    return nil, why, code
  end
  return catalog_of(dir):parse(system, text)
end

--- Ids of the events that are handed out, and stay in a file, also when the tracer caused them: a
--- switch belongs to the other task too, and markers are written on purpose.
---@param instance tracefs.instance
---@return integer[]
function events.kept_ids(instance)
  local ids = {}
  for _, name in ipairs { "sched/sched_switch", "ftrace/print", "ftrace/raw_data" } do
    local text = instance:read(("events/%s/format"):format(name))
    ids[#ids + 1] = text and tonumber(text:match "\nID:%s*(%d+)")
  end
  return ids
end

return events
