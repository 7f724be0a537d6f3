--- What this kernel and this user can do, and what is missing for the rest: found by looking and
--- trying, never by version numbers.
local core = require "tracefs.core"

local features = {}

local EPERM, EACCES, ENODEV <const> = 1, 13, 19

local function read(path)
  local file <close> = io.open(path)
  return file and file:read("a")
end

-- ---------------------------------------------------------------------------
-- How things are looked at. Each gives true, or false and what is missing, or false alone where
-- the kernel's option is.
-- ---------------------------------------------------------------------------

-- Can a file be opened? "r+" for those that are written; nothing is written by opening them so.
local function opens(path, mode)
  local file, _, errno = io.open(path, mode)
  if file then
    file:close()
    return true
  end
  local name = path:match("[^/]+$")
  if errno == EACCES then
    return false, ("permission denied on %s: run as root"):format(name)
  elseif errno == EPERM then
    return false, ("%s is not permitted, to root neither (lockdown, container)"):format(name)
  end
  return false
end

-- A control file at the top of tracefs.
local function top_file(name)
  return function(look)
    return opens(look.dir .. "/" .. name, "r+")
  end
end

-- A file that only tells something.
local function top_text(name)
  return function(look)
    return opens(look.dir .. "/" .. name, "r")
  end
end

-- A control file of an instance; without one nothing can be said.
local function own_file(name)
  return function(look)
    if not look.instance then
      return false, look.problem
    end
    return opens(look.instance:dir() .. "/" .. name, "r+")
  end
end

-- The kernel's own description of its syntax.
local function described(pattern, file)
  return function(look)
    if not look.readme:find(pattern) then
      return false
    end
    return not file or opens(look.dir .. "/" .. file, "r+")
  end
end

local function trigger(command)
  return function(look)
    if not look.instance then
      return false, look.problem
    end
    return look.commands[command] == true
  end
end

-- What the README describes of histograms is not always what the kernel takes: it is tried.
local function histogram(text)
  return function(look)
    if not look.commands.hist then
      return false, look.problem
    end
    local set = look.instance:set_trigger("sched", "sched_switch", "hist:keys=" .. text)
    look.instance:clear_triggers("sched", "sched_switch")
    return set == true
  end
end

local function words(text)
  local set = {}
  for word in (text or ""):gmatch("%S+") do
    set[word] = true
  end
  return set
end

local function tracer(name, in_instance)
  return function(look)
    if in_instance then
      return look.instance ~= nil and words(look.instance:read("available_tracers"))[name] == true,
        not look.instance and look.problem or nil
    end
    return words(read(look.dir .. "/available_tracers"))[name] == true
  end
end

-- The README names event probes whether there are any or not. One on an event that is not there
-- makes nothing, and only a kernel that has them sees that the event is missing.
local function event_probes(look)
  local path = look.dir .. "/dynamic_events"
  local file <close> = io.open(path, "r+")
  if not file then
    return opens(path, "r+")
  end
  file:setvbuf("no")
  local done, _, errno = file:write("e:luatrace_look/nothing luatrace_nosuch.luatrace_nosuch")
  return not done and errno == ENODEV
end

-- The file of one CPU says what it can do.
local function cpu_snapshot(look)
  local ok, file = opens(look.own .. "/snapshot", "r")
  if not ok then
    return false, file
  end
  local text = look.cpu and read(("%s/per_cpu/cpu%d/snapshot"):format(look.own, look.cpu))
  return text ~= nil and not text:find("Must use main snapshot file", 1, true)
end

-- The first ones may be offsets of data of each CPU, from 0 on; code is nowhere near.
local function kernel_symbols()
  local file <close> = io.open("/proc/kallsyms")
  local line, address = file and file:read("l"), nil
  while line and not address do
    address = line:match("^(%x+) [tT] ")
    line = file:read("l")
  end
  return address ~= nil and address:find("[^0]") ~= nil,
    address and "addresses are hidden from this user: run as root, or see kptr_restrict"
end

local function functions_on()
  local text = read("/proc/sys/kernel/ftrace_enabled")
  return text ~= nil and tonumber(text) ~= 0,
    text and "is turned off: sysctl kernel.ftrace_enabled=1" or nil
end

-- ---------------------------------------------------------------------------
-- The list
-- ---------------------------------------------------------------------------

---@class tracefs.feature
---@field id string the name in tracefs.features()
---@field name string for people
---@field present boolean
---@field without? string what is missing

-- What it is called, how it is looked for, and the kernel's option that it needs.
local LIST <const> = {
  { "kprobe", "kprobe events", top_file "kprobe_events", "CONFIG_KPROBE_EVENTS" },
  { "uprobe", "uprobe events", top_file "uprobe_events", "CONFIG_UPROBE_EVENTS" },
  { "fprobe", "fprobe events", described("\n%s*f%[", "dynamic_events"),
    "CONFIG_FPROBE_EVENTS, Linux 6.5" },
  { "tprobe", "tracepoint probes", described("\n%s*t%[", "dynamic_events"),
    "CONFIG_FPROBE_EVENTS, Linux 6.5" },
  { "eprobe", "event probes", event_probes, "CONFIG_PROBE_EVENTS with CONFIG_EPROBE_EVENTS, "
    .. "Linux 5.15" },
  { "dynamic_events", "dynamic events", top_file "dynamic_events", "CONFIG_DYNAMIC_EVENTS" },
  { "btf_args", "probe arguments by name", described("<argname>", "dynamic_events"),
    "CONFIG_PROBE_EVENTS_BTF_ARGS, Linux 6.5" },
  { "user_strings", "user memory's strings in probes", described("ustring", "dynamic_events"),
    "Linux 5.2" },
  { "symbol_strings", "symbols as strings in probes", described("symstr", "dynamic_events"),
    "Linux 6.2" },
  { "synthetic", "synthetic events", top_file "synthetic_events", "CONFIG_SYNTH_EVENTS" },
  { "hist", "hist triggers", trigger "hist", "CONFIG_HIST_TRIGGERS" },
  { "hist_buckets", "hist keys with .buckets", histogram "next_pid.buckets=10",
    "hist triggers, Linux 5.14" },
  { "hist_stacktrace", "hist keys of stacks by name", histogram "common_stacktrace",
    "hist triggers, Linux 6.3" },
  { "hist_nohitcount", "hist option nohitcount", histogram "next_pid:vals=prev_pid:nohitcount",
    "hist triggers, Linux 6.3" },
  { "hist_percent", "hist values with .percent", histogram "next_pid:vals=hitcount.percent",
    "hist triggers, Linux 6.3" },
  { "user_events", "user events", top_text "user_events_status",
    "CONFIG_USER_EVENTS, Linux 6.4" },
  { "snapshot", "snapshot", own_file "snapshot", "CONFIG_TRACER_SNAPSHOT" },
  { "snapshot_cpu", "snapshot of one CPU", cpu_snapshot,
    "CONFIG_TRACER_SNAPSHOT_PER_CPU_SWAP" },
  { "trigger_traceoff", "trigger traceoff", trigger "traceoff", "CONFIG_TRACING" },
  { "trigger_snapshot", "trigger snapshot", trigger "snapshot", "CONFIG_TRACER_SNAPSHOT" },
  { "trigger_stacktrace", "trigger stacktrace", trigger "stacktrace", "CONFIG_STACKTRACE" },
  { "trigger_enable_event", "trigger enable_event", trigger "enable_event",
    "CONFIG_TRACING" },
  { "function_tracer", "function tracer", tracer("function", true),
    "CONFIG_FUNCTION_TRACER" },
  { "graph_tracer", "function_graph tracer", tracer("function_graph", false),
    "CONFIG_FUNCTION_GRAPH_TRACER" },
  { "graph_tracer_instance", "function_graph in instances", tracer("function_graph", true),
    "CONFIG_FUNCTION_GRAPH_TRACER, Linux 6.12" },
  { "function_filter", "function filter", own_file "set_ftrace_filter", "CONFIG_DYNAMIC_FTRACE" },
  { "function_pid", "function pid filter", own_file "set_ftrace_pid", "CONFIG_FUNCTION_TRACER" },
  { "function_notrace_pid", "function pid filter: not these",
    own_file "set_ftrace_notrace_pid", "CONFIG_FUNCTION_TRACER, Linux 5.8" },
  { "function_fork", "follows children (function-fork)",
    own_file "options/function-fork", "CONFIG_FUNCTION_TRACER, Linux 4.18" },
  { "functions_on", "ftrace_enabled", functions_on,
    "CONFIG_FUNCTION_TRACER" },
  { "syscalls", "syscall events", top_text "events/syscalls/enable", "CONFIG_FTRACE_SYSCALLS" },
  { "event_pid", "pid filter", own_file "set_event_pid", "Linux 4.4" },
  { "event_notrace_pid", "pid filter: not these", own_file "set_event_notrace_pid",
    "Linux 5.8" },
  { "event_fork", "follows children (event-fork)", own_file "options/event-fork", "Linux 4.7" },
  { "cpumask", "choice of CPUs", own_file "tracing_cpumask", "CONFIG_TRACING" },
  { "subbuf", "larger sub-buffers", own_file "buffer_subbuf_size_kb", "Linux 6.8" },
  { "error_log", "error_log", own_file "error_log", "Linux 5.2" },
  { "raw_markers", "raw markers", own_file "trace_marker_raw", "Linux 4.10" },
  { "ksym", "names of kernel symbols", kernel_symbols, "CONFIG_KALLSYMS" },
  { "btf", "types of the kernel (BTF)", function()
    return opens("/sys/kernel/btf/vmlinux", "r")
  end, "CONFIG_DEBUG_INFO_BTF" },
}

local function set_of(list)
  local set = {}
  for _, word in ipairs(list or {}) do
    set[word] = true
  end
  return set
end

local function first_cpu(instance)
  local first
  for cpu in pairs(instance and instance:stats() or {}) do
    first = math.min(cpu, first or cpu)
  end
  return first
end

--- Looks at everything, in an instance that is there for the moment only.
---@param dir? string the tracing directory
---@param problem? string why there is none
---@return tracefs.feature[] list
function features.list(dir, problem)
  local instance
  if dir then
    instance, problem = core.instance_create(dir)
  end
  local guard <close> = instance
  local look = {
    dir = dir,
    instance = instance,
    own = instance and instance:dir() or dir,
    problem = problem,
    readme = dir and read(dir .. "/README") or "",
    commands = set_of(guard and instance:trigger_commands()),
    cpu = first_cpu(instance),
  }
  local list = {}
  for i, entry in ipairs(LIST) do
    local id, name, probe, option = table.unpack(entry)
    local present, why = false, problem
    if dir then
      present, why = probe(look)
      if not present and not why then
        -- who cannot read tracefs cannot tell what the kernel lacks
        why = not instance and problem or "needs " .. option
      end
    end
    list[i] = { id = id, name = name, present = present, without = not present and why or nil }
  end
  return list
end

--- What this kernel and this user can do, by name, and what is missing for what they cannot.
---@param tracefs tracefs
---@return table<string, boolean> has a name that there is not raises
---@return table<string, string> missing the kernel's option, the mount, or the permission
function features.find(tracefs)
  local list = features.list(tracefs.tracing_dir())
  local has, missing, names = {}, {}, {}
  for i, feature in ipairs(list) do
    has[feature.id] = feature.present
    missing[feature.id] = feature.without
    names[i] = feature.id
  end
  setmetatable(has, {
    __index = function(_, name)
      error(("no feature '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")), 2)
    end,
  })
  return has, missing
end

return features
