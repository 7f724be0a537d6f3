--- A line on standard error that says how far reading a file is: on a terminal only.
local core = require "tracefs.core"
local escape = require "tracefs.escape"

local progress = {}
progress.__index = progress

-- What is done sooner needs no line, and nobody reads faster.
local PERIOD <const> = 200000000

---@class tracefs.command.progress
---@field what string before the name: what is being done
---@field is_on boolean
---@field is_shown boolean
---@field shown_at integer

---@param what string what is being done with the file; "" for reading it
---@param quiet? boolean
---@return tracefs.command.progress
function progress.new(what, quiet)
  return setmetatable({
    what = what,
    is_on = not quiet and core.isatty(io.stderr),
    is_shown = false,
    shown_at = core.now "mono",
  }, progress)
end

---@param path string
---@param done integer
---@param all integer
function progress:show(path, done, all)
  local now = core.now "mono"
  if not self.is_on or now - self.shown_at < PERIOD then
    return
  end
  io.stderr:write(("\r%s%s: %3d %%\27[K"):format(self.what, escape.text(path),
    all > 0 and math.min(100, 100 * done // all) or 100))
  self.is_shown = true
  self.shown_at = now
end

--- Takes the line away.
function progress:clear()
  if self.is_shown then
    io.stderr:write("\r\27[K")
    self.is_shown = false
  end
end

return progress
