--- luatrace cut: a part of a trace file as a trace file.
local choosing = require "tracefs.command.choosing"
local core = require "tracefs.core"
local cutting = require "tracefs.cutting"
local escape = require "tracefs.escape"
local progress = require "tracefs.command.progress"
local report = require "tracefs.command.report"
local tracefile = require "tracefs.tracefile"
local words = require "tracefs.command.words"
local writing = require "tracefs.command.writing"

local cut = {}

local OPTIONS <const> = table.move(choosing.options, 1, #choosing.options, 1, {})
for _, option in ipairs {
  { short = "-o", long = "--output", value = "FILE", help = "The new file. It must be given." },
  { long = "--file-version", value = "6|7", convert = writing.version,
    help = "Of the new file; 6 for readers from before 2022." },
  { short = "-q", long = "--quiet", help = "No notes and no progress on standard error." },
} do
  OPTIONS[#OPTIONS + 1] = option
end

--- The text of luatrace cut --help.
---@return string
function cut.help()
  return table.concat({
    "Usage: luatrace cut [OPTIONS] -o FILE FILE",
    "",
    "Writes a part of a trace.dat file into a new one, with everything that the old one says about",
    "its records: formats, names, symbols, clock, losses. The options choose what luatrace report",
    "with the same ones would print.",
    "",
    "Options:",
    words.help(OPTIONS),
    "",
    "Exit status: 0 done; 1 it cannot be read or written, or is damaged; 2 wrong usage; 128 + a",
    "signal's number when that ended it. There is no new file but with 0.",
  }, "\n")
end

local function left_out(file, options)
  for _, buffer in ipairs(file:buffers()) do
    if buffer.is_text and (options.instance or buffer.name) == buffer.name then
      report.warning(("the text of a latency tracer%s is left out"):format(
        buffer.name == "" and "" or " in buffer " .. buffer.name))
    end
  end
end

local function run(options, path, signals)
  local session <close> = choosing.open(path, options)
  local shown = progress.new("writing ", options.quiet)
  local settings = tracefile.check_options { version = options.file_version }
  settings.partial = options.partial
  left_out(session.instance.file, options)
  local records, message = cutting.run(session._stream, options.output, settings,
    function(done, all)
      local signal = signals:received()
      if signal then
        shown:clear()
        error({ signal = signal }, 0)
      end
      shown:show(options.output, done, all)
    end)
  shown:clear()
  if not records then
    local is_damage = message == session:damage()
    error(is_damage and message .. "; --partial keeps what can be read" or message, 0)
  end
  if session:damage() then
    report.warning(session:damage())
  end
  report.note(("%s: %d event%s"):format(escape.text(options.output), records,
    records == 1 and "" or "s"))
end

--- Runs `luatrace cut`.
---@param list string[]
---@return integer status
function cut.run(list)
  local options, plain = words.parse(OPTIONS, list, choosing.many)
  if #plain ~= 1 then
    words.wrong(#plain == 0 and "which FILE?" or "one FILE, not %d", #plain)
  elseif not options.output or options.output == "" then
    words.wrong("where to? -o FILE")
  end
  report.quiet = options.quiet or false
  local signals <close> = assert(core.signals())
  local ok, problem = pcall(run, options, plain[1], signals)
  if not ok and type(problem) == "table" then
    return problem.signal and 128 + problem.signal or error(problem, 0)
  elseif not ok then
    report.failure(tostring(problem))
    return 1
  end
  return 0
end

return cut
