-- What it takes `luatrace record` to bring an instance's sub-buffers into its file. Prints the
-- events and the CPU time. Arguments: INSTANCE FILE
local core = require("tracefs.core")
local tracefs = require("tracefs")

local name, path = table.unpack(arg)
local instance <close> = assert(tracefs.instance_open(name))
local recording <close> = assert(core.recording(instance, path, { version = 6, kept = {} }))
assert(recording:direct())

local start = os.clock()
assert(recording:drain())
local spent = os.clock() - start

local events = 0
for _, stats in pairs(assert(instance:stats())) do
  events = events + stats.read
end
print(("events=%d cpu_ns=%.0f"):format(events, spent * 1e9))
