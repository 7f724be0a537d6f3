--- The tracer function_graph at the top level, on kernels that have it only there: taken when
--- nobody uses the top level, set up as the session's instance is, and read beside it. What is
--- changed goes through tracefs.toplevel, which puts it back.
local must = require("tracefs.raising").must
local read = require("tracefs.core").read_file
local toplevel = require "tracefs.toplevel"

local topgraph = {}

local EBUSY <const> = 16

-- Lists that must be empty: the kernel has them once, and what is in them would restrict what the
-- session records.
local LISTS <const> = {
  "set_graph_function", "set_graph_notrace", "set_ftrace_filter", "set_ftrace_notrace",
  "set_ftrace_pid", "set_ftrace_notrace_pid",
}

local NUMBERS <const> = { "max_graph_depth", "function_profile_enabled" }

-- How the instance's buffer is, the top level's is to be too. The clock and the sizes clear it.
local ALIKE <const> = {
  "trace_clock", "tracing_cpumask", "options/overwrite", "buffer_subbuf_size_kb", "buffer_size_kb",
  "buffer_percent",
}

-- What the tracer leaves out while one of these is off.
local OPTIONS <const> = { "funcgraph-irqs", "sleep-time" }

local EVENTS <const> = { "funcgraph_entry", "fgraph_retaddr_entry", "funcgraph_exit" }

-- What a file is set to, as it is written: "[mono]" is chosen among the clocks, and a size that
-- the buffer has not got yet is the one that it gets with its first use. nil: no one value.
local function setting(text)
  return text and (text:match "%[(%S+)%]" or text:match "expanded: (%d+)" or text:match "^%x[%x,]*")
end

local function first_of(text, pattern)
  local first, rest = nil, -1
  for word in (text or ""):gmatch(pattern) do
    first = first or word
    rest = rest + 1
  end
  return first and first .. (rest > 0 and (" and %d more"):format(rest) or "")
end

local function without_comments(text)
  return (("\n" .. (text or "")):gsub("\n#[^\n]*", "\n"))
end

-- The first event that is on for a trigger, its first one, and where that is.
local function trigger_of(dir, events)
  for system, event in events:gmatch "([^:\n]+):([^\n]+)" do
    local path = ("events/%s/%s/trigger"):format(system, event)
    local trigger = first_of(without_comments(read(dir .. "/" .. path)), "[^\n]+")
    if trigger then
      return ("%s:%s has the trigger %s"):format(system, event, trigger), path
    end
  end
end

-- A snapshot goes when a tracer is set. What it holds may be long: the beginning tells.
local function has_snapshot(dir)
  local file <close> = io.open(dir .. "/snapshot")
  local text = file and file:read(4096)
  return text and not text:find("Snapshot is freed", 1, true)
end

-- What somebody does at the top level, and how it is ended.
local function use_of(dir, cpus)
  local tracer = (read(dir .. "/current_tracer") or "nop"):match "%S+"
  if tracer ~= "nop" then
    return "current_tracer is " .. tracer, "echo nop > %s/current_tracer"
  end
  local events = read(dir .. "/set_event") or ""
  local trigger, path = trigger_of(dir, events)
  if trigger then
    return trigger, "write it with a ! before it to %s/" .. path
  end
  local event = first_of(events, "[^\n]+")
  if event then
    return ("its events are on: %s"):format(event), "echo > %s/set_event"
  end
  for _, file in ipairs(LISTS) do
    local name = first_of(without_comments(read(dir .. "/" .. file)), "[^\n]+")
    if name and name ~= "no pid" then
      return ("%s is set to %s"):format(file, name), "echo > %s/" .. file
    end
  end
  for _, file in ipairs(NUMBERS) do
    local number = (read(dir .. "/" .. file) or "0"):match "%d+"
    if number and number ~= "0" then
      return ("%s is %s"):format(file, number), "echo 0 > %s/" .. file
    end
  end
  local records = 0
  for _, cpu in ipairs(cpus) do
    local stats = read(("%s/per_cpu/cpu%d/stats"):format(dir, cpu)) or ""
    records = records + (tonumber(stats:match "entries: (%d+)") or 0)
  end
  if records > 0 then
    return ("its buffer holds %d record%s"):format(records, records == 1 and "" or "s"),
      "to clear it: echo > %s/trace"
  elseif has_snapshot(dir) then
    return "it has a snapshot", "echo 0 > %s/snapshot"
  end
end

--- May a session take the top level for function_graph?
---@param dir string tracing directory
---@param cpus integer[]
---@return true?
---@return string? message
function topgraph.check(dir, cpus)
  local use, ending = use_of(dir, cpus)
  if use then
    return nil, ("functions: this kernel has function_graph at the top level only, and somebody "
      .. "uses that: %s%s. End that first: %s"):format(use, toplevel.holder(), ending:format(dir))
  end
  return true
end

--- Takes the top level, with its recording off. Raises when somebody uses it.
---@param dir string tracing directory
---@param cpus integer[]
---@return tracefs.toplevel
function topgraph.take(dir, cpus)
  must(topgraph.check(dir, cpus))
  local top = must(toplevel.take(dir, "functions: "))
  -- again, now that no other session can come between
  local ok, message = topgraph.check(dir, cpus)
  if ok then
    ok, message = top:set("tracing_on", { "0" }, setting(read(dir .. "/tracing_on")))
  end
  -- what is recorded is not left behind
  if ok then
    ok, message = top:set("trace", {})
  end
  if not ok then
    top:release()
    error(message, 0)
  end
  return top
end

local function set(top, file, value, back)
  local ok, message = top:set(file, { value .. "\n" }, back)
  must(ok, "functions: " .. tostring(message))
end

--- Records the functions of the same tasks there as in the instance.
---@param top tracefs.toplevel
---@param instance tracefs.instance
function topgraph.set_tasks(top, instance)
  local fork = instance:has "options/function-fork" and instance:read "options/function-fork"
  local was = read(top.dir .. "/options/function-fork")
  if fork and was and setting(fork) ~= setting(was) then
    set(top, "options/function-fork", setting(fork), setting(was))
  end
  for _, file in ipairs { "set_ftrace_pid", "set_ftrace_notrace_pid" } do
    local pids = {}
    for pid in (instance:has(file) and instance:read(file) or ""):gmatch "%d+" do
      pids[#pids + 1] = pid
    end
    if #pids > 0 then
      set(top, file, table.concat(pids, " "))
    end
  end
end

--- Turns one of the tracer's options on. False where there is none of the name.
---@param top tracefs.toplevel
---@param option string
---@return boolean
function topgraph.set_option(top, option)
  local was = setting(read(("%s/options/%s"):format(top.dir, option)))
  if was == "0" then
    set(top, "options/" .. option, "1", "0")
  end
  return was ~= nil
end

local function set_tracer(top)
  for _, option in ipairs(OPTIONS) do
    topgraph.set_option(top, option)
  end
  local ok, message, errno = top:set("current_tracer", { "function_graph\n" }, "nop")
  if not ok and errno == EBUSY then
    message = ("this kernel has function_graph at the top level only, and somebody reads that: %s/"
      .. "trace_pipe, or the raw file of a CPU, is open. End that first"):format(top.dir)
  end
  must(ok, "functions: " .. tostring(message))
end

--- Sets the tracer, makes the buffer as the instance's is, and has the stream read it.
---@param top tracefs.toplevel
---@param instance tracefs.instance
---@param stream tracefs.stream
function topgraph.start(top, instance, stream)
  set_tracer(top)
  for _, file in ipairs(ALIKE) do
    local value = instance:has(file) and setting(instance:read(file))
    local was = setting(read(top.dir .. "/" .. file))
    if value and was and value ~= was then
      set(top, file, value, was)
    end
  end
  local ids = {}
  for _, name in ipairs(EVENTS) do
    local format = read(("%s/events/ftrace/%s/format"):format(top.dir, name))
    ids[#ids + 1] = format and math.tointeger(tonumber(format:match "\nID:%s*(%d+)"))
  end
  must(stream:add_top(ids))
  top.is_traced = true
end

return topgraph
