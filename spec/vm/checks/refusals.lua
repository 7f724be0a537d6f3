-- What is refused says what, why, and what to do.
local guest = require "harness"
local tracefs = require "tracefs"

local function refused(...)
  local status, out, err = guest.luatrace(...)
  guest.equal(1, status, "exit status")
  guest.equal("", out, "stdout")
  return err
end

guest.check("an event that is not there: the nearest names", function()
  local err = refused("-e", 'on("sched:sched_swich")')
  guest.contains(err, 'no event "sched:sched_swich"', "Did you mean sched:sched_switch")
end)

guest.check("a field that is not there: the event's fields", function()
  local err = refused("-e", 'on("sched:sched_switch", { "nosuch" }, print)')
  guest.contains(err, "sched:sched_switch has no field 'nosuch'", "prev_comm, prev_pid, prev_prio")
end)

guest.check("a bad pattern", function()
  guest.contains(refused("-e", 'on("[")'), 'bad event pattern "["')
end)

-- The kernel's own words, and its caret under the place.
local FILTERS <const> = {
  -- Behind the name: that is where the kernel has read it.
  { "nosuch == 1", #"nosuch ", "Field not found" },
  { 'prev_comm == "abc', nil, "Missing matching quote" },
  { "prev_pid == 1 nonsense", nil, nil },
  { 'prev_pid ~ "a*"', nil, nil },
  { "prev_comm == 5", nil, nil },
}

guest.check("bad filters: the kernel's line with its caret, the old filter kept", function()
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_filter("sched", "sched_switch", "prev_pid > 7"))
  for _, case in ipairs(FILTERS) do
    local filter, column, words = table.unpack(case, 1, 3)
    local ok, message = instance:set_filter("sched", "sched_switch", filter)
    guest.equal(nil, ok, filter)
    guest.contains(message, "cannot set the filter of sched:sched_switch", "the kernel says:\n",
      "\n  Command: " .. filter .. "\n")
    if words then
      guest.contains(message, words)
    end
    local caret = message:match("\n  Command: [^\n]*\n( *)%^")
    guest.truth(caret, "no caret in %s", message)
    local log_caret = instance:error_log():match("\n  Command: [^\n]*\n( *)%^")
    guest.equal(log_caret, caret, "the caret's place for " .. filter)
    if column then
      guest.equal(#"  Command: " + column, #caret, "the caret's column for " .. filter)
    end
    guest.equal("prev_pid > 7", instance:get_filter("sched", "sched_switch"), "the filter then")
  end
  assert(instance:clear_filter("sched", "sched_switch"))
  guest.equal(nil, instance:get_filter("sched", "sched_switch"))
end)

guest.check("a filter with its end missing, which kernels accept, is refused too", function()
  local instance <close> = assert(tracefs.instance_create())
  local ok, message = instance:set_filter("sched", "sched_switch", "prev_pid == 1 &&")
  guest.equal(nil, ok)
  guest.contains(message, "a condition is missing at its end", "\n  Command: prev_pid == 1 &&\n")
  guest.equal(nil, instance:get_filter("sched", "sched_switch"))
end)

guest.check("a filter of the command: the caret line on stderr", function()
  local err = refused("-e", 'on("sched:sched_switch", { filter = "nosuch == 1" })')
  guest.contains(err, "Field not found", "\n  Command: nosuch == 1\n" .. (" "):rep(18) .. "^")
end)

guest.check("one refusal after another: each has its own entry of the kernel's log, and no older",
  function()
  local has = tracefs.features()
  local session <close> = tracefs.session { buffer_kb = 64 }
  local instance = session.instance
  local function raising(method, ...)
    return select(2, pcall(session[method], session, ...))
  end
  -- what is refused, and the part of the message that is its own
  local cases = {
    { "nofield1", function()
      return select(2, instance:set_filter("sched", "sched_switch", "nofield1 == 1"))
    end },
    { "nofield2", function()
      return raising("trigger", "sched:sched_switch", "traceon if nofield2 == 1")
    end },
    { "noreg3", has.kprobe and function()
      return raising("on", "kprobe:do_sys_openat2", { args = "a=%noreg3" }, print)
    end },
    { "noreg4", has.uprobe and function()
      return raising("on", "uprobe:/spec/probed:probed_work", { args = "a=%noreg4" }, print)
    end },
    { "nofield5", has.hist and function()
      return raising("hist", "sched:sched_switch", { keys = "next_pid", filter = "nofield5 == 1" })
    end },
    { "notype6", has.synthetic and function()
      return raising("synthetic", "bad6", "notype6 x")
    end },
  }
  local tried = 0
  local function try(at)
    local mark, refuse = cases[at][1], cases[at][2]
    if not refuse then
      return
    end
    local message = refuse()
    tried = tried + 1
    guest.contains(message, mark)
    if not message:find("the kernel says:\n", 1, true) then
      -- 5.10 logs nothing for the condition of a trigger
      guest.equal("nofield2", mark, "refused without the kernel's words")
      guest.equal("", instance:error_log(), "the log then")
    else
      guest.equal(1, select(2, message:gsub("\n  Command: ", "")), "entries in " .. message)
      guest.truth(message:find("\n +%^"), "no caret in %s", message)
    end
    for _, other in ipairs(cases) do
      guest.truth(other[1] == mark or not message:find(other[1], 1, true), "%s is in: %s", other[1],
        message)
    end
  end
  for round = 1, 2 do
    for i = 1, #cases do
      try(round == 1 and i or #cases + 1 - i)
    end
  end
  guest.truth(tried >= 8, "only %d refusals", tried)
  guest.note("%d refusals", tried)
end)

guest.check("filters let through what they say", function()
  local nr = guest.fresh_nr()
  local session <close> = tracefs.session()
  local seen = {}
  session:on(guest.SYSCALL, {
    "args", filter = ("id == %d && common_pid != 0"):format(nr),
  }, function(args)
    seen[#seen + 1] = args[1]
  end)
  session:on("sched:sched_process_exec", {
    "filename", filter = 'filename ~ "*/load"',
  }, function(name)
    guest.equal("/spec/load", name)
  end)
  guest.run_load(session, "syscalls", 7, "--nr", nr)
  guest.equal("1 2 3 4 5 6 7", table.concat(seen, " "))
end)

guest.check("names of instances", function()
  local first <close> = assert(tracefs.instance_create("vm-check"))
  for bad, why in pairs {
    ["vm-check"] = "there is one of this name (" .. first:dir() .. ")",
    ["a/b"] = "it has a slash",
    [".."] = "it is a directory's own or parent's name",
  } do
    local other, message = tracefs.instance_create(bad)
    guest.equal(nil, other)
    guest.contains(message, why)
  end
end)

guest.check("a user who may not trace: whose it is, and to run as root", function()
  guest.write("/etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
  local status, out, err = guest.sh("su nobody -c " ..
    guest.quote("PATH=$PATH:/usr/local/bin luatrace -e 'on(\"sched:sched_switch\")'"))
  guest.equal(1, status)
  guest.equal("", out)
  guest.contains(err, "permission denied", "uid 65534", "Run as root")
end)

guest.check("a script with a syntax error, and one that is not there", function()
  guest.contains(refused("-e", "on("), "-e:1:")
  guest.contains(refused("/nosuch.lua"), "cannot read the script /nosuch.lua")
end)

guest.check("a handler that raises: its line, and the record it was called for", function()
  local nr, filter = guest.fresh_nr()
  local status, _, err = guest.luatrace("-c",
    ("/spec/load syscalls 3 --nr %d >/dev/null"):format(nr), "-e",
    ('on("%s", { filter = "%s" }, function(ev) local x = nil + ev.id end)'):format(
      guest.SYSCALL, filter))
  guest.equal(1, status)
  guest.contains(err, "-e:1: attempt to perform arithmetic on a nil value",
    ("sys_enter: NR %d (1, "):format(nr))
end)
