--- --user: the script runs as an ordinary user.
local core = require "tracefs.core"
local report = require "tracefs.command.report"

local rights = {}

-- What is loaded when it is first needed may lie where only root reads.
local NEEDED_LATER <const> = {
  "tracefs.features", "tracefs.filter", "tracefs.json", "tracefs.machine", "tracefs.record_json",
  "tracefs.snapshot",
}

-- Methods that need files which all of the machine shares.
local REFUSED <const> = { "functions", "kernel_latency", "record", "synthetic" }

--- The user of the option. Raises when there is none, or it is root.
---@param name string
---@return tracefs.user
function rights.find(name)
  local user, message = core.user(name)
  if not user then
    error("--user: " .. message, 0)
  end
  return user
end

--- Becomes the user. Raises when that is not possible: no script may run then.
---@param user tracefs.user
---@param session tracefs.session made with root's rights
---@param options tracefs.command.options
---@param out tracefs.output
function rights.drop(user, session, options, out)
  for _, name in ipairs(NEEDED_LATER) do
    require(name)
  end
  core.close_inherited(out.file)
  local ok, message = core.drop_rights(user, not options.input and session.instance or nil)
  if not ok then
    error("--user: " .. message, 0)
  end
  for _, name in ipairs(not options.input and REFUSED or {}) do
    session[name] = function()
      error(("%s: not after --user %s: it needs root's rights, which have been given up"):format(
        name, core.dropped_rights()), 2)
    end
  end
  report.detail(("rights are those of %s"):format(core.dropped_rights()))
end

return rights
