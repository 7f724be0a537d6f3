--- Probes that a session makes: what is written in `on`, the kernel's command for it, and what
--- there is when the kernel knows no such place.
local core = require "tracefs.core"
local event_patterns = require "tracefs.events"
local programs = require "tracefs.programs"

local probes = {}

local ENOENT <const> = 2
-- What a name may have at most, with the number that makes it another one.
local NAME_LENGTH <const> = 48

---@class tracefs.probe_options
---@field args? string|table fetch expressions in the kernel's syntax: "name=expression ...", or a
--- table { name = "expression" }, or a list of "name=expression"
---@field name? string of the event; default: that of the function
---@field maxactive? integer how many calls a return probe follows at once

-- What each kind is for the kernel: the letter of its command, what shows that it is there, and
-- the option of the kernel's build.
local KINDS <const> = {
  kprobe = { letter = "p", file = "kprobe_events", config = "CONFIG_KPROBE_EVENTS" },
  kretprobe = {
    letter = "r", file = "kprobe_events", config = "CONFIG_KPROBE_EVENTS", counts = true,
  },
  uprobe = { letter = "p", file = "uprobe_events", config = "CONFIG_UPROBE_EVENTS", user = true },
  uretprobe = {
    letter = "r", file = "uprobe_events", config = "CONFIG_UPROBE_EVENTS", user = true,
    returns = true,
  },
  fprobe = { letter = "f", readme = " f[:[", config = "CONFIG_FPROBE_EVENTS" },
  fexit = {
    letter = "f", readme = " f[:[", config = "CONFIG_FPROBE_EVENTS", suffix = "%return",
    counts = true,
  },
  tprobe = { letter = "t", readme = " t[:[", config = "CONFIG_FPROBE_EVENTS" },
  eprobe = { letter = "e", readme = " e[:[", config = "CONFIG_EPROBE_EVENTS" },
}

-- The registers that a fetch expression knows, by the machine in an ELF file's head.
local REGISTERS <const> = {
  [62] = "%ax %bx %cx %dx %si %di %bp %sp %ip %flags %cs %ss %orig_ax %r8 to %r15",
  [183] = "%x0 to %x30, %sp %pc %pstate",
}

-- Raises the message as it is: `on` adds the place in the script.
local function refuse(...)
  error(string.format(...), 0)
end

local function quote(text)
  return (("%q"):format(text):gsub("\\\n", "\\n"))
end

--- The kind of probe that an event pattern asks for, and what follows it; nil for an event.
---@param pattern string
---@return string? kind
---@return string? target
function probes.kind(pattern)
  local kind, target = pattern:match("^(%l+):(.*)$")
  if KINDS[kind] then
    return kind, target
  end
end

-- ---------------------------------------------------------------------------
-- The parts of a command
-- ---------------------------------------------------------------------------

-- The kernel splits at blanks, and takes "#" for the start of a comment.
local function check_word(word, what)
  if word:find("[%s%c]") or word:find("#", 1, true) then
    refuse("%s %s has a blank, a control character or a '#', which the kernel's commands cannot "
      .. "have", what, quote(word))
  end
  return word
end

local function check_arg(arg, kind)
  if type(arg) ~= "string" then
    refuse("args of a %s: fetch expressions are strings, not %s", kind, type(arg))
  end
  return check_word(arg, "the fetch expression")
end

-- Fetch expressions as the end of a command. Those with names come in their order, as a table
-- has none.
local function args_text(args, kind)
  if args == nil then
    return ""
  end
  local words = {}
  if type(args) == "string" then
    for word in args:gmatch("%S+") do
      words[#words + 1] = check_arg(word, kind)
    end
  elseif type(args) == "table" then
    local names = {}
    for key in pairs(args) do
      if type(key) == "string" then
        names[#names + 1] = key
      elseif math.type(key) ~= "integer" or key < 1 or key > #args then
        refuse("args of a %s: a list, or a table of names and fetch expressions", kind)
      end
    end
    for _, word in ipairs(args) do
      words[#words + 1] = check_arg(word, kind)
    end
    table.sort(names)
    for _, name in ipairs(names) do
      if not name:find("^[%a_][%w_]*$") then
        refuse("args of a %s: %s is no name of a field: letters, digits and _", kind, quote(name))
      end
      words[#words + 1] = name .. "=" .. check_arg(args[name], kind)
    end
  else
    refuse("args of a %s: a string or a table, not %s", kind, type(args))
  end
  return #words > 0 and " " .. table.concat(words, " ") or ""
end

-- What a name of an event is made of.
local function identifier(text)
  text = text:gsub("[^%w_]", "_"):sub(1, NAME_LENGTH)
  return text:find("^%d") and "_" .. text or text
end

local function no_pattern(kind, name)
  if name:find("[*?%[]") then
    refuse("%s:%s: a probe is at one place; * ? [..] are for events that are there", kind, name)
  end
  return name
end

-- "symbol", "symbol+16", "0x1234" of a file.
local function user_place(kind, path, place)
  local base = path:match("[^/]+$")
  local raw = place:match("^0x%x+$") or place:match("^0x%x+%(0x%x+%)$")
  if raw then
    return ("%s:%s"):format(path, raw), identifier(base .. "_" .. raw:match("^0x%x+"))
  end
  local symbol, delta = place:match("^(.-)%+(%w+)$")
  symbol = symbol or place
  local number = delta and math.tointeger(tonumber(delta))
  if symbol == "" or delta and not (number and number >= 0) then
    refuse("%s:%s:%s: the place is a function, function+BYTES, or 0xOFFSET of the file", kind,
      path, place)
  elseif number and number > 0 and KINDS[kind].returns then
    refuse("%s:%s:%s: a return probe is at a function's start", kind, path, place)
  end
  local offset, message, errno = core.elf_offset(path, symbol, number)
  if not offset then
    local names = errno == ENOENT and core.elf_functions(path)
    refuse("%s%s", message, names
      and (core.nearest(symbol, table.concat(names, " ")):gsub("^ ", ". ")) or "")
  end
  return ("%s:0x%x"):format(path, offset), identifier(place)
end

local function user_target(kind, target)
  local name, place = target:match("^(.+):([^:]+)$")
  if not name then
    refuse("%s:%s: the form is %s:PATH:FUNCTION, as %s:/bin/bash:readline", kind, target, kind,
      kind)
  end
  no_pattern(kind, target)
  local path, message = programs.find(name)
  if not path then
    refuse("%s:%s: %s", kind, target, message)
  end
  if path:find("[%s%c#]") then
    refuse("%s:%s: %s has a blank, a control character or a '#', which the kernel's commands "
      .. "cannot have. Make a hard link to it with another name", kind, target, quote(path))
  end
  return user_place(kind, path, place)
end

local function event_target(session, kind, target)
  local system, name = target:match("^([^:/.]+)[:/.]([^:/.]+)$")
  if not system then
    refuse("%s:%s: the form is eprobe:SYSTEM:EVENT, as eprobe:sched:sched_switch", kind, target)
  end
  no_pattern(kind, target)
  local found, message = event_patterns.match(session.instance, system .. ":" .. name)
  if not found then
    error(message, 0)
  end
  return system .. "." .. name, identifier(name)
end

-- What the command calls the place, and the event's name for it.
local function resolve(session, kind, target)
  local how = KINDS[kind]
  if target == "" then
    refuse("%s: names no place, as kprobe:do_sys_openat2, uprobe:/bin/bash:readline or "
      .. "eprobe:sched:sched_switch do", kind)
  elseif how.user then
    return user_target(kind, target)
  elseif kind == "eprobe" then
    return event_target(session, kind, target)
  end
  check_word(no_pattern(kind, target), kind)
  return target .. (how.suffix or ""), identifier((target:gsub("^[^:]+:", "")))
end

-- ---------------------------------------------------------------------------
-- What to say when the kernel refuses
-- ---------------------------------------------------------------------------

local function read_file(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

local function check_there(session, kind)
  local how, dir = KINDS[kind], session._dir
  local there
  if how.file then
    there = read_file(dir .. "/" .. how.file) ~= nil
  else
    there = (read_file(dir .. "/README") or how.readme):find(how.readme, 1, true) ~= nil
  end
  if not there then
    refuse("this kernel has no %ss: it is built without %s", kind, how.config)
  end
end

-- A function that is not there, with those that have similar names.
local function function_hint(target)
  local name = target:gsub("^[^:]+:", ""):gsub("%+.*$", ""):gsub("%%return$", "")
  local is_there, nearest = core.kernel_function(name)
  if is_there == false and not name:find("^0x") then
    return ("no function '%s' in this kernel.%s"):format(name, nearest)
  end
end

local function register_hint()
  local file <close> = io.open("/proc/self/exe", "rb")
  local head = file and file:read(20)
  local registers = head and #head == 20 and REGISTERS[string.unpack("=I2", head, 19)]
  return registers and "registers are: " .. registers
end

-- A field that the event does not have, with those that it has.
local function field_hint(session, target, args)
  local event = event_patterns.describe(session._dir, (target:gsub("%.", ":", 1)))
  if not event then
    return nil
  end
  local names = {}
  for _, field in ipairs(event:fields()) do
    names[#names + 1] = field.name
  end
  for name in args:gmatch("%$([%a_][%w_]*)") do
    if name ~= "comm" and name ~= "stack" and not event:has(name) then
      return ("%s has no field '%s'; it has: %s"):format(event:label(), name,
        table.concat(names, ", "))
    end
  end
end

local function tracepoint_hint(session, target)
  local names = {}
  for _, entry in ipairs(event_patterns.list(session._dir) or {}) do
    if entry.name == target then
      return nil
    end
    names[#names + 1] = entry.name
  end
  return ("no tracepoint '%s' is known.%s"):format(target,
    core.nearest(target, table.concat(names, " ")))
end

-- Does the caret in the kernel's message stand below the place, and not below the arguments?
local function blames_place(message, place)
  local command, blanks = message:match("\n(  Command: [^\n]*)\n( *)%^")
  if not command then
    return true
  end
  local _, behind_name = command:find("^  Command: %S+ ")
  return behind_name ~= nil and #blanks < behind_name + #place
end

local function hint(session, kind, target, args, message)
  if message:find("register", 1, true) then
    return register_hint()
  elseif kind == "eprobe" and not message:find("the kernel says", 1, true) then
    return "this kernel may have no event probes: CONFIG_EPROBE_EVENTS"
  elseif kind == "eprobe" then
    return field_hint(session, target, args)
  elseif kind == "tprobe" then
    return tracepoint_hint(session, target)
  elseif not KINDS[kind].user and blames_place(message, target) then
    return function_hint(target)
  end
end

-- ---------------------------------------------------------------------------
-- Making
-- ---------------------------------------------------------------------------

-- A name that no other event of the group has.
local function fresh(taken, name)
  local result, count = name, 1
  while taken[result] do
    count = count + 1
    result = name .. "_" .. count
  end
  return result
end

local function check_options(kind, options)
  local name, maxactive = options.name, options.maxactive
  if name ~= nil and (type(name) ~= "string" or not name:find("^[%a_][%w_]*$")
    or #name > NAME_LENGTH) then
    refuse("name of a %s: letters, digits and _, at most %d, not %s", kind, NAME_LENGTH,
      type(name) == "string" and quote(name) or tostring(name))
  end
  if maxactive ~= nil then
    if not KINDS[kind].counts then
      refuse("maxactive belongs to kretprobe and fexit, not to %s", kind)
    elseif math.type(maxactive) ~= "integer" or maxactive < 1 or maxactive > 4096 then
      refuse("maxactive of a %s: a whole number from 1 to 4096, not %s", kind,
        tostring(maxactive))
    end
  end
end

--- Makes the probe that a pattern asks for, or finds it made already.
---@param session tracefs.session
---@param pattern string such as "kprobe:do_sys_openat2"
---@param options tracefs.probe_options
---@return tracefs.events.entry[] found one event
---@return fun()? undo nil when it was there already
function probes.make(session, pattern, options)
  local kind, target = probes.kind(pattern)
  local how = KINDS[kind]
  check_options(kind, options)
  local args = args_text(options.args, kind)
  check_there(session, kind)
  local place, default_name = resolve(session, kind, target)

  local made = session._probes
  local key = table.concat({ kind, place, args, options.name or "", options.maxactive or "" }, "\n")
  if made[key] then
    return { made[key] }
  end
  local group = session._probe_groups[kind]
  if not group then
    group = { system = session._dynevents:name(), taken = {} }
    session._probe_groups[kind] = group
    session._shown_systems[group.system] = kind
  end
  if options.name and group.taken[options.name] then
    refuse("there is a %s with the name %s in this session already", kind, options.name)
  end
  local name = options.name or fresh(group.taken, default_name)
  local command = ("%s%s:%s/%s %s%s"):format(how.letter, options.maxactive or "", group.system,
    name, place, args)
  session:_announce("dynamic_events", command)
  local ok, message = session._dynevents:add(command)
  if not ok then
    local more = hint(session, kind, place, args, message)
    refuse("%s: %s%s", pattern, message, more and "\n" .. more or "")
  end
  group.taken[name] = true
  made[key] = { system = group.system, name = name }
  return { made[key] }, function()
    -- Should it be in use after all, the session's end removes it.
    if session._dynevents:drop() then
      group.taken[name] = nil
      made[key] = nil
    end
  end
end

--- Completes the description of an event probe: only the list of dynamic events says what it is
--- attached to.
---@param dir? string tracing directory; nil for a recording, which has no such list
---@param event tracefs.event
---@param system string as in tracefs
function probes.attach(dir, event, system)
  -- No other event's text begins like this.
  if not dir or not event:print_fmt():find('^"[ "]') then
    return
  end
  for _, probe in ipairs(probes.list(dir) or {}) do
    if probe.command == "e" and probe.system == system and probe.name == event:name() then
      event:attach((probe.definition:match("^%S+"):gsub("/", ".", 1)))
    end
  end
end

-- ---------------------------------------------------------------------------
-- Everybody's
-- ---------------------------------------------------------------------------

---@class tracefs.dynamic_event
---@field command string the letter of its kind, with a number for return probes: "p", "r16", "s"
---@field system string
---@field name string
---@field definition string where it is and what it fetches
---@field own boolean made by a luatrace process

--- All dynamic events of the machine.
---@param dir string tracing directory
---@return tracefs.dynamic_event[]? events
---@return string? message
---@return integer? errno
function probes.list(dir)
  local file <close>, message, errno = io.open(dir .. "/dynamic_events", "rb")
  if not file then
    if errno == ENOENT then
      return {}
    end
    return nil, "cannot list the dynamic events: " .. message, errno
  end
  local found = {}
  for line in file:lines() do
    local command, label, definition = line:match("^(%a%d*):(%S+)%s*(.-)%s*$")
    if command then
      local system, name = label:match("^([^/]+)/(.+)$")
      found[#found + 1] = {
        command = command,
        system = system or "user_events",
        name = name or label,
        definition = definition,
        own = label:find("luatrace_%w+_%d+_%d+") ~= nil,
      }
    end
  end
  return found
end

return probes
