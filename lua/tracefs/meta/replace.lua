---@meta

--- Files whose content changes all at once.

---@class tracefs.core
local core = {}

--- Gives a file a new content: who opens it sees the old one or the new one. What is no regular
--- file (a pipe, a device) is written to as it is.
---@param path string
---@param text string
---@return boolean? ok
---@return string? message
---@return integer? errno
function core.replace(path, text) end
