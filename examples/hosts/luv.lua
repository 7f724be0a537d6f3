-- Two sessions in a luv loop, beside a timer and an echo server that must not wait for them.
--
--   lua5.4 examples/hosts/luv.lua [SECONDS]            needs lua-luv, and root
--
-- Prints how many events came, and how late the timer was at worst. The sessions get two
-- milliseconds at a time: that is what everything else in the loop waits for them.
local tracefs = require "tracefs"
local uv = require "luv"

local SECONDS <const> = tonumber(arg[1]) or 5
local BUDGET <const> = 0.002
local PERIOD_MS <const> = 10

-- The adapter: steps the session whenever it has something to do. failed(message) is told of an
-- error in a handler, and the session goes on behind it.
local function attach(session, failed)
  local poll = uv.new_poll(session:fileno())
  session:start()
  poll:start("r", function()
    local ok, message, why = pcall(session.step, session, 1000, BUDGET)
    if not ok then
      failed(message)
    elseif why == "end" or why == "stop" then
      poll:close()
      session:run_at_end()
    end
  end)
end

local switches <close> = tracefs.session {}
local calls <close> = tracefs.session {}
local counts = { switches = 0, calls = 0, errors = 0, echoes = 0 }
local failed_once = false

switches:on("sched:sched_switch", {}, function()
  counts.switches = counts.switches + 1
  if not failed_once then
    failed_once = true
    error("an error in a handler")
  end
end)
calls:on("raw_syscalls:sys_enter", { "id" }, function()
  counts.calls = counts.calls + 1
end)

for _, session in ipairs { switches, calls } do
  attach(session, function()
    counts.errors = counts.errors + 1
  end)
end

-- An echo server on a port of the kernel's choice, and a client that asks it all the time.
local server = uv.new_tcp()
assert(server:bind("127.0.0.1", 0))
server:listen(8, function()
  local peer = uv.new_tcp()
  server:accept(peer)
  peer:read_start(function(_, data)
    if data then
      peer:write(data)
    else
      peer:close()
    end
  end)
end)
local client = uv.new_tcp()
client:connect("127.0.0.1", server:getsockname().port, function(err)
  assert(not err, err)
  client:read_start(function(_, data)
    if data then
      counts.echoes = counts.echoes + 1
      client:write(data)
    end
  end)
  client:write("echo")
end)

-- Timers count from the time that the loop knows: without this from before the sessions were made.
uv.update_time()
local worst, last = 0, uv.hrtime()
local timer = uv.new_timer()
timer:start(PERIOD_MS, PERIOD_MS, function()
  local now = uv.hrtime()
  worst = math.max(worst, (now - last) / 1e6 - PERIOD_MS)
  last = now
end)

local ending = uv.new_timer()
ending:start(math.floor(SECONDS * 1000), 0, function()
  ending:close()
  timer:close()
  client:close()
  server:close()
  -- what is in the buffers still comes, then step says "end"
  switches:finish()
  calls:finish()
end)

uv.run()
for _, session in ipairs { switches, calls } do
  local stats = session:stats()
  assert(stats.delivered + stats.lost == stats.produced)
end
print(("switches=%d calls=%d echoes=%d errors=%d late_ms=%.1f"):format(
  counts.switches, counts.calls, counts.echoes, counts.errors, worst))
