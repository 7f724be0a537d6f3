-- Triggers of every command do in an instance what they say, and nothing outside of it.
local guest = require "harness"
local tracefs = require "tracefs"

local has, missing = tracefs.features()

local function need(name)
  if not has[name] then
    guest.skip(missing[name])
  end
end

-- All on one CPU: their order is that of its buffer, whatever the clock.
local function syscalls(count, nr)
  guest.equal(0, (guest.sh(("/spec/load syscalls %d --cpu 1 --nr %d"):format(count, nr))))
end

-- How many records the text of a trace has.
local function count_lines(text, part)
  local count = 0
  for line in text:gmatch("[^\n]+") do
    if line:sub(1, 1) ~= "#" and line:find(part, 1, true) then
      count = count + 1
    end
  end
  return count
end

guest.check("triggers: traceoff and traceon, with count and condition", function()
  local instance <close> = assert(tracefs.instance_create())
  local stop, go = guest.fresh_nr(), guest.fresh_nr()
  assert(instance:set_trigger("raw_syscalls", "sys_enter", ("traceoff:2 if id == %d"):format(stop)))
  assert(instance:set_trigger("raw_syscalls", "sys_exit", ("traceon if id == %d"):format(go)))
  assert(instance:trace_on())
  for _ = 1, 2 do
    syscalls(1, stop)
    guest.equal(false, instance:trace_is_on(), "after traceoff")
    syscalls(1, go)
    guest.equal(true, instance:trace_is_on(), "after traceon")
  end
  guest.equal("1\n", guest.read(guest.dir .. "/tracing_on"), "the top level's tracing_on")
  syscalls(1, stop)
  guest.equal(true, instance:trace_is_on(), "when the count has run out")
  guest.equal(("traceoff:count=0 if id == %d"):format(stop),
    instance:triggers("raw_syscalls", "sys_enter")[1])
end)

guest.check("triggers: enable_event and disable_event", function()
  local instance <close> = assert(tracefs.instance_create())
  local on, off, nr = guest.fresh_nr(), guest.fresh_nr(), guest.fresh_nr()
  assert(instance:set_filter("raw_syscalls", "sys_exit", ("id == %d"):format(nr)))
  assert(instance:set_trigger("raw_syscalls", "sys_enter",
    ("enable_event:raw_syscalls:sys_exit if id == %d"):format(on)))
  local done, message = instance:set_trigger("raw_syscalls", "sys_enter",
    "disable_event:raw_syscalls:sys_exit")
  guest.equal(nil, done, "both for one event")
  guest.contains(message, "the event has one of this kind; remove it first")
  assert(instance:set_trigger("raw_syscalls", "sys_exit",
    ("disable_event:raw_syscalls:sys_exit if id == %d"):format(off)))
  assert(instance:trace_on())
  syscalls(3, nr)
  syscalls(1, on)
  syscalls(23, nr)
  syscalls(1, off)
  syscalls(5, nr)
  assert(instance:trace_off())
  guest.equal(23, count_lines(instance:read("trace"), ("NR %d = "):format(nr)))
  guest.equal(1, #instance:triggers("raw_syscalls", "sys_enter"))
end)

guest.check("triggers: stacktrace, in the instance and nowhere else", function()
  need "trigger_stacktrace"
  local instance <close> = assert(tracefs.instance_create())
  local nr = guest.fresh_nr()
  local before = count_lines(guest.read(guest.dir .. "/trace"), "<stack trace>")
  assert(instance:set_trigger("raw_syscalls", "sys_enter", ("stacktrace:7 if id == %d"):format(nr)))
  assert(instance:trace_on())
  syscalls(11, nr)
  assert(instance:trace_off())
  guest.equal(7, count_lines(instance:read("trace"), "<stack trace>"))
  guest.equal(before, count_lines(guest.read(guest.dir .. "/trace"), "<stack trace>"),
    "stacks at the top level")
end)

guest.check("triggers: stacks are records of a session", function()
  need "trigger_stacktrace"
  local nr = guest.fresh_nr()
  local session <close> = tracefs.session { buffer_kb = 512 }
  session:trigger("raw_syscalls:sys_enter", ("stacktrace:7 if id == %d"):format(nr))
  local stacks = 0
  session:on("ftrace:kernel_stack", function(ev)
    stacks = stacks + (#ev.caller > 2 and 1 or 0)
  end)
  local stats = guest.run_load(session, "syscalls", 11, "--nr", nr)
  guest.equal(7, stacks)
  guest.balanced(stats)
end)

guest.check("triggers: snapshot keeps what led to it", function()
  need "trigger_snapshot"
  local instance <close> = assert(tracefs.instance_create())
  local before, nr, after = guest.fresh_nr(), guest.fresh_nr(), guest.fresh_nr()
  assert(instance:set_filter("raw_syscalls", "sys_enter", tracefs.filter({
    id = { before, after },
  }, "raw_syscalls:sys_enter")))
  assert(instance:enable("raw_syscalls", "sys_enter"))
  assert(instance:set_trigger("raw_syscalls", "sys_exit", ("snapshot:1 if id == %d"):format(nr)))
  guest.equal(true, instance:has_snapshot(), "has memory")
  assert(instance:trace_on())
  syscalls(23, before)
  syscalls(1, nr)
  syscalls(5, after)
  assert(instance:trace_off())
  -- An event that is off by now is known all the same.
  assert(instance:disable("raw_syscalls", "sys_enter"))
  local seen, last = {}, 0
  for ev in tracefs.snapshot_events(instance) do
    guest.equal("raw_syscalls:sys_enter", ev.common_event)
    guest.equal(before, ev.id)
    guest.truth(ev.common_timestamp >= last, "out of order")
    last = ev.common_timestamp
    seen[#seen + 1] = ev.args[1]
  end
  guest.equal(23, #seen)
  for i, value in ipairs(seen) do
    guest.equal(i, value, "record " .. i)
  end
  guest.equal(5, count_lines(instance:read("trace"), ("NR %d ("):format(after)))
end)

guest.check("triggers: hist, with variables that others use, removed in any order", function()
  need "hist"
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_trigger("sched", "sched_waking", "hist:keys=pid:ts0=common_timestamp.usecs"))
  assert(instance:set_trigger("sched", "sched_switch",
    "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0"))
  local listed = instance:triggers("sched", "sched_waking")
  guest.equal(1, #listed)
  guest.contains(listed[1], "hist:keys=pid:", "ts0=common_timestamp.usecs", "[active]")
  local done, message = instance:remove_trigger("sched", "sched_waking", listed[1])
  guest.equal(nil, done, "removal of what is in use")
  guest.contains(message, "others use its variables; remove those first")
  assert(instance:remove_trigger("sched", "sched_switch",
    instance:triggers("sched", "sched_switch")[1]))
  assert(instance:remove_trigger("sched", "sched_waking", "hist:keys=pid:"
    .. "ts0=common_timestamp.usecs"))
  guest.equal(0, #instance:triggers("sched", "sched_waking"))
  -- Left there: they hold the instance until they go.
  assert(instance:set_trigger("sched", "sched_waking", "hist:keys=pid:ts0=common_timestamp.usecs"))
  assert(instance:set_trigger("sched", "sched_switch",
    "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0"))
end)

guest.check("triggers: set behind the instance's back they go away with it too", function()
  local instance <close> = assert(tracefs.instance_create())
  local file = "events/sched/sched_waking/trigger"
  assert(instance:append(file, "enable_event:irq:softirq_entry:3"))
  if has.hist then
    assert(instance:append(file, "hist:keys=pid:ts0=common_timestamp.usecs"))
    assert(instance:append("events/sched/sched_switch/trigger",
      "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0"))
  end
end)

-- A process that sets triggers and is killed.
local KILLED <const> = [[
  local tracefs = require "tracefs"
  local session = tracefs.session { buffer_kb = 64 }
  session:trigger("sched:sched_process_exit", "traceoff:3")
  session:trigger("sched:sched_process_exec", "enable_event:irq:softirq_entry:3")
  if tracefs.features().hist then
    session:trigger("sched:sched_waking", "hist:keys=pid:ts0=common_timestamp.usecs")
    session:trigger("sched:sched_switch", "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0")
  end
  io.stdout:write("ready\n")
  io.stdout:flush()
  while true do
    session:wait(1)
  end
]]

guest.check("triggers: those of a killed process are removed by the next session", function()
  guest.write("/tmp/killed.lua", KILLED)
  local process = guest.start { "lua5.4", "/tmp/killed.lua" }
  guest.wait_until(function()
    return process.out():find("ready", 1, true)
  end, "the triggers: " .. process.err())
  guest.equal(1, #tracefs.instances())
  process.kill(9)
  guest.equal(128 + 9, process.wait())
  guest.equal(1, #tracefs.instances(), "instances after the kill")
  do
    local session <close> = tracefs.session { buffer_kb = 64 }
    guest.equal(session.instance:name(), table.concat(tracefs.instances(), " "))
  end
end)

guest.check("triggers: two instances do not see each other's", function()
  local one <close> = assert(tracefs.instance_create())
  local two <close> = assert(tracefs.instance_create())
  assert(one:set_trigger("sched", "sched_waking", "traceoff"))
  guest.equal(0, #two:triggers("sched", "sched_waking"))
  assert(two:set_trigger("sched", "sched_waking", "traceon:5 if pid == 999999"))
  assert(one:clear_triggers("sched", "sched_waking"))
  guest.equal("traceon:count=5 if pid == 999999",
    table.concat(two:triggers("sched", "sched_waking"), " "))
end)

-- What people get wrong, and what the kernel (or we, where it says nothing) must tell.
local BAD <const> = {
  { "traceoff if nosuch == 1", "Field not found", "Its fields are: prev_comm, prev_pid" },
  { "traceoff if prev_pid == ", "Command: prev_pid ==" },
  { "traceoff if prev_comm == 5", "Command: prev_comm == 5" },
  { "bogus", 'no trigger command "bogus"', "It has: traceon traceoff" },
  { "tracoff", "Did you mean traceoff" },
  { "enable_event:nosuch:event", "there is no event nosuch:event" },
  { "enable_event", "enable_event wants an event" },
  { "traceoff:x", "the form is COMMAND" },
  { "hist:keys=nosuch", hist = "Couldn't find field" },
  { "hist:key", hist = "" },
  { "hist:keys=prev_pid.bogus", hist = "Invalid field modifier" },
  { "hist:keys=prev_pid:vals=nosuch", hist = "Couldn't find field" },
  { "hist:keys=prev_pid:sort=nosuch", hist = "Sort field must be a key or a val" },
  { "hist:keys=prev_pid:size=3", hist = "" },
  { "hist:keys=next_pid:d=common_timestamp.usecs-$undef", hist = "Couldn't find variable" },
  { "hist:keys=next_pid:onmatch(sched.sched_waking).nosuch(next_pid)",
    hist = "Couldn't find synthetic event" },
  { "hist:keys=next_pid:onmax($x).save(next_comm)",
    hist = "Couldn't find onmax or onchange variable" },
}

guest.check("triggers: bad ones are refused in the kernel's words, never in old ones", function()
  local instance <close> = assert(tracefs.instance_create())
  for _, case in ipairs(BAD) do
    if not case.hist or has.hist then
      -- an older entry that must not be taken for the answer
      instance:set_filter("sched", "sched_waking", "stale == 1")
      local done, message = instance:set_trigger("sched", "sched_switch", case[1])
      guest.equal(nil, done, case[1])
      guest.contains(message, ('cannot set the trigger "%s" of sched:sched_switch'):format(
        case[1]), case.hist, table.unpack(case, 2))
      guest.truth(not message:find("stale", 1, true), "an old entry in %s", message)
      local log = instance:error_log()
      guest.equal(log ~= "", message:find("kernel says:\n", 1, true) ~= nil, case[1])
      for line in log:gmatch("[^\n]+") do
        guest.contains(message, (line:gsub("^%[ *[%d.]+%] ", "")))
      end
      guest.equal(0, #instance:triggers("sched", "sched_switch"), "after " .. case[1])
    end
  end
end)

guest.check("triggers: a snapshot is refused while a session reads", function()
  need "trigger_snapshot"
  local session <close> = tracefs.session { buffer_kb = 64 }
  local ok, message = pcall(session.trigger, session, "sched:sched_switch", "snapshot:1")
  guest.equal(false, ok)
  guest.contains(message, "cannot have a trigger take snapshots", "a session is reading it")
end)
