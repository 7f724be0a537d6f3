-- One stream in the order of time, from both CPUs.
local guest = require "harness"
local core = require "tracefs.core"
local tracefs = require "tracefs"

local EACH <const> = 20011

-- Counts steps back in time by hand, whatever the session says of them.
local function observe(session, each, ...)
  local nr, filter = guest.fresh_nr()
  local seen = { count = 0, inversions = 0, by_cpu = { [0] = 0, 0 } }
  local newest = 0
  session:on(guest.SYSCALL, { "common_timestamp", "common_cpu", filter = filter },
    function(ts, cpu)
      if ts < newest then
        seen.inversions = seen.inversions + 1
      else
        newest = ts
      end
      seen.count = seen.count + 1
      seen.by_cpu[cpu] = seen.by_cpu[cpu] + 1
    end)
  local stats = guest.run_load(session, "syscalls", each, "--cpu", "all", "--nr", nr, ...)
  return seen, stats
end

for _, clock in ipairs { "mono", "boot" } do
  guest.check(("order over both CPUs under load is that of time with %s"):format(clock), function()
    -- A virtual CPU can lose its real one for long between taking a timestamp and showing the
    -- record: the margin must cover that here.
    local session <close> = tracefs.session { clock = clock, margin = 2, buffer_kb = 16384 }
    local seen, stats = observe(session, EACH)
    guest.equal(EACH, seen.by_cpu[0], "records of CPU 0")
    guest.equal(EACH, seen.by_cpu[1], "records of CPU 1")
    guest.equal(0, seen.inversions, "inversions")
    guest.equal(0, stats.late, "late")
    guest.equal(2 * EACH, stats.delivered, "delivered")
    guest.equal(0, stats.lost, "lost")
    guest.balanced(stats)
  end)
end

guest.check("with the margin of every day, what comes late is counted and flagged", function()
  local session <close> = tracefs.session { buffer_kb = 16384 }
  local flagged = 0
  session:on("raw_syscalls:sys_exit", { "common_late" }, function(late)
    flagged = flagged + (late and 1 or 0)
  end)
  local newest, inversions = 0, 0
  session:on("raw_syscalls:sys_*", { "common_timestamp" }, function(ts)
    if ts < newest then
      inversions = inversions + 1
    else
      newest = ts
    end
  end)
  session:on("raw_syscalls:sys_enter", { "common_late" }, function(late)
    flagged = flagged + (late and 1 or 0)
  end)
  local hogs = guest.start { "/spec/load", "hogs", "3", "2" }
  local stats = guest.run_load(session, "syscalls", 2003, "--cpu", "all", "--rate", 5000)
  guest.equal(0, hogs.wait())
  guest.equal(inversions, stats.late, "late")
  guest.equal(inversions, flagged, "flagged")
  guest.balanced(stats)
end)

guest.check("records far apart have their times", function()
  local session <close> = tracefs.session { buffer_kb = 256 }
  local times = {}
  session:on("ftrace:print", { "common_timestamp" }, function(ts)
    times[#times + 1] = ts
  end)
  session:start()
  local bounds = {}
  for i = 1, 5 do
    local before = assert(tracefs.now())
    session:marker("tick")
    bounds[i] = { before, assert(tracefs.now()) }
    -- The delta in a record's head ends at 134 ms.
    core.poll({}, i % 2 == 0 and 0.3 or 0.001)
  end
  session:finish()
  session:run()
  guest.equal(5, #times)
  for i, ts in ipairs(times) do
    guest.truth(bounds[i][1] <= ts and ts <= bounds[i][2], "marker %d: %d is not within %d to %d",
      i, ts, bounds[i][1], bounds[i][2])
  end
end)

guest.check("order within each CPU is the kernel's with the clock local", function()
  local nr, filter = guest.fresh_nr()
  local session <close> = tracefs.session { clock = "local", buffer_kb = 16384 }
  local last, wrong = { [0] = 0, 0 }, 0
  session:on(guest.SYSCALL, { "args", "common_cpu", filter = filter }, function(args, cpu)
    wrong = wrong + (args[1] == last[cpu] + 1 and 0 or 1)
    last[cpu] = args[1]
  end)
  local stats = guest.run_load(session, "syscalls", 5003, "--cpu", "all", "--nr", nr)
  guest.equal(0, wrong, "sequence numbers out of order")
  guest.equal(10006, stats.delivered, "delivered")
  guest.equal(0, stats.lost, "lost")
end)
