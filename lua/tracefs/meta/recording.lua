---@meta

--- A trace.dat that is being written. Sessions make one for `record`, and so does the command.

---@class tracefs.core
local core = {}

---@class tracefs.recording_options all but own_events must be there
---@field version integer of the file: 6 or 7
---@field compress boolean in version 7
---@field own_events? boolean keep the events of this thread in the file
---@field kept integer[] ids of events that stay whoever caused them

--- Begins a file: from now on it is one that every reader can open.
---@param instance tracefs.instance
---@param path string
---@param options tracefs.recording_options
---@param events? table list of { system, name } whose formats are wanted besides what is on
---@return tracefs.recording? recording
---@return string? message
---@return integer? errno
function core.recording(instance, path, options, events) end

--- Can this build compress, that is, was it made with libzstd?
---@return boolean
function core.can_compress() end

---@class tracefs.recording
local recording = {}

--- From now on it takes the instance's sub-buffers itself, with pump() and drain(). Else a
--- stream gives them: stream:record().
---@return boolean? ok
---@return string? message
---@return integer? errno
function recording:direct() end

--- Readable when pump() has something to do; of a direct recording.
---@return integer descriptor
function recording:fileno() end

--- Moves the sub-buffers that are full, and once a second those that are not.
---@return integer? bytes
---@return string? message
---@return integer? errno
function recording:pump() end

--- Moves everything that is there.
---@return integer? bytes
---@return string? message
---@return integer? errno
function recording:drain() end

--- Has the file tell of all pages that it has; also done once a second, and by close().
---@return boolean? ok
---@return string? message
---@return integer? errno
function recording:checkpoint() end

--- No more pages come. The rest is done by step().
---@param events? table as for core.recording
---@return boolean? ok
---@return string? message
---@return integer? errno
function recording:finish(events) end

--- Puts a part of the finished file together.
---@return boolean? more false when it is complete
---@return string? message
---@return integer? errno
function recording:step() end

--- Bytes of pages that have come in, how many of them step() has dealt with, and how many of the
--- tracer's own records it has left out of those.
---@return integer all
---@return integer done
---@return integer left_out
function recording:bytes() end

---@return string path without links
function recording:path() end

--- What is not finished stays as it is, readable.
function recording:close() end
