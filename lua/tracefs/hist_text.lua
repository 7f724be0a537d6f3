--- The text of hist triggers: made from a table of options, and read back from the line that the
--- kernel shows. What the kernel would refuse without a word is refused here, with what there is.
local hist_text = {}

---@class tracefs.hist.action one of onmatch, onmax, onchange, and one of trace, save, snapshot
---@field onmatch? string "system:event" whose variables have met this event's
---@field onmax? string variable that has risen: "$lat"
---@field onchange? string variable that has changed
---@field trace? string name of the synthetic event to make
---@field with? string[] its values: variables and fields
---@field save? string[] fields to keep beside the row
---@field snapshot? boolean take one of the buffer

---@class tracefs.hist.options
---@field keys string|string[] "common_pid.execname", "len.buckets=100", "common_stacktrace", ...
---@field values? string|string[] fields to sum beside the hitcount
---@field variables? table<string, string>|string[] by name, or a list of "name=expression"
---@field sort? string|string[] "hitcount.descending", a key or a value
---@field size? integer rows that there is place for: from 65 to 131072, by default 2048
---@field name? string histograms of one name and kind share their rows
---@field filter? string in the kernel's filter language
---@field pause? boolean do not count before continue()
---@field nohitcount? boolean
---@field actions? tracefs.hist.action[]

---@class tracefs.hist.syntax what the kernel's own help names
---@field modifiers table<string, boolean>
---@field nohitcount boolean
---@field common_stacktrace boolean
---@field common_cpu boolean

local function list_of(set)
  local names = {}
  for name in pairs(set) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

--- What a kernel understands, from its `README` in the tracing directory.
---@param readme string
---@return tracefs.hist.syntax
function hist_text.syntax(readme)
  local syntax = { modifiers = {} }
  local help = readme:match "\n[^\n]*hist trigger\t.*" or ""
  for modifier in help:gmatch "\n%s+%.([%w_-]+)[=%s]" do
    syntax.modifiers[modifier] = true
  end
  syntax.nohitcount = help:find("[:nohitcount]", 1, true) ~= nil
  syntax.common_stacktrace = help:find("common_stacktrace", 1, true) ~= nil
  syntax.common_cpu = help:find("common_cpu", 1, true) ~= nil
  -- not in the help, and as old as common_stacktrace
  syntax.modifiers.stacktrace = syntax.common_stacktrace or nil
  return syntax
end

-- ---------------------------------------------------------------------------
-- Fields and expressions
-- ---------------------------------------------------------------------------

local SPECIAL <const> = {
  common_timestamp = "int",
  common_cpu = "int",
  cpu = "int",
  -- since Linux 6.16; others say that they cannot find it
  common_comm = "string",
  common_stacktrace = "stacktrace",
  stacktrace = "stacktrace",
  hitcount = "int",
}

-- How a key is shown: by what its modifier says.
local SHOWN <const> = {
  hex = "hex", sym = "sym", ["sym-offset"] = "sym-offset", execname = "execname",
  syscall = "syscall", log2 = "log2", buckets = "buckets", bucket = "buckets", usecs = "usecs",
  stacktrace = "stacktrace",
}

-- What a modifier can be used for, where that is not everything.
local FIELD_OF <const> = { execname = "common_pid", usecs = "common_timestamp" }

local VALUE_ONLY <const> = { percent = true, graph = true }

--- Splits "name.modifier=N".
local function split(word)
  local field, modifier = word:match "^([%a_][%w_]*)%.([%a][%w-]*)$"
  local width
  if not field then
    field, modifier, width = word:match "^([%a_][%w_]*)%.([%a][%w]*)=(%w+)$"
  end
  return field or word, modifier, tonumber(width), width
end

--- What stands in a key or value of a trigger's line.
---@param word string
---@param kinds? table<string, string>
local function describe(word, kinds)
  -- from Linux 6.16 on the CPU's name stands there twice
  word = word:gsub("^common_cpucommon_cpu", "common_cpu"):gsub("^common_cpucpu", "common_cpu")
  -- lat=common_timestamp-$ts0: a variable that is a key too
  local variable, rest = word:match "^([%a_][%w_]*)=(.+)$"
  if variable and not variable:find(".", 1, true) then
    word = rest
  end
  local field, modifier, width = split(word)
  local is_name = field:find "^[%a_][%w_]*$" ~= nil
  if field == "stacktrace" and not modifier and not (kinds and kinds.stacktrace) then
    -- its name before Linux 6.3
    field = "common_stacktrace"
  end
  local kind = SHOWN[modifier] or SPECIAL[field] or kinds and kinds[field]
  if not kind then
    kind = is_name and "plain" or "int"
  end
  return {
    field = is_name and field or nil, modifier = modifier, width = width, kind = kind, text = word,
  }
end

local function each(list)
  return list:gmatch "[^,]+"
end

--- Reads the line that the kernel shows for a hist trigger.
---@param line string
---@param kinds? table<string, "int"|"string"> of the event's fields
---@return table? info
---@return string? message
function hist_text.info(line, kinds)
  local state = line:match " %[(%l+)%]$"
  local trigger = line:gsub(" %[%l+%]$", "")
  local name, keys, rest = trigger:match "^hist:name=([^:=]+):keys=([^:]+)(:.*)$"
  if not name then
    name, keys, rest = trigger:match "^hist:([^:=]+):keys=([^:]+)(:.*)$"
  end
  if not name then
    keys, rest = trigger:match "^hist:keys=([^:]+)(:.*)$"
  end
  local values = rest and rest:match "^:vals=([^:]*)"
  if not values then
    return nil, "not the line of a hist trigger: " .. line
  end
  local info = { trigger = trigger, name = name, paused = state == "paused", keys = {},
    values = {}, saved = {} }
  for word in each(keys) do
    info.keys[#info.keys + 1] = describe(word, kinds)
  end
  for word in each(values) do
    info.values[#info.values + 1] = describe(word, kinds)
  end
  local saved = rest:match "[:.]save%(([^)]*)%)"
  for word in each(saved or "") do
    info.saved[#info.saved + 1] = word
  end
  return info
end

-- ---------------------------------------------------------------------------
-- From a table
-- ---------------------------------------------------------------------------

local function refuse(...)
  error("hist: " .. (...):format(select(2, ...)), 0)
end

local function show(value)
  return type(value) == "string" and ('"%s"'):format(value) or tostring(value)
end

--- A string or a list of strings, as a list.
local function words(options, name)
  local value = options[name]
  if value == nil then
    return {}
  elseif type(value) == "string" then
    value = { value }
  elseif type(value) ~= "table" then
    refuse("%s: a string or a list of strings is needed, not %s", name, type(value))
  end
  local list = {}
  for key, word in pairs(value) do
    if math.type(key) ~= "integer" or key < 1 or key > #value then
      refuse("%s: a list is needed, and '%s' is no number of it", name, tostring(key))
    elseif type(word) ~= "string" then
      refuse("%s: number %d is no string but a %s", name, key, type(word))
    end
    list[key] = word:gsub("[ \t]+", "")
    if list[key] == "" or list[key]:find "[^%w_.$=+*/()-]" then
      refuse("%s: %s is no field, variable or expression of them", name, show(word))
    end
  end
  return list
end

local Builder = {}
Builder.__index = Builder

function Builder:check_field(field, what)
  if self.fields[field] or SPECIAL[field] then
    if field == "common_timestamp" then
      self.timestamps = true
    end
    return
  end
  local names = {}
  for _, known in ipairs(self.event:fields()) do
    names[#names + 1] = known.name
  end
  refuse("%s: %s has no field '%s'; it has: %s, common_timestamp, common_cpu, common_stacktrace",
    what, self.event:label(), field, table.concat(names, ", "))
end

function Builder:check_modifier(word, what, is_value)
  local field, modifier, width, width_text = split(word)
  if not modifier then
    local known = self.fields[field]
    if known and known.kind ~= "int" and (is_value or known.kind ~= "string") then
      refuse("%s: '%s' is %s: %s is needed", what, field, known.type,
        is_value and "a number" or "a number or a string")
    end
    return field
  end
  local known = self.syntax.modifiers
  if not known[modifier == "bucket" and "buckets" or modifier] then
    refuse("%s: no modifier .%s; this kernel has: %s", what, modifier, list_of(known))
  elseif FIELD_OF[modifier] and FIELD_OF[modifier] ~= field then
    refuse("%s: .%s is for %s only, not for '%s'", what, modifier, FIELD_OF[modifier], field)
  elseif VALUE_ONLY[modifier] and not is_value then
    refuse("%s: .%s is for values, not for keys", what, modifier)
  elseif SHOWN[modifier] == "buckets" then
    if math.type(width) ~= "integer" or width < 1 then
      refuse("%s: .%s=N needs a width of the buckets from 1, not '%s'", what, modifier,
        width_text or "")
    end
  elseif width_text then
    refuse("%s: .%s takes no number ('%s')", what, modifier, word)
  elseif (modifier == "log2" or modifier == "hex" or modifier == "syscall" or modifier == "sym"
      or modifier == "sym-offset") and self.fields[field] and self.fields[field].kind ~= "int" then
    refuse("%s: .%s is for numbers, and '%s' is a %s", what, modifier, field,
      self.fields[field].type)
  end
  return field
end

--- The fields of an expression are the event's, and its modifiers the kernel's. Variables may be
--- those of other events: the kernel looks them up.
function Builder:check_expression(text, what, is_value)
  -- sym-offset is no difference
  local rest = text:gsub("%.sym%-offset", ".symXoffset")
  -- other events' variables: system.event.$name
  rest = rest:gsub("[%w_]+%.[%w_]+%.%$[%w_]+", " "):gsub("%$[%w_]+", " ")
  for found in rest:gmatch "[%w_.=]+" do
    local word = found:gsub("symXoffset", "sym-offset")
    if not word:find "^%d" then
      local field = self:check_modifier(word, what, is_value)
      if not field:find "^[%a_][%w_]*$" then
        refuse("%s: cannot read '%s'", what, word)
      end
      self:check_field(field, what)
    end
  end
end

--- The stack and the CPU have two names each: the one that this kernel writes itself. With the
--- other one the same histogram could be there twice.
function Builder:spell(text)
  for old, new in pairs { stacktrace = "common_stacktrace", cpu = "common_cpu" } do
    local from, to = old, new
    if not self.syntax[new] then
      from, to = new, old
    end
    if not self.fields[from] then
      text = text:gsub("%f[%w_$.]" .. from .. "%f[^%w_]", to)
    end
  end
  return text
end

function Builder:list(options, name, is_value)
  local list = words(options, name)
  for i, word in ipairs(list) do
    self:check_expression(word, name, is_value)
    list[i] = self:spell(word)
  end
  return list
end

function Builder:check_sort(list)
  local names = { hitcount = true }
  for _, part in ipairs { self.keys, self.values } do
    for _, word in ipairs(part) do
      names[(split(word))] = true
    end
  end
  for _, word in ipairs(list) do
    local field, direction = word:match "^(.-)%.([%a]+)$"
    if not field then
      field = word
    elseif direction ~= "ascending" and direction ~= "descending" then
      refuse("sort: '%s': behind the dot there is ascending or descending", word)
    end
    if not names[self:spell(field)] then
      refuse("sort: '%s' is neither a key nor a value; there are: %s", field, list_of(names))
    end
  end
end

--- Variables in an order in which each comes behind those that it is made from.
function Builder:variable_list(variables)
  if variables == nil then
    return {}
  elseif type(variables) ~= "table" then
    refuse("variables: a table of names and expressions is needed, not %s", type(variables))
  end
  local given, order = {}, {}
  for key, text in pairs(variables) do
    local name = key
    if type(text) ~= "string" then
      refuse("variables: '%s' is no expression but a %s", tostring(key), type(text))
    end
    text = text:gsub("[ \t]+", "")
    if math.type(key) == "integer" then
      name, text = text:match "^([%a_][%w_]*)=(.+)$"
      if not name then
        refuse('variables: %s is not of the form "name=expression"', show(variables[key]))
      end
    elseif type(key) ~= "string" or not key:find "^[%a_][%w_]*$" then
      refuse("variables: '%s' is no name", tostring(key))
    end
    if given[name] then
      refuse("variables: '%s' is there twice", name)
    elseif text == "" or text:find "[^%w_.$+*/()-]" then
      refuse("variables: %s is no field, variable or expression of them", show(variables[key]))
    end
    self:check_expression(text, "variables")
    given[name] = self:spell(text)
    order[#order + 1] = name
  end
  table.sort(order)
  local list, state = {}, {}
  local function add(name)
    if state[name] == "begun" then
      refuse("variables: '%s' is made from itself", name)
    elseif state[name] then
      return
    end
    state[name] = "begun"
    for other in given[name]:gmatch "%f[$.%w]%$([%w_]+)" do
      if given[other] then
        add(other)
      end
    end
    state[name] = "done"
    list[#list + 1] = name .. "=" .. given[name]
  end
  for _, name in ipairs(order) do
    add(name)
  end
  self.variables = given
  return list
end

local HANDLERS <const> = { "onmatch", "onmax", "onchange" }
local ACTIONS <const> = { "trace", "save", "snapshot" }

local function only_one(action, names, i)
  local found
  for _, name in ipairs(names) do
    if action[name] ~= nil then
      if found then
        refuse("actions: number %d has both %s and %s", i, found, name)
      end
      found = name
    end
  end
  if not found then
    refuse("actions: number %d has none of: %s", i, table.concat(names, ", "))
  end
  return found
end

local function handler_text(action, handler, i)
  local what = action[handler]
  if handler == "onmatch" then
    local system, name = tostring(what):match "^([%w_-]+)[:.]([%w_-]+)$"
    if not system then
      refuse('actions: number %d: onmatch needs an event as "system:name", not %s', i, show(what))
    end
    return ("onmatch(%s.%s)"):format(system, name)
  end
  if type(what) ~= "string" or not what:find "^%$[%a_][%w_]*$" then
    refuse('actions: number %d: %s needs a variable as "$name", not %s', i, handler, show(what))
  end
  return ("%s(%s)"):format(handler, what)
end

function Builder:action_text(action, i)
  if type(action) ~= "table" then
    refuse("actions: number %d is no table but a %s", i, type(action))
  end
  for key in pairs(action) do
    local known = key == "with"
    for _, names in ipairs { HANDLERS, ACTIONS } do
      for _, name in ipairs(names) do
        known = known or key == name
      end
    end
    if not known then
      refuse("actions: number %d: unknown '%s'; there are: onmatch, onmax, onchange; trace, with, "
        .. "save, snapshot", i, tostring(key))
    end
  end
  local head = handler_text(action, only_one(action, HANDLERS, i), i)
  local what = only_one(action, ACTIONS, i)
  if what == "snapshot" then
    if action.snapshot ~= true then
      refuse("actions: number %d: snapshot = true, or none", i)
    end
    self.snapshots = true
    return head .. ".snapshot()"
  elseif what == "save" then
    if action.onmatch then
      refuse("actions: number %d: save goes with onmax or onchange", i)
    end
    return ("%s.save(%s)"):format(head, table.concat(self:list(action, "save"), ","))
  end
  local name = action.trace
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    refuse("actions: number %d: trace needs the name of a synthetic event, not %s", i, show(name))
  end
  -- fields of either event may be there: the kernel looks them up
  local with = words(action, "with")
  table.insert(with, 1, self.synthetic and self.synthetic(name, with) or name)
  return ("%s.trace(%s)"):format(head, table.concat(with, ","))
end

local KNOWN <const> = {
  keys = true, values = true, variables = true, sort = true, size = true, name = true,
  filter = true, pause = true, nohitcount = true, actions = true,
}

local function check_options(options)
  if type(options) ~= "table" then
    refuse("the options must be a table, not %s", type(options))
  end
  for key in pairs(options) do
    if not KNOWN[key] then
      refuse("unknown option '%s'; there are: %s", tostring(key), list_of(KNOWN))
    end
  end
  for _, name in ipairs { "pause", "nohitcount" } do
    local value = options[name]
    if value ~= nil and type(value) ~= "boolean" then
      refuse("%s must be true or false, not %s", name, show(value))
    end
  end
  local size, name, filter = options.size, options.name, options.filter
  if size ~= nil and (math.type(size) ~= "integer" or size < 65 or size > 1 << 17) then
    refuse("size: rows from 65 to 131072 (the kernel takes the next power of two), not %s",
      show(size))
  end
  if name ~= nil and (type(name) ~= "string" or not name:find "^[%a_][%w_]*$") then
    refuse("name: letters, digits and _ are needed, not %s", show(name))
  end
  if filter ~= nil and (type(filter) ~= "string" or filter:find "%z" or not filter:find "%S") then
    refuse("filter: a string in the kernel's filter language is needed, not %s", show(filter))
  end
end

--- A filter as one line; what is in quotes stays.
local function on_one_line(text)
  local quote
  return (text:gsub(".", function(char)
    if quote then
      quote = char ~= quote and quote or nil
    elseif char == '"' or char == "'" then
      quote = char
    elseif char:find "%s" then
      return " "
    end
  end):gsub("^ +", ""):gsub(" +$", ""))
end

-- What one write to a trigger file may have.
local MOST_BYTES <const> = 4095

---@class tracefs.hist.context
---@field event tracefs.event whose histogram it will be
---@field syntax tracefs.hist.syntax
---@field clock? string the trace clock that common_timestamp is read from
---@field prefix? string what the kernel's names of histograms begin with
---@field synthetic? fun(name: string, with: string[]): string the kernel's name of an event

---@class tracefs.hist.command
---@field text string without a filter
---@field filter string? as one line
---@field timestamps boolean it uses common_timestamp
---@field snapshots boolean
---@field variables table<string, string>
---@field kinds table<string, "int"|"string"> of the event's fields

--- Makes the text of a trigger. Raises what is wrong with the options.
---@param options tracefs.hist.options
---@param context tracefs.hist.context
---@return tracefs.hist.command
function hist_text.build(options, context)
  check_options(options)
  local builder = setmetatable({
    event = context.event, syntax = context.syntax, synthetic = context.synthetic,
    fields = {}, timestamps = false, snapshots = false, variables = {},
  }, Builder)
  local kinds = {}
  for _, field in ipairs(context.event:fields()) do
    builder.fields[field.name] = field
    kinds[field.name] = (field.kind == "int" or field.kind == "string") and field.kind or nil
  end

  builder.keys = builder:list(options, "keys")
  builder.values = builder:list(options, "values", true)
  if #builder.keys == 0 then
    refuse('keys: at least one is needed, for example keys = { "common_pid.execname" }')
  end
  local variables = builder:variable_list(options.variables)
  local sort = words(options, "sort")
  builder:check_sort(sort)
  if options.nohitcount and not context.syntax.nohitcount then
    refuse("nohitcount: this kernel does not have it")
  end

  local parts = { "hist:keys=" .. table.concat(builder.keys, ",") }
  local function add(name, list)
    if #list > 0 then
      parts[#parts + 1] = name .. table.concat(list, ",")
    end
  end
  add("values=", builder.values)
  add("", variables)
  for i, word in ipairs(sort) do
    sort[i] = builder:spell(word)
  end
  add("sort=", sort)
  if options.size then
    parts[#parts + 1] = "size=" .. options.size
  end
  if options.name then
    parts[#parts + 1] = "name=" .. (context.prefix or "") .. options.name
  end
  if options.nohitcount then
    parts[#parts + 1] = "nohitcount"
  end
  if options.actions ~= nil and type(options.actions) ~= "table" then
    refuse("actions: a list is needed, not %s", type(options.actions))
  end
  for i, action in ipairs(options.actions or {}) do
    parts[#parts + 1] = builder:action_text(action, i)
  end
  if builder.timestamps and context.clock then
    -- else the kernel sets the instance's clock to "global"
    table.insert(parts, 2, "clock=" .. context.clock)
  end

  local text = table.concat(parts, ":")
  local filter = options.filter and on_one_line(options.filter)
  local length = #text + (filter and #" if " + #filter or 0) + #":continue"
  if length > MOST_BYTES then
    refuse("the trigger has %d bytes, and the kernel takes %d", length, MOST_BYTES)
  end
  return {
    text = text, filter = filter, timestamps = builder.timestamps, snapshots = builder.snapshots,
    variables = builder.variables, kinds = kinds,
  }
end

return hist_text
