--- Runs a shell command on a terminal of its own (util-linux's script(1) makes it).
local helper = require "spec.support.helper"

local terminal = {}

--- Is script(1) there?
---@return boolean
function terminal.is_there()
  return (helper.execute { "script", "--version" }) == 0
end

--- Runs the command, one program, to its end: no shell stays between that answers the keys too.
--- With `keys` they are typed when `after` has been shown.
---@param command string for the shell, which becomes it
---@param options? { keys?: string, after?: string, timeout?: number }
---@return integer status of the command
---@return string output what the terminal was given, with "\n" for its line ends
function terminal.run(command, options)
  options = options or {}
  local typescript = helper.tmpdir() .. "/typescript"
  local type_keys = options.keys
      and ("until grep -q %s %s 2>/dev/null; do sleep 0.05; done; printf %s >&4"):format(
        helper.quote(options.after), typescript, helper.quote(options.keys))
    or ":"
  -- Descriptor 4 keeps the terminal's input open until the command has ended.
  local status = helper.execute {
    "sh", "-c",
    ("mkfifo %s.in && exec 4<>%s.in; { %s; } & script -qefc %s %s <%s.in >/dev/null; status=$?;"
      .. " kill $! 2>/dev/null; wait; exit $status"):format(
      typescript, typescript, type_keys, helper.quote("exec " .. command), typescript, typescript),
    timeout = options.timeout or 30,
  }
  local text = helper.read_file(typescript) or ""
  text = text:gsub("\r\n", "\n"):gsub("^Script started[^\n]*\n", "")
    :gsub("\n?\nScript done[^\n]*\n$", "\n")
  return status, text
end

return terminal
