--- The command luatrace: lua/luatrace.in calls main().
local command = {}

local USAGE <const>, FAILURE <const> = 2, 1

-- One room for each thing that it does, entered only when it is asked for: the start has to be
-- quick.
local function act(options)
  if options.help then
    print(require("tracefs.command.options").help())
    return 0
  elseif options.version then
    print("luatrace " .. require("tracefs").version)
    return 0
  end
  local report = require "tracefs.command.report"
  report.quiet, report.verbose = options.quiet, options.verbose
  if options.list then
    return require("tracefs.command.listing").run(options)
  elseif options.info then
    return require("tracefs.info").run(options)
  end
  return require("tracefs.command.running").run(options)
end

-- Runs `luatrace NAME ...`. What a subcommand raises as { usage = message } is wrong usage.
local function run_subcommand(entry, words)
  local report = require "tracefs.command.report"
  local function handler(err)
    return type(err) == "table" and err.usage and err or debug.traceback(err)
  end
  local ok, status = xpcall(function()
    local room = require("tracefs.command." .. entry.module)
    if words[1] == "--help" or words[1] == "-h" then
      print(room.help())
      return 0
    end
    return room.run(words)
  end, handler)
  if ok then
    return status
  elseif type(status) == "table" then
    report.failure(("%s: %s (luatrace %s --help shows how it is used)"):format(
      entry.name, status.usage, entry.name))
    return USAGE
  end
  report.failure(status)
  return FAILURE
end

--- Runs the command.
---@param argv string[] the words behind the command's name
---@return integer status for exit()
function command.main(argv)
  require("tracefs.core").hold_standard_fds()
  local subcommand = require("tracefs.command.subcommands").find(argv[1])
  if subcommand then
    return run_subcommand(subcommand, table.move(argv, 2, #argv, 1, {}))
  end
  local words = table.move(argv, 1, #argv, 1, {})
  local report = require "tracefs.command.report"
  local options, message = require("tracefs.command.options").parse(words)
  if not options then
    report.failure(message .. " (luatrace --help shows how it is used)")
    return USAGE
  end
  local ok, status = xpcall(act, debug.traceback, options)
  if not ok then
    report.failure(status)
    return FAILURE
  end
  return status
end

return command
