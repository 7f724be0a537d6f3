--- luatrace list: what there is to choose from.
local glob = require "tracefs.glob"
local output = require "tracefs.output"
local report = require "tracefs.command.report"
local tracefs = require "tracefs"
local words = require "tracefs.command.words"

local list = {}

local OPTIONS <const> = {
  { short = "-e", long = "--events", help = "Events, as system:event (without an option)." },
  { short = "-t", long = "--tracers", help = "Tracers, for -p." },
  { short = "-o", long = "--options",
    help = "Options of the tracer; those that are off have a no." },
  { short = "-C", long = "--clocks", help = "Clocks, for -C." },
  { short = "-f", long = "--functions", help = "Functions that can be traced, for -l and -g." },
}

function list.help()
  return [[
Usage: luatrace list [-e|-t|-o|-C|-f] [GLOB]

Lists what there is to choose from, one a line, all or what GLOB (*, ?, [...]) matches.

Options:
]] .. words.help(OPTIONS)
end

local function read(dir, file)
  local handle <close>, message = io.open(dir .. "/" .. file)
  local text
  if handle then
    text, message = handle:read("a")
  end
  if not text then
    error(("cannot read %s/%s: %s"):format(dir, file, (message:gsub("^.*: ", ""))), 0)
  end
  return text
end

local function split(text, pattern)
  local found = {}
  for word in text:gmatch(pattern) do
    found[#found + 1] = word
  end
  return found
end

local sources = {}

function sources.tracers(dir)
  return split(read(dir, "available_tracers"), "%S+")
end

function sources.options(dir)
  return split(read(dir, "trace_options"), "%S+")
end

function sources.clocks(dir)
  return split((read(dir, "trace_clock"):gsub("[%[%]]", "")), "%S+")
end

function sources.functions(dir)
  return split(read(dir, "available_filter_functions"), "(%S+)[^\n]*\n")
end

local function collect(kind, pattern)
  if kind == "events" then
    local labels, message = tracefs.events(pattern)
    if not labels then
      error(message, 0)
    end
    return labels
  end
  local dir, message = tracefs.tracing_dir()
  if not dir then
    error(message, 0)
  end
  local matches, why = glob.matcher(pattern)
  if not matches then
    words.wrong("bad pattern %q: %s", pattern, why)
  end
  local found = {}
  for _, name in ipairs(sources[kind](dir)) do
    if matches(name) then
      found[#found + 1] = name
    end
  end
  return found
end

---@param argv string[]
---@return integer status
function list.run(argv)
  local given, plain = words.split(OPTIONS, argv)
  if not given then
    words.wrong("%s", plain)
  elseif #given > 1 then
    words.wrong("one list at a time")
  elseif plain[2] then
    words.wrong("one pattern at a time, not also '%s'", plain[2])
  end
  local kind = given[1] and given[1].name or "events"
  local ok, result = pcall(collect, kind, plain[1])
  if not ok then
    if type(result) == "table" then
      error(result, 0)
    end
    report.failure(result)
    return 1
  end
  local out = assert(output.open { format = "text" })
  for _, name in ipairs(result) do
    out:write(name .. "\n")
  end
  local failure = out:close()
  if failure then
    report.failure(tostring(failure))
    return 1
  elseif #result == 0 then
    report.failure(("nothing matches '%s'"):format(plain[1] or "*"))
    return 1
  end
  return 0
end

return list
