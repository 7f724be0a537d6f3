--- The command line of luatrace.
local values = require "tracefs.command.values"

local options = {}

local DESCRIPTION <const> =
  "Runs a Lua script on the Linux kernel's trace events, live or recorded."

local EPILOG <const> = [[
Examples:
   luatrace -l 'sched:*'                    events of the scheduler
   luatrace -lv net:net_dev_queue           an event's fields and their types
   luatrace -d 5 -e 'on("sched:sched_process_exec")'
                                            programs that start in the next five seconds
   luatrace -e 'n = 0 on("sched:sched_switch", function() n = n + 1 end)
                at_end(function() print(n) end)'
                                            counts context switches until Ctrl-C
   luatrace -c 'make -j4' switches.lua      while a command runs
   luatrace -p 1234 -f json -o out.jsonl -e 'on("syscalls:sys_enter_openat")'
                                            what one process opens, as JSON
   luatrace --dry-run script.lua            is everything right? without tracing
   luatrace --info                          what this kernel can do

With --user everything that needs root is done before a line of the script runs. What remains:
on and enable with filters, triggers, hist, options and markers, in the session's own instance,
which a helper process removes whatever happens. What does not: probes, synthetic events and
kernel_latency, functions, record, another session. NAME is a user or UID:GID.

Exit status: 0 done; 1 the script or the kernel said no; 2 wrong usage; 3 events were lost, under
--strict; with -c the command's own, 128 + N when signal N ended it.

The first SIGINT (Ctrl-C) or SIGTERM ends a run properly, a second one at once.]]

-- One way to write each; the scanner below and argparse both read it.
-- `value`: takes one. `optional`: takes the next word if that is no option.
local SPEC <const> = {
  { "-e", "--eval", value = "CODE", count = "*", target = "eval",
    help = "Run this code: the session's methods are globals. May be repeated." },
  { "-c", "--command", value = "CMD",
    help = "Trace while this shell command runs; it starts when everything is on." },
  { "-p", "--pid", value = "PID", count = "*", convert = "pid",
    help = "Only events of this process, its threads and children. May be repeated." },
  { "-i", "--input", value = "FILE",
    help = "Run on this trace.dat file instead of the live kernel." },
  { "-B", "--instance", value = "NAME",
    help = "With -i: only the buffer of this instance; empty: the top one." },
  { "--partial",
    help = "With -i: damage ends the reading, with a warning." },
  { "-d", "--duration", value = "TIME", convert = "duration",
    help = "End after this time: seconds, or with ms, s, m, h." },
  { "-b", "--buffer", value = "KB", convert = "kb", target = "buffer_kb",
    help = "Size of the kernel's buffer for each CPU." },
  { "-C", "--clock", value = "CLOCK",
    help = "Clock of the timestamps (mono)." },
  { "-o", "--output", value = "FILE",
    help = "Write to this file instead of standard output." },
  { "-f", "--format", value = "FORMAT",
    choices = require("tracefs.output").FORMATS,
    help = "How output is written: " .. table.concat(require("tracefs.output").FORMATS, ", ")
      .. "." },
  { "--listen", value = "[ADDR:]PORT", convert = "listen",
    help = "Serve metrics over HTTP, on 127.0.0.1 unless ADDR says other." },
  { "--top",
    help = "Show what is printed on one page, drawn anew with every()." },
  { "--user", value = "NAME",
    help = "Give up root's rights: script and -c run as this user (see below)." },
  { "-q", "--quiet",
    help = "No notes on standard error; warnings stay." },
  { "-v", "--verbose",
    help = "More notes; with -l fields and their types." },
  { "--strict",
    help = "Exit with 3 when events were lost." },
  { "--dry-run",
    help = "Load the script, check events, fields and filters, and end." },
  { "-l", "--list", optional = "PATTERN",
    help = "List events: all, or those that match." },
  { "--info",
    help = "Show what this kernel offers, and what is missing." },
  { "-V", "--version",
    help = "Show the version." },
  { "-h", "--help",
    help = "Show this text." },
}

-- Conversions give nil and what is wrong.
local convert = { pid = values.pid }

function convert.duration(text)
  return values.seconds(text, "the time for -d is above 0")
end

function convert.listen(text)
  local address, message = require("tracefs.output.http").parse(text)
  return address and text, message
end

function convert.kb(text)
  return values.kb(text)
end

-- Fields of what parse() returns are named after the long option.
local function target_of(spec)
  if spec.target then
    return spec.target
  end
  local long = spec[#spec]
  return (long:gsub("^%-%-", ""):gsub("%-", "_"))
end

local by_name = {}
for _, spec in ipairs(SPEC) do
  for _, name in ipairs(spec) do
    by_name[name] = spec
  end
end

-- Splits the words into options (in long spelling, values joined) and what belongs to the script. A
-- parser that takes options anywhere would take the script's, and short options with an optional
-- value (-l) would swallow the letters behind them (-lv).
local function split(words)
  local front, list, i = {}, nil, 1
  while i <= #words do
    local word = words[i]
    if word == "--" then
      i = i + 1
      break
    elseif word == "-" or word:sub(1, 1) ~= "-" then
      -- The first plain word behind -l is its pattern, also in `-l -v PATTERN`.
      if list and not list.pattern then
        list.pattern = word
      else
        break
      end
    elseif word:sub(1, 2) == "--" then
      local spec = by_name[word]
      if spec and spec.optional then
        list = { name = word }
      elseif by_name[word:match("^(.-)=")] and by_name[word:match("^(.-)=")].optional then
        list = { name = word:match("^(.-)="), pattern = word:match("=(.*)$") }
      else
        front[#front + 1] = word
        if spec and spec.value and words[i + 1] then
          i = i + 1
          front[#front] = word .. "=" .. words[i]
        end
      end
    else
      for at = 2, #word do
        local name = "-" .. word:sub(at, at)
        local spec = by_name[name]
        if spec and spec.optional then
          list = { name = name }
        elseif spec and spec.value then
          local long = spec[#spec]
          if at < #word then
            front[#front + 1] = long .. "=" .. word:sub(at + 1)
          elseif words[i + 1] then
            i = i + 1
            front[#front + 1] = long .. "=" .. words[i]
          else
            front[#front + 1] = name
          end
          break
        else
          front[#front + 1] = name
        end
      end
    end
    i = i + 1
  end
  if list then
    front[#front + 1] = by_name[list.name][2]
    if list.pattern then
      front[#front] = front[#front] .. "=" .. list.pattern
    end
  end
  return front, table.move(words, i, #words, 1, {})
end

local USAGE <const> = [[
Usage: luatrace [OPTIONS] SCRIPT [ARG...]
       luatrace [OPTIONS] -e CODE [ARG...]
       luatrace -l[v] [PATTERN]
       luatrace --info
]]

-- argparse's own help puts every option with a value on two lines.
local function option_line(spec)
  local names = table.concat(spec, ", ")
  local value = spec.value and " " .. spec.value or spec.optional and " [" .. spec.optional .. "]"
  local head = (#spec == 1 and "      " or "  ") .. names .. (value or "")
  return ("%-28s %s"):format(head, spec.help)
end

--- The text of --help.
---@return string
function options.help()
  local lines = { DESCRIPTION, "", USAGE, "Options:" }
  for _, spec in ipairs(SPEC) do
    lines[#lines + 1] = option_line(spec)
  end
  local commands = require("tracefs.command.subcommands").help_lines()
  if #commands > 0 then
    lines[#lines + 1] = ""
    lines[#lines + 1] = "Commands (a script with such a name is ./NAME):"
    table.move(commands, 1, #commands, #lines + 1, lines)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = EPILOG
  return table.concat(lines, "\n")
end

local function new_parser()
  local parser = require "argparse"("luatrace")
  parser:add_help(false)
  for _, spec in ipairs(SPEC) do
    local names = table.concat(spec, " ")
    local takes = spec.value or spec.optional
    local option = takes and parser:option(names) or parser:flag(names)
    option:target(target_of(spec))
    if spec.optional then
      option:args("?")
    end
    if spec.count then
      option:count(spec.count)
    elseif not takes then
      -- A flag that is given twice is no mistake.
      option:count("*")
    end
    if spec.choices then
      option:choices(spec.choices)
    end
    if spec.convert then
      option:convert(convert[spec.convert])
    end
  end
  return parser
end

-- One line of argparse's message; its guesses help for words, not for letters.
local function one_line(message)
  local what, guess = message:match("^(.-)\nDid you mean (.*)$")
  if not what then
    return message
  elseif what:find("'%-.'") then
    return what
  end
  return what .. ", did you mean " .. guess
end

---@class tracefs.command.options
---@field eval string[] code of -e
---@field command? string
---@field pid integer[]
---@field input? string
---@field instance? string
---@field partial boolean
---@field duration? number seconds
---@field buffer_kb? integer
---@field clock? string
---@field output? string
---@field listen? string
---@field format tracefs.output.format
---@field top boolean
---@field user? string
---@field quiet boolean
---@field verbose boolean
---@field strict boolean
---@field dry_run boolean
---@field list boolean
---@field pattern? string of --list
---@field info boolean
---@field version boolean
---@field help boolean
---@field script? string path or "-"
---@field args string[] of the script

-- What a list, and what this kernel offers, have no use for.
local OF_SCRIPTS <const> = {
  { "--user", "user" }, { "--top", "top" }, { "-c", "command" }, { "-p", "pid" },
  { "-d", "duration" }, { "-b", "buffer_kb" }, { "-C", "clock" }, { "--listen", "listen" },
  { "--strict", "strict" }, { "--dry-run", "dry_run" },
}

local function first_of_script(parsed)
  for _, option in ipairs(OF_SCRIPTS) do
    local value = parsed[option[2]]
    if value and (type(value) ~= "table" or #value > 0) then
      return option[1]
    end
  end
end

local function check(parsed)
  if parsed.help or parsed.version then
    return nil
  end
  local what = #parsed.eval > 0 and "-e" or parsed.script and "a script"
  if parsed.input == "" then
    return "-i is empty"
  elseif parsed.input then
    for option, name in pairs { ["-c"] = "command", ["-p"] = "pid", ["-b"] = "buffer_kb",
      ["-C"] = "clock", ["--listen"] = "listen",
      ["--top"] = "top", ["-l"] = "list", ["--info"] = "info" } do
      local value = parsed[name]
      if value and (name ~= "pid" or #value > 0) then
        return ("%s needs a live kernel and does not go with -i"):format(option)
      end
    end
  elseif parsed.instance or parsed.partial then
    return ("%s belongs to -i FILE"):format(parsed.instance and "-B" or "--partial")
  end
  if parsed.output == "" then
    return "-o is empty"
  elseif parsed.list or parsed.info then
    local mode = parsed.list and "-l" or "--info"
    local option = first_of_script(parsed)
    if parsed.list and parsed.info then
      return "-l and --info do not go together"
    elseif option then
      return ("%s does not go with %s: it is for scripts"):format(option, mode)
    elseif parsed.format ~= "text" and parsed.format ~= "json" then
      return ("-f %s does not go with %s, which has text and json"):format(parsed.format, mode)
    elseif what then
      return ("%s does not go with %s"):format(mode, parsed.script and
        ("'%s'"):format(parsed.script) or what)
    end
  elseif not what then
    return "no script: give SCRIPT, - for standard input, or -e CODE"
  elseif parsed.user == "" then
    return "--user is empty"
  elseif parsed.listen and parsed.format ~= "prometheus" then
    return ("--listen serves metrics and does not go with -f %s"):format(parsed.format)
  elseif parsed.top and (parsed.format ~= "text" or parsed.output) then
    return ("--top shows text on a terminal and does not go with %s"):format(
      parsed.output and "-o" or "-f " .. parsed.format)
  elseif parsed.top and parsed.dry_run then
    return "--top does not go with --dry-run"
  elseif parsed.command == "" then
    return "-c is empty"
  end
end

--- Reads the words of a command line. Wrong usage gives nil and what is wrong, in one line.
---@param words string[]
---@return tracefs.command.options?
---@return string? message
function options.parse(words)
  local front, rest = split(words)
  local ok, parsed = new_parser():pparse(front)
  if not ok then
    return nil, one_line(parsed)
  end
  for _, spec in ipairs(SPEC) do
    if not spec.value and not spec.optional then
      local target = target_of(spec)
      parsed[target] = parsed[target] ~= nil and parsed[target] > 0
    end
  end
  parsed.eval = parsed.eval or {}
  parsed.pid = parsed.pid or {}
  parsed.format = parsed.format or parsed.listen and "prometheus" or "text"
  parsed.pattern = parsed.list and parsed.list[1]
  parsed.list = parsed.list ~= nil
  if #parsed.eval == 0 then
    parsed.script = table.remove(rest, 1)
  end
  parsed.args = rest
  local message = check(parsed)
  if message then
    return nil, message
  end
  return parsed
end

return options
