-- tcplife: TCP connections that have ended: whose, with whom, how long, how many bytes
--
-- A line for each end of a connection on this machine; one from the machine to itself has two. Its
-- life goes from connect, or the third packet of the handshake, to its end, by
-- sock:inet_sock_set_state. Bytes are what the process has sent and received by system calls
-- (sock:sock_send_length and sock_recv_length, since Linux 6.3; without them they are not known).
--
-- Usage
--   luatrace tcplife.lua [--port PORT]...
--   luatrace -d 10 tcplife.lua                   for ten seconds; without -d until Ctrl-C
--   luatrace tcplife.lua --port 443
--   luatrace -c 'curl -s http://127.0.0.1/' tcplife.lua
--
-- Sample output
--         pid task               sent   recvd   time ended   port remote
--       23511 python3         1.38KiB     77B 1.48ms us      8000 127.0.0.1:41772
--       23514 curl                77B 1.38KiB 1.52ms peer   41772 127.0.0.1:8000
--       23519 curl                 0B      0B 41.0us failed 41774 127.0.0.1:8001
--
--   3 connections; 1 more began before the trace, or where events were lost
--
--   pid, task    the thread that has connected; of the side that was connected to, the one that
--                has first sent or received. "-" when nobody has
--   sent, recvd  bytes that the process has handed over and taken; "-" when it cannot be known.
--                What splice and mmap take is not in it, nor is what was sent again
--   time         until the kernel is done with it. That is so for the side that closes first when
--                the other one has acknowledged that
--   ended        us: this side has closed first; peer: the other one; reset: without any goodbye,
--                also after bytes that nobody had read; failed: it never was one
--   port         of this side
--
--   With luatrace -f json every line is an object, with the address of this side, duration_ns, and
--   the end by the trace's clock in time_ns; with -f csv a row, with -f perfetto a slice. With
--   -f svg and -f prometheus there is a histogram of their lives, by how they have ended.
--
-- Overhead
--   Five or six events a connection and one for each send and receive on any TCP socket, which
--   costs the process about 0.4 us, and about 2 us of CPU time here. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local tracefs = require "tracefs"
local trace = require "tracefs.script"
local units = require "tracefs.units"

local parser = argparse("tcplife", "TCP connections that have ended."):help_max_width(79)
parser:option("--port", "Only with this port at one end; may be given several times.")
  :argname("PORT"):count("*"):convert(function(text)
    local port = math.tointeger(tonumber(text))
    if not port or port < 1 or port > 65535 then
      return nil, ("--port takes a number up to 65535, not '%s'"):format(text)
    end
    return port
  end)
local options = parser:parse(trace.args)

local wanted = {}
for _, port in ipairs(options.port) do
  wanted[port] = true
end

-- include/net/tcp_states.h
local ESTABLISHED <const>, SYN_SENT <const>, CLOSE <const>, LISTEN <const> = 1, 2, 7, 10
-- How a connection has ended, by the state before the last.
local ENDED <const> = {
  [ESTABLISHED] = "reset", [SYN_SENT] = "failed", [3] = "failed", [4] = "us", [5] = "us",
  [6] = "us", [8] = "reset", [9] = "peer", [11] = "us",
}
local AF_INET6 <const> = 10
local MSG_PEEK <const> = 2
local TCP <const> = "protocol == 6"

local has_bytes = trace.instance.file ~= nil or tracefs.event("sock:sock_send_length") ~= nil
-- The first row of a CSV table says which columns there are.
local absent = trace.format == "csv" and "" or nil
-- By the address of the socket.
local open = {}
local ended, before = 0, 0
local is_of_sums = trace.format == "prometheus" or trace.format == "svg"
local lives = is_of_sums and aggregate.new {
  "count", "p50", "p99", "maximum", "histogram", by = "ended", name = "connection", unit = "ns",
  error = 0.1,
}

local function ipv6(bytes)
  if bytes:sub(1, 12) == ("\0"):rep(10) .. "\xff\xff" then
    return ("::ffff:%d.%d.%d.%d"):format(bytes:byte(13, 16))
  end
  local text = ("%x:%x:%x:%x:%x:%x:%x:%x"):format((">I2"):rep(8):unpack(bytes))
  -- the longest row of zeroes, when there are at least two
  for count = 8, 2, -1 do
    local zeroes = ("0:"):rep(count):sub(1, -2)
    local from, to = (":" .. text .. ":"):find(":" .. zeroes .. ":", 1, true)
    if from then
      return text:sub(1, math.max(0, from - 2)) .. "::" .. text:sub(to)
    end
  end
  return text
end

local function address(family, v4, v6)
  return family == AF_INET6 and ipv6(v6) or ("%d.%d.%d.%d"):format(v4:byte(1, 4))
end

local function show(object)
  if lives then
    lives:add(object.duration_ns, object.ended)
    return
  elseif trace.format ~= "text" then
    trace:print(object)
    return
  end
  if ended == 1 then
    print(("%9s %-15s %7s %7s %6s %-6s %5s %s"):format("pid", "task", "sent", "recvd", "time",
      "ended", "port", "remote"))
  end
  print(("%9s %-15s %7s %7s %6s %-6s %5d %s"):format(
    object.pid or "-", escape.line(object.comm or "-"),
    object.sent and units.format(object.sent, "bytes") or "-",
    object.received and units.format(object.received, "bytes") or "-",
    units.format(object.duration_ns, "ns"), object.ended, object.local_port,
    (object.remote:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(object.remote,
      object.remote_port)))
end

local function is_wanted(port, peer)
  return not next(wanted) or wanted[port] or wanted[peer]
end

local function finish(socket, ts, oldstate, family, saddr, daddr, saddr6, daddr6)
  local port, peer = socket.port, socket.peer
  if not is_wanted(port, peer) then
    return
  end
  ended = ended + 1
  show {
    type = "connection", time_ns = ts, duration_ns = ts - socket.since,
    pid = socket.pid or absent, comm = socket.comm or absent,
    sent = has_bytes and socket.sent or nil,
    received = has_bytes and socket.received or nil, ended = ENDED[oldstate] or tostring(oldstate),
    ["local"] = address(family, saddr, saddr6), local_port = port,
    remote = address(family, daddr, daddr6), remote_port = peer,
  }
end

trace:on("sock:inet_sock_set_state", {
  "common_timestamp", "common_pid", "common_comm", "skaddr", "oldstate", "newstate", "sport",
  "dport", "family", "saddr", "daddr", "saddr_v6", "daddr_v6", filter = TCP,
}, function(ts, pid, comm, sk, oldstate, newstate, port, peer, ...)
  local socket = open[sk]
  if newstate == SYN_SENT or newstate == ESTABLISHED and not socket then
    socket = { since = ts, sent = 0, received = 0 }
    if newstate == SYN_SENT then
      socket.pid, socket.comm = pid, comm
    end
    open[sk] = socket
  end
  if not socket then
    if newstate == CLOSE and oldstate ~= CLOSE and oldstate ~= LISTEN
      and is_wanted(port, peer) then
      before = before + 1
    end
    return
  end
  -- connect chooses the port only after the first of these events
  socket.port, socket.peer = port, peer
  if newstate == CLOSE then
    open[sk] = nil
    finish(socket, ts, oldstate, ...)
  end
end)

local function count_bytes(event, what)
  trace:on("sock:" .. event, { "common_pid", "common_comm", "sk", "ret", "flags", filter = TCP },
    function(pid, comm, sk, bytes, flags)
      local socket = open[sk]
      if not socket then
        return
      end
      if not socket.pid then
        socket.pid, socket.comm = pid, comm
      end
      if bytes > 0 and flags & MSG_PEEK == 0 then
        socket[what] = socket[what] + bytes
      end
    end)
end

if has_bytes then
  count_bytes("sock_send_length", "sent")
  count_bytes("sock_recv_length", "received")
else
  io.stderr:write("tcplife: this kernel has no event sock:sock_send_length (Linux 6.3): bytes, and "
    .. "who is connected to, are not known\n")
end

-- Addresses of sockets are used again.
trace:on_lost(function() open = {} end)

trace:at_end(function()
  if lives then
    trace:print(lives)
  elseif trace.format == "json" then
    trace:print { type = "total", connections = ended, before = before }
  elseif trace.format ~= "csv" then
    if ended > 0 then
      print()
    end
    print(("%d connections%s"):format(ended, before == 0 and "" or
      ("; %d more began before the trace, or where events were lost"):format(before)))
  end
end)
