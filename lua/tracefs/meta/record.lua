---@meta

--- Records: what the kernel wrote, as a Lua value.

---@class tracefs.core
local core = {}

--- A record of one event. Its fields are read by their names in the format file: `ev.skbaddr`,
--- `ev["end"]`. A field that the event does not have, or that lies outside this record, is nil.
--- A record can be kept as long as wanted. pairs() gives every field; tostring() the line of the
--- kernel's trace file.
---
--- Integers come as Lua integers (unsigned 64-bit ones above 2^63 - 1 negative: tracefs.u64),
--- char arrays as strings cut at NUL, u8 arrays as strings of bytes, other arrays as lists,
--- bitmasks as lists of bit numbers.
---@class tracefs.record
---@field common_type integer the event's id
---@field common_flags integer the kernel's TRACE_FLAG_ bits
---@field common_preempt_count integer
---@field common_pid integer of the task that ran, in the kernel's sense: a thread
---@field common_timestamp integer in the clock's unit: ns for all but counter, uptime and x86-tsc
---@field common_cpu integer
---@field common_comm string name of that task, looked up when it is read; "<...>" when not known
---@field common_event string "system:name"
---@field common_late? true for a record that is older than one handed out before it
---@field common_scale? integer of an event with `sample`: the record stands for so many
---@field common_stack? string|false functions of the kernel, the outermost first, with ";" between
--- them, when the event was asked for with `stack = true`; false when the record has none: lost, or
--- not written by the kernel
---@field common_user_stack? string|false the same of the program, with `user_stack = true`; "" for
--- a thread of the kernel
---@field [string] integer|string|integer[]|nil

--- The event's text, or one field's, as the kernel prints it.
---@param record tracefs.record
---@param field? string
---@return string? text
---@return string? message
function core.text(record, field) end

--- Whether a value is a record.
---@param value any
---@return boolean
function core.is_record(value) end
