-- The tools that people run as they are.
local guest = require "harness"

local EXAMPLES <const> = "/usr/local/share/luatrace/examples/"

guest.check("netlat: 23 packets are 23 pairs", function()
  local status, out, err = guest.luatrace("-c", "/spec/load udp 23 777 >/dev/null",
    EXAMPLES .. "netlat.lua", "--device", "lo")
  guest.equal(0, status, "exit status: " .. err)
  guest.equal("", err, "stderr")
  local pairs_seen = out:match("\nlo +(%d+) ")
  guest.equal("23", pairs_seen, "pairs in:\n" .. out)
  local counters = out:match("\ndevice +queued[^\n]*\n(lo[^\n]*)\n")
  guest.equal("lo 23 23 0 0 0 0 23 0", (counters or ""):gsub(" +", " "), "counters in:\n" .. out)
end)

guest.check("wakelat: the wakeups of two threads that pass a byte", function()
  local status, out, err = guest.luatrace("-c", "/spec/load threads 1 101 >/dev/null",
    EXAMPLES .. "wakelat.lua", "--comm", "load-*")
  guest.equal(0, status, "exit status: " .. err)
  -- One that is preempted by the other before it sleeps needs no waking; both cannot be.
  guest.contains(out, "\nload-p")
end)

guest.check("syscount: every call is counted, in the kernel where it can", function()
  local status, out, err = guest.luatrace("-c", "/spec/load syscalls 1009 >/dev/null",
    EXAMPLES .. "syscount.lua", "--comm", "load-*", "--top", "1")
  guest.equal(0, status, "exit status: " .. err)
  if guest.exists(guest.dir .. "/events/raw_syscalls/sys_enter/hist") then
    guest.equal("", err, "stderr")
    guest.truth(out:find "\nload%-calls +%d+  sys_getppid +1009\n", "in the kernel:\n%s", out)
    guest.contains(out, "counted in the kernel")
  else
    guest.contains(err, "this kernel has no histograms", "counting in Lua")
    guest.truth(out:find "\nload%-calls +%d+  110 +1009\n", "in Lua:\n%s", out)
  end
end)
