--- What `record` and `start` have in common: which events, with what, into which buffer.
local event_patterns = require "tracefs.events"
local settings = require "tracefs.settings"
local values = require "tracefs.command.values"
local words = require "tracefs.command.words"
local toplevel = require "tracefs.toplevel"
local tracefs = require "tracefs"
local must = require("tracefs.raising").must

local capture = {}

local function kb(text)
  return values.kb(text, 1 << 40)
end

-- What is empty by mistake, as an unset variable is, must not mean everything.
local function not_empty(what)
  return function(text)
    return text ~= "" and text or nil, what .. " is empty"
  end
end

--- The options, with trace-cmd's letters.
---@type tracefs.command.option[]
capture.options = {
  { short = "-e", long = "--event", value = "EVENT", help = "Record these events: a pattern." },
  { short = "-f", long = "--filter", value = "FILTER", convert = not_empty "-f",
    help = "Only those that match; of the -e before it." },
  { short = "-R", long = "--trigger", value = "TRIGGER",
    help = "What the event sets off; of the -e before it." },
  { short = "-p", long = "--tracer", value = "TRACER", help = "Record with this tracer." },
  { short = "-g", long = "--graph", value = "FUNC",
    help = "function_graph: this function and what it calls." },
  { short = "-l", long = "--function", value = "FUNC",
    help = "function tracers: only these functions." },
  { short = "-b", long = "--buffer", value = "KB", convert = kb,
    help = "Size of the kernel's buffer for each CPU." },
  { short = "-C", long = "--clock", value = "CLOCK", convert = not_empty "-C",
    help = "Clock of the timestamps (mono)." },
  { short = "-P", long = "--pid", value = "PID", convert = values.pid,
    help = "Only this process, its threads and children." },
}

---@class tracefs.command.capture
---@field events { pattern: string, filter?: string, triggers: string[] }[]
---@field tracer? string
---@field graph string[]
---@field functions string[]
---@field buffer? integer KB
---@field clock? string
---@field pids integer[]

--- Puts the options that were given together. What is not known here goes to `other`.
---@param given tracefs.command.given[]
---@return tracefs.command.capture wanted
---@return table<string, any> other
function capture.gather(given)
  local wanted = { events = {}, graph = {}, functions = {}, pids = {} }
  local other, event = {}, nil
  for _, one in ipairs(given) do
    local name, value = one.name, one.value
    if name == "event" then
      event = { pattern = value, triggers = {} }
      table.insert(wanted.events, event)
    elseif name == "filter" or name == "trigger" then
      if not event then
        words.wrong("-%s needs an event before it: -e EVENT", name == "filter" and "f" or "R")
      elseif name == "trigger" then
        table.insert(event.triggers, value)
      elseif event.filter then
        words.wrong("%s has two filters: put both conditions into one", event.pattern)
      else
        event.filter = value
      end
    elseif name == "graph" then
      table.insert(wanted.graph, value)
    elseif name == "function" then
      table.insert(wanted.functions, value)
    elseif name == "pid" then
      table.insert(wanted.pids, value)
    elseif name == "tracer" or name == "buffer" or name == "clock" then
      wanted[name] = value
    else
      other[name] = value
    end
  end
  if #wanted.events == 0 and not wanted.tracer then
    words.wrong("nothing to record: give events (-e EVENT) or a tracer (-p TRACER)")
  elseif not wanted.tracer and (#wanted.graph > 0 or #wanted.functions > 0) then
    local of_graph = #wanted.graph > 0
    words.wrong("%s needs a tracer that records functions: -p %s", of_graph and "-g" or "-l",
      of_graph and "function_graph" or "function")
  end
  return wanted, other
end

-- trace-cmd's words for everything there is.
local function find_events(instance, pattern)
  return must(event_patterns.match(instance, pattern == "all" and "*:*" or pattern))
end

local function enable(instance, event)
  local found = find_events(instance, event.pattern)
  for _, one in ipairs(found) do
    if event.filter then
      must(instance:set_filter(one.system, one.name, event.filter))
    end
    for _, trigger in ipairs(event.triggers) do
      must(instance:set_trigger(one.system, one.name, trigger))
    end
  end
  -- everything at once takes the kernel one look at its code, event by event one for each
  if event.pattern == "all" or event.pattern == "*:*" then
    must(instance:write("events/enable", "1"))
    return
  end
  for _, one in ipairs(found) do
    -- ftrace's own, such as the markers' ftrace:print, come without it
    if instance:has(("events/%s/%s/enable"):format(one.system, one.name)) then
      must(instance:enable(one.system, one.name))
    end
  end
end

--- The functions of -g: the kernel has them once for everybody. Raises while others trace with
--- function_graph.
---@param instance tracefs.instance
---@param names string[]
---@return tracefs.toplevel? top puts them back
function capture.take_graph(instance, names)
  if #names == 0 then
    return nil
  end
  local dir = must(tracefs.tracing_dir())
  must(toplevel.check_graph(dir, instance:name(), "-g: "))
  local top = must(toplevel.take(dir, "-g: "))
  local texts = {}
  for i, name in ipairs(names) do
    texts[i] = name .. "\n"
  end
  local ok, message = toplevel.check_graph(dir, instance:name(), "-g: ")
  if ok then
    ok, message = top:set("set_graph_function", texts)
  end
  if not ok then
    top:release()
  end
  must(ok, message)
  return top
end

--- Sets an instance up as the options want it; nothing is recorded yet. Raises what the kernel
--- refuses.
---@param instance tracefs.instance
---@param wanted tracefs.command.capture
---@return tracefs.process[] watched the processes of -P
function capture.set_up(instance, wanted)
  settings.apply(instance, settings.check {
    clock = wanted.clock,
    buffer_kb = wanted.buffer,
  })
  for _, name in ipairs(wanted.functions) do
    must(instance:append("set_ftrace_filter", name))
  end
  local watched = {}
  if #wanted.pids > 0 then
    watched = require("tracefs.command.pids").restrict(instance, wanted.pids)
  end
  for _, event in ipairs(wanted.events) do
    enable(instance, event)
  end
  if wanted.tracer then
    must(instance:set_tracer(wanted.tracer))
  end
  return watched
end

return capture
