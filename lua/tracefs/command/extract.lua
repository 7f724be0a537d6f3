--- luatrace extract: what a capture has caught, as a trace file.
local core = require "tracefs.core"
local report = require "tracefs.command.report"
local standing = require "tracefs.command.standing"
local words = require "tracefs.command.words"
local writing = require "tracefs.command.writing"
local must = require("tracefs.raising").must

local extract = {}

local OPTIONS <const> = {
  standing.option,
  { short = "-o", long = "--output", value = "FILE", help = "The file (trace.dat)." },
  { long = "--file-version", value = "6|7", convert = writing.version,
    help = "Of the file; 6 for readers from before 2022." },
  standing.force,
  { short = "-q", long = "--quiet", help = "No notes on standard error; warnings stay." },
}

function extract.help()
  return [[
Usage: luatrace extract [-B NAME] [-o FILE] [--force]

Writes what a capture has caught into a trace file, and takes it out of the kernel's buffers. The
capture goes on if it was not stopped; luatrace reset ends it.

Options:
]] .. words.help(OPTIONS)
end

---@param list string[]
---@return integer status
function extract.run(list)
  local options = words.parse_options(OPTIONS, list)
  report.quiet = options.quiet
  return standing.run(options.name, function(instance)
    standing.check(instance, options.force, "extracts")
    local before = writing.events_read(instance)
    local is_on = must(instance:trace_is_on())
    local recording <close> = must(core.recording(instance, options.output or "trace.dat",
      writing.options(instance, options.file_version)))
    must(recording:direct())
    writing.drain(instance, recording, is_on)
    writing.complete(instance, recording, nil, before)
  end)
end

return extract
