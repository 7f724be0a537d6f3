--- Scripting for the Linux kernel tracer. See docs/api.md.
---@class tracefs
local core = require "tracefs.core"
local toplevel = require "tracefs.toplevel"

local tracefs = {
  core = core,
  version = "0.1.0",
}

local tracing_dir

--- Where tracefs is: found once for this Lua state. Nothing is mounted.
---@param path? string use this folder from now on instead of the first tracefs that is mounted
---@return string? path
---@return string? message
---@return integer? errno
function tracefs.tracing_dir(path)
  if path == nil and tracing_dir then
    return tracing_dir
  end
  local found, message, errno = core.tracing_dir(path)
  if found then
    tracing_dir = found
  end
  return found, message, errno
end

--- A private instance: its own buffer, events, filters and clock. It is removed when it is
--- closed, collected, or by the next run when this process was killed.
---@param name? string default: "luatrace-PID-STARTTIME-N"
---@return tracefs.instance? instance
---@return string? message
---@return integer? errno
function tracefs.instance_create(name)
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  return core.instance_create(dir, name)
end

--- An instance that is there already. Closing it leaves it there.
---@param name string
---@return tracefs.instance? instance
---@return string? message
---@return integer? errno
function tracefs.instance_open(name)
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  return core.instance_open(dir, name)
end

--- The names of all instances, sorted.
---@return string[]? names
---@return string? message
---@return integer? errno
function tracefs.instances()
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  return core.instances(dir)
end

--- Removes the instances and the dynamic events (probes, synthetic events) that luatrace
--- processes left when they were killed, and puts back what they had changed at the top level.
---@return integer? instances how many
---@return integer|string events how many, or a message
---@return integer? errno
function tracefs.remove_stale()
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  -- Instances first: what is turned on in one cannot be removed.
  local instances = core.remove_stale(dir)
  toplevel.undo_stale(dir)
  return instances, core.remove_stale_dynevents(dir)
end

--- What this kernel and this user can do, by looking: `local has, missing = tracefs.features()`,
--- `has.hist`, `missing.hist`.
---@return table<string, boolean> has by name; a name that there is not raises
---@return table<string, string> missing what is not there needs: an option, a mount, a permission
function tracefs.features()
  return require("tracefs.features").find(tracefs)
end

--- The dynamic events that there are, whoever has made them: probes, synthetic events.
---@return tracefs.dynamic_event[]? events
---@return string? message
---@return integer? errno
function tracefs.dynamic_events()
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  return require("tracefs.probes").list(dir)
end

--- The kernel's events as "system:name", sorted.
---@param pattern? string as in session:on; default: all
---@return string[]? labels
---@return string? message
---@return integer? errno
function tracefs.events(pattern)
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  local events = require "tracefs.events"
  local found
  if pattern then
    found, message, errno = events.match(dir, pattern)
  else
    found, message, errno = events.list(dir)
  end
  if not found then
    return nil, message, errno
  end
  local labels = {}
  for i, event in ipairs(found) do
    labels[i] = event.system .. ":" .. event.name
  end
  return labels
end

--- What one event looks like: its fields with types and sizes.
---@param label string "system:name"
---@return tracefs.event? event
---@return string? message
---@return integer? errno
function tracefs.event(label)
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  return require("tracefs.events").describe(dir, label)
end

--- A kernel filter from Lua values: `tracefs.filter { prev_comm = "tmux: client", prev_pid = { 1,
--- 7 }, prev_prio = { ["<"] = 100 } }`. session:on() takes the table itself, too. Raises when it
--- cannot be said in the kernel's language, or when the event lacks a field.
---@param conditions table field = value, a list of values, or { [operator] = value }; tables in a
---  list are conditions too, with "and" (default), "or" or "not" in front of them
---@param label? string "system:name" of the event whose fields it is checked against
---@return string filter
function tracefs.filter(conditions, label)
  if type(conditions) ~= "table" then
    error("filter: a table of conditions is needed, not " .. type(conditions), 2)
  end
  local event, message
  if label ~= nil then
    event, message = tracefs.event(label)
    if not event then
      error(message, 2)
    end
  end
  local ok, text = pcall(require("tracefs.filter").text, conditions, event)
  if not ok then
    error(text, 2)
  end
  return text
end

-- Symbols and nothing else; the list is read when the first address is asked for.
local symbols

--- The kernel's function or variable that an address belongs to, as in ev.ip or in a stack.
--- /proc/kallsyms is read once, at the first call; modules that are loaded later are not known.
---@param address integer
---@return string? name nil when it belongs to none, or this user may not see the addresses
---@return integer? offset of the address behind the symbol's start
---@return string? module nil for the kernel itself
function tracefs.ksym(address)
  if math.type(address) ~= "integer" then
    error("ksym: an address is an integer, not " .. tostring(address), 2)
  end
  if not symbols then
    local catalog = core.catalog()
    catalog:set_live(tracefs.tracing_dir() or "/sys/kernel/tracing")
    symbols = catalog
  end
  return symbols:symbol(address)
end

--- Counts by stack, for stacks as in ev.common_stack: folded text, flame graphs.
---@param options? { max?: integer } different stacks that are kept apart; default 100000
---@return tracefs.folded
function tracefs.folded(options)
  -- no tail call: errors name the place two frames up
  local counts = require("tracefs.folded").new(options)
  return counts
end

--- One field of a record as the kernel would print it (symbols, flags), or without a field
--- what stands behind "name: " in the kernel's trace file.
---@param record tracefs.record
---@param field? string
---@return string? text nil when the field is not there or the event's print format is not usable
---@return string? message
function tracefs.text(record, field)
  return core.text(record, field)
end

--- An integer's 64 bits as an unsigned decimal number. Fields of type u64 above 2^63 - 1 are
--- negative Lua integers.
---@param integer integer
---@return string digits
function tracefs.u64(integer)
  if math.type(integer) ~= "integer" then
    error("u64: an integer is needed, not " .. tostring(integer), 2)
  end
  if integer >= 0 then
    return tostring(integer)
  end
  local tens = (integer >> 1) // 5
  return tostring(tens) .. tostring(integer - tens * 10)
end

--- The reading of a trace clock, to compare with common_timestamp.
---@param clock? string "mono" (default), "boot", "mono_raw", "tai": those that user space can read
---@return integer? ns
---@return string? message
function tracefs.now(clock)
  return core.now(clock)
end

--- The records of an instance's snapshot, in the order of time: `for ev in
--- tracefs.snapshot_events(instance) do`. Reading takes them out of the snapshot. Raises when there
--- are no snapshots.
---@param instance tracefs.instance
---@param options? { on_lost?: fun(lost: tracefs.loss) }
---@return fun(): tracefs.record? iterator
---@return any, any
---@return any closer
function tracefs.snapshot_events(instance, options)
  local dir, message = tracefs.tracing_dir()
  if not dir then
    error(message, 2)
  end
  local iterator, state, first, closer = require("tracefs.snapshot").events(dir, instance, options)
  return iterator, state, first, closer
end

--- What the kernel has once for everybody, at the top of tracefs: the least duration in
--- microseconds that the tracers record (tracing_thresh). With a number it is set, for everybody,
--- and stays so.
---@param us? integer 0: everything
---@return integer? us what it was before
---@return string? message
---@return integer? errno
function tracefs.tracing_thresh(us)
  return require("tracefs.machine").number(tracefs, "tracing_thresh", us, 0)
end

--- How many names of tasks the kernel keeps for the text of records (saved_cmdlines_size). With a
--- number it is set, for everybody, and stays so.
---@param count? integer
---@return integer? count what it was before
---@return string? message
---@return integer? errno
function tracefs.saved_cmdlines_size(count)
  return require("tracefs.machine").number(tracefs, "saved_cmdlines_size", count, 1)
end

--- A tracing session: see tracefs.session in docs/api.md. Raises when it cannot be had.
---@param options? tracefs.session_options
---@return tracefs.session
function tracefs.session(options)
  -- no tail call: errors name the place two frames up
  local session = require("tracefs.session").new(tracefs, options)
  return session
end

return tracefs
