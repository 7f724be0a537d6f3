--- The options of a session: what they may be, and putting them into an instance.
local core = require "tracefs.core"
local must = require("tracefs.raising").must

---@class tracefs.session_options
---@field clock? string a name of the kernel's trace_clock file; default "mono"
---@field buffer_kb? integer per CPU; default 4096, all CPUs together at most 5 % of the memory
---@field subbuf_kb? integer default 64 where the kernel can, else the page size
---@field overwrite? boolean a full buffer overwrites the oldest (default), or drops the newest
---@field margin? number seconds from an event's timestamp to its being visible; default 0.001
---@field interval? number seconds: the longest time between two looks; default 0.1
---@field low_latency? boolean wake for every event; default false
---@field memory_mb? integer what records that are read and not yet handled may take; default 64
---@field name? string of the instance; default "luatrace-PID-STARTTIME-N"
---@field own_events? boolean hand out the tracer's own events too; default false
---@field cpus? integer[] only these CPUs record; default all
---@field pids? integer[] only events of these tasks; default everyone's
---@field children? boolean with pids: of the tasks that they start, too; default false
---@field trace_options? table<string, boolean> files of options/, by name
---@field file? string read this trace.dat file instead of tracing the kernel that runs
---@field buffer? string of a file: only this buffer ("" is the top one); default all of them
---@field partial? boolean of a file: damage ends the run and is no error; default false
---@field on_error? "raise"|"warn" what an error in a handler does; default "raise"

local settings = {}

local function integer_between(low, high)
  return function(value)
    return math.type(value) == "integer" and value >= low and value <= high,
      ("a whole number from %d to %d"):format(low, high)
  end
end

local function number_between(low, high)
  return function(value)
    return type(value) == "number" and value >= low and value <= high,
      ("a number from %g to %g"):format(low, high)
  end
end

local function boolean(value)
  return type(value) == "boolean", "true or false"
end

local function text(value)
  return type(value) == "string" and #value > 0, "a string"
end

local function numbers_from(low)
  return function(value)
    local is_list = type(value) == "table" and #value > 0
    for _, number in ipairs(is_list and value or {}) do
      is_list = is_list and math.type(number) == "integer" and number >= low
    end
    return is_list, ("a list of whole numbers from %d on"):format(low)
  end
end

local function switches(value)
  local is_table = type(value) == "table"
  for name, on in pairs(is_table and value or {}) do
    is_table = is_table and type(name) == "string" and type(on) == "boolean"
  end
  if is_table and value.overwrite ~= nil then
    return false, "without overwrite, which is a session's option by itself"
  end
  return is_table, "a table with true or false by the options' names"
end

local rules = {
  clock = text,
  buffer_kb = integer_between(1, 1 << 40),
  subbuf_kb = integer_between(1, 1 << 20),
  overwrite = boolean,
  margin = number_between(0, 10),
  interval = number_between(0.0001, 60),
  low_latency = boolean,
  memory_mb = integer_between(1, 1 << 20),
  name = text,
  own_events = boolean,
  cpus = numbers_from(0),
  pids = numbers_from(1),
  children = boolean,
  trace_options = switches,
  file = text,
  buffer = function(value)
    return type(value) == "string", "a string"
  end,
  partial = boolean,
  on_error = function(value)
    return value == "raise" or value == "warn", '"raise" or "warn"'
  end,
}

-- What a session on a file can have, and what one on a live kernel cannot.
local of_file = { file = true, buffer = true, partial = true, on_error = true }
local of_both = { on_error = true }

local function check_source(options)
  for name in pairs(options) do
    if options.file and not of_file[name] then
      error(("session: %s: %s is a recording; this needs a live kernel"):format(
        name, options.file), 5)
    elseif not options.file and of_file[name] and not of_both[name] then
      error(("session: %s belongs to a file; there is no option file"):format(name), 5)
    end
  end
end

--- Checks options and fills in the defaults that do not depend on the kernel.
---@param options? tracefs.session_options
---@return table options
function settings.check(options)
  local checked = {
    clock = "mono",
    overwrite = true,
    interval = 0.1,
    memory_mb = 64,
    low_latency = false,
    own_events = false,
    on_error = "raise",
  }
  if options ~= nil and type(options) ~= "table" then
    error("session: the options must be a table, not " .. type(options), 4)
  end
  for name, value in pairs(options or {}) do
    local rule = rules[name]
    if not rule then
      local names = {}
      for known in pairs(rules) do
        names[#names + 1] = known
      end
      table.sort(names)
      local list = table.concat(names, ", ")
      error(("session: unknown option '%s'; there are: %s"):format(tostring(name), list), 4)
    end
    local ok, needed = rule(value)
    if not ok then
      error(("session: %s must be %s, not %s"):format(name, needed, tostring(value)), 4)
    end
    checked[name] = value
  end
  check_source(options or {})
  checked.margin = checked.margin or (checked.low_latency and 0.0002 or 0.001)
  return checked
end

--- What each CPU gets when the script does not say: 4 MiB, unless all CPUs together would
--- then take more than a twentieth of the memory.
local function default_buffer_kb(cpus)
  local file <close> = io.open "/proc/meminfo"
  local total_kb = file and tonumber(file:read("a"):match "MemTotal:%s*(%d+)")
  if not total_kb then
    return 4096
  end
  return math.max(256, math.min(4096, total_kb // 20 // cpus))
end

local function count(list)
  local n = 0
  for _ in pairs(list) do
    n = n + 1
  end
  return n
end

--- Sets an instance up. Raises when the kernel refuses.
---@param instance tracefs.instance
---@param options table from settings.check
---@return table stream_options for core.stream
function settings.apply(instance, options)
  local buffer_kb = options.buffer_kb or default_buffer_kb(count(must(instance:stats())))

  if options.clock ~= instance:get_clock() then
    must(instance:set_clock(options.clock))
  end
  if options.subbuf_kb then
    must(instance:set_subbuf_kb(options.subbuf_kb))
  elseif buffer_kb >= 512 and instance:has "buffer_subbuf_size_kb" then
    -- bigger sub-buffers cost a quarter to read; pages of that size may be scarce
    instance:set_subbuf_kb(64)
  end
  must(instance:set_buffer_kb(buffer_kb))
  if not options.overwrite then
    must(instance:set_option("overwrite", false))
  end

  if options.cpus then
    must(instance:set_cpus(options.cpus))
  end
  if options.pids then
    must(instance:set_event_pids(options.pids, options.children))
  end
  for name, on in pairs(options.trace_options or {}) do
    must(instance:set_option(name, on))
  end

  local in_ns, readable = core.clock_info(options.clock)
  local has_trace, head = pcall(instance.read, instance, "trace")
  return {
    clock = options.clock,
    clock_in_ns = in_ns,
    clock_readable = readable,
    margin = options.margin,
    interval = options.interval,
    memory_mb = options.memory_mb,
    buffer_percent = options.low_latency and 0 or 25,
    overwrite = options.overwrite,
    own_events = options.own_events,
    migrate_column = has_trace and head ~= nil and head:find("migrate-disable", 1, true) ~= nil,
  }
end

return settings
