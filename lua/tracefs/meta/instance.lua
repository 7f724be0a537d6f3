---@meta

--- A tracefs instance: a private ring buffer with its own events, filters, clock and markers.
---
--- One that was created is removed when it is destroyed, closed, collected, or at the end of the
--- process; one that was opened is left as it is. What the system refuses returns nil, a message
--- and an errno value; wrong arguments and the use of a closed instance raise.
---@class tracefs.instance
local instance = {}

--- From now on close() removes it, also when it was opened.
function instance:adopt() end

--- From now on close() leaves it, also when it was created: another process goes on with it. One
--- that was created here is marked for that (its directory has the sticky bit); where only the
--- mark could not be made it stays all the same.
---@return true?
---@return string? message why it has no mark
---@return integer? errno
function instance:keep() end

--- Did keep() leave it, in whichever process?
---@return boolean
function instance:is_kept() end

--- Its directory's name, such as "luatrace-1234-567890-1".
---@return string
function instance:name() end

--- The path of its directory.
---@return string
function instance:dir() end

--- Closes it, and removes it if it was created by this process. Fails with EBUSY, and says who it
--- is, when someone has a file of it open; called again it tries again. Calling it twice is fine.
---@return true?
---@return string? message
---@return integer? errno
function instance:destroy() end

--- The same as destroy().
---@return true?
---@return string? message
---@return integer? errno
function instance:close() end

--- The whole content of a file below its directory. Of trace_pipe: what is there now; it is then
--- consumed.
---@param file string a relative path without ".."
---@return string?
---@return string? message
---@return integer? errno
function instance:read(file) end

--- Writes a file, as `>` does in a shell: what a set (set_event, set_event_pid) holds is cleared
--- before. When the kernel refuses a filter, trigger or probe, the message has its reason from
--- error_log, with the line that shows the place. Triggers have set_trigger(): clearing their file
--- removes the event's histograms.
---@param file string a relative path without ".."
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function instance:write(file, text) end

--- Writes a file, as `>>` does in a shell: adds to what a set holds.
---@param file string a relative path without ".."
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function instance:append(file, text) end

--- Is there such a file or directory below its directory?
---@param file string
---@return boolean
function instance:has(file) end

--- What the kernel has to say about what it refused last; "" when it has nothing to say.
---@return string?
---@return string? message
---@return integer? errno
function instance:error_log() end

--- Turns one event on. The names are exact; see tracefs.events for patterns.
---@param system string
---@param name string
---@return true?
---@return string? message
---@return integer? errno
function instance:enable(system, name) end

--- Turns one event off.
---@param system string
---@param name string
---@return true?
---@return string? message
---@return integer? errno
function instance:disable(system, name) end

---@param system string
---@param name string
---@return boolean?
---@return string? message
---@return integer? errno
function instance:is_enabled(system, name) end

--- Sets the kernel's filter of one event. When it is refused the filter that was there stays; the
--- message has the kernel's reason with the line that shows the place, and the event's fields when
--- it is about a field.
---@param system string
---@param name string
---@param filter string for example 'prev_pid == 0 && next_comm ~ "kworker*"'
---@return true?
---@return string? message
---@return integer? errno
function instance:set_filter(system, name, filter) end

--- The filter of one event; nil, and no message, when it has none.
---@param system string
---@param name string
---@return string?
---@return string? message
---@return integer? errno
function instance:get_filter(system, name) end

--- Adds a condition to the event's filter; it becomes the filter where there is none.
---@param system string
---@param name string
---@param filter string
---@param joint? "and"|"or" default "and": both must hold
---@return true?
---@return string? message
---@return integer? errno
function instance:append_filter(system, name, filter, joint) end

---@param system string
---@param name string
---@return true?
---@return string? message
---@return integer? errno
function instance:clear_filter(system, name) end

--- Has the kernel do something whenever the event happens: COMMAND[:ARGUMENTS][:COUNT] [if FILTER].
--- The commands: traceon, traceoff, snapshot, stacktrace, enable_event:SYSTEM:EVENT,
--- disable_event:SYSTEM:EVENT, hist:..., as far as the kernel has them. An event has one trigger of
--- each kind (traceon and traceoff are one) besides its histograms. When it is refused the
--- message has the kernel's reason with the line that shows the place. Triggers of a created
--- instance go away with it; "snapshot" is refused while a session reads the instance.
---@param system string
---@param name string
---@param text string for example "traceoff:1 if pid == 1"
---@return true?
---@return string? message
---@return integer? errno
function instance:set_trigger(system, name, text) end

--- Removes one trigger: the text that it was set with or that triggers() lists. The count may be
--- left out, and but for hist triggers the condition too. One that is not there is refused, with
--- the list of those that are.
---@param system string
---@param name string
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function instance:remove_trigger(system, name, text) end

--- Removes all triggers of an event.
---@param system string
---@param name string
---@return true?
---@return string? message
---@return integer? errno
function instance:clear_triggers(system, name) end

--- The triggers of an event as the kernel lists them: "traceoff:unlimited",
--- "enable_event:irq:softirq_entry:count=2 if pid > 3", "hist:keys=pid:... [active]".
---@param system string
---@param name string
---@return string[]?
---@return string? message
---@return integer? errno
function instance:triggers(system, name) end

--- The commands that triggers can have in this kernel.
---@return string[]?
---@return string? message
---@return integer? errno
function instance:trigger_commands() end

--- Only events of these tasks (threads) are recorded; with an empty list, everyone's.
---@param pids integer[]
---@param children? boolean the tasks that they start join the list (the option event-fork); nil:
---  as it is
---@return true?
---@return string? message
---@return integer? errno
function instance:set_event_pids(pids, children) end

--- The tasks whose events are recorded; none when it is everyone.
---@return integer[]?
---@return string? message
---@return integer? errno
function instance:get_event_pids() end

--- Events of these tasks are not recorded.
---@param pids integer[]
---@param children? boolean
---@return true?
---@return string? message
---@return integer? errno
function instance:set_event_notrace_pids(pids, children) end

---@return integer[]?
---@return string? message
---@return integer? errno
function instance:get_event_notrace_pids() end

--- Only functions of these tasks are recorded by the tracers of functions.
---@param pids integer[]
---@param children? boolean the option function-fork
---@return true?
---@return string? message
---@return integer? errno
function instance:set_function_pids(pids, children) end

---@return integer[]?
---@return string? message
---@return integer? errno
function instance:get_function_pids() end

--- Functions of these tasks are not recorded.
---@param pids integer[]
---@param children? boolean
---@return true?
---@return string? message
---@return integer? errno
function instance:set_function_notrace_pids(pids, children) end

---@return integer[]?
---@return string? message
---@return integer? errno
function instance:get_function_notrace_pids() end

--- Only these CPUs record. One that is not there is refused.
---@param cpus? integer[] numbers from 0 on; nil: all
---@return true?
---@return string? message
---@return integer? errno
function instance:set_cpus(cpus) end

--- The CPUs that record, in ascending order.
---@return integer[]?
---@return string? message
---@return integer? errno
function instance:get_cpus() end

--- Sets the tracer, and empties the buffer. One that this kernel, or an instance, does not have is
--- refused with those that there are; so is any while the buffer is read, by a session or through
--- trace_pipe.
---@param name string "nop" for none
---@return true?
---@return string? message
---@return integer? errno
function instance:set_tracer(name) end

---@return string?
---@return string? message
---@return integer? errno
function instance:get_tracer() end

--- The tracers that this instance can have.
---@return string[]?
---@return string? message
---@return integer? errno
function instance:tracers() end

--- Takes a snapshot: the buffer becomes the snapshot, and an empty one (what the snapshot was
--- before) goes on. It gets memory for it, as much as the buffer has, when there is none. Refused
--- while a session reads the instance. tracefs.snapshot_events() reads it.
---@param cpu? integer of this CPU only, where the kernel can; nil: of all
---@return true?
---@return string? message
---@return integer? errno
function instance:snapshot_take(cpu) end

--- Forgets what the snapshot holds, and keeps its memory.
---@param cpu? integer nil: of all CPUs
---@return true?
---@return string? message
---@return integer? errno
function instance:snapshot_clear(cpu) end

--- Gives the snapshot's memory back.
---@return true?
---@return string? message
---@return integer? errno
function instance:snapshot_free() end

--- Has the snapshot memory? It may be empty all the same.
---@return boolean?
---@return string? message
---@return integer? errno
function instance:has_snapshot() end

--- Sets the clock of the timestamps, and empties the buffer. A clock that this kernel does not have
--- is refused, with the list of those it has.
---@param name string "mono", "local", "boot", ...
---@return true?
---@return string? message
---@return integer? errno
function instance:set_clock(name) end

---@return string?
---@return string? message
---@return integer? errno
function instance:get_clock() end

--- The names of all clocks of this kernel.
---@return string[]?
---@return string? message
---@return integer? errno
function instance:clocks() end

--- Sets the buffer's size for each CPU. The kernel rounds it; a size that there is no memory for is
--- refused, and the old one kept.
---@param kb integer KiB, 1 or more
---@param cpu? integer of this CPU only; nil: of each
---@return integer? kb the size that it has become
---@return string? message
---@return integer? errno
function instance:set_buffer_kb(kb, cpu) end

--- The buffer's size for each CPU in KiB; the largest when CPUs differ.
---@param cpu? integer of this CPU
---@return integer?
---@return string? message
---@return integer? errno
function instance:get_buffer_kb(cpu) end

--- The sizes of all CPUs' buffers together, in KiB.
---@return integer?
---@return string? message
---@return integer? errno
function instance:get_buffer_total_kb() end

--- Sets the size of one sub-buffer, in which the buffer is read, and empties the buffer. From Linux
--- 6.8 on.
---@param kb integer KiB, a power of two from a page on
---@return integer? kb the size that it has become
---@return string? message
---@return integer? errno
function instance:set_subbuf_kb(kb) end

---@return integer? kb nil when this kernel's sub-buffers are always a page
---@return string? message
---@return integer? errno
function instance:get_subbuf_kb() end

--- Starts recording. A new instance does not record.
---@return true?
---@return string? message
---@return integer? errno
function instance:trace_on() end

---@return true?
---@return string? message
---@return integer? errno
function instance:trace_off() end

---@return boolean?
---@return string? message
---@return integer? errno
function instance:trace_is_on() end

--- Sets one of the files in options/. An option that is not there is refused, with the list of
--- those that are.
---@param name string "overwrite", "event-fork", "hash-ptr", ...
---@param on boolean
---@return true?
---@return string? message
---@return integer? errno
function instance:set_option(name, on) end

---@param name string
---@return boolean?
---@return string? message
---@return integer? errno
function instance:get_option(name) end

--- All options, and how they are set.
---@return table<string, boolean>?
---@return string? message
---@return integer? errno
function instance:options() end

--- Forgets everything that the buffer holds.
---@return true?
---@return string? message
---@return integer? errno
function instance:clear() end

--- Writes a text into the trace, as an event ftrace:print. A text longer than fits (about a page)
--- is cut by the kernel: compare the result with the length. It ends at a zero byte.
---@param text string
---@return integer? bytes that the kernel took
---@return string? message
---@return integer? errno
function instance:marker(text) end

--- Writes bytes into the trace, as an event ftrace:raw_data. They begin with a number of 4 bytes,
--- its id.
---@param bytes string
---@return integer? bytes that the kernel took
---@return string? message
---@return integer? errno
function instance:marker_raw(bytes) end

---@class tracefs.instance.cpu_stats
---@field entries integer events in the buffer now
---@field overrun integer events lost as newer ones were written over them
---@field commit_overrun integer events lost as an interrupt filled the buffer while one was written
---@field bytes integer bytes in the buffer now
---@field dropped integer events not recorded as the buffer was full (option overwrite off)
---@field read integer events that were read

--- What each CPU's part of the buffer has counted, by CPU number.
---@return table<integer, tracefs.instance.cpu_stats>?
---@return string? message
---@return integer? errno
function instance:stats() end

---@class tracefs.core
local core = {}

--- Where tracefs is: the path given, if it is a tracing directory, else the first tracefs that is
--- mounted, else tracing/ in a debugfs. Mounts nothing. The message tells not mounted from not
--- permitted from locked down, and says what to do.
---@param path? string
---@return string?
---@return string? message
---@return integer? errno
function core.tracing_dir(path) end

--- Makes an instance. It does not record yet. Without a name it gets one of luatrace's own, by
--- which remove_stale() finds it if this process should be killed.
---@param tracing_dir string
---@param name? string must not be there
---@return tracefs.instance?
---@return string? message
---@return integer? errno
function core.instance_create(tracing_dir, name) end

--- Opens an instance that someone else has made, and will not remove it.
---@param tracing_dir string
---@param name string
---@return tracefs.instance?
---@return string? message
---@return integer? errno
function core.instance_open(tracing_dir, name) end

--- The names of all instances, sorted.
---@param tracing_dir string
---@return string[]?
---@return string? message
---@return integer? errno
function core.instances(tracing_dir) end

--- Removes what luatrace processes that were killed have left: instances whose name carries a
--- process that is gone.
---@param tracing_dir string
---@return integer count the number removed
function core.remove_stale(tracing_dir) end
