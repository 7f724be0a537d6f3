--- The command's session, for the script that it runs:
---
---   local trace = require "tracefs.script"
---   trace:on("sched:sched_switch", function(ev) ... end)
---
--- The command puts its session into package.loaded under this name before it loads the script,
--- so this file is only reached outside of it.

---@class tracefs.script : tracefs.session
---@field args string[] the words behind the script's name
---@field format tracefs.output.format what -f says
---@field print fun(self: tracefs.script, value: any) a record, a table or an aggregate
---  as the format has them; anything else as print does

error(
  "tracefs.script is the session of the luatrace command: run this file with `luatrace FILE`."
    .. ' A program of its own makes a session with `require("tracefs").session()`.',
  0
)
