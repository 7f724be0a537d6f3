---@meta

--- Waiting for descriptors.

---@class tracefs.core
local core = {}

--- Waits until one of the descriptors can be read or has ended. A signal ends the wait early.
---@param fds integer[]
---@param seconds? number no limit without it
---@return integer[]? ready in the order of fds, empty when the time is over
---@return string? message
---@return integer? errno
function core.poll(fds, seconds) end

--- Is it a terminal?
---@param file integer|file* a descriptor or an open file
---@return boolean
function core.isatty(file) end

--- Standard input, output and error that are closed become descriptors that cannot be used, so
--- that no file which is opened later gets their numbers.
---@return integer count of those that were closed
function core.hold_standard_fds() end

--- A descriptor that becomes readable when a time has passed.
---@param seconds number
---@param again? boolean not once, but every so often
---@return tracefs.timer?
---@return string? message
---@return integer? errno
function core.timer(seconds, again) end

---@class tracefs.timer
local timer = {}

---@return integer
function timer:fileno() end

--- How often the time has passed since the last look. The descriptor is not readable then.
---@return integer
function timer:expired() end

--- May be called again.
function timer:close() end
