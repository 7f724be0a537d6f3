---@meta

--- The event formats of one machine, and what else it takes to turn its records into values and
--- text: byte order, command names, kernel symbols, strings and enums.

---@class tracefs.core
local core = {}

--- A catalog without events. Without arguments for records of this machine.
---@param big_endian? boolean
---@param long_size? 4|8 bytes in a long
---@return tracefs.catalog
function core.catalog(big_endian, long_size) end

---@class tracefs.catalog
local catalog = {}

--- Parses a format file. The description of an event that is known already is given again; when
--- its id has another format now, as those of dynamic events can, the new one takes the id.
---@param system string
---@param format_text string
---@return tracefs.event?
---@return string? message
---@return integer? errno
function catalog:parse(system, format_text) end

--- The event whose records have this common_type; nil when it has not been parsed.
---@param id integer
---@return tracefs.event?
function catalog:by_id(id) end

--- From now on names, symbols, strings and enums come from the kernel that runs here.
---@param tracing_dir string
---@return true?
---@return string? message
---@return integer? errno
function catalog:set_live(tracing_dir) end

--- Tells the command name of a process or thread.
---@param pid integer
---@param name string
---@return true?
---@return string? message
---@return integer? errno
function catalog:set_comm(pid, name) end

--- The command name that records of this pid have: "<idle>" for 0, "<...>" when nobody knows.
---@param pid integer
---@return string
function catalog:comm(pid) end

--- Adds symbols in the layout of /proc/kallsyms; other lines are passed over.
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function catalog:add_kallsyms(text) end

--- The symbol that an address belongs to.
---@param address integer
---@return string? name nil when it belongs to none
---@return integer? offset of the address behind the symbol's start
---@return string? module nil for the kernel itself
function catalog:symbol(address) end

--- Adds strings in the layout of tracefs's printk_formats: what records refer to by address.
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function catalog:add_printk_formats(text) end

--- Adds the enums of a kernel's BTF (/sys/kernel/btf/vmlinux): some print formats name their
--- constants.
---@param bytes string
---@return true?
---@return string? message
---@return integer? errno
function catalog:add_btf(bytes) end

--- Tells the release of the kernel that the records are from: kernels before 6.18 print the
--- arguments of system calls in another way. A live catalog knows it.
---@param release string such as "6.1.0-50-amd64"
---@return true
function catalog:set_release(release) end

--- Tells the ticks of the kernel a second (CONFIG_HZ), which some events count in.
---@param hz integer
---@return true
function catalog:set_hz(hz) end
