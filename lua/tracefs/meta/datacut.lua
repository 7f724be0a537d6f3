---@meta

--- A part of a trace file on its way into a file of its own. stream:cut() makes one.

---@class tracefs.cut
local cut = {}

--- Does a part of the work. The new file gets its name with the last one.
---@return boolean? more false when it is complete
---@return string? message
---@return integer? errno
function cut:step() end

--- Bytes of records that have been read, and of all.
---@return integer done
---@return integer all
function cut:progress() end

--- How many records are in the new file.
---@return integer
function cut:records() end

---@return string path without links
function cut:path() end

--- Nothing is left of what is not complete.
function cut:close() end
