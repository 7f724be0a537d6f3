-- What wakes a session that waits. The regular look is put off for so long that it cannot be it.
local guest = require "harness"
local core = require "tracefs.core"
local tracefs = require "tracefs"

local function drain(session)
  repeat
    local _, why = session:step()
  until why == "idle"
end

-- Waits with nothing there, then until the load's records are.
local function waits(options, calls)
  local nr, filter = guest.fresh_nr()
  options.interval = 60
  local session <close> = tracefs.session(options)
  session:enable(guest.SYSCALL, { filter = filter })
  session:start()
  drain(session)
  guest.equal(false, session:wait(0.2), "wait() with nothing there")
  local load = guest.start {
    "/spec/load", "syscalls", tostring(calls), "--cpu", "1", "--nr", tostring(nr),
  }
  local start = core.now("mono")
  guest.equal(true, session:wait(20), "wait()")
  guest.truth(core.now("mono") - start < 20e9, "it was the time that ended the wait")
  guest.equal(0, load.wait())
  session:finish()
  guest.equal(calls, session:run().delivered, "delivered")
end

guest.check("one record wakes a session with low_latency", function()
  waits({ low_latency = true, buffer_kb = 1024 }, 1)
end)

guest.check("a buffer that fills wakes a session", function()
  waits({ buffer_kb = 1024 }, 7001)
end)
