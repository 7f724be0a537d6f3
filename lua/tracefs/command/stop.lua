--- luatrace stop: pauses a capture.
local standing = require "tracefs.command.standing"
local words = require "tracefs.command.words"

local stop = {}

local OPTIONS <const> = { standing.option, standing.force }

function stop.help()
  return [[
Usage: luatrace stop [-B NAME] [--force]

Pauses a capture: what it has caught stays. luatrace start with the same name goes on with it.

Options:
]] .. words.help(OPTIONS)
end

---@param list string[]
---@return integer status
function stop.run(list)
  local options = words.parse_options(OPTIONS, list)
  return standing.run(options.name, function(instance)
    standing.check(instance, options.force, "pauses")
    local ok, message = instance:trace_off()
    if not ok then
      error(message, 0)
    end
  end)
end

return stop
