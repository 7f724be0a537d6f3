--- luatrace report: the records of a trace file as lines.
local choosing = require "tracefs.command.choosing"
local core = require "tracefs.core"
local output = require "tracefs.output"
local progress = require "tracefs.command.progress"
local report = require "tracefs.command.report"
local summary = require "tracefs.command.summary"
local words = require "tracefs.command.words"

local reporting = {}

local function one_of(...)
  local list = { ... }
  return function(text)
    for _, word in ipairs(list) do
      if text == word then
        return text
      end
    end
    return nil, ("'%s' is none of: %s"):format(text, table.concat(list, ", "))
  end
end

local OPTIONS <const> = table.move(choosing.options, 1, #choosing.options, 1, {})
for _, option in ipairs {
  { short = "-f", long = "--format", value = "FORMAT", convert = one_of("text", "json", "csv"),
    help = "text, json (one object a line) or csv." },
  { short = "-t", long = "--nanoseconds", help = "All digits of the time." },
  { short = "-o", long = "--output", value = "FILE", help = "Write to this file." },
  { short = "-q", long = "--quiet", help = "No notes and no progress on standard error." },
} do
  OPTIONS[#OPTIONS + 1] = option
end

--- The text of luatrace report --help.
---@return string
function reporting.help()
  return table.concat({
    "Usage: luatrace report [OPTIONS] FILE",
    "",
    "Prints the records of a trace.dat file, in the order of time, as trace-cmd report does.",
    "",
    "Options:",
    words.help(OPTIONS),
    "",
    "Exit status: 0 done; 1 it cannot be read or written, or is damaged; 2 wrong usage.",
  }, "\n")
end

-- The text of latency tracers stands before the records.
local function text_buffers(file, options, out)
  for _, buffer in ipairs(file:buffers()) do
    if buffer.is_text and (options.instance or buffer.name) == buffer.name then
      local text, message = file:text(buffer.name)
      if not text then
        error(message, 0)
      end
      out:write(text)
    end
  end
end

local function shows_buffers(session)
  local count = 0
  for _, buffer in ipairs(session.instance.file:buffers()) do
    count = count + (buffer.is_text and 0 or 1)
  end
  return count > 1
end

local function print_lines(session, options, out)
  local stream, source = session._stream, session.instance
  local shown = progress.new("", options.quiet)
  local info = source.file:info()
  if options.format ~= "csv" then
    local cpus = info.cpus
    for _, buffer in ipairs(source.file:buffers()) do
      for _, cpu in ipairs(buffer.cpus) do
        cpus = math.max(cpus, cpu + 1)
      end
    end
    out:write(("cpus=%d\n"):format(cpus))
  end
  local reporter = source.file:report(stream, source.catalog, {
    csv = options.format == "csv",
    clock_in_ns = session._clock_in_ns,
    nanoseconds = options.nanoseconds or false,
    buffers = shows_buffers(session) and not options.instance,
  })
  local more, text, message
  repeat
    more, text, message = reporter:run()
    out:write_raw(text)
    shown:show(source.path, stream:progress())
  until not more
  shown:clear()
  if more == nil then
    error(message, 0)
  end
end

local function print_json(session, out)
  -- there is no script here whose lines a traceback would be about
  session.message_handler = function(err)
    return err
  end
  require("tracefs.output.events").describe_with(function(label)
    return session:_describe_label(label)
  end)
  local list = session.instance:event_list()
  for _, event in ipairs(list) do
    session._labels[event.id] = event
    session._stream:handle(event.id, function(record)
      out:record(record)
    end)
  end
  session:on_lost(function(lost)
    out:lost(lost)
  end)
  session:run()
end

local function run(options, path, out)
  local file, message = core.datafile(path)
  if not file then
    error(message, 0)
  end
  text_buffers(file, options, out)
  if not choosing.has_records(file, options) and not options.instance and #file:buffers() > 0 then
    return
  end
  local session = choosing.open(path, options)
  local closing <close> = session
  if options.format == "json" then
    print_json(session, out)
  else
    print_lines(session, options, out)
  end
  summary.report(closing:stats(), path)
  if options.partial and session:damage() then
    report.warning(session:damage())
  end
end

--- Runs `luatrace report`.
---@param list string[]
---@return integer status
function reporting.run(list)
  local options, plain = words.parse(OPTIONS, list, choosing.many)
  if #plain ~= 1 then
    words.wrong(#plain == 0 and "which FILE?" or "one FILE, not %d", #plain)
  end
  report.quiet = options.quiet or false
  local out, message = output.open { path = options.output, input = plain[1],
    format = options.format == "json" and "json" or "text" }
  if not out then
    report.failure(message)
    return 1
  end
  local ok, problem = pcall(run, options, plain[1], out)
  local failure = out:close()
  if not ok and type(problem) == "table" and problem.usage then
    error(problem, 0)
  elseif not ok or failure then
    report.failure(tostring(not ok and problem or failure))
    return 1
  end
  return 0
end

return reporting
