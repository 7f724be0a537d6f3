--- Which records of a trace file a subcommand is to take: the options, and what they do.
local events = require "tracefs.events"
local report = require "tracefs.command.report"
local tracefs = require "tracefs"
local words = require "tracefs.command.words"

local choosing = {}

local convert = {}

-- "0,2-4" as a table of numbers.
function convert.cpus(text)
  local cpus = {}
  for part in (text .. ","):gmatch("([^,]*),") do
    local first, last = part:match("^(%d+)%-(%d+)$")
    first = math.tointeger(tonumber(first or part:match("^%d+$")))
    last = math.tointeger(tonumber(last or first))
    if not first or last < first or last > 65535 then
      return nil, ("'%s' is no list of CPUs: 0,2-4"):format(text)
    end
    for cpu = first, last do
      cpus[cpu] = true
    end
  end
  return cpus
end

-- No clock of the kernel reaches it: 292 years.
local LATEST <const> = math.maxinteger // 1000000000 - 1

-- Seconds with a fraction as ns, exactly; whole numbers of a clock that counts something else.
-- Six digits are what the report shows of a time, rounded: `half` (-500, 499) takes in all that
-- they stand for.
local function timestamp(text, in_ns, half)
  local whole, fraction = text:match("^(%d+)%.?(%d*)$")
  local number = whole and math.tointeger(tonumber(whole))
  if not number or (not in_ns and fraction ~= "") then
    return nil
  elseif not in_ns then
    return number
  elseif number > LATEST then
    return nil
  end
  local ns = number * 1000000000 + math.tointeger(tonumber((fraction .. "000000000"):sub(1, 9)))
  return math.max(0, ns + (#fraction == 6 and half or 0))
end

function convert.range(text)
  local from, to = text:match("^([%d.]*),([%d.]*)$")
  for _, part in ipairs { from or "x", to or "x" } do
    if part ~= "" and not (timestamp(part, true) or timestamp(part, false)) then
      return nil, ("'%s' is no range of time: A,B as in the report, either may be left out")
        :format(text)
    end
  end
  return { from = from, to = to }
end

--- The options. Those named in `many` may be repeated.
choosing.options = {
  { long = "--cpu", value = "LIST", convert = convert.cpus, help = "Only these CPUs: 0,2-4." },
  { short = "-e", long = "--event", value = "GLOB",
    help = "Only these events. May be repeated." },
  { short = "-F", long = "--filter", value = "FILTER",
    help = "Only what the kernel's filter lets through: [EVENT:]FILTER. May be repeated." },
  { long = "--ts-range", value = "A,B", convert = convert.range,
    help = "Only from time A to time B, as in the report." },
  { short = "-B", long = "--instance", value = "NAME",
    help = "Only the buffer of this instance; empty: the top one." },
  { long = "--partial", help = "A damaged file is read as far as it goes, with a warning." },
}

choosing.many = { event = true, filter = true }

local function matcher(patterns, list, path)
  if #patterns == 0 then
    return nil
  end
  local wanted = {}
  for _, pattern in ipairs(patterns) do
    local found, message, missing = events.match_in(list, pattern, path)
    if not found then
      words.wrong("%s", message)
    elseif missing then
      report.warning(message)
    end
    for _, event in ipairs(found) do
      wanted[event] = true
    end
  end
  return wanted
end

-- "EVENT:FILTER" or "FILTER": the kernel's language has no colon but inside quotes.
local function split_filter(text)
  local bare = text:gsub("(['\"])(.-)%1", function(quote, inner)
    return quote .. ("x"):rep(#inner) .. quote
  end)
  local at = bare:match(".*():")
  if not at then
    return nil, text
  end
  return (text:sub(1, at - 1):gsub("/", ":")), text:sub(at + 1)
end

-- The filters of each event, one of which has to let a record through; and all of them.
local function filters_by_event(filters, list, path)
  local by_event, all = {}, {}
  for i, text in ipairs(filters) do
    local pattern, filter = split_filter(text)
    local chosen = pattern and matcher({ pattern }, list, path)
    local found = { text = filter, is_for_all = not chosen }
    all[i] = found
    for _, event in ipairs(list) do
      if not chosen or chosen[event] then
        by_event[event] = by_event[event] or {}
        table.insert(by_event[event], found)
      end
    end
  end
  return by_event, all
end

-- A filter for all events keeps those that have its fields, of which there has to be one.
local function set_filters(source, filters, list)
  local by_event, all = filters_by_event(filters, list, source.path)
  for _, event in ipairs(list) do
    local texts = {}
    for _, filter in ipairs(by_event[event] or {}) do
      local ok, message = source:set_filter(event.system, event.name, filter.text)
      if ok then
        texts[#texts + 1] = ("(%s)"):format(filter.text)
        filter.is_taken = true
      elseif filter.is_for_all then
        filter.refusal = filter.refusal or message
      else
        error(message, 0)
      end
    end
    if #texts > 0 then
      source:set_filter(event.system, event.name, table.concat(texts, " || "))
    else
      source.stream:select(event.id, false)
    end
  end
  for _, filter in ipairs(all) do
    if not filter.is_taken and filter.refusal then
      error(filter.refusal, 0)
    end
  end
end

local function select_events(session, options)
  local source = session.instance
  local list, chosen = source:event_list(), {}
  local wanted = matcher(options.event, list, source.path)
  for _, event in ipairs(list) do
    local is_chosen = not wanted or wanted[event]
    source.stream:select(event.id, is_chosen or false)
    chosen[#chosen + 1] = is_chosen and event or nil
  end
  if #options.filter > 0 then
    set_filters(source, options.filter, chosen)
  end
end

local function set_range(session, range)
  local function part(text, default, half)
    if text == "" then
      return default
    end
    local ts = timestamp(text, session._clock_in_ns, half)
    if not ts and session._clock_in_ns then
      words.wrong("--ts-range: no clock goes as far as %s seconds", text)
    elseif not ts then
      words.wrong("--ts-range: the clock of the file, %s, counts whole numbers", session._clock)
    end
    return ts
  end
  session._stream:set_range(part(range.from, 0, -500), part(range.to, -1, 499))
end

--- Are there records in what is asked for, and not only a latency tracer's text?
---@param file tracefs.datafile
---@param options table
---@return boolean
function choosing.has_records(file, options)
  for _, buffer in ipairs(file:buffers()) do
    if not buffer.is_text and (options.instance or buffer.name) == buffer.name then
      return true
    end
  end
  return false
end

--- A session on the file that hands out what is asked for. Raises.
---@param path string
---@param options table what words.parse makes of the options
---@return tracefs.session
function choosing.open(path, options)
  local ok, session = pcall(tracefs.session, {
    file = path,
    buffer = options.instance,
    partial = options.partial,
  })
  if not ok then
    error(require("tracefs.command.loading").without_position(session), 0)
  end
  local chosen, problem = pcall(function()
    select_events(session, options)
    if options.cpu then
      session._stream:set_cpus(options.cpu)
    end
    if options.ts_range then
      set_range(session, options.ts_range)
    end
  end)
  if not chosen then
    session:close()
    error(problem, 0)
  end
  return session
end

return choosing
