--- Captures that stay between the commands: an instance of a name that start, stop, stat, extract
--- and reset agree on.
local core = require "tracefs.core"
local tracefs = require "tracefs"
local must = require("tracefs.raising").must

local standing = {}

--- The option that names it, with trace-cmd's letter.
---@type tracefs.command.option
standing.option = { short = "-B", long = "--name", value = "NAME",
  help = "Of the capture (luatrace), where there is more than one." }

--- The option that lets it be an instance that start did not make.
---@type tracefs.command.option
standing.force = { long = "--force", help = "Also an instance that luatrace start did not make." }

standing.default = "luatrace"

--- The words that name it in another command.
---@param name string
---@return string
function standing.words(name)
  return name == standing.default and "" or " -B " .. name
end

--- Opens the instance of a capture. Raises when nothing was started.
---@param name? string
---@return tracefs.instance
function standing.open(name)
  name = name or standing.default
  local dir = must(tracefs.tracing_dir())
  local instance, message, code = core.instance_open(dir, name)
  if not instance then
    if code == 2 then
      message = ("nothing was started under the name %s: begin with luatrace start%s"):format(name,
        standing.words(name))
    end
    error(message, 0)
  end
  return instance
end

--- Raises unless start made the instance: another program's is changed only when that is meant.
---@param instance tracefs.instance
---@param force? boolean that is meant
---@param done string what --force does to it
function standing.check(instance, force, done)
  if not force and not instance:is_kept() then
    error(("%s is not of luatrace start: another program may need it; --force %s it"):format(
      instance:dir(), done), 0)
  end
end

--- What all of them do around their work: its errors are said, and what it opened is closed.
---@param name? string
---@param work fun(instance: tracefs.instance): integer?
---@return integer status
function standing.run(name, work)
  local report = require "tracefs.command.report"
  local instance
  local ok, result = pcall(function()
    instance = standing.open(name)
    return work(instance)
  end)
  local closed, message = true, nil
  if instance then
    closed, message = instance:close()
  end
  if not ok or not closed then
    report.failure(tostring(not ok and result or message))
    return 1
  end
  return result or 0
end

return standing
