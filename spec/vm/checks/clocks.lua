-- All clocks of the kernel.
local guest = require "harness"
local tracefs = require "tracefs"

local READABLE <const> = { mono = true, boot = true, mono_raw = true, tai = true }

local names = {}
for name in guest.read(guest.dir .. "/trace_clock"):gsub("[%[%]]", ""):gmatch("%S+") do
  names[#names + 1] = name
end

guest.check("the clocks are those of trace_clock", function()
  local instance <close> = assert(tracefs.instance_create())
  guest.equal(table.concat(names, " "), table.concat(instance:clocks(), " "))
  guest.equal("local", instance:get_clock())
end)

for _, name in ipairs(names) do
  guest.check("a session with the clock " .. name, function()
    local nr, filter = guest.fresh_nr()
    local session <close> = tracefs.session { clock = name, margin = 1 }
    guest.equal(name, session.instance:get_clock())
    local newest = { [0] = math.mininteger, math.mininteger }
    local count, wrong, first, last = 0, 0, nil, nil
    session:on(guest.SYSCALL, { "common_timestamp", "common_cpu", filter = filter },
      function(ts, cpu)
        count = count + 1
        wrong = wrong + (ts < newest[cpu] and 1 or 0)
        newest[cpu] = ts
        first, last = first or ts, ts
      end)
    local before = READABLE[name] and assert(tracefs.now(name))
    local stats = guest.run_load(session, "syscalls", 101, "--cpu", "all", "--nr", nr)
    local after = READABLE[name] and assert(tracefs.now(name))
    guest.equal(202, count, "records")
    guest.equal(202, stats.delivered, "delivered")
    guest.equal(0, wrong, "going back within a CPU")
    if before then
      guest.truth(before < first and last < after, "%d to %d is not within %d to %d", first, last,
        before, after)
      guest.equal(0, stats.late, "late")
    end
  end)
end

guest.check("a clock that is not there is refused with those that are", function()
  local status, _, err = guest.luatrace("-C", "nosuch", "-e", 'on("sched:sched_switch")')
  guest.equal(1, status)
  guest.contains(err, 'no trace clock "nosuch" in this kernel',
    "It has: " .. table.concat(names, " "))
end)
