---@meta

--- Counts, sums, extremes, percentiles and histograms by key. tracefs.aggregate makes them.

---@class tracefs.core
local core = {}

--- An empty one, for lua/tracefs/aggregate.lua, which has the options that people write.
---@param options table parts, max, scale, bits, from, width, count, unsigned, variance
---@return tracefs.aggregate
function core.aggregate(options) end

---@class tracefs.cell
---@field keys? (string|integer)[] nil for the values of all keys beyond max
---@field count integer
---@field sum integer|number a float only where 64 bits do not hold it
---@field minimum? integer nil when nothing was added, as the others below
---@field maximum? integer
---@field average? number
---@field variance? number of all values, if it is kept
---@field [number] integer percentiles that were asked for

---@class tracefs.bucket
---@field from integer
---@field to integer in it too
---@field count integer

---@class tracefs.aggregate
local aggregate = {}

--- Adds a value: a whole number; a float is cut to the one below.
---@param value number
---@param ... string|integer the key
---@return boolean counts false for what is out of range or no number; see refused()
function aggregate:add(value, ...) end

--- The buckets of one key that have values, in their order; powers of two unless the scale is
--- linear.
---@param ... string|integer the key
---@return tracefs.bucket[]
function aggregate:buckets(...) end

--- What is known of each key, in the order in which the keys came.
---@param percents? number[]
---@return tracefs.cell[]
function aggregate:cells(percents) end

--- Adds 1.
---@param ... string|integer the key
function aggregate:count(...) end

--- What is known of one key.
---@param ... string|integer the key
---@return tracefs.cell? cell
function aggregate:get(...) end

--- The histogram of one key as text: a line for each bucket.
---@param ... string|integer the key
---@return string[] lines below 80 columns
function aggregate:lines(...) end

--- Adds everything that is in another one of the same columns, buckets and keys.
---@param other tracefs.aggregate
function aggregate:merge(other) end

--- What it was made with.
---@return table
function aggregate:options() end

--- A value that this share of the values does not exceed: exact, or above it by the error at most.
---@param percent number 50 for the median, 99.99, 100 for the greatest
---@param ... string|integer the key
---@return integer? value nil when nothing was added
function aggregate:percentile(percent, ...) end

--- How many values were refused by add().
---@return integer
function aggregate:refused() end

--- As if nothing had been added: for a table every interval.
function aggregate:reset() end

--- Plain tables: the parts of the key by their names, the columns by theirs.
---@param options? { sort?: string, top?: integer }
---@return table[]
function aggregate:rows(options) end

--- The buckets of one key that have values as they are counted, which is what bounds the error of
--- percentiles: more than one for each power of two.
---@param ... string|integer the key
---@return tracefs.bucket[]
function aggregate:steps(...) end

--- An aligned table, and bars with the column "histogram". What tostring gives.
---@param options? { sort?: string, top?: integer }
---@return string
function aggregate:text(options) end
