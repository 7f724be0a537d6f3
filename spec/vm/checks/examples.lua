-- The tools that people run as they are.
local guest = require "harness"

local EXAMPLES <const> = "/usr/local/share/luatrace/examples/"

guest.check("netlat: 23 packets are 23 pairs", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load udp 23 777 >/dev/null",
    EXAMPLES .. "netlat.lua", "--device", "lo")
  guest.equal(0, status, "exit status: " .. err)
  guest.equal("", err, "stderr")
  local pairs_seen = out:match("\nlo +(%d+) ")
  guest.equal("23", pairs_seen, "pairs in:\n" .. out)
  local counters = out:match("\ndevice +queued[^\n]*\n(lo[^\n]*)\n")
  guest.equal("lo 23 23 0 0 0 0 23 0", (counters or ""):gsub(" +", " "), "counters in:\n" .. out)
end)

guest.check("wakelat: the wakeups of two threads that pass a byte", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load threads 1 101 >/dev/null",
    EXAMPLES .. "wakelat.lua", "--comm", "load-*")
  guest.equal(0, status, "exit status: " .. err)
  -- One that is preempted by the other before it sleeps needs no waking; both cannot be.
  guest.contains(out, "\nload-p")
end)

guest.check("syscount: every call is counted, in the kernel where it can", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load syscalls 1009 >/dev/null",
    EXAMPLES .. "syscount.lua", "--comm", "load-*", "--top", "1")
  guest.equal(0, status, "exit status: " .. err)
  if guest.exists(guest.dir .. "/events/raw_syscalls/sys_enter/hist") then
    guest.equal("", err, "stderr")
    guest.truth(out:find "\nload%-calls +%d+  sys_getppid +1009\n", "in the kernel:\n%s", out)
    guest.contains(out, "counted in the kernel")
  else
    guest.contains(err, "this kernel has no histograms", "counting in Lua")
    guest.truth(out:find "\nload%-calls +%d+  sys_getppid +1009\n", "in Lua:\n%s", out)
  end
end)

guest.check("killsnoop, counts: 23 signals", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load signals 23 >/dev/null",
    EXAMPLES .. "killsnoop.lua", "--signal", "USR1", "--summary")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(out:find "\nload%-sender USR1   load%-target +23\n\n23 signals\n",
    "killsnoop:\n%s", out)
  status, out, err = guest.luatrace_in_time("-c", "/spec/load signals 23 >/dev/null",
    EXAMPLES .. "counts.lua", "signal:signal_generate", "--filter", "sig == 10", "--command")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(out:find "\n +23 +%d+ signal:signal_generate\n", "counts:\n%s", out)
end)

guest.check("pagefaults: 97 pages, and 11 that the kernel touches", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load faults 97 11 >/dev/null",
    EXAMPLES .. "pagefaults.lua", "--comm", "load-faults", "--by", "comm")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(out:find "\n%S+ +108 +0 +108 +0 +0 +11\n", "faults:\n%s", out)
end)

guest.check("softirqs, hardirqs: the packets of 97 datagrams", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load udp 97 >/dev/null",
    EXAMPLES .. "softirqs.lua")
  guest.equal(0, status, "exit status: " .. err)
  local runs = tonumber(out:match "\nNET_RX +(%d+) ")
  guest.truth(runs and runs >= 97, "runs of NET_RX in:\n%s", out)
  status, out, err = guest.luatrace_in_time("-d", "0.5", EXAMPLES .. "hardirqs.lua", "--per-cpu")
  guest.equal(0, status, "exit status: " .. err)
  guest.contains(out, " runs, ")
end)

guest.check("tcplife: both ends of 7 connections, with bytes where the kernel has them", function()
  local status, out, err = guest.luatrace_in_time("-f", "json", "-c",
    "/spec/load tcp 7 1009 17 >/dev/null", EXAMPLES .. "tcplife.lua")
  guest.equal(0, status, "exit status: " .. err)
  guest.equal(7, select(2, out:gsub('"ended":"us"', "")), "ended here in:\n" .. out)
  guest.equal(7, select(2, out:gsub('"ended":"peer"', "")), "ended there in:\n" .. out)
  if guest.exists(guest.dir .. "/events/sock/sock_send_length") then
    guest.equal("", err, "stderr")
    guest.equal(7, select(2, out:gsub('"received":17,', "")), "bytes in:\n" .. out)
    guest.equal(7, select(2, out:gsub('"received":1009,', "")), "bytes in:\n" .. out)
  else
    guest.contains(err, "this kernel has no event sock:sock_send_length")
    guest.equal(nil, out:find '"received"', "bytes in:\n" .. out)
  end
end)

guest.check("wakers, runqlat: 23 naps", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load naps 23 >/dev/null",
    EXAMPLES .. "wakers.lua", "--comm", "load-naps")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(out:find "\n%(%l+irq%) +load%-naps +23 +%d+ ", "wakers:\n%s", out)
  status, out, err = guest.luatrace_in_time("-c", "/spec/load naps 23 >/dev/null",
    EXAMPLES .. "runqlat.lua", "--comm", "load-naps")
  guest.equal(0, status, "exit status: " .. err)
  local woken = out:match "\nwakeup +(%d+) " or 0
  local not_seen = out:match "\n%d+ waits, (%d+) not seen, 0 voided, 0 open\n"
  guest.truth(not_seen and woken + not_seen <= 23, "runqlat:\n%s", out)
  local put_off = out:match "\npreemption +(%d+) " or 0
  guest.truth(woken + not_seen + put_off >= 23, "runqlat:\n%s", out)
end)

guest.check("netlat --stages: each of 23 packets has waited for the softirq", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load udp 23 777 >/dev/null",
    EXAMPLES .. "netlat.lua", "--device", "lo", "--stages", "--no-histogram")
  guest.equal(0, status, "exit status: " .. err)
  for _, stage in ipairs { "queue>softirq", "softirq>receive" } do
    guest.equal("23", out:match("\nlo +" .. stage .. " +(%d+) "), stage .. " in:\n" .. out)
  end
end)

guest.check("sockleak: 5 of 23 sockets are never closed", function()
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load sockets 23 5 >/dev/null",
    EXAMPLES .. "sockleak.lua", "--comm", "load-sockets")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(out:find "\nload%-sockets +%d+ socket +23 +18 +0 +0 +5 ", "the table:\n%s", out)
  guest.contains(out, "\n23 opened, 18 closed, 0 exec, 0 unknown, 5 left\n")
end)
