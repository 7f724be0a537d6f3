-- demo: sends packets over the loopback device and shows what netlat makes of them
--
-- Usage
--   luatrace demo.lua          or, in the source tree: sudo make demo
--
-- Sample output
--   Tracing 10007 UDP packets over lo, from net_dev_queue to netif_receive_skb.
--
--   device   pairs     min     avg     p50     p90     p99   p99.9     max
--   lo       10007   401ns   617ns   461ns   493ns   763ns  27.9us  71.4us
--   ...
--
--   What the columns mean is said in netlat.lua, which runs here as it is. More pairs than packets
--   sent: other traffic of this machine.
--
-- Overhead
--   That of netlat.lua, for about a second.

local core = require "tracefs.core"
local trace = require "tracefs.script"

local LIMIT_SECONDS <const> = 10

local function is_file(path)
  local file <close> = io.open(path, "rb")
  return file ~= nil
end

-- The build tree has a sender of its own; bash can send packets without any other program.
-- Returns a command for the shell and how many packets it sends.
local function choose_sender()
  local module = package.searchpath("tracefs.core", package.cpath) or ""
  local load = module:gsub("tracefs/core%.so$", "") .. "support/load"
  if is_file(load) then
    return ("exec '%s' udp 10007 >/dev/null"):format(load), 10007
  end
  for dir in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    if is_file(dir .. "/bash") then
      return "exec bash -c 'for i in {1..997}; do echo $i >/dev/udp/127.0.0.1/9; done'", 997
    end
  end
  error("there is nothing here to send packets with: install bash, or run netlat.lua from this"
    .. " folder while other programs use the network", 0)
end

local command, packets = choose_sender()
print(("Tracing %d UDP packets over lo, from net_dev_queue to netif_receive_skb."):format(packets))
print()

trace.args = { "--device", "lo" }
require "netlat"

local sender
trace:at_start(function()
  sender = assert(core.spawn(command))
  assert(sender:release())
end)

local waited = 0
trace:every(0.1, function()
  waited = waited + 0.1
  local how, code = sender:wait()
  if how == "exit" and code == 0 then
    trace:finish()
  elseif how then
    error(("sending packets failed: %s %s of: %s"):format(how, code, command), 0)
  elseif waited > LIMIT_SECONDS then
    error(("the packets have not been sent after %d seconds"):format(LIMIT_SECONDS), 0)
  end
end)

trace:at_end(function()
  if sender then
    sender:close()
  end
  print()
  print("That was examples/netlat.lua. For your own traffic:")
  print("  luatrace -d 10 examples/netlat.lua")
end)
