--- Pairs of events by key: what session:pair is given, made into the matching that is done in C.
local core = require "tracefs.core"
local samples = require "tracefs.sample"
local stacks = require "tracefs.stacks"

local pair = { methods = {} }

local NS <const> = 1000000000
local MAX_CARRY <const> = 16
local MAX_STAGES <const> = 8
local MAX_INTO <const> = 8
local MAX_PARTS <const> = 7
local DEFAULT_MAX <const> = 100000

local KNOWN <const> = {
  start = true, stop = true, through = true, cancel = true, key = true, carry = true,
  on_match = "function", on_expired = "function", on_dropped = "function",
  on_unmatched = "function", into = true, timeout = true, max = true, same_cpu = "boolean",
  again = true, name = "string", where = "string",
}
local EVENT_KNOWN <const> = {
  event = true, filter = true, sample = true, key = true, next_key = true, stack = true,
  user_stack = true,
}
local WHERE <const> = { lua = true, kernel = true, auto = true }
local ROLES <const> = { "cancel", "stop", "through", "start" }

local function fail(text, ...)
  error("pair: " .. text:format(...), 0)
end

local function check_options(options)
  if type(options) ~= "table" then
    fail("a table of options is needed, not %s", type(options))
  end
  for name, value in pairs(options) do
    local kind = KNOWN[name]
    if not kind then
      fail("unknown option '%s'", tostring(name))
    elseif kind ~= true and type(value) ~= kind then
      fail("%s: a %s is needed, not %s", name, kind, type(value))
    end
  end
  for _, name in ipairs { "start", "stop", "key" } do
    if options[name] == nil then
      fail("%s is missing", name)
    end
  end
  if options.where and not WHERE[options.where] then
    fail('where: "lua", "kernel" or "auto", not %q', options.where)
  end
  if options.again ~= nil and options.again ~= "first" and options.again ~= "last" then
    fail('again: "first" or "last", not %s', tostring(options.again))
  end
  local timeout, max = options.timeout, options.max
  if timeout ~= nil and (type(timeout) ~= "number" or not (timeout > 0 and timeout <= 1e9)) then
    fail("timeout: a number of seconds above 0 is needed, not %s", tostring(timeout))
  end
  if max ~= nil and (math.type(max) ~= "integer" or max < 1 or max > 100000000) then
    fail("max: a whole number from 1 to 100000000 is needed, not %s", tostring(max))
  end
end

-- A list of names out of a name or a list of them.
local function names_of(value, what, most)
  if type(value) == "string" then
    return { value }
  elseif type(value) ~= "table" then
    fail("%s: a field's name or a list of them is needed, not %s", what, type(value))
  end
  local names = {}
  for key, name in pairs(value) do
    if math.type(key) ~= "integer" or key < 1 or key > #value or type(name) ~= "string" then
      fail("%s: a list of field names is needed", what)
    end
    names[key] = name
  end
  if #names > most or (#names == 0 and what ~= "carry") then
    fail("%s: from 1 to %d fields, not %d", what, most, #names)
  end
  return names
end

local function key_of(value, what)
  return type(value) == "function" and value or names_of(value, what, MAX_PARTS)
end

-- What stands for one side of the key in { start = ..., stop = ... }.
local function key_for(options, role)
  local key = options.key
  if type(key) == "table" and (key.start ~= nil or key.stop ~= nil) then
    for name in pairs(key) do
      if name ~= "start" and name ~= "stop" and name ~= "through" and name ~= "cancel" then
        fail("key: unknown side '%s'", tostring(name))
      end
    end
    key = key[role]
  end
  return key
end

local function check_event(spec, role)
  for name in pairs(spec) do
    if not EVENT_KNOWN[name] then
      fail("%s: unknown option '%s' of an event", role, tostring(name))
    end
  end
  if type(spec.event) ~= "string" then
    fail("%s: an event is a string such as \"sched:sched_switch\", not %s", role, type(spec.event))
  elseif spec.filter ~= nil and type(spec.filter) ~= "string" and type(spec.filter) ~= "table" then
    fail("%s: filter: a string or a table of conditions is needed, not %s", role,
      type(spec.filter))
  elseif type(spec.filter) == "string" and spec.filter:find("\0", 1, true) then
    fail("%s: bad filter: it has a zero byte", role)
  end
  for _, name in ipairs { "stack", "user_stack" } do
    if spec[name] ~= nil and type(spec[name]) ~= "boolean" then
      fail("%s: %s: true or false, not %s", role, name, type(spec[name]))
    end
  end
  if spec.next_key ~= nil and role ~= "through" then
    fail("%s: next_key is for the events of through", role)
  end
end

-- Which of its records are chosen has to hang on what the events of one pair have in common.
local function sample_of(spec, role)
  if spec.sample == nil then
    return nil
  end
  local wanted = samples.parse(spec.sample)
  if not wanted.field then
    fail('%s: the sample "%s" takes each in its turn, so that a start would be matched with the '
      .. 'stop of another one: choose by a field of the key, in all events of the pair, as in '
      .. '"1/%d of FIELD"', role, spec.sample, wanted.scale)
  end
  return wanted
end

-- One event of a role, from a string or a table.
local function event_of(value, role, options, stage)
  local spec = type(value) == "table" and value or { event = value }
  check_event(spec, role)
  local key = spec.key
  if key == nil then
    key = key_for(options, role)
  end
  if key == nil then
    fail("%s: %s has no key", role, spec.event)
  end
  return {
    role = role, pattern = spec.event, filter = spec.filter, stage = stage,
    sample = sample_of(spec, role),
    stacks = { stack = spec.stack, user_stack = spec.user_stack },
    key = key_of(key, "key"),
    next_key = spec.next_key ~= nil and names_of(spec.next_key, "next_key", MAX_PARTS) or nil,
  }
end

local function is_list(value)
  return type(value) == "table" and value.event == nil
end

-- What stands beside a list, or behind a gap in it, would not be seen.
local function check_list(list, what)
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 or key > #list then
      fail("%s: a list is needed: '%s' is not in it", what, tostring(key))
    end
  end
end

local function add_events(events, value, role, options, stage)
  if not is_list(value) then
    value = { value }
  elseif #value == 0 then
    fail("%s: the list of events is empty", role)
  end
  check_list(value, role)
  for _, one in ipairs(value) do
    events[#events + 1] = event_of(one, role, options, stage)
  end
end

-- All events, in the order in which one that has several roles does them.
local function collect(options)
  local events = {}
  local stages = options.through or {}
  if not is_list(stages) then
    stages = { stages }
  end
  check_list(stages, "through")
  if #stages > MAX_STAGES then
    fail("through: at most %d stages, not %d", MAX_STAGES, #stages)
  end
  for _, role in ipairs(ROLES) do
    if role == "through" then
      for stage = #stages, 1, -1 do
        add_events(events, stages[stage], role, options, stage - 1)
      end
    elseif options[role] ~= nil then
      add_events(events, options[role], role, options)
    end
  end
  return events, #stages
end

-- How many parts the key has: all lists of fields agree; a function returns as many values.
local function count_parts(events)
  local parts
  for _, event in ipairs(events) do
    for _, key in ipairs { event.key, event.next_key } do
      if type(key) == "table" then
        if parts and parts ~= #key then
          fail("key: %d fields on one side, %d on another", parts, #key)
        end
        parts = #key
      end
    end
  end
  return parts or 1
end

-- The aggregates with the places of their keys among the carried values, which they may add to.
local function collect_into(options, carry)
  local into = options.into
  if into == nil then
    return {}
  elseif type(into) == "userdata" then
    into = { into }
  end
  if type(into) ~= "table" then
    fail("into: an aggregate or a list of them is needed, not %s", type(into))
  end
  check_list(into, "into")
  if #into > MAX_INTO then
    fail("into: at most %d aggregates, not %d", MAX_INTO, #into)
  end
  local place = {}
  for i, name in ipairs(carry) do
    place[name] = i
  end
  local result = {}
  for i, aggregate in ipairs(into) do
    local class = getmetatable(aggregate)
    if type(aggregate) ~= "userdata" or type(class) ~= "table"
      or class.__name ~= "tracefs.aggregate" then
      fail("into: an aggregate is needed, not %s", type(aggregate))
    end
    local places = {}
    for k, name in ipairs(aggregate:options().by) do
      if not place[name] then
        carry[#carry + 1] = name
        place[name] = #carry
      end
      places[k] = place[name]
    end
    result[i] = { aggregate, places }
  end
  return result
end

-- Adds an event to the pair; what it lacks is said with what it has.
local function add_side(made, event, found, carry)
  local ok, result = pcall(made.side, made, event.role, found.event, {
    key = event.key, next_key = event.next_key, stage = event.stage, carry = carry,
  })
  if ok then
    return result
  end
  if type(result) == "string" and result:find(" has no field ", 1, true) then
    local names = {}
    for i, field in ipairs(found.event:fields()) do
      names[i] = field.name
    end
    result = result .. "; it has: " .. table.concat(names, ", ") .. ", common_timestamp, "
      .. "common_cpu, common_comm, common_event, common_late, common_scale, common_stack, "
      .. "common_user_stack"
  end
  error(result, 0)
end

-- What the options say, checked as far as that can be done without the events.
local function read_options(options)
  check_options(options)
  local events, stages = collect(options)
  local carry = options.carry ~= nil and names_of(options.carry, "carry", MAX_CARRY) or {}
  local report = #carry
  local into = collect_into(options, carry)
  if #carry > MAX_CARRY then
    fail("carry: at most %d values, with those that into needs", MAX_CARRY)
  end
  return {
    events = events, stages = stages, carry = carry, report = report, into = into,
    count = count_parts(events),
  }
end

--- Makes a pair that is not connected to anything: pair:feed() and pair:lost() bring it events.
--- Sessions make theirs with session:pair, which has the options.
---@param options tracefs.pair_options
---@param find fun(pattern: string, filter?: string): table[] the events that a pattern means, as
---  { event = tracefs.event }; called for all before anything else is done
---@param why? string why it is not the kernel that matches it
---@return tracefs.pair pair
---@return table[] sides what `find` returned, with the side and the filter of each
function pair.new(options, find, why)
  local parts = read_options(options)
  local events, carry = parts.events, parts.carry
  local made = core.pair {
    parts = parts.count, carry = #carry, report = parts.report, names = carry,
    stages = parts.stages, into = parts.into, why = why, max = options.max or DEFAULT_MAX,
    timeout = math.ceil((options.timeout or 0) * NS), same_cpu = options.same_cpu,
    keep_first = options.again == "first", on_match = options.on_match,
    on_expired = options.on_expired, on_dropped = options.on_dropped,
    on_unmatched = options.on_unmatched,
  }
  local sides = {}
  for _, event in ipairs(events) do
    for _, found in ipairs(find(event.pattern, event.filter)) do
      local side = {
        filter = event.filter, sample = event.sample,
        wanted = stacks.wanted(event.stacks, event.role == "start" and carry or {}),
      }
      for name, value in pairs(found) do
        side[name] = value
      end
      side.side = add_side(made, event, found, carry)
      sides[#sides + 1] = side
    end
  end
  return made, sides
end

-- Turns the events on, all or none.
local function enable_all(session, sides)
  local fresh = {}
  for _, side in ipairs(sides) do
    local entry = { system = side.system, name = side.name }
    local is_new = not session._labels[side.system .. ":" .. side.name]
    local ok, result = pcall(session._enable_all, session, { entry }, side.filter, side.sample,
      side.wanted)
    if not ok then
      for _, done in ipairs(fresh) do
        session:_disable(done.system, done.name)
      end
      error(result, 0)
    end
    if is_new then
      fresh[#fresh + 1] = entry
    end
    side.id = result[1]
  end
end

local function name_of(options)
  return require("tracefs.output.matches").name(options)
end

-- So few of each may have begun before the session, or go on behind it.
local SOME <const> = 10

-- What an answer that is empty, or not whole, does not say itself.
local function tell_end(session, made, options)
  local counts = made:counts()
  local function say(text, ...)
    if session.on_notice then
      session.on_notice(("pair %s: " .. text):format(name_of(options), ...))
    end
  end
  if counts.matched == 0 and counts.voided > 0 then
    say("no match: %d of %d starts were given up, as events were lost or came late while they were "
      .. "open", counts.voided, counts.starts)
  elseif counts.matched == 0 and counts.incomplete == 0 and counts.starts >= SOME then
    if not counts.unmatched then
      say("%d starts and no match: no stop came with the key of one", counts.starts)
    elseif counts.unmatched >= SOME then
      say("%d starts and %d stops, and no match: their keys are never the same", counts.starts,
        counts.unmatched)
    end
  end
  if counts.evicted > 0 and not options.on_dropped then
    say("%d of %d starts were given up, the oldest ones, as no more than %d are kept open at once: "
      .. "give it a larger max", counts.evicted, counts.starts, options.max or DEFAULT_MAX)
  end
  if (counts.dropped or 0) > 0 then
    say("%d starts and stops found no place in the kernel's tables, and are missing: give it a "
      .. "larger max", counts.dropped)
  end
end

-- Has the kernel match it.
local function new_in_kernel(session, options, is_choice)
  session:_check_open(0)
  if session._recorded then
    fail("where: %s is a recording; the kernel matches what happens now", session._recorded)
  elseif session._started then
    fail("where: the session has started; the kernel empties its buffer to begin")
  end
  local made = require("tracefs.kernel_pair").new(session, session:_kernel_target(), options,
    read_options(options), is_choice)
  session:at_start(function()
    made:_begin()
  end)
  session:at_end(function()
    made:_finish()
    tell_end(session, made, options)
  end)
  return made
end

-- The kernel if it can and nobody misses anything; else nil and why not.
local function choose(session, options)
  if require("tracefs.kernel_pair").wants_record(options) then
    return nil, "on_match, or what prints the matches, takes the record of the stop, which the "
      .. "kernel does not keep"
  end
  local ok, made = pcall(new_in_kernel, session, options, true)
  if ok then
    made.why = "it can have all of it, and a match costs one record instead of two"
    return made
  end
  return nil, (tostring(made):gsub("^pair: where: ", ""))
end

local function tell_choice(session, options, where, why)
  if session.on_choice then
    session.on_choice(("pair %s: matched in %s: %s"):format(name_of(options),
      where == "kernel" and "the kernel" or "Lua", why))
  end
end

local function new_for_session(session, options)
  if type(session) ~= "table" or not session._match then
    error("pair is a method: it is called with a colon, session:pair{ ... }", 0)
  end
  check_options(options)
  local why
  if options.where == "kernel" then
    return new_in_kernel(session, options), true
  elseif options.where == "auto" then
    local chosen
    chosen, why = choose(session, options)
    tell_choice(session, options, chosen and "kernel" or "lua", chosen and chosen.why or why)
    if chosen then
      return chosen, true
    end
  end
  local made, sides = pair.new(options, function(pattern)
    local found = session:_match(pattern)
    for i, event in ipairs(found) do
      found[i] = {
        system = event.system, name = event.name,
        event = session:_describe(event.system, event.name),
      }
    end
    return found
  end, why)
  if options.timeout and not session:_counts_ns() then
    fail("timeout: the clock '%s' does not count time", session._clock)
  end
  enable_all(session, sides)
  for _, side in ipairs(sides) do
    session._stream:pair(side.id, made, side.side)
  end
  return made
end

-- What a pair has to tell although none of its events comes.
local function keep_informed(session, made, options)
  if options.on_dropped then
    session:on_lost(function()
      made:expire()
    end)
  end
  if options.timeout and session._clock_readable then
    session:every(math.max(0.01, math.min(1, options.timeout / 2)), function(now)
      made:expire(now)
    end)
    session:at_end(function()
      -- in a recording time ends with its last record
      made:expire(not session._recorded and core.now(session._clock) or nil)
    end)
  end
  session:at_end(function()
    tell_end(session, made, options)
  end)
end

---@class tracefs.pair_event
---@field event string pattern of events, as for on()
---@field filter? string|table the kernel's filter, or a table of conditions
---@field sample? string "1/64 of FIELD", as for on(): a field of the key, the same for all events
---@field key? string|string[]|fun(ev: tracefs.record): ... instead of the pair's `key`
---@field stack? boolean its records come with the kernel's stack, as for on()
---@field user_stack? boolean
---@field next_key? string|string[] for `through`: the key under which later events come

---@class tracefs.pair_options
---@field start string|tracefs.pair_event|table an event or a list of them
---@field stop string|tracefs.pair_event|table
---@field key string|string[]|table|fun(ev: tracefs.record): ... a field, a list of fields, a
---  function of the record, or { start = ..., stop = ... } with one of these for each side
---@field through? table stages between start and stop, in their order: an event or a list for each
---@field cancel? string|tracefs.pair_event|table events that end a start without a match
---@field carry? string|string[] fields of the start that are kept for the functions
---@field on_match? fun(delta_ns: integer, key: any, start_values: table?, stop: tracefs.record,
---  stages_ns: integer[])
---@field on_expired? fun(key: any, start_values: table?) a start is older than the timeout
---@field on_dropped? fun(how: string, key: any, start_values: table?, ev: tracefs.record?) a start
---  has ended otherwise: "replaced", "cancelled", "incomplete", "evicted", "voided"; with the
---  record that ended it, if one did
---@field on_unmatched? fun(key: any, stop: tracefs.record) a stop without a start
---@field into? tracefs.aggregate|tracefs.aggregate[] get each delta, under the values of the start
---  that their `by` names
---@field timeout? number seconds
---@field max? integer starts that are open at once (100000): behind that the oldest one goes
---@field same_cpu? boolean both are on one CPU
---@field again? "last"|"first" which of two starts of one key counts ("last")
---@field name? string what outputs call it
---@field where? "lua"|"kernel"|"auto" who matches it ("lua"); "auto": the kernel where it can do
---  all of this, and pair:where() says why not

--- Pairs two events, or chains of more, by key: how long from the one to the other.
---
---     session:pair {
---       start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr",
---       on_match = function(delta_ns, skbaddr) print(delta_ns) end,
---     }
---
--- The matching is done in C; Lua is called only for the functions that are given.
---@param options tracefs.pair_options
---@return tracefs.pair
function pair.methods:pair(options)
  local ok, made, is_kernels = pcall(new_for_session, self, options)
  if not ok then
    error(made, type(made) == "string" and 2 or 0)
  end
  if not is_kernels then
    keep_informed(self, made, options)
  end
  return made
end

return pair
