-- Two sessions in a hand-made poll loop, beside a timer and an echo server that must not wait for
-- them.
--
--   lua5.4 examples/hosts/poll.lua [SECONDS]           needs luaposix, and root
--
-- Prints how many events came, and how late the timer was at worst. The sessions get two
-- milliseconds at a time: that is what everything else in the loop waits for them.
local tracefs = require "tracefs"
local poll = require "posix.poll"
local socket = require "posix.sys.socket"
local time = require "posix.time"
local unistd = require "posix.unistd"

local SECONDS <const> = tonumber(arg[1]) or 5
local BUDGET <const> = 0.002
local PERIOD_MS <const> = 10

local fds, watchers = {}, {}

local function watch(fd, fn)
  fds[fd] = fn and { events = { IN = true } } or nil
  watchers[fd] = fn
end

-- The adapter: steps the session whenever it has something to do. failed(message) is told of an
-- error in a handler, and the session goes on behind it.
local function attach(session, failed)
  local fd = session:fileno()
  session:start()
  watch(fd, function()
    local ok, message, why = pcall(session.step, session, 1000, BUDGET)
    if not ok then
      failed(message)
    elseif why == "end" or why == "stop" then
      watch(fd, nil)
      session:run_at_end()
    end
  end)
end

local function now_ms()
  local now = time.clock_gettime(time.CLOCK_MONOTONIC)
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6
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
local server = assert(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
assert(socket.bind(server, { family = socket.AF_INET, addr = "127.0.0.1", port = 0 }))
assert(socket.listen(server, 8))
local client = assert(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
assert(socket.connect(client, assert(socket.getsockname(server))))
local peer = assert(socket.accept(server))
watch(peer, function()
  assert(unistd.write(peer, assert(unistd.read(peer, 4096))))
end)
watch(client, function()
  local data = assert(unistd.read(client, 4096))
  counts.echoes = counts.echoes + 1
  assert(unistd.write(client, data))
end)
assert(unistd.write(client, "echo"))

local worst, next_ms = 0, now_ms() + PERIOD_MS
local end_ms = now_ms() + SECONDS * 1000
local is_ending = false

while next(fds) do
  local now = now_ms()
  if now >= next_ms and not is_ending then
    worst = math.max(worst, now - next_ms)
    next_ms = now + PERIOD_MS
  end
  if now >= end_ms and not is_ending then
    is_ending = true
    watch(peer, nil)
    watch(client, nil)
    -- what is in the buffers still comes, then step says "end"
    switches:finish()
    calls:finish()
  end
  local wait_ms = math.max(0, math.ceil(math.min(next_ms, end_ms) - now))
  poll.poll(fds, is_ending and 100 or wait_ms)
  local ready = {}
  for fd, state in pairs(fds) do
    if state.revents and next(state.revents) and
      (state.revents.IN or state.revents.HUP or state.revents.ERR) then
      ready[#ready + 1] = fd
    end
  end
  for _, fd in ipairs(ready) do
    if watchers[fd] then
      watchers[fd]()
    end
  end
end
for _, fd in ipairs { server, client, peer } do
  unistd.close(fd)
end
for _, session in ipairs { switches, calls } do
  local stats = session:stats()
  assert(stats.delivered + stats.lost == stats.produced)
end
print(("switches=%d calls=%d echoes=%d errors=%d late_ms=%.1f"):format(
  counts.switches, counts.calls, counts.echoes, counts.errors, worst))
