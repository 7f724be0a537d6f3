-- Latency of the loopback device, from inside lighttpd: a script for mod_magnet.
--
--   server.modules += ( "mod_magnet" )
--   magnet.attract-raw-url-to = ( "/usr/local/share/luatrace/magnet.lua" )
--
-- /metrics answers in Prometheus' text format, /latency.json with percentiles. All other requests
-- go on as if this was not there; on its way each hands a thousand records to the session at most,
-- for a millisecond at most, so that the kernel's buffers do not fill up between two questions.
--
-- The session is in the Lua state that mod_magnet keeps for the script: each worker of the server
-- has one. It goes away with that state when the server is stopped or restarted, gracefully too.
-- The server's user needs the rights to trace: see "Permissions" in docs/guide.md. Where it has
-- none, /metrics says why, and everything else is served.
--
-- LUATRACE_FILTER in the server's environment is a filter for the packets, such as "len > 1000".
local NAME <const> = "luatrace.magnet"
local BUDGET <const> = 0.001
-- How long an answer waits for what has happened before it, in rounds of up to 2 ms.
local ROUNDS <const> = 250

-- A session whose records go into an aggregate and into nothing else; raises why there is none.
local function start()
  local aggregate, tracefs = require "tracefs.aggregate", require "tracefs"
  local here = { asked = 0, seen = 0 }
  local filter = os.getenv "LUATRACE_FILTER"
  filter = 'name == "lo"' .. (filter and " && (" .. filter .. ")" or "")
  here.latency = aggregate.new {
    "count", "sum", "p50", "p90", "p99", "maximum", unit = "ns",
  }
  here.session = tracefs.session { own_events = true }
  here.packets = here.session:pair {
    start = { event = "net:net_dev_queue", filter = filter },
    stop = { event = "net:netif_receive_skb", filter = filter },
    cancel = { "skb:consume_skb", "skb:kfree_skb" },
    key = "skbaddr",
    max = 100000,
    into = here.latency,
  }
  here.session:on("ftrace:print", { "buf" }, function(text)
    here.seen = math.tointeger(text:match("^" .. NAME .. " (%d+)")) or here.seen
  end)
  here.session:start()
  return here
end

-- Globals belong to one request, modules to the state. What failed is tried again when it is asked
-- for, not with every request.
local function find(is_asked)
  local here = package.loaded[NAME]
  if not here or here.failure and is_asked then
    local ok, made = pcall(start)
    here = ok and made or { failure = tostring(made) }
    package.loaded[NAME] = here
  end
  return here
end

-- Whatever was in the kernel's buffers when this was called has been handled when it returns true:
-- the stream is in order, and a marker is the last thing in it.
local function catch_up(here)
  local session = here.session
  here.asked = here.asked + 1
  session:marker(("%s %d"):format(NAME, here.asked))
  for _ = 1, ROUNDS do
    local _, state = session:step(100000, 0.002)
    if here.seen == here.asked then
      return true
    elseif state == "idle" then
      session:wait(0.002)
    end
  end
  return false
end

local function metrics(here)
  local lines = {
    "# HELP luatrace_packets_total Packets queued on lo, by what became of them.",
    "# TYPE luatrace_packets_total counter",
  }
  local counts = here.packets:counts()
  for _, how in ipairs { "matched", "cancelled", "replaced", "evicted", "voided" } do
    lines[#lines + 1] = ('luatrace_packets_total{how="%s"} %d'):format(how, counts[how])
  end
  local row = here.latency:rows()[1] or { count = 0, sum = 0, p50 = 0, p90 = 0, p99 = 0 }
  table.move({
    "# HELP luatrace_latency_seconds From net_dev_queue to netif_receive_skb.",
    "# TYPE luatrace_latency_seconds summary",
    ('luatrace_latency_seconds{quantile="0.5"} %.9f'):format(row.p50 / 1e9),
    ('luatrace_latency_seconds{quantile="0.9"} %.9f'):format(row.p90 / 1e9),
    ('luatrace_latency_seconds{quantile="0.99"} %.9f'):format(row.p99 / 1e9),
    ("luatrace_latency_seconds_sum %.9f"):format(row.sum / 1e9),
    ("luatrace_latency_seconds_count %d"):format(row.count),
    "# HELP luatrace_lost_total Events that were lost.",
    "# TYPE luatrace_lost_total counter",
    ("luatrace_lost_total %d"):format(here.session:stats().lost),
    "",
  }, 1, 11, #lines + 1, lines)
  return table.concat(lines, "\n"), "text/plain; version=0.0.4"
end

local function json(here)
  local row = here.latency:rows()[1]
  if not row then
    return '{"packets":0}\n', "application/json"
  end
  return ('{"packets":%d,"p50_ns":%d,"p90_ns":%d,"p99_ns":%d,"max_ns":%d}\n'):format(
    row.count, row.p50, row.p90, row.p99, row.maximum), "application/json"
end

local PAGES <const> = { ["/metrics"] = metrics, ["/latency.json"] = json }

local lighty = lighty -- luacheck: ignore 143 113
local page = PAGES[lighty.env["uri.path"]]
local here = find(page ~= nil)

local function answer(status, text, kind)
  lighty.header["Content-Type"] = kind
  lighty.header["Cache-Control"] = "no-store"
  lighty.content = { text }
  return status
end

if not page then
  if here.session then
    local ok, message = pcall(here.session.step, here.session, 1000, BUDGET)
    if not ok then
      here.session:close()
      package.loaded[NAME] = { failure = tostring(message) }
    end
  end
  return nil -- the server goes on with the request
elseif here.failure then
  return answer(503, here.failure .. "\n", "text/plain")
end
local ok, is_complete = pcall(catch_up, here)
if not ok then
  here.session:close()
  package.loaded[NAME] = { failure = tostring(is_complete) }
  return answer(503, tostring(is_complete) .. "\n", "text/plain")
elseif not is_complete then
  return answer(503, "more is happening than can be counted: ask again\n", "text/plain")
end
return answer(200, page(here))
