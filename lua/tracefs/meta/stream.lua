---@meta

--- The ordered stream of an instance's records. Sessions are built on it; scripts use sessions.

---@class tracefs.core
local core = {}

---@class tracefs.stream_options every one must be there, see tracefs.settings
---@field clock string what the instance is set to
---@field clock_in_ns boolean
---@field margin number seconds
---@field interval number seconds
---@field memory_mb integer
---@field buffer_percent integer 0: wake for every event
---@field overwrite boolean
---@field own_events boolean
---@field snapshot? boolean read the instance's snapshot instead of its buffer
---@field migrate_column boolean the kernel's text has a column for migrate-disable

---@class tracefs.loss a gap in the stream
---@field cpu integer
---@field count? integer nil when the kernel does not say how many
---@field after_ts? integer time of the CPU's last record before the gap (or of the look before)
---@field before_ts? integer time of its first record behind the gap (or of the look after)
---@field why "overrun"|"dropped"|"commit_overrun"|"damaged"

--- Opens the readers of all CPUs.
---@param instance tracefs.instance
---@param catalog tracefs.catalog
---@param options tracefs.stream_options
---@return tracefs.stream? stream
---@return string? message
---@return integer? errno
function core.stream(instance, catalog, options) end

---@class tracefs.stream
local stream = {}

--- What the stream asks the session: the description of an id, and what to do between records
--- of a loop: "look" (before each look at the kernel's buffers), "handlers" (of the current
--- record), "lost" with the loss, "tick" with its time, "idle", and "stop" and "end", after which
--- the loop ends whatever the answer is.
---@param resolve fun(id: integer): tracefs.event?
---@param pump fun(why: string, what: tracefs.loss|integer|nil): boolean whether the loop goes on
function stream:callbacks(resolve, pump) end

--- Lets go of everything. False when a handler is running: it is done when that has returned.
---@return boolean closed
function stream:close() end

--- Closes the files of the buffer: while they are open the kernel changes no tracer of the
--- instance. Before the first record only; open_files() comes next.
function stream:close_files() end

--- Opens them again.
---@return true?
---@return string? message
---@return integer? errno
function stream:open_files() end

--- Reads the top level's buffer too, whose clock must be the instance's: what it has of these
--- events is in the stream, all else counts as own. Once, before the first record; never on a file.
---@param ids integer[] 1 to 4
---@return true?
---@return string? message
---@return integer? errno
function stream:add_top(ids) end

--- Counters per CPU, and how many records came late.
---@return table<integer, table<string, integer>>? counts by CPU: produced, delivered, lost,
--- pending, own, skipped, overrun, dropped, commit_overrun
---@return integer|string late or a message
---@return integer? errno
function stream:counts() end

--- How many records have been handed out.
---@return integer
function stream:delivered() end

--- Tells what the records of an id look like.
---@param id integer
---@param event tracefs.event
function stream:describe(id, event) end

--- After an error in step() or run_handlers(): lets the stream go on.
---@return tracefs.record? record that the handler which raised was called for
---@return boolean in_handler false when the error came from elsewhere
function stream:failed() end

--- One descriptor, readable when step() has something to do.
---@return integer fd
function stream:fileno() end

--- Tracing is off: the rest is handed out, then the end.
function stream:finish() end

--- Of a file: begins a new one with the records that this stream hands out, whether it has done
--- so or not.
---@param path string
---@param options { version?: integer, compress?: boolean, partial?: boolean,
---  only_delivered?: boolean } only_delivered: those that have been handed out so far
---@return tracefs.cut?
---@return string? message
---@return integer? errno
function stream:cut(path, options) end

--- Of a file: the time of its first record; nil when it has none.
---@return integer?
function stream:first_ts() end

--- Adds a handler for an id: of records, or of values when there are fields.
---@param id integer
---@param handler function
---@param event? tracefs.event needed with fields
---@param fields? string[] 1 to 64 names
function stream:handle(id, handler, event, fields) end

--- The iterator of the loop over the records.
---@return fun(): tracefs.record?
function stream:iterator() end

--- Says which stacks the records of an event come with, besides those that were asked for before.
--- stacks() comes first.
---@param id integer
---@param kernel boolean
---@param user boolean
function stream:join(id, kernel, user) end

--- Has records of an event handed out also when they are the tracer's own.
---@param id integer at most 8 of them
function stream:keep(id) end

--- Makes fileno() readable at once.
function stream:kick() end

--- Of a file: the time of the record that was handed out last; 0 before the first.
---@return integer
function stream:last_ts() end

--- Of a file: how many bytes of records have been read, and how many there are.
---@return integer done
---@return integer all
function stream:progress() end
--- Has every sub-buffer written to a recording too, before its records are handed out.
---@param recording? tracefs.recording nil: no more
function stream:record(recording) end

--- Brings a pair the records of an event, and all losses.
---@param id integer
---@param pair tracefs.pair
---@param side integer from pair:side()
function stream:pair(id, pair, side) end

--- Hands out only some of an event's records from now on; they have the scale in common_scale.
---@param id integer
---@param scale integer one in so many
---@param by_kernel boolean a filter has chosen them already
---@param event? tracefs.event with a field: those whose value, shifted, is a multiple of scale
---@param field? string
---@param shift? integer
function stream:sample(id, scale, by_kernel, event, field, shift) end

--- How many records of an event with a sample have come, and how many were handed out.
---@param id integer
---@return integer? seen nil when there is no sample
---@return integer? taken
function stream:sampled(id) end

--- Forgets a stop() that has not ended anything yet.
function stream:resume() end

--- Runs the current record's handlers that have not run.
function stream:run_handlers() end

--- Of a file: are records of this event handed out?
---@param id integer
---@param on boolean
function stream:select(id, on) end

--- Of a file: only records of these CPUs.
---@param cpus table<integer, true>
function stream:set_cpus(cpus) end

--- Of a file: only records that the kernel would let through with this filter.
---@param event tracefs.event
---@param text? string nil or "0": all
---@return true?
---@return string? message
function stream:set_filter(event, text) end

--- Of a file: only what was recorded between two times, both included.
---@param from integer
---@param to? integer
function stream:set_range(from, to) end

--- Asks for one tick at a time.
---@param ns integer CLOCK_MONOTONIC, of a file its own time; 0: none
function stream:set_tick(ns) end

--- Has the records of stacks become a part of those that they belong to; they are not handed out by
--- themselves any more. Once.
---@param kernel_stack? tracefs.event what ftrace:kernel_stack looks like
---@param user_stack? tracefs.event what ftrace:user_stack looks like
function stream:stacks(kernel_stack, user_stack) end

--- Calls the handlers of up to max records.
---@param max? integer default 10000
---@param ns? integer after this time no further record is begun
---@return integer count
---@return "more"|"idle"|"stop"|"end"|"tick"|"lost" why
---@return tracefs.loss|integer|nil what the loss, or the time of a tick in the trace clock
function stream:step(max, ns) end

--- Ends a step or the loop before the next record.
function stream:stop() end

--- Takes a descriptor out of fileno() again.
---@param fd integer
---@return boolean? ok
---@return string? message
---@return integer? errno
function stream:unwatch(fd) end

--- Waits until step() has something to do.
---@param seconds number at most so long
---@return boolean ready
function stream:wait(seconds) end

--- Makes fileno() readable also while another descriptor is.
---@param fd integer
---@return boolean? ok
---@return string? message
---@return integer? errno
function stream:watch(fd) end
