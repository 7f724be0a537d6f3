--- The matches of pairs as part of an output, beside what the script does with them.
local events = require "tracefs.output.events"
local rows = require "tracefs.output.rows"
local u64 = require("tracefs").u64

local matches = {}

---@class tracefs.output.match
---@field name string of the pair
---@field keys { name: string, value: any, text?: string }[]
---@field values { name: string, value: any, text?: string }[] carried from the start
---@field start integer timestamps
---@field stop integer
---@field start_digits string the same as unsigned numbers
---@field stop_digits string
---@field delta integer
---@field stages integer[] how long each leg took, if there are several
---@field cpu integer of the stop
---@field in_ns boolean the clock counts ns

-- The first of one or several events, as the options of pair have them.
local function first_event(value)
  if type(value) == "table" then
    value = value.event or first_event(value[1])
  end
  return type(value) == "string" and value or nil
end

--- What a pair is called that has no name: start>stop, without the systems.
---@param options tracefs.pair_options
---@return string
function matches.name(options)
  if options.name ~= nil then
    return options.name
  end
  local function short(value)
    return (tostring(first_event(value)):gsub("^[^:]*:", ""))
  end
  return short(options.start) .. ">" .. short(options.stop)
end

local function listed(value)
  return type(value) == "table" and value or { value }
end

-- The names of the key's parts, as the stop has them.
local function key_names(options)
  local stop, key = options.stop, options.key
  if type(stop) == "table" and stop.event == nil then
    stop = stop[1]
  end
  if type(stop) == "table" and stop.key ~= nil then
    key = stop.key
  elseif type(key) == "table" and (key.start ~= nil or key.stop ~= nil) then
    key = key.stop
  end
  return type(key) ~= "function" and listed(key) or {}
end

--- A copy of the options whose matches are shown too.
---@param out tracefs.output
---@param options tracefs.pair_options
---@param session tracefs.session
---@return tracefs.pair_options
function matches.watch(out, options, session)
  local own, watched = options.on_match, {}
  for name, value in pairs(options) do
    watched[name] = value
  end
  local name, names = matches.name(options), key_names(options)
  local start = first_event(options.start)
  local in_ns = session:_counts_ns()
  function watched.on_match(delta, key, carried, stop, stages)
    local match = {
      name = name, keys = {}, values = {}, delta = delta, cpu = stop.common_cpu,
      stop = stop.common_timestamp, stages = stages and #stages > 1 and stages or {},
      in_ns = in_ns,
    }
    match.start = match.stop - delta
    match.start_digits, match.stop_digits = u64(match.start), u64(match.stop)
    local unsigned = events.unsigned(stop.common_event)
    for i, value in ipairs(listed(key)) do
      local part = names[i] or (i == 1 and "key" or "key" .. i)
      match.keys[i] = rows.item(part, value, unsigned and unsigned[part] == true)
    end
    unsigned = carried and start and events.unsigned(start)
    for _, field in ipairs(carried and listed(options.carry) or {}) do
      if carried[field] ~= nil then
        match.values[#match.values + 1] = rows.item(field, carried[field],
          unsigned and unsigned[field] == true)
      end
    end
    out.writer:match(match)
    if own then
      own(delta, key, carried, stop, stages)
    end
  end
  return watched
end

return matches
