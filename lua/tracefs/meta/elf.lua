---@meta

---@class tracefs.core
local core = {}

--- Where a function is in the file of a program or a library: what a uprobe wants. .symtab is
--- looked at first, then .dynsym. The message tells no such function from data, from a function of
--- another library, and from a damaged file; without libelf it names that.
---@param path string
---@param symbol string
---@param delta? integer bytes behind its start
---@return integer? offset
---@return string? message
---@return integer? errno
function core.elf_offset(path, symbol, delta) end

--- The names of the functions that a program or a library has, as far as it says.
---@param path string
---@return string[]?
---@return string? message
---@return integer? errno
function core.elf_functions(path) end

--- Was this built with libelf? Without it the two above are refused.
---@return boolean
function core.has_libelf() end

--- Which of the names may have been meant: " Did you mean A or B?", or "" when none is like it.
---@param asked string
---@param names string with blanks between them
---@return string
function core.nearest(asked, names) end

--- Is there such a function in the kernel or its modules, by /proc/kallsyms?
---@param name string
---@return boolean? there nil when that cannot be known
---@return string hint when it is not: " Did you mean A or B?", or ""; a message
---@return integer? errno
function core.kernel_function(name) end

--- A path without links and dots.
---@param path string
---@return string?
---@return string? message
---@return integer? errno
function core.real_path(path) end
