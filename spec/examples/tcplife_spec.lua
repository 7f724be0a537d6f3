local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local trace_text = require "spec.support.trace_text"
local tracefs = require "tracefs"

local TCPLIFE <const> = "examples/tcplife.lua"
local json = require "dkjson"

local function tcp(count, there, back)
  return ("%s --name %s tcp %d %d %d"):format(helper.quote(helper.program("support/load")),
    loads.NAME, count, there, back)
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

describe("examples/tcplife.lua", function()
  it("shows both ends of 23 connections, with the bytes of each", function()
    local out = run { "-f", "json", "-c", tcp(23, 10007, 499), TCPLIFE }
    local port, pid = out:match("port=(%d+) pid=(%d+)")
    port, pid = tonumber(port), tonumber(pid)
    local has_bytes = tracefs.event("sock:sock_send_length") ~= nil
    local sides, total = { us = 0, peer = 0 }, nil
    local local_ports, before, ends = {}, 0, 0
    for line in out:gmatch("{[^\n]+") do
      local object = assert(json.decode(line))
      if object.type == "connection" then
        ends = ends + 1
      elseif object.type == "total" then
        total = object
      end
      if object.local_port == port or object.remote_port == port then
        local is_server = object.local_port == port
        sides[object.ended] = sides[object.ended] + 1
        assert.equal(is_server and "us" or "peer", object.ended)
        assert.equal(has_bytes and (is_server and 499 or 10007) or nil, object.sent)
        assert.equal(has_bytes and (is_server and 10007 or 499) or nil, object.received)
        assert.equal("127.0.0.1", object["local"])
        assert.equal("127.0.0.1", object.remote)
        assert.is_true(object.duration_ns > 0 and object.time_ns >= before)
        before = object.time_ns
        if not is_server then
          assert.equal(pid, object.pid)
          assert.is_nil(local_ports[object.local_port])
          local_ports[object.local_port] = true
        elseif has_bytes then
          assert.is_true(object.pid ~= pid)
        end
      end
    end
    assert.same({ us = 23, peer = 23 }, sides)
    assert.equal(ends, total.connections)
  end)

  it("has the lives that the kernel's own text gives to both ends of 101 connections", function()
    local objects, lines, err = trace_text.run(tcp(101, 7, 11), { TCPLIFE })
    local port = err:match "port=(%d+)"
    local connecting, since, expected = {}, {}, {}
    for _, line in ipairs(lines) do
      local from, to, old, new = line.text:match(
        "sport=(%d+) dport=(%d+) .* oldstate=TCP_(%S+) newstate=TCP_(%S+)")
      local ends = from and ("%s to %s"):format(from, to)
      if new == "SYN_SENT" then
        -- it has not chosen its port yet; the same thread goes on with it
        connecting[to] = line.ns
      elseif new == "ESTABLISHED" then
        since[ends] = old == "SYN_SENT" and connecting[to] or line.ns
      elseif new == "CLOSE" and since[ends] and (from == port or to == port) then
        expected[#expected + 1] = ("%s: %d ns at %d"):format(ends, line.ns - since[ends], line.ns)
      end
    end
    local found = {}
    for _, object in ipairs(objects.connection) do
      if object.local_port == tonumber(port) or object.remote_port == tonumber(port) then
        found[#found + 1] = ("%d to %d: %d ns at %d"):format(object.local_port, object.remote_port,
          object.duration_ns, object.time_ns)
      end
    end
    assert.equal(202, #found)
    assert.same(expected, found)
  end)

  it("is slices, metrics and a picture, too", function()
    local function in_format(format)
      return run { "-f", format, "-c", tcp(23, 1, 1) .. " >&2", TCPLIFE }
    end
    local slices = 0
    for line in in_format("perfetto"):gmatch('\n({"name":"connection"[^\n]*)') do
      slices = slices + (line:find('"ph":"X","ts":[%d.]+,"dur":[%d.]+,') and 1 or 0)
    end
    assert.is_true(slices >= 46, slices)
    local count = in_format("prometheus"):match
      '\nluatrace_connection_seconds_count{ended="us"} (%d+)\n'
    assert.is_true(tonumber(count) >= 23, count)
    assert.matches(">connection: us<", in_format "svg", 1, true)
  end)

  it("prints a table of those of one port", function()
    -- nobody is at port 1
    local out = run { "-c", tcp(1, 2, 1) .. [[ >&2; exec 2>/dev/null
      bash -c 'echo >/dev/tcp/127.0.0.1/1' || true]], TCPLIFE, "--port", "1" }
    assert.matches("^ +pid task +sent +recvd +time ended +port remote\n"
      .. " +%d+ %S+ +[0-]B? +[0-]B? +[%d.]+[num]?s failed +%d+ 127%.0%.0%.1:1\n\n1 connections",
      out)
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("refuses what is no port", function()
    for _, port in ipairs { "http", "0", "65536" } do
      local status, out, err = helper.run { TCPLIFE, "--port", port }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(("not '%s'"):format(port), 1, true), err)
    end
  end)
end)

-- What no load makes on purpose, brought to the script's handlers.
describe("the bookkeeping of examples/tcplife.lua", function()
  local ESTABLISHED <const>, SYN_SENT <const>, CLOSE <const> = 1, 2, 7
  local handlers, lost, at_end, printed

  local function start(args)
    handlers, printed = {}, {}
    package.loaded["tracefs.script"] = {
      args = args or {}, format = "json", instance = { file = "made" },
      on = function(_, event, selection, handler)
        assert.equal("protocol == 6", selection.filter)
        handlers[event] = handler
      end,
      on_lost = function(_, fn) lost = fn end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object) printed[#printed + 1] = object end,
    }
    assert(loadfile(TCPLIFE))()
  end

  before_each(function() start() end)

  after_each(function() package.loaded["tracefs.script"] = nil end)

  local function state(ts, sk, old, new, v6)
    handlers["sock:inet_sock_set_state"](ts, 7, "a", sk, old, new, 1000 + sk, 80, v6 and 10 or 2,
      "\10\0\0\1", "\10\0\0\2", v6, v6)
  end
  local function receive(sk, bytes, flags, pid)
    handlers["sock:sock_recv_length"](pid or 9, "b", sk, bytes, flags or 0)
  end

  it("tells how a connection has ended", function()
    for sk, last in ipairs { 1, 4, 5, 8, 9, 11 } do
      state(100, sk, 3, ESTABLISHED)
      if last ~= ESTABLISHED then
        state(150, sk, ESTABLISHED, last)
      end
      state(200, sk, last, CLOSE)
    end
    state(100, 7, CLOSE, SYN_SENT)
    state(200, 7, SYN_SENT, CLOSE)
    local ended = {}
    for i, object in ipairs(printed) do
      assert.equal(100, object.duration_ns)
      assert.equal("10.0.0.1", object["local"])
      assert.equal("10.0.0.2", object.remote)
      ended[i] = object.ended
    end
    assert.equal("reset us us reset peer us failed", table.concat(ended, " "))
  end)

  it("adds up what was received, without looks and errors, and whose it is", function()
    state(100, 1, 3, ESTABLISHED)
    receive(1, -11)
    receive(1, 100, 2)
    receive(1, 60, 0, 11)
    receive(1, 40, 64)
    receive(2, 1000)
    state(300, 1, 8, CLOSE)
    assert.equal(100, printed[1].received)
    assert.equal(0, printed[1].sent)
    assert.equal("b 9", printed[1].comm .. " " .. printed[1].pid)
  end)

  it("counts what began before the trace or a gap, and no sockets that only wait", function()
    state(100, 1, ESTABLISHED, 4)
    state(110, 1, 4, CLOSE)
    state(120, 2, 3, ESTABLISHED)
    lost { cpu = 0 }
    receive(2, 10)
    state(130, 2, 9, CLOSE)
    state(140, 3, CLOSE, 10)
    state(150, 3, 10, CLOSE)
    state(160, 4, CLOSE, CLOSE)
    at_end()
    assert.same({ { type = "total", connections = 0, before = 2 } }, printed)
  end)

  it("looks at the ports that are asked for, and writes addresses", function()
    start { "--port", "1002", "--port", "1003" }
    local LOOPBACK <const> = ("\0"):rep(15) .. "\1"
    for sk, v6 in ipairs { LOOPBACK, "\x20\1\x0d\xb8\0\0\0\1" .. ("\0"):rep(6) .. "\0\2",
      ("\0"):rep(10) .. "\xff\xff\10\1\2\3" } do
      state(100, sk, 3, ESTABLISHED, v6)
      state(200, sk, 9, CLOSE, v6)
    end
    assert.equal(2, #printed)
    assert.equal("2001:db8:0:1::2", printed[1].remote)
    assert.equal("::ffff:10.1.2.3", printed[2].remote)
    -- of those that began before the trace, too
    state(300, 3, 4, CLOSE)
    state(310, 4, 4, CLOSE)
    at_end()
    assert.same({ type = "total", connections = 2, before = 1 }, printed[3])
    start()
    for sk, v6 in ipairs { LOOPBACK, ("\0"):rep(16), "\xfe\x80" .. ("\0"):rep(14) } do
      state(100, sk, 3, ESTABLISHED, v6)
      state(200, sk, 9, CLOSE, v6)
      printed[sk] = printed[sk].remote
    end
    assert.same({ "::1", "::", "fe80::" }, printed)
  end)
end)
