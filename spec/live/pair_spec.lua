-- session:pair on the kernel's own events.
local aggregate = require "tracefs.aggregate"
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

-- A size that nobody else's packets have.
local SIZE <const> = loads.SIZE
local FILTER <const> = ("name == \"lo\" && (len == %d || len == %d)"):format(SIZE + 28, SIZE + 42)

local function packets(session, count)
  local child <close> = assert(core.spawn(
    ("%s udp %d %d >&2"):format(helper.quote(helper.program("support/load")), count, SIZE)))
  session:at_start(function() assert(child:release()) end)
  session:watch(child:fileno(), function()
    if child:wait() then
      session:watch(child:fileno(), nil)
      session:finish()
    end
  end)
  session:run { duration = 60 }
end

local function options_with(more)
  local options = {
    start = { event = "net:net_dev_queue", filter = FILTER },
    stop = { event = "net:netif_receive_skb", filter = FILTER },
    key = "skbaddr",
  }
  for name, value in pairs(more) do
    options[name] = value
  end
  return options
end

describe("session:pair", function()
  it("finds 10007 pairs in 10007 packets, as a matcher in Lua does", function()
    local session <close> = tracefs.session {}
    local latency = aggregate.new { "count", "sum", "minimum", "maximum", by = "name" }
    local got = { count = 0, sum = 0 }
    local pair = session:pair(options_with {
      carry = { "len", "name" }, into = latency,
      on_match = function(delta, key, sent, received)
        assert(key == received.skbaddr and sent.name == "lo" and sent.len == SIZE + 42)
        got.count, got.sum = got.count + 1, got.sum + delta
      end,
    })
    local sent, expected = {}, { count = 0, sum = 0 }
    session:on("net:net_dev_queue", { "skbaddr", "common_timestamp", filter = FILTER },
      function(skb, now) sent[skb] = now end)
    session:on("net:netif_receive_skb", { "skbaddr", "common_timestamp", filter = FILTER },
      function(skb, now)
        expected.count, expected.sum = expected.count + 1, expected.sum + now - sent[skb]
        sent[skb] = nil
      end)
    packets(session, 10007)
    assert.equal(0, session:stats().lost)
    assert.equal(10007, got.count)
    assert.same(expected, got)
    local counts = pair:counts()
    assert.equal(10007, counts.matched)
    assert.equal(10007, counts.starts)
    assert.equal(0, counts.open + counts.unmatched + counts.voided + counts.replaced)
    local cell = latency:get "lo"
    assert.equal(10007, cell.count)
    assert.equal(expected.sum, cell.sum)
    assert.is_true(cell.minimum > 0)
  end)

  it("works in a loop over the events as well", function()
    local session <close> = tracefs.session {}
    local pair = session:pair(options_with {})
    local child <close> = assert(core.spawn(
      ("%s udp 23 %d >&2"):format(helper.quote(helper.program("support/load")), SIZE)))
    session:at_start(function() assert(child:release()) end)
    local seen = 0
    for _ in session:events { duration = 60 } do
      seen = seen + 1
      if seen == 46 then
        break
      end
    end
    child:close()
    assert.equal(23, pair:counts().matched)
  end)

  it("gives up what was open when events are lost", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    local lost, voided = 0, 0
    local pair = session:pair {
      start = "raw_syscalls:sys_enter", stop = "raw_syscalls:sys_exit", key = "common_pid",
      on_dropped = function(how) voided = voided + (how == "voided" and 1 or 0) end,
    }
    session:on_lost(function() lost = lost + 1 end)
    local load <close> = assert(core.spawn(
      ("exec %s syscalls 2000000 >&2"):format(helper.quote(helper.program("support/load")))))
    session:at_start(function() assert(load:release()) end)
    -- not looked at for so long that the buffer is overwritten, over and over
    session:every(0.2, function()
      local wake = core.now() + 100000000
      while core.now() < wake do end
      if lost >= 5 then
        session:finish()
      end
    end)
    session:run { duration = 60 }
    load:close()
    assert.is_true(lost > 0)
    local counts = pair:counts()
    assert.equal(voided, counts.voided)
    assert.is_true(voided > 0)
    assert.equal(counts.starts, counts.matched + counts.voided + counts.open + counts.replaced)
  end)

  it("lets a start expire while nothing else happens", function()
    local session <close> = tracefs.session {}
    local expired
    session:pair {
      start = { event = "ftrace:print", key = function(ev) return ev.buf end },
      stop = { event = "ftrace:print", key = function() return nil end },
      key = "ip", timeout = 0.05, carry = "buf",
      on_expired = function(_, values)
        expired = values.buf
        session:finish()
      end,
    }
    session:at_start(function() session:marker "waits for nobody" end)
    session:run { duration = 60 }
    assert.truthy(expired and expired:find "waits for nobody", expired)
  end)
end)
