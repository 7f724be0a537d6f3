-- A CPU that goes and comes while it is traced. Elsewhere that would disturb others.
local guest = require "harness"
local tracefs = require "tracefs"

local SWITCH <const> = "/sys/devices/system/cpu/cpu1/online"

local function set_online(on)
  guest.write(SWITCH, on and "1" or "0")
  guest.equal(on and "0-1\n" or "0\n", guest.read("/sys/devices/system/cpu/online"), "CPUs online")
end

-- Makes records on a CPU while the session runs on.
local function call(session, nr, cpu, calls)
  guest.equal(0, (guest.sh(("/spec/load syscalls %d --cpu %d --nr %d"):format(calls, cpu, nr))))
  while true do
    local _, why = session:step()
    if why == "idle" then
      return
    end
  end
end

local function new_session()
  local nr, filter = guest.fresh_nr()
  local session = tracefs.session { buffer_kb = 1024 }
  local counts = { [0] = 0, 0 }
  session:on(guest.SYSCALL, { "common_cpu", filter = filter }, function(cpu)
    counts[cpu] = counts[cpu] + 1
  end)
  return session, nr, counts
end

local function finish(session)
  session:finish()
  local stats = session:run { duration = 20 }
  guest.equal(0, stats.lost, "lost")
  guest.equal(0, stats.late, "late")
  guest.balanced(stats)
  return stats
end

-- Whatever a check does, the CPU is there for the next one.
local function check(name, fn)
  guest.check(name, function()
    if not guest.exists(SWITCH) then
      guest.skip("CPU 1 cannot be taken offline")
    end
    local ok, err = xpcall(fn, function(err)
      return type(err) == "string" and debug.traceback(err, 2) or err
    end)
    pcall(set_online, true)
    if not ok then
      error(err, 0)
    end
  end)
end

check("a CPU that goes offline and comes back loses nothing", function()
  local session <close>, nr, counts = new_session()
  session:start()
  call(session, nr, 1, 1009)
  call(session, nr, 0, 211)
  set_online(false)
  call(session, nr, 0, 503)
  set_online(true)
  call(session, nr, 1, 307)
  local stats = finish(session)
  guest.equal(211 + 503, counts[0], "records of CPU 0")
  guest.equal(1009 + 307, counts[1], "records of CPU 1")
  guest.equal(1009 + 307, stats.per_cpu[1].produced, "produced on CPU 1")
end)

check("what is in the buffer of a CPU that has gone is still delivered", function()
  local session <close>, nr, counts = new_session()
  session:start()
  guest.equal(0, (guest.sh(("/spec/load syscalls 607 --cpu 1 --nr %d"):format(nr))))
  set_online(false)
  local stats = finish(session)
  guest.equal(607, counts[1], "records of CPU 1")
  guest.equal(607, stats.produced, "produced")
end)

check("a CPU that comes only after the session has begun is traced", function()
  set_online(false)
  local session <close>, nr, counts = new_session()
  session:start()
  call(session, nr, 0, 101)
  set_online(true)
  call(session, nr, 1, 401)
  local stats = finish(session)
  guest.equal(101, counts[0], "records of CPU 0")
  guest.equal(401, counts[1], "records of CPU 1")
  guest.equal(502, stats.delivered, "delivered")
end)
