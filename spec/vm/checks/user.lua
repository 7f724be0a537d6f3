-- --user: each kernel gives rights to files of tracefs in its own way; the helper's requests have
-- to work on all of them, and the script must get no further on any.
local guest = require "harness"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local NOBODY <const> = "65534:65534"

guest.check("--user: exact counts, and the rights of an ordinary user", function()
  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace_in_time("--user", NOBODY, "-c",
    ("/spec/load syscalls 10007 --nr %d >/dev/null"):format(nr), "-e", ([[
      local n = 0
      on(%q, { filter = %q }, function() n = n + 1 end)
      at_end(function()
        print(n, stats().lost)
        for _, file in ipairs { "tracing_on", "set_event", "trace_marker", "dynamic_events",
          "instances/" .. trace.instance:name() .. "/tracing_on",
          "instances/" .. trace.instance:name() .. "/events/enable" } do
          print((io.open(%q .. "/" .. file, "r+")))
        end
        print((os.execute "kill -0 1 2>/dev/null"))
      end)
    ]]):format(guest.SYSCALL, filter, guest.dir))
  guest.equal("", err)
  guest.equal("10007\t0\n" .. ("nil\n"):rep(7), out)
  guest.equal(0, status)
  guest.equal(0, #tracefs.instances(), "instances")
end)

guest.check("--user: triggers, options, markers, names of functions", function()
  local status, out, err = guest.luatrace_in_time("--user", NOBODY, "-d", "0.5", "-e", [[
    local symbols, markers = false, 0
    on("ftrace:print", function() markers = markers + 1 end)
    on("ftrace:kernel_stack", function(ev)
      symbols = symbols or tostring(ev):find "schedule" ~= nil
    end)
    trace:trigger("sched:sched_switch", "stacktrace")
    print(trace.instance:set_option("stacktrace", false))
    at_start(function() for _ = 1, 7 do trace:marker "here" end end)
    at_end(function() print(markers, symbols) end)
  ]])
  guest.equal("", err)
  guest.equal("true\n7\ttrue\n", out)
  guest.equal(0, status)
end)

guest.check("--user: a histogram that counts in the instance, and none that goes beyond", function()
  do
    local session <close> = tracefs.session { buffer_kb = 256 }
    if not hist.supported(session.instance) then
      guest.skip("this kernel has no hist triggers")
    end
  end
  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace("--user", NOBODY, "-c",
    ("/spec/load syscalls 501 --nr %d >/dev/null"):format(nr), "-e", ([[
      local calls = hist(%q, { keys = { "id" }, filter = %q })
      at_end(function() print(calls:read().rows[1].values.hitcount) end)
      print((trace.instance:set_trigger("sched", "sched_switch",
        "hist:keys=prev_pid:onmax(prev_prio).snapshot()")))
      print((pcall(kernel_latency, {})), (pcall(on, "kprobe:do_sys_openat2", print)))
    ]]):format(guest.SYSCALL, filter))
  guest.equal("", err)
  guest.equal("nil\nfalse\tfalse\n501\n", out)
  guest.equal(0, status)
end)

guest.check("--user: after SIGKILL the instance goes by itself", function()
  local run = guest.start { "luatrace", "-v", "--user", NOBODY, "-e",
    'on("sched:sched_switch", function() end) trace:trigger("sched:sched_switch", "stacktrace:1")' }
  guest.wait_until(function()
    return run.err():find("KB for each CPU", 1, true)
  end, "the start")
  guest.equal(1, #tracefs.instances(), "instances")
  run.kill(9)
  guest.equal(137, run.wait())
  guest.wait_until(function()
    return #tracefs.instances() == 0
  end, "the end of the instance")
end)
