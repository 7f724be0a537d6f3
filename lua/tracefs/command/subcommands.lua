--- Words that may stand first on the command line instead of a script: `luatrace NAME ...`.
---
--- Each has its room, the module tracefs.command.MODULE, entered when the word is there:
---   run(words) -> status   does it; `words` are those behind the name. Wrong usage: raise a
---                          table { usage = message }, which the command shows and exits with 2
---   help() -> string       the text of `luatrace NAME --help`
--- tracefs.command.words reads the options of one.
local subcommands = {}

---@class tracefs.command.subcommand
---@field name string
---@field module string of lua/tracefs/command/
---@field usage string what stands behind the name
---@field help string one line for luatrace --help

--- In the order in which --help shows them.
---@type tracefs.command.subcommand[]
subcommands.list = {
  { name = "record", module = "record", usage = "[-e EVENT]... [CMD]",
    help = "Write events into a trace file." },
  { name = "report", module = "reporting", usage = "[OPTIONS] FILE",
    help = "Print the records of a trace file." },
  { name = "cut", module = "cut", usage = "[OPTIONS] -o FILE FILE",
    help = "Write a part of a trace file into a new one." },
  { name = "start", module = "start", usage = "[-e EVENT]...",
    help = "Begin a capture that goes on by itself." },
  { name = "stop", module = "stop", usage = "", help = "Pause it." },
  { name = "stat", module = "stat", usage = "", help = "Show how it stands." },
  { name = "extract", module = "extract", usage = "[-o FILE]",
    help = "Write what it has caught into a trace file." },
  { name = "reset", module = "reset", usage = "", help = "End it and remove what it left." },
  { name = "list", module = "list", usage = "[-e|-t|-o|-C|-f] [GLOB]",
    help = "List events, tracers, options, clocks, functions." },
}

--- The subcommand with this name, if there is one.
---@param name? string
---@return tracefs.command.subcommand?
function subcommands.find(name)
  for _, entry in ipairs(subcommands.list) do
    if entry.name == name then
      return entry
    end
  end
end

--- The lines about them in luatrace --help.
---@return string[]
function subcommands.help_lines()
  local lines = {}
  for _, entry in ipairs(subcommands.list) do
    lines[#lines + 1] = ("  %-26s %s"):format(entry.name .. " " .. entry.usage, entry.help)
    if #entry.name + 1 + #entry.usage > 26 then
      lines[#lines] = ("  %s %s\n%29s%s"):format(entry.name, entry.usage, "", entry.help)
    end
  end
  return lines
end

return subcommands
