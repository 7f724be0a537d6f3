-- One measurement of the Lua layer: fills a session's buffer with a load, stops the kernel's
-- writing, and prints the CPU time that delivering every record to Lua takes.
-- Arguments: METHOD LABEL FIELD FIELD SUBBUF_KB BUFFER_KB FILTER LOAD-COMMAND
local tracefs = require("tracefs")

local method, label, first, second, subbuf_kb, buffer_kb, filter, fill = table.unpack(arg)

-- Field names stand in the source, as in a script that a person writes.
local HANDLERS = [[
  local count, sum = 0, 0
  return {
    value = function(a, b)
      count = count + 1
      sum = sum + a + b
    end,
    record = function(ev)
      count = count + 1
      sum = sum + ev.FIRST + ev.SECOND
    end,
    loop = function(session)
      for ev in session:events() do
        count = count + 1
        sum = sum + ev.FIRST + ev.SECOND
      end
    end,
    totals = function()
      return count, sum
    end,
  }
]]
local source = HANDLERS:gsub("FIRST", first):gsub("SECOND", second)
local handlers = assert(load(source))()

local session <close> = tracefs.session({
  buffer_kb = math.tointeger(buffer_kb),
  subbuf_kb = math.tointeger(subbuf_kb),
})

if method == "value" then
  session:on(label, { first, second, filter = filter }, handlers.value)
elseif method == "record" then
  session:on(label, { filter = filter }, handlers.record)
elseif method == "pair" then
  -- from each to the next one, or from the switch away from a task to the one back to it
  local event = { event = label, filter = filter }
  session:pair({
    start = event, stop = event, key = { start = first, stop = second },
    into = require("tracefs.aggregate").new({ "count", "p99" }),
  })
else
  session:enable(label, { filter = filter })
end

session:start()
assert(os.execute(fill .. " >/dev/null"))
assert(session.instance:trace_off())

local start = os.clock()
session:finish()
if method == "loop" then
  handlers.loop(session)
else
  session:run()
end
local spent = os.clock() - start

local count, sum = handlers.totals()
if method == "pair" then
  count = session:stats().delivered
end
local kb = session.instance:get_subbuf_kb() or 4
print(("events=%d cpu_ns=%.0f sum=%d subbuf_kb=%d"):format(count, spent * 1e9, sum, kb))
