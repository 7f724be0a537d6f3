---@meta

--- Signals, for the command only: the library itself never touches them.

---@class tracefs.core
local core = {}

--- Takes SIGINT, SIGTERM and (unless it is ignored) SIGHUP over, ignores SIGPIPE and stops
--- ignoring SIGCHLD. The first signal is noted; the second one stops the code that signals:guard()
--- runs; one that comes when that has not helped for a second ends the process. One object for a
--- process, raises when there is one.
---@return tracefs.signals?
---@return string? message
---@return integer? errno
function core.signals() end

---@class tracefs.signals
local signals = {}

--- Readable when a signal has come that received() has not been asked about.
---@return integer
function signals:fileno() end

--- The first signal.
---@return integer? number nil: none yet
---@return "terminal"|"process"|nil from a key on the terminal or kill(2)
function signals:received() end

--- The second signal.
---@return integer? number
function signals:second() end

--- Does to the guarded code what a second signal does.
function signals:stop() end

--- Calls fn as xpcall does. When a second signal comes while it runs, an error "interrupted" is
--- raised in it, and raised again by the next instruction whenever it is caught.
---@param fn function
---@param message_handler function
---@param ... any arguments of fn
---@return boolean ok
---@return any ... results, or what the message handler returned
function signals:guard(fn, message_handler, ...) end

--- Makes the second signal reach code inside coroutines: replaces resume and wrap in the table.
---@param coroutine_library table
function signals:track(coroutine_library) end

--- Restores what was there before. May be called again.
function signals:close() end
