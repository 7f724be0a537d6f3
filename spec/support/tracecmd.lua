-- What trace-cmd makes of a file: the other reader of what is written here.
local helper = require "spec.support.helper"

local tracecmd = {}

--- Is it there? Some versions cannot read zstd; then files of that are not for it.
function tracecmd.is_there()
  return (os.execute("command -v trace-cmd >/dev/null 2>&1"))
end

--- The records of a file as `trace-cmd report` prints them, without its heading, and the exit
--- status.
---@param path string
---@return string[] lines
---@return integer status
---@return string errors
function tracecmd.report(path, ...)
  local argv = { "trace-cmd", "report", "-N", ... }
  argv[#argv + 1] = path
  argv.collector = "usual"
  local status, out, err = helper.execute(argv)
  local lines = {}
  for line in out:gmatch("[^\n]+") do
    if not line:find("^cpus=") and not line:find("^%s*CPU %d+ is empty") then
      lines[#lines + 1] = line
    end
  end
  return lines, status, err
end

return tracecmd
