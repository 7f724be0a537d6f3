-- -c, -p and signals.
local guest = require "harness"

guest.check("-c returns the command's own status", function()
  local code = 'on("sched:sched_process_exit", function() end)'
  guest.equal(7, (guest.luatrace("-c", "exit 7", "-e", code)))
  guest.equal(128 + 15, (guest.luatrace("-c", "kill -TERM $$", "-e", code)))
end)

-- Starts luatrace and waits until everything is on.
local function start_tracing(words, code)
  local argv = { "luatrace", table.unpack(words) }
  argv[#argv + 1] = "-e"
  argv[#argv + 1] = code .. [[
    at_start(function()
      print("on")
      io.stdout:flush()
    end)
  ]]
  local started = guest.start(argv)
  guest.wait_until(function()
    return started.out():find("on\n", 1, true) or started.process:wait()
  end, "the start of luatrace")
  guest.contains(started.out(), "on\n")
  return started
end

guest.check("-p follows one process and its children, nobody else, to its end", function()
  local nr, filter = guest.fresh_nr()
  local core = require "tracefs.core"
  local call = ("/spec/load syscalls 53 --nr %d"):format(nr)
  local traced <close> = assert(core.spawn(call .. " >/dev/null; " .. call .. " >/dev/null"))
  local started = start_tracing({ "-p", traced:pid() }, ([[
    count = 0
    on("%s", { "id", filter = "%s" }, function() count = count + 1 end)
    at_end(function() print(count) end)
  ]]):format(guest.SYSCALL, filter))
  guest.equal(0, (guest.sh(("/spec/load syscalls 31 --nr %d"):format(nr))))
  assert(traced:release())
  guest.wait_until(function()
    return traced:wait() ~= nil
  end, "the end of the traced process")
  guest.equal(0, started.wait(), "exit status: " .. started.err())
  guest.equal("on\n106\n", started.out())
end)

for name, number in pairs { INT = 2, TERM = 15 } do
  guest.check(("SIG%s ends a run properly"):format(name), function()
    local started = start_tracing({}, [[
      on("sched:sched_switch", function() end)
      at_end(function() print("end", stats().lost, stats().delivered > 0) end)
    ]])
    require("tracefs.core").poll({}, 0.3)
    started.kill(number)
    guest.equal(0, started.wait(), "exit status: " .. started.err())
    guest.equal("on\nend\t0\ttrue\n", started.out())
  end)
end

guest.check("what a process killed by SIGKILL left is removed by the next run", function()
  local tracefs = require "tracefs"
  local started = start_tracing({}, 'on("sched:sched_switch", function() end)')
  local names = tracefs.instances()
  guest.equal(1, #names, "instances while it runs")
  guest.contains(names[1], ("luatrace-%d-"):format(started.process:pid()))
  guest.equal(0, tracefs.remove_stale(), "removed while it lives")
  started.kill(9)
  guest.equal(128 + 9, started.wait())
  guest.equal(names[1], table.concat(tracefs.instances(), " "), "instances then")
  local status, _, err = guest.luatrace("-v", "-d", "0.1", "-e",
    'on("sched:sched_wakeup", function() end)')
  guest.equal(0, status, err)
  guest.contains(err, "removed 1 instance of luatrace processes that are gone")
  guest.equal("", table.concat(tracefs.instances(), " "))
end)
