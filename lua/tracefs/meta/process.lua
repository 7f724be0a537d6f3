---@meta

--- Child processes that wait until they are let go, and processes of others to see them end.

---@class tracefs.core
local core = {}

--- Starts a child that is held behind a gate: it runs nothing before process:release(). A string
--- is run by /bin/sh -c, a list of words as a program that is looked for in PATH. Environment,
--- signal mask and descriptors are the caller's; SIGPIPE has its default action.
---@param command string|string[]
---@param die_with_parent? boolean send it SIGTERM when the thread that called this ends
---@param user? tracefs.user become this one before
---@return tracefs.process?
---@return string? message
---@return integer? errno
function core.spawn(command, die_with_parent, user) end

--- A process of somebody else, to see when it ends.
---@param pid integer
---@return tracefs.process? process nil when there is none of this number
---@return string? message
---@return integer? errno
function core.watch(pid) end

--- The threads of a process, itself among them.
---@param pid integer
---@return integer[]?
---@return string? message
---@return integer? errno
function core.threads(pid) end

--- The children of a process, their children and so on.
---@param pid integer
---@return integer[]?
---@return string? message
---@return integer? errno
function core.descendants(pid) end

--- Whether this process is in a pid namespace of its own, as in most containers. Then its pids
--- are not the numbers that the kernel's records and pid filters have.
---@return boolean
function core.in_pid_namespace() end

--- This thread by the number that the kernel's records and pid filters have.
---@return integer? thread nil in a pid namespace of its own, where it cannot be known
function core.own_thread() end

---@class tracefs.process
local process = {}

---@return integer
function process:pid() end

--- A descriptor that is readable once the process has ended; nil where the kernel has none (before
--- Linux 5.3), then ask wait() from time to time.
---@return integer? fd
---@return string? message
---@return integer? errno
function process:fileno() end

--- Lets the child go. Raises when that has been done. When the program cannot be run: nil, a
--- message that names it, and the error's number; the child is gone then.
---@return boolean? ok
---@return string? message
---@return integer? errno
function process:release() end

--- How it ended; nil while it runs. Does not wait. Of a process that is only watched nothing but
--- "gone" can be known.
---@return "exit"|"signal"|"gone"|nil how
---@return integer|string|nil code exit status or number of the signal; a message: nobody can tell
function process:wait() end

--- Sends a signal to the child, or to it and everything it has started.
---@param signal integer
---@param scope? "process"|"tree"
---@return boolean? sent false when it has ended
---@return string? message
---@return integer? errno
function process:kill(signal, scope) end

--- Kills a child that still runs, with everything it has started, and waits for its end. Leaves
--- a process that is only watched alone. May be called again.
function process:close() end
