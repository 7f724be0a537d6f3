---@meta

--- Names of system calls.

---@class tracefs.core
local core = {}

--- What the system call of this number is called on the machine that this was built for: of the C
--- library's headers. A program of 32 bits on a machine of 64 has other numbers.
---@param number integer as in raw_syscalls:sys_enter
---@param machine? string as uname -m says it: of another one there is no name
---@return string? name as "sys_openat"
function core.syscall(number, machine) end
