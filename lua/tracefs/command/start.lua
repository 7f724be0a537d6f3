--- luatrace start: a capture that goes on while nobody is attached.
local capture = require "tracefs.command.capture"
local core = require "tracefs.core"
local report = require "tracefs.command.report"
local standing = require "tracefs.command.standing"
local tracefs = require "tracefs"
local words = require "tracefs.command.words"
local must = require("tracefs.raising").must

local start = {}

local OPTIONS = {}
for _, option in ipairs(capture.options) do
  -- the functions of -g hold for the whole kernel: they cannot stay
  if option.long ~= "--graph" then
    OPTIONS[#OPTIONS + 1] = option
  end
end
table.move({
  standing.option,
  { long = "--force", help = "Go on also with an instance that luatrace start did not make." },
  { short = "-q", long = "--quiet", help = "No notes on standard error; warnings stay." },
}, 1, 3, #OPTIONS + 1, OPTIONS)

function start.help()
  return [==[
Usage: luatrace start [-e EVENT [-f FILTER] [-R TRIGGER]]... [-p TRACER] [OPTIONS]

Begins a capture that goes on when this command has ended, in buffers of its own. When they are
full the oldest events make room for new ones. luatrace stat shows how it stands, stop pauses it,
extract writes what it has caught into a trace file, reset ends it. Under the same name it is
continued after a stop when nothing else is asked for.

Options:
]==] .. words.help(OPTIONS)
end

local function create(name)
  local dir = must(tracefs.tracing_dir())
  tracefs.remove_stale()
  local instance, message, code = core.instance_create(dir, name)
  if not instance and code == 17 then
    message = ("a capture of the name %s is there already: see luatrace stat%s, end it with"
      .. " luatrace reset%s, or choose another name with -B"):format(name, standing.words(name),
      standing.words(name))
  end
  return must(instance, message)
end

-- Goes on with a capture that was stopped.
local function continue(name, force)
  return standing.run(name, function(instance)
    standing.check(instance, force, "goes on with")
    must(instance:trace_on())
    report.note(("capture %s goes on"):format(name))
  end)
end

---@param list string[]
---@return integer status
function start.run(list)
  local given, plain = words.split(OPTIONS, list)
  if not given then
    words.wrong("%s", plain)
  elseif plain[1] then
    words.wrong("'%s' is no option; a command to run goes with luatrace record", plain[1])
  end
  local name, only_name, force = standing.default, true, false
  for _, one in ipairs(given) do
    report.quiet = report.quiet or one.name == "quiet"
    force = force or one.name == "force"
    only_name = only_name and (one.name == "quiet" or one.name == "name" or one.name == "force")
    name = one.name == "name" and one.value or name
  end
  if only_name then
    local dir = tracefs.tracing_dir()
    local found = dir and core.instance_open(dir, name)
    if found then
      found:close()
      return continue(name, force)
    end
  end
  local wanted = capture.gather(given)
  local instance
  local ok, message = pcall(function()
    instance = create(name)
    for _, process in ipairs(capture.set_up(instance, wanted)) do
      process:close()
    end
    must(instance:trace_on())
    local marked, problem = instance:keep()
    if not marked then
      report.warning(("%s; stop, extract and reset need --force"):format(problem))
    end
  end)
  if instance then
    instance:close()
  end
  if not ok then
    report.failure(tostring(message))
    return 1
  end
  report.note(("capture %s has begun; luatrace extract%s writes it into a file"):format(name,
    standing.words(name)))
  return 0
end

return start
