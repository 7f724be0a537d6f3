-- Before and after tracefs is mounted.
local guest = require "harness"

guest.check("without tracefs the command says how to mount it", function()
  local status, out, err = guest.luatrace("-e", 'on("sched:sched_switch")')
  guest.equal(1, status, "exit status")
  guest.equal("", out, "stdout")
  guest.contains(err, "tracefs is not mounted", "mount -t tracefs nodev /sys/kernel/tracing")
end)

guest.check("tracefs can be mounted", function()
  local status, _, err = guest.sh("mount -t tracefs nodev " .. guest.dir)
  guest.equal(0, status, err)
  guest.equal(guest.dir, require("tracefs").tracing_dir())
end)
