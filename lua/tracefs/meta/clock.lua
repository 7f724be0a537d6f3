---@meta

--- Trace clocks.

---@class tracefs.core
local core = {}

--- A clock's reading.
---@param clock? "mono"|"boot"|"mono_raw"|"tai" default "mono"
---@return integer? ns
---@return string? message
function core.now(clock) end

--- What is known of a trace clock.
---@param name string
---@return boolean in_ns its timestamps count nanoseconds
---@return boolean readable core.now can read it
function core.clock_info(name) end
