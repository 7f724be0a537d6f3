-- Stacks come with their events, into the session's instance and nowhere else.
local guest = require "harness"
local tracefs = require "tracefs"

local EXAMPLES <const> = "/usr/local/share/luatrace/examples/"

local has, missing = tracefs.features()
local function need_stacks()
  if not has.trigger_stacktrace then
    guest.skip(missing.trigger_stacktrace)
  end
end

guest.check("stacks: each of 101 calls has its own, and the top level has none", function()
  need_stacks()
  local session <close> = tracefs.session {}
  local nr = guest.fresh_nr()
  local with, without = 0, 0
  session:on("raw_syscalls:sys_enter", { stack = true, filter = "id == " .. nr }, function(ev)
    if ev.common_stack and ev.common_stack:find("syscall", 1, true) then
      with = with + 1
    else
      without = without + 1
    end
  end)
  local stats = guest.run_load(session, "syscalls", 101, "--nr", nr)
  guest.equal(101, with, "with a stack")
  guest.equal(0, without, "without")
  guest.equal(202, stats.delivered, "delivered")
  local top = guest.read(guest.dir .. "/trace") or ""
  guest.truth(not top:find("<stack trace>", 1, true), "the top level has stacks")
end)

guest.check("stacks: of programs, where the kernel has them", function()
  local session <close> = tracefs.session { own_events = true }
  if not session.instance:has "options/userstacktrace" then
    guest.skip "no option userstacktrace (CONFIG_USER_STACKTRACE_SUPPORT)"
  end
  local seen, named = 0, 0
  session:on("raw_syscalls:sys_enter", {
    user_stack = true, filter = "common_pid == " .. tracefs.core.own_thread(),
  }, function(ev)
    local stack = ev.common_user_stack
    seen = seen + 1
    named = named + (stack and stack:find("[^;%[%]]+$") and 1 or 0)
  end)
  session:at_start(function()
    for _ = 1, 23 do
      guest.read "/proc/self/stat"
    end
    session:finish()
  end)
  session:run()
  guest.truth(seen >= 23 and named >= 23, "%d calls, %d with a name", seen, named)
end)

guest.check("offcpu: each wait of 23 naps, by the kernel's own count", function()
  need_stacks()
  local status, out, err = guest.luatrace_in_time("-f", "json", "-c", "/spec/load naps 23 >&2",
    EXAMPLES .. "offcpu.lua", "--comm", "load-naps")
  guest.equal(0, status, "exit status: " .. err)
  local waits = err:match "naps=23 waits=(%d+)"
  guest.contains(out, ('"intervals":%s,"still_off"'):format(waits))
  guest.contains(out, "nanosleep")
end)

guest.check("profile: the ticks of a busy program", function()
  need_stacks()
  local status, out, err = guest.luatrace("-f", "json", "-c", "/spec/load hogs 1 1 >&2",
    EXAMPLES .. "profile.lua", "--comm", "load*")
  guest.equal(0, status, "exit status: " .. err)
  guest.truth(tonumber(out:match '"samples":(%d+),"without_stack"') > 0, "%s", out)
end)
