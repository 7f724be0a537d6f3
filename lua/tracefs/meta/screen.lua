---@meta

--- The terminal as one page, for the command only: the library itself never touches it.

---@class tracefs.core
local core = {}

--- The terminal that standard output is. It is taken by the first show(), and given back by
--- leave(), by whatever ends the process, and while it is stopped by everything but SIGSTOP; after
--- SIGKILL by a process that is started for that. One object for a process, raises when there is
--- one.
---@param takes_keys? boolean what is typed comes to keys() at once, and is not shown
---@return tracefs.screen?
---@return string? message standard output is no terminal
---@return integer? errno
function core.screen(takes_keys) end

---@class tracefs.screen
local screen = {}

--- Writes to the terminal, which is taken if need be: the other page, without a cursor, with lines
--- that are cut at its edge.
---@param text string as it is, with what steers the terminal
---@return boolean? shown false when the terminal is somebody else's, because we are in the
---  background, or has taken nothing for 0.2 s (Ctrl-S)
---@return string? message
---@return integer? errno
function screen:show(text) end

--- Gives the terminal back as it was. The next show() takes it again.
function screen:leave() end

---@return integer rows
---@return integer columns
function screen:size() end

--- Readable when everything has to be shown anew.
---@return integer
function screen:fileno() end

--- Has the terminal another size, or been somebody else's, since the last call?
---@return boolean
function screen:changed() end

--- What has been typed since the last call.
---@return string? keys nil at the end of standard input
function screen:keys() end

--- Gives the terminal back, for good.
function screen:close() end

return core
