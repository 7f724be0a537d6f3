-- What it costs until the first record of a trace file is handed out: the CPU time of opening it.
-- Arguments: FILE EVENT FIELD
local tracefs = require("tracefs")

local start = os.clock()
local session = tracefs.session({ file = arg[1] })
local seen = 0
session:on(arg[2], { arg[3] }, function()
  seen = seen + 1
end)
session:step(1)
local spent = os.clock() - start
assert(seen == 1, "the file has no such event")
print(("events=1 cpu_ns=%.0f"):format(spent * 1e9))
os.exit(0) -- a session that is closed here would count what it has not read
