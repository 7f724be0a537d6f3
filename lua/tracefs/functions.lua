--- The function tracers of a session: which functions they record, and how.
local core = require "tracefs.core"
local glob = require "tracefs.glob"
local names_like = require "tracefs.nearest"
local toplevel = require "tracefs.toplevel"

---@class tracefs.session.functions
---@field [integer] string functions to record, as globs; "ext4_*:mod:ext4" is of one module. None:
---  all that the kernel can trace
---@field notrace? string|string[] functions that are not recorded
---@field graph? string|string[] function_graph: only these and what they call
---@field graph_notrace? string|string[] function_graph: not these, nor what they call
---@field depth? integer function_graph: so many levels of calls, from 1 on
---@field tracer? "function"|"function_graph" default: function_graph when one of the three above
---  is given, else function
---@field args? boolean record the arguments: field args
---@field retval? boolean function_graph: record the return values: field retval
---@field retaddr? boolean function_graph: record where a function returns to: field retaddr

---@class tracefs.session
local functions = {}

local EINVAL <const> = 22

-- What a kernel option is called, by tracer.
local EXTRAS <const> = {
  ["function"] = { args = "func-args" },
  function_graph = {
    args = "funcgraph-args", retval = "funcgraph-retval", retaddr = "funcgraph-retaddr",
  },
}

local NEEDS <const> = {
  args = "CONFIG_FUNCTION_TRACE_ARGS, Linux 6.15",
  retval = "CONFIG_FUNCTION_GRAPH_RETVAL, Linux 6.5",
  retaddr = "CONFIG_FUNCTION_GRAPH_RETADDR, Linux 6.13",
}

local LISTS <const> = { "notrace", "graph", "graph_notrace" }
local BOOLEANS <const> = { "args", "retval", "retaddr" }

local function fail(message, ...)
  error(message:format(...), 0)
end

local function must(value, message)
  if not value then
    error(message, 0)
  end
  return value
end

-- ---------------------------------------------------------------------------
-- What is asked for
-- ---------------------------------------------------------------------------

local function check_pattern(pattern, what)
  if type(pattern) ~= "string" then
    fail('%s: names of functions are strings such as "vfs_*", not %s', what, type(pattern))
  end
  local function bad(why)
    fail("%s: bad name of a function %q: %s", what, pattern, why)
  end
  if pattern == "" then
    bad 'it is empty; "*" means all functions'
  elseif pattern:find "[%s%z]" then
    bad "it has a blank or a zero byte: each name is a string of its own"
  elseif pattern:find "^!" then
    bad "what is not to be recorded is given as notrace"
  end
  local name, modifier, module = pattern:match "^([^:]*):([^:]*):?(.*)$"
  if not name then
    if pattern:find "^%d+$" then
      bad "a number is no function"
    end
    return { text = pattern }
  elseif modifier ~= "mod" then
    bad "behind a colon only mod: and the name of a module can stand, as in \"*:mod:ext4\""
  elseif module == "" or module:find(":", 1, true) then
    bad "behind :mod: the name of one module is needed"
  end
  return { text = (name == "" and "*" or name) .. ":mod:" .. module, name = name, module = module }
end

local function check_list(list, what)
  if type(list) == "string" then
    list = { list }
  elseif type(list) ~= "table" then
    fail("functions: %s must be a name or a list of names, not %s", what, type(list))
  end
  local checked = {}
  for i = 1, #list do
    checked[i] = check_pattern(list[i], "functions: " .. what)
  end
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 or key > #list then
      fail("functions: %s must be a list of names; it has the key '%s'", what, tostring(key))
    end
  end
  if #checked == 0 then
    fail("functions: %s is an empty list, which would mean all functions", what)
  end
  return checked
end

local KNOWN <const> = {
  notrace = true, graph = true, graph_notrace = true, depth = true, tracer = true, args = true,
  retval = true, retaddr = true,
}

local function check(options)
  if type(options) ~= "table" then
    fail("functions{...}: a table is needed, not %s", type(options))
  end
  local wanted, filter = {}, {}
  for key, value in pairs(options) do
    if math.type(key) == "integer" then
      filter[key] = value
    elseif not KNOWN[key] then
      fail("functions: unknown option '%s'; there are: args, depth, graph, graph_notrace, notrace, "
        .. "retaddr, retval, tracer", tostring(key))
    end
  end
  wanted.filter = next(filter) ~= nil and check_list(filter, "the list") or nil
  for _, name in ipairs(LISTS) do
    wanted[name] = options[name] ~= nil and check_list(options[name], name) or nil
  end
  for _, name in ipairs(BOOLEANS) do
    if options[name] ~= nil and type(options[name]) ~= "boolean" then
      fail("functions: %s must be true or false, not %s", name, tostring(options[name]))
    end
    wanted[name] = options[name]
  end
  local depth = options.depth
  if depth ~= nil and (math.type(depth) ~= "integer" or depth < 1 or depth > 1000) then
    fail("functions: depth must be a whole number from 1 to 1000, not %s", tostring(depth))
  end
  wanted.depth = depth
  local of_graph = wanted.graph or wanted.graph_notrace or depth
  wanted.tracer = options.tracer
  if wanted.tracer == nil then
    wanted.tracer = (of_graph or wanted.retval or wanted.retaddr) and "function_graph"
      or "function"
  elseif not EXTRAS[wanted.tracer] then
    fail('functions: tracer must be "function" or "function_graph", not %s',
      tostring(options.tracer))
  end
  if wanted.tracer == "function" and of_graph then
    fail "functions: graph, graph_notrace and depth belong to the tracer function_graph"
  end
  for _, name in ipairs(BOOLEANS) do
    if wanted[name] and not EXTRAS[wanted.tracer][name] then
      fail("functions: %s belongs to the tracer function_graph", name)
    end
  end
  return wanted
end

-- ---------------------------------------------------------------------------
-- What the kernel has
-- ---------------------------------------------------------------------------

local function read(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

local function has_word(text, word)
  return (" " .. (text or ""):gsub("%s+", " ") .. " "):find(" " .. word .. " ", 1, true)
end

-- Returns whether it is one of the top level, which function_graph is before Linux 6.12.
local function check_tracer(self, tracer)
  local there = must(self.instance:read "available_tracers")
  local in_instance = has_word(there, tracer)
  if in_instance or has_word(read(self._dir .. "/available_tracers"), tracer) then
    if (read "/proc/sys/kernel/ftrace_enabled" or ""):find "^0" then
      fail("functions: the kernel's function tracing is switched off: "
        .. "sysctl kernel.ftrace_enabled=1 switches it on")
    elseif in_instance then
      return false
    elseif tracer == "function_graph" then
      return true
    end
    fail("functions: this kernel has the tracer %s at the top level only, which everybody shares, "
      .. "and not in instances; in an instance it has: %s", tracer, (there:gsub("%s+$", "")))
  end
  fail("functions: this kernel has no tracer %s (%s); it has: %s", tracer,
    tracer == "function" and "CONFIG_FUNCTION_TRACER" or "CONFIG_FUNCTION_GRAPH_TRACER",
    (there:gsub("%s+$", "")))
end

-- The functions that can be traced, and by module.
local function available(dir)
  local text = read(dir .. "/available_filter_functions")
  if not text then
    return nil
  end
  local all, of_module = {}, {}
  for name, module in text:gmatch "([^%s]+)[ \t]*%[?([^%]\n]*)%]?\n" do
    all[#all + 1] = name
    if module ~= "" then
      of_module[module] = of_module[module] or {}
      table.insert(of_module[module], name)
    end
  end
  return all, of_module
end

local function did_you_mean(found)
  return #found > 0 and (" Did you mean %s?"):format(table.concat(found, ", ")) or ""
end

local function no_such_function(dir, pattern)
  local all, of_module = available(dir)
  if not all then
    return nil
  end
  local list, where = all, dir .. "/available_filter_functions"
  local name = pattern.text
  if pattern.module then
    list, name = of_module[pattern.module] or {}, pattern.name
    where = "the module " .. pattern.module
  end
  return ("no function %q among the %d that can be traced in %s.%s Functions that the compiler "
    .. "has put into their callers are not there"):format(name, #list, where,
    did_you_mean(names_like.names(list, (name:gsub("[*?%[%]]+", "")))))
end

-- The kernel takes a module that is not there, for when it comes, and functions of one that it
-- does not have.
local function check_module(dir, pattern)
  local all, of_module = available(dir)
  if not all then
    return
  end
  local list = of_module[pattern.module]
  if not list then
    local loaded = {}
    for module in pairs(of_module) do
      loaded[#loaded + 1] = module
    end
    table.sort(loaded)
    fail('functions: no module %q with functions that can be traced.%s %d loaded modules have '
      .. "some (lsmod lists the loaded ones)", pattern.module,
      did_you_mean(names_like.names(loaded, pattern.module)), #loaded)
  end
  -- what is no glob here may be one for the kernel
  local matches = pattern.name ~= "" and glob.matcher(pattern.name)
  for _, name in ipairs(list) do
    if not matches or matches(name) then
      return
    end
  end
  error("functions: " .. no_such_function(dir, pattern), 0)
end

-- ---------------------------------------------------------------------------
-- Setting it
-- ---------------------------------------------------------------------------

local function write_list(self, file, list)
  local instance = self.instance
  if not instance:has(file) then
    fail("functions: this kernel has no %s in an instance: its functions cannot be chosen "
      .. "(CONFIG_DYNAMIC_FTRACE)", file)
  end
  for i, pattern in ipairs(list) do
    if pattern.module then
      check_module(self._dir, pattern)
    end
    local write = i == 1 and instance.write or instance.append
    local ok, message, errno = write(instance, file, pattern.text .. "\n")
    if not ok then
      local why = errno == EINVAL and no_such_function(self._dir, pattern)
      error("functions: " .. (why or message), 0)
    end
  end
end

local function write_top(self, file, list)
  for _, pattern in ipairs(list) do
    if pattern.module and file:find "graph" then
      fail("functions: %q: the kernel takes no :mod: in %s", pattern.text, file)
    elseif pattern.module then
      check_module(self._dir, pattern)
    end
  end
  local texts = {}
  for i, pattern in ipairs(list) do
    texts[i] = pattern.text .. "\n"
  end
  local ok, message, errno, failed = self._top:set(file, texts)
  if not ok then
    local why = errno == EINVAL and no_such_function(self._dir, list[failed])
    error("functions: " .. (why or message), 0)
  end
end

local function write_graph(self, wanted)
  if wanted.graph then
    write_top(self, "set_graph_function", wanted.graph)
  end
  if wanted.graph_notrace then
    write_top(self, "set_graph_notrace", wanted.graph_notrace)
  end
  if wanted.depth then
    local ok, message = self._top:set("max_graph_depth", { wanted.depth .. "\n" }, "0\n")
    must(ok, "functions: " .. tostring(message))
  end
end

-- The top level's settings of function_graph hold for every instance: somebody else's would
-- restrict this session, this one's would restrict somebody else.
local function set_graph(self, wanted)
  if not (wanted.graph or wanted.graph_notrace or wanted.depth) then
    must(toplevel.check_graph(self._dir, nil, "functions: "))
    return
  end
  must(toplevel.check_graph(self._dir, self.instance:name(), "functions: "))
  self._top = must(toplevel.take(self._dir, "functions: "))
  -- again, now that no other session can come between
  must(toplevel.check_graph(self._dir, self.instance:name(), "functions: "))
  write_graph(self, wanted)
  -- and who has begun meanwhile without changing anything
  must(toplevel.check_graph_user(self._dir, self.instance:name(), "functions: "))
end

-- Tasks: those of the instance's events, and not the one that reads the records.
local function set_tasks(self)
  local instance = self.instance
  local pids = {}
  for pid in (instance:read "set_event_pid" or ""):gmatch "%d+" do
    pids[#pids + 1] = pid
  end
  if #pids > 0 then
    if instance:has "options/function-fork" then
      must(instance:set_option("function-fork", instance:get_option "event-fork" == true))
    end
    must(instance:write("set_ftrace_pid", table.concat(pids, " ") .. "\n"))
  end
  local own = core.own_thread()
  if own and not self._own_events and instance:has "set_ftrace_notrace_pid" then
    must(instance:write("set_ftrace_notrace_pid", own .. "\n"))
  end
end

local function set_extras(wanted, set_option)
  for _, name in ipairs(BOOLEANS) do
    local option = EXTRAS[wanted.tracer][name]
    if wanted[name] and not set_option(option) then
      fail("functions: this kernel cannot record %s with the tracer %s (%s)", name,
        wanted.tracer, NEEDS[name])
    end
  end
end

-- The kernel changes no tracer while the files of the buffer are open.
local function set_tracer(self, name)
  self._stream:close_files()
  local ok, message = self.instance:write("current_tracer", name)
  must(self._stream:open_files())
  must(ok, "functions: " .. tostring(message))
end

local function set_all(self, wanted)
  if wanted.filter then
    write_list(self, "set_ftrace_filter", wanted.filter)
  end
  if wanted.notrace then
    write_list(self, "set_ftrace_notrace", wanted.notrace)
  end
  if wanted.tracer == "function_graph" then
    set_graph(self, wanted)
  end
  set_tasks(self)
  set_extras(wanted, function(option)
    return self.instance:has("options/" .. option) and must(self.instance:set_option(option, true))
  end)
  set_tracer(self, wanted.tracer)
  -- who has set something since the first look did not see that this one traces
  if wanted.tracer == "function_graph" and not self._top then
    must(toplevel.check_graph(self._dir, nil, "functions: "))
  end
end

-- The same at the top level, whose records come beside the instance's.
local function set_all_at_top(self, wanted)
  local topgraph = require "tracefs.topgraph"
  if self._record_to then
    fail("functions: this kernel has function_graph at the top level only, and a recording (%s) "
      .. "has the instance's records alone: choose one of the two", self._record_to.path)
  end
  local cpus = {}
  for cpu in pairs((must(self._stream:counts()))) do
    cpus[#cpus + 1] = cpu
  end
  self._top = topgraph.take(self._dir, cpus)
  if wanted.filter then
    write_top(self, "set_ftrace_filter", wanted.filter)
  end
  if wanted.notrace then
    write_top(self, "set_ftrace_notrace", wanted.notrace)
  end
  write_graph(self, wanted)
  set_tasks(self)
  topgraph.set_tasks(self._top, self.instance)
  set_extras(wanted, function(option)
    return topgraph.set_option(self._top, option)
  end)
  topgraph.start(self._top, self.instance, self._stream)
end

-- Takes back what set_all() has done before it was refused something.
local function undo(self)
  local instance = self.instance
  for _, file in ipairs { "set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid" } do
    instance:write(file, "")
  end
  for _, extras in pairs(EXTRAS) do
    for _, option in pairs(extras) do
      if instance:has("options/" .. option) then
        instance:set_option(option, false)
      end
    end
  end
  if not (instance:read "current_tracer" or ""):find "^nop" then
    pcall(set_tracer, self, "nop")
  end
  self:_release_top()
end

local function count_functions(text)
  local count = 0
  for line in (text or ""):gmatch "[^\n]+" do
    if not line:find "^#" then
      count = count + 1
    end
  end
  return count
end

local function set(self, options)
  self:_check_open(0)
  local wanted = check(options)
  if self._functions then
    fail("functions: a session has one set of functions, and this one has it already")
  elseif self._started then
    fail("functions: the session has started: the kernel forgets its records when a tracer is set")
  end
  local at_top = check_tracer(self, wanted.tracer)
  local ok, err = pcall(at_top and set_all_at_top or set_all, self, wanted)
  if not ok then
    undo(self)
    error(err, 0)
  end
  self._functions = wanted
  if not wanted.filter then
    return nil
  elseif at_top then
    return count_functions(read(self._dir .. "/set_ftrace_filter"))
  end
  return count_functions(self.instance:read "set_ftrace_filter")
end

--- Has the kernel record its own functions: as ftrace:function each call, or as
--- ftrace:funcgraph_entry and ftrace:funcgraph_exit its beginning and its end. Handlers are set
--- with on(). Once in a session, before it starts.
---@param options tracefs.session.functions
---@return integer? count of functions that are recorded; nil when the list is empty: all
function functions:functions(options)
  if type(self) ~= "table" or not self._check_open then
    error("functions is a method: it is called with a colon, session:functions{...}", 2)
  end
  local ok, result = pcall(set, self, options)
  if not ok then
    error(result, type(result) == "string" and 2 or 0)
  end
  return result
end

--- Has the top level record, or not, if the session uses it.
function functions:_switch_top(on)
  if self._top and self._top.is_traced then
    local ok, message = self._top:write("tracing_on", on and "1" or "0")
    must(ok or not on, "functions: " .. tostring(message))
  end
end

--- Gives back what the top level was asked for.
---@return true?
---@return string? message
function functions:_release_top()
  local top = self._top
  self._top = nil
  if top then
    return top:release()
  end
  return true
end

return functions
