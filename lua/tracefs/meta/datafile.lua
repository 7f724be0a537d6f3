---@meta

--- A trace.dat file, of trace-cmd or of luatrace, version 6 or 7. A session reads one with
--- tracefs.session{ file = PATH }; this is what is below it.

---@class tracefs.core
local core = {}

--- Opens a file and reads what stands before its records.
---@param path string
---@return tracefs.datafile?
---@return string? message
---@return integer? errno
function core.datafile(path) end

---@class tracefs.datafile
local datafile = {}

---@class tracefs.datafile.buffer
---@field name string "" for the top buffer
---@field clock string "" when the file does not say
---@field clock_in_ns boolean
---@field is_text boolean a latency tracer's text instead of records
---@field cpus integer[] those that have records

--- The ring buffers that the file holds.
---@return tracefs.datafile.buffer[]
function datafile:buffers() end

--- A catalog for the file's records: with its byte order, command names and symbols.
---@return tracefs.catalog?
---@return string? message
---@return integer? errno
function datafile:catalog() end

--- Closes it. Streams and catalogs of it go on working.
function datafile:close() end

--- Does this path lead to this very file, by whatever name?
---@param path string
---@return boolean
function datafile:is_at(path) end

--- The first thing that is wrong with the file, with its offset, as far as it has been read.
---@return string?
function datafile:damage() end

--- The description of an event, by its names or by its id.
---@param catalog tracefs.catalog
---@param system string|integer the system, or the id
---@param name? string
---@return tracefs.event?
---@return string? message
function datafile:describe(catalog, system, name) end

--- The events that the file has formats of, the tracer's own first.
---@return { system: string, name: string, id: integer }[]
function datafile:events() end

--- The text of an event's format file.
---@param system string
---@param name string
---@return string?
---@return string? message
function datafile:format(system, name) end

---@class tracefs.datafile.info
---@field version integer 6 or 7
---@field big_endian boolean
---@field long_size integer of the kernel
---@field page_size integer
---@field cpus integer of the machine; 0 when the file does not say
---@field compression string "none", "zstd" or "zlib"
---@field trace_id integer
---@field ts_offset integer ns that are added to each timestamp
---@field uname? string of the machine
---@field written_by? string the program's version

--- What the file says about itself and the machine it was made on.
---@return tracefs.datafile.info
function datafile:info() end

--- Its records as lines, laid out as trace-cmd report does.
---@param stream tracefs.stream
---@param catalog tracefs.catalog
---@param options { csv?: boolean, clock_in_ns?: boolean, nanoseconds?: boolean, buffers?: boolean }
---@return tracefs.report
function datafile:report(stream, catalog, options) end

---@class tracefs.report
local report = {}

--- The next lines, some 64 KiB of them.
---@return boolean? more false behind the last record, nil when the file is damaged
---@return string text
---@return string? message
function report:run() end

--- Its records in order. None are selected yet.
---@param catalog tracefs.catalog made by catalog()
---@param options { buffer?: string, partial?: boolean, clock_in_ns?: boolean,
---  migrate_column?: boolean } partial: damage ends the stream instead of raising
---@return tracefs.stream?
---@return string? message
---@return integer? errno
function datafile:stream(catalog, options) end

--- The text of a latency tracer's buffer.
---@param buffer string its name
---@return string?
---@return string? message
function datafile:text(buffer) end
