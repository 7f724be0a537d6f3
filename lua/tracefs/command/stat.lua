--- luatrace stat: how a capture stands.
local output = require "tracefs.output"
local standing = require "tracefs.command.standing"
local words = require "tracefs.command.words"
local must = require("tracefs.raising").must

local stat = {}

local FORMATS <const> = { text = true, json = true }

local OPTIONS <const> = {
  standing.option,
  { long = "--format", value = "text|json", help = "How it is printed (text).",
    convert = function(text)
      return FORMATS[text] and text or nil, ("text or json, not '%s'"):format(text)
    end },
}

function stat.help()
  return [[
Usage: luatrace stat [-B NAME]

Shows what a capture records, how full its buffers are, and what was lost until now: also while it
goes on.

Options:
]] .. words.help(OPTIONS)
end

local function events_of(instance)
  local list = setmetatable({}, { __jsontype = "array" })
  for label in must(instance:read "set_event"):gmatch "[^\n]+" do
    list[#list + 1] = label
  end
  return list
end

local function look(instance)
  local cpus, order = must(instance:stats()), {}
  for cpu in pairs(cpus) do
    order[#order + 1] = cpu
  end
  table.sort(order)
  local per_cpu, lost = {}, 0
  for i, cpu in ipairs(order) do
    local counts = cpus[cpu]
    local gone = counts.overrun + counts.dropped + counts.commit_overrun
    lost = lost + gone
    per_cpu[i] = { cpu = cpu, in_buffer = counts.entries, read = counts.read, lost = gone,
      bytes = counts.bytes }
  end
  return {
    name = instance:name(),
    recording = must(instance:trace_is_on()),
    tracer = must(instance:read "current_tracer"):match "%S+",
    clock = must(instance:get_clock()),
    buffer_kb = must(instance:get_buffer_kb()),
    events = events_of(instance),
    cpus = per_cpu,
    lost = lost,
  }
end

-- A whole kernel's events fill the screen: their number will do.
local SHOWN <const> = 20

local function text(state)
  local names = ""
  if #state.events > 0 and #state.events <= SHOWN then
    names = ": " .. table.concat(state.events, " ")
  end
  local lines = {
    ("capture %s: %s, tracer %s, clock %s, %d KB for each CPU"):format(state.name,
      state.recording and "recording" or "stopped", state.tracer, state.clock, state.buffer_kb),
    ("%d event%s on%s"):format(#state.events, #state.events == 1 and "" or "s", names),
    ("%4s %12s %12s %12s %12s"):format("CPU", "in buffer", "extracted", "lost", "bytes"),
  }
  for _, one in ipairs(state.cpus) do
    lines[#lines + 1] = ("%4d %12d %12d %12d %12d"):format(one.cpu, one.in_buffer, one.read,
      one.lost, one.bytes)
  end
  return table.concat(lines, "\n") .. "\n"
end

---@param list string[]
---@return integer status
function stat.run(list)
  local options = words.parse_options(OPTIONS, list)
  return standing.run(options.name, function(instance)
    local out = must(output.open { format = options.format or "text" })
    local state = look(instance)
    if options.format == "json" then
      out:show(state)
    else
      out:write(text(state))
    end
    local failure = out:close()
    if failure then
      error(tostring(failure), 0)
    end
  end)
end

return stat
