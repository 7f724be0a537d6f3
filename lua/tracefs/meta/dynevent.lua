---@meta

--- Dynamic events that one owner has made: probes of all kinds, synthetic events. They belong to
--- the whole tracer, not to an instance, and are removed when this is closed, collected, or by the
--- next run when the process was killed: their names say whose they are. What is turned on cannot
--- be removed, so the instance is closed first. A session has one of these.
---@class tracefs.dynevents
local dynevents = {}

--- A name that nobody has, such as "luatrace_1234_567890_1": for a group, or, where the kernel
--- gives the group, for the beginning of an event's name ("..._latency").
---@return string
function dynevents:name() end

--- Writes a command that makes an event to dynamic_events. Its group or event must carry a name().
--- When the kernel refuses it, the message has its reason and the line that shows the place.
---@param command string such as "p:luatrace_1234_567890_1/open do_sys_openat2"
---@return true?
---@return string? message
---@return integer? errno
function dynevents:add(command) end

--- What was added, as it was written.
---@return string[]
function dynevents:commands() end

--- Removes the one that was added last. What its instances have recorded goes too if it was on.
---@return true?
---@return string? message
---@return integer? errno
function dynevents:drop() end

--- Removes them, the last one first. Fails with EBUSY, and says where it is turned on; then it
--- stays open and can be tried again. Calling it twice is fine.
---@return true?
---@return string? message
---@return integer? errno
function dynevents:close() end

---@class tracefs.core
local core = {}

--- An empty set of dynamic events.
---@param tracing_dir string
---@return tracefs.dynevents
function core.dynevents(tracing_dir) end

--- Removes the dynamic events that luatrace processes left when they were killed. Behind
--- remove_stale(), as their instances may have them turned on.
---@param tracing_dir string
---@return integer count
function core.remove_stale_dynevents(tracing_dir) end
