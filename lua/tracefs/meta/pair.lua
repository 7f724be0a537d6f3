---@meta

--- Pairs of events by key. Sessions make them: session:pair{ ... }.

---@class tracefs.core
local core = {}

--- A pair without events, for lua/tracefs/pair.lua, which has the options that people write.
---@param options table parts, carry, report, names, stages, into, max, timeout (ns), same_cpu,
---  keep_first, on_match, on_expired, on_dropped, on_unmatched, why
---@return tracefs.pair
function core.pair(options) end

---@class tracefs.pair_counts
---@field starts integer each of them is in one of those below it
---@field matched integer
---@field replaced integer by another start of their key
---@field repeated integer starts of a key that was open, with again = "first"
---@field cancelled integer
---@field incomplete integer their stop came before all stages had
---@field expired integer older than the timeout
---@field evicted integer the oldest ones, when there were more than max
---@field voided integer events were lost while they were open, or they or their stops came late
---@field open integer
---@field unmatched? integer stops without a start; nil with where = "kernel"
---@field late integer events of the pair that came out of order
---@field dropped? integer with where = "kernel": what found no place in the kernel's tables
---@field doubtful integer of the matched: made at a time of which a loss was told afterwards

---@class tracefs.pair
local pair = {}

---@return tracefs.pair_counts
function pair:counts() end

--- Lets starts end that are older than the timeout, and tells of what a loss has ended. Sessions
--- call it by themselves.
---@param now? integer in the trace clock
function pair:expire(now) end

--- Brings it a record, as the stream does.
---@param record tracefs.record
---@return boolean is_ours false when the record's event is none of the pair's
function pair:feed(record) end

--- Brings it a loss, as the stream does.
---@param loss tracefs.loss
function pair:lost(loss) end

--- The starts that are open, the oldest first.
---@return { key: any, values: table?, since: integer, cpu: integer }[]
function pair:open() end

--- Adds an event.
---@param role "cancel"|"stop"|"through"|"start"
---@param event tracefs.event
---@param options table key (field names or a function), next_key, carry, stage
---@return integer side for stream:pair()
function pair:side(role, event, options) end

--- Who matches it: here, or the kernel (whose pairs are no userdata, and have counts and where).
---@return "lua"|"kernel"
---@return string? why when there was a choice
function pair:where() end
