--- luatrace reset: ends a capture and removes what it left.
local standing = require "tracefs.command.standing"
local words = require "tracefs.command.words"

local reset = {}

local OPTIONS <const> = {
  standing.option,
  standing.force,
}

function reset.help()
  return [[
Usage: luatrace reset [-B NAME] [--force]

Ends a capture and removes its buffers, with what is in them.

Options:
]] .. words.help(OPTIONS)
end

---@param list string[]
---@return integer status
function reset.run(list)
  local options = words.parse_options(OPTIONS, list)
  return standing.run(options.name, function(instance)
    standing.check(instance, options.force, "removes")
    instance:adopt()
  end)
end

return reset
