-- One measurement: what adding a value to a histogram costs a Lua program.
-- Arguments: COUNT
local aggregate = require("tracefs.aggregate")

local count = math.tointeger(arg[1])
local latency = aggregate.new({ "count", "p99", "histogram" })

local start = os.clock()
for i = 1, count do
  latency:add(i)
end
local spent = os.clock() - start
assert(latency:get().count == count)
print(("events=%d cpu_ns=%.0f"):format(count, spent * 1e9))
