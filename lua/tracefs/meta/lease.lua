---@meta

--- Something that only one process at a time may use: a locked file. The lock ends with the
--- process, however it ends; what is written in the file stays, for the next one to undo.

---@class tracefs.core
local core = {}

--- Takes the lock, without waiting. The file is made when it is not there.
---@param path string
---@return tracefs.lease?
---@return string? message
---@return integer? errno EWOULDBLOCK (11) while another one has it
function core.lease(path) end

---@class tracefs.lease
local lease = {}

--- What the file holds.
---@return string?
---@return string? message
---@return integer? errno
function lease:read() end

--- Replaces it.
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function lease:write(text) end

--- False in a child of the process that took it. A closed one can be asked too.
---@return boolean
function lease:is_ours() end

--- Lets go of the lock. The file stays.
function lease:close() end
