---@meta

--- The description of one kind of event: what its format file says.
---@class tracefs.event
local event = {}

---@class tracefs.field
---@field name string
---@field type string as the format file spells it, for example "char[16]" or "__data_loc char[]"
---@field offset integer in bytes from the start of the record
---@field size integer in bytes; 0 when the field takes the rest of the record
---@field kind "int"|"string"|"bytes"|"array"|"bitmask"|"strings" what its value is in Lua: an
---integer, a string cut at the first NUL, a string of bytes, a list of integers, a list of bit
---numbers, a list of strings (a probe's array of them)
---@field place "fixed"|"data_loc"|"rel_loc"|"tail" where its bytes are
---@field signed boolean
---@field common boolean every event has it

--- For example "sched".
---@return string
function event:system() end

--- For example "sched_switch".
---@return string
function event:name() end

--- For example "sched:sched_switch".
---@return string
function event:label() end

--- The common_type of its records.
---@return integer
function event:id() end

--- The print format as it stands in the format file.
---@return string
function event:print_fmt() end

--- Says what an event probe is attached to: its format file does not, and its text has it.
---@param attached string "system.event"
function event:attach(attached) end

--- Why the text of its records cannot be made; nil when it can. Fields can be read either way.
---@return string?
function event:no_text() end

--- Its fields in the order of the format file.
---@return tracefs.field[]
function event:fields() end

--- Does a record have such a field? common_timestamp, common_cpu, common_comm, common_event,
--- common_late and common_scale are fields of every record.
---@param field string
---@return boolean
function event:has(field) end

--- Makes a record of raw bytes, so that a handler can be tested without a kernel.
---@param bytes string as they would stand in the ring buffer, from common_type on
---@param options? { common_timestamp?: integer, common_cpu?: integer, common_late?: boolean,
--- common_scale?: integer } 0 by default
---@return any record
function event:record(bytes, options) end
