---@meta

--- Giving up root's rights for good, and going on tracing.

---@class tracefs.core
local core = {}

--- An ordinary user whom this process, or a command, can become.
---@class tracefs.user

--- Finds a user: a name in /etc/passwd with its groups, the number of one, or UID:GID. Root, and
--- who is in root's group, is refused.
---@param name string
---@return tracefs.user?
---@return string? message
---@return integer? errno
function core.user(name) end

--- Becomes this user for good: uids, groups, no capability, no_new_privs. Reading the instance's
--- stream goes on; a helper process keeps the rights to remove the instance, and to turn events,
--- filters, triggers and options in it on and off. A session that shall be used has to be made
--- before. When this fails the process may have lost some of its rights: it should end.
---@param user tracefs.user
---@param instance? tracefs.instance made by this process
---@return true?
---@return string? message
---@return integer? errno
function core.drop_rights(user, instance) end

--- Closes the descriptors that this process was started with, but for standard input, output and
--- error: all that do not close themselves when a program is run.
---@param kept? file* one that stays
function core.close_inherited(kept) end

--- For whom rights have been dropped.
---@return string? name
function core.dropped_rights() end

--- The whole of a file of tracefs or /proc; read by the helper where this process may not and
--- the helper may.
---@param path string
---@return string?
---@return string? message
---@return integer? errno
function core.read_file(path) end
