-- What can be set in an instance does what it says, and is refused by name where it is not there.
local core = require "tracefs.core"
local guest = require "harness"
local tracefs = require "tracefs"

local has, missing = tracefs.features()

local function need(name)
  if not has[name] then
    guest.skip(missing[name])
  end
end

local function refused(instance, method, ...)
  local done, message = instance[method](instance, ...)
  guest.equal(nil, done, method)
  return message
end

local LISTS <const> = {
  { "event", "event_pid", "event-fork", "event_fork" },
  { "event_notrace", "event_notrace_pid", "event-fork", "event_fork" },
  { "function", "function_pid", "function-fork", "function_fork" },
  { "function_notrace", "function_notrace_pid", "function-fork", "function_fork" },
}

for _, list in ipairs(LISTS) do
  local kind, feature, fork, fork_feature = table.unpack(list)
  guest.check(("settings: the pid list %s, with children"):format(kind), function()
    need(feature)
    local instance <close> = assert(tracefs.instance_create())
    local set, get = ("set_%s_pids"):format(kind), ("get_%s_pids"):format(kind)
    guest.equal("", table.concat(instance[get](instance), " "))
    assert(instance[set](instance, { guest.pid, 1 }))
    guest.equal(table.concat({ math.min(1, guest.pid), math.max(1, guest.pid) }, " "),
      table.concat(instance[get](instance), " "))
    if has[fork_feature] then
      assert(instance[set](instance, { 1 }, true))
      guest.equal(true, instance:get_option(fork))
      assert(instance[set](instance, { 1 }, false))
      guest.equal(false, instance:get_option(fork))
    end
    guest.equal("1", table.concat(instance[get](instance), " "))
    assert(instance[set](instance, {}))
    guest.equal("", table.concat(instance[get](instance), " "))
  end)
end

-- Pids of the records of a number of our own in the text of the trace.
local function count_records(instance, nr)
  local _, count = instance:read("trace"):gsub(("NR %d %%("):format(nr), "")
  return count
end

guest.check("settings: events of pids, of their children, and of all others", function()
  local nr = guest.fresh_nr()
  local load = ("/spec/load syscalls 7 --nr %d"):format(nr)
  for _, case in ipairs {
    { "set_event_pids", { guest.pid }, false, 0 },
    { "set_event_pids", { guest.pid }, true, 7 },
    { "set_event_pids", {}, false, 7 },
    { "set_event_notrace_pids", { guest.pid }, false, 7, "event_notrace_pid" },
    { "set_event_notrace_pids", { guest.pid }, true, 0, "event_notrace_pid" },
  } do
    local method, pids, children, expected, feature = table.unpack(case)
    if not feature or has[feature] then
      local instance <close> = assert(tracefs.instance_create())
      assert(instance:set_filter("raw_syscalls", "sys_enter", "id == " .. nr))
      assert(instance:enable("raw_syscalls", "sys_enter"))
      assert(instance[method](instance, pids, children))
      assert(instance:trace_on())
      guest.equal(0, (guest.sh(load)))
      assert(instance:trace_off())
      guest.equal(expected, count_records(instance, nr), method .. " " .. tostring(children))
    end
  end
end)

guest.check("settings: the CPUs that record", function()
  local instance <close> = assert(tracefs.instance_create())
  guest.equal("0 1", table.concat(instance:get_cpus(), " "))
  local nr = guest.fresh_nr()
  assert(instance:set_filter("raw_syscalls", "sys_enter", "id == " .. nr))
  assert(instance:enable("raw_syscalls", "sys_enter"))
  for cpu = 0, 1 do
    assert(instance:set_cpus { cpu })
    guest.equal(tostring(cpu), table.concat(instance:get_cpus(), " "))
    assert(instance:clear())
    assert(instance:trace_on())
    for other = 0, 1 do
      guest.equal(0, (guest.sh(("taskset %d /spec/load syscalls 7 --nr %d"):format(1 << other,
        nr))))
    end
    assert(instance:trace_off())
    guest.equal(7, instance:stats()[cpu].entries, "events of CPU " .. cpu)
    guest.equal(0, instance:stats()[1 - cpu].entries, "events of the other CPU")
  end
  guest.contains(refused(instance, "set_cpus", { 0, 64 }), "no CPU 64 in ", "There are: 0, 1")
  assert(instance:set_cpus())
  guest.equal("0 1", table.concat(instance:get_cpus(), " "))
end)

guest.check("settings: a session's CPUs, pids and options", function()
  local nr, filter = guest.fresh_nr()
  local session <close> = tracefs.session {
    buffer_kb = 256, cpus = { 1 }, pids = { guest.pid }, children = true,
    trace_options = { ["irq-info"] = false },
  }
  guest.equal("1", table.concat(session.instance:get_cpus(), " "))
  guest.equal(true, session.instance:get_option("event-fork"))
  guest.equal(false, session.instance:get_option("irq-info"))
  local cpus = {}
  session:on(guest.SYSCALL, { "common_cpu", filter = filter }, function(cpu)
    cpus[cpu] = (cpus[cpu] or 0) + 1
  end)
  session:at_start(function()
    for cpu = 0, 1 do
      guest.sh(("taskset %d /spec/load syscalls 7 --nr %d"):format(1 << cpu, nr))
    end
    session:finish()
  end)
  session:run()
  guest.equal(nil, cpus[0])
  guest.equal(7, cpus[1])
end)

guest.check("settings: the buffer of one CPU, and of all", function()
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_buffer_kb(128))
  local first = instance:get_buffer_kb(0)
  local size = assert(instance:set_buffer_kb(1024, 1))
  guest.truth(size >= 1024 and size < 1200, "1024 became %d", size)
  guest.equal(first, instance:get_buffer_kb(0), "the other CPU's")
  guest.equal(size, instance:get_buffer_kb(), "the largest")
  guest.equal(first + size, instance:get_buffer_total_kb(), "the sum")
  guest.contains(refused(instance, "set_buffer_kb", 40000000000, 1),
    "cannot set the buffer of CPU 1 to 40000000000 KiB", ("It stays at %d KiB"):format(size))
  guest.equal(size, instance:get_buffer_kb(1))
end)

guest.check("settings: options by name, the nearest ones for others", function()
  local instance <close> = assert(tracefs.instance_create())
  local count = 0
  for name, on in pairs(instance:options()) do
    count = count + 1
    guest.equal(on and "1\n" or "0\n", instance:read("options/" .. name), name)
  end
  guest.truth(count > 10, "only %d options", count)
  guest.contains(refused(instance, "set_option", "event-frok", true),
    'no option "event-frok" in ', "Did you mean event-fork?", "There are: ")
end)

guest.check("settings: tracers", function()
  local instance <close> = assert(tracefs.instance_create())
  guest.equal("nop", instance:get_tracer())
  guest.contains(refused(instance, "set_tracer", "functoin"), 'no tracer "functoin" in this kernel',
    "It has: " .. table.concat(instance:tracers(), " "))
  if has.graph_tracer and not has.graph_tracer_instance then
    guest.contains(refused(instance, "set_tracer", "function_graph"),
      'no tracer "function_graph" in an instance', "at the top level only")
  end
  if has.function_tracer and has.function_filter then
    guest.contains(refused(instance, "set_tracer", "functio"), "Did you mean function")
    assert(instance:write("set_ftrace_filter", "do_exit"))
    assert(instance:set_tracer("function"))
    guest.equal("function", instance:get_tracer())
    assert(instance:trace_on())
    guest.equal(0, (guest.sh("true; /bin/busybox true")))
    assert(instance:trace_off())
    guest.contains(instance:read("trace"), "do_exit <-")
    assert(instance:set_tracer("nop"))
    local session <close> = tracefs.session { buffer_kb = 64 }
    guest.contains(refused(session.instance, "set_tracer", "function"), "the buffer is being read")
  end
end)

guest.check("settings: numbers of the top level are read, set and put back", function()
  for _, name in ipairs { "tracing_thresh", "saved_cmdlines_size" } do
    local before = assert(tracefs[name]())
    guest.equal(before, math.tointeger(tonumber(guest.read(guest.dir .. "/" .. name))), name)
    guest.equal(before, (assert(tracefs[name](before + 128))))
    guest.truth(tracefs[name]() ~= before, "%s is what it was", name)
    assert(tracefs[name](before))
    guest.equal(before, tracefs[name](), name)
  end
end)

guest.check("settings: filters are set, added to, and cleared", function()
  local instance <close> = assert(tracefs.instance_create())
  local function filter()
    return instance:get_filter("sched", "sched_switch")
  end
  assert(instance:append_filter("sched", "sched_switch", "prev_pid == 1"))
  guest.equal("prev_pid == 1", filter())
  assert(instance:append_filter("sched", "sched_switch", "next_pid > 3 || next_pid == 1"))
  guest.equal("(prev_pid == 1) && (next_pid > 3 || next_pid == 1)", filter())
  assert(instance:append_filter("sched", "sched_switch", "prev_prio == 9", "or"))
  guest.equal("((prev_pid == 1) && (next_pid > 3 || next_pid == 1)) || (prev_prio == 9)", filter())
  guest.contains(refused(instance, "append_filter", "sched", "sched_switch", "nosuch == 1"),
    "Field not found")
  guest.contains(filter(), "(prev_prio == 9)")
  assert(instance:clear_filter("sched", "sched_switch"))
  guest.equal(nil, filter())
end)

-- What people get wrong; "" where kernels differ in what they say, or take it.
local BAD_FILTERS <const> = {
  { "prev_pid > ", "" },
  { "nosuch == 1", "Field not found" },
  { "prev_comm == 5", "" },
  { 'prev_pid ~ "a*"', "" },
  { 'prev_comm == "unterminated', "Missing matching quote" },
  { "(prev_pid == 1", "Too many '('" },
  { "prev_pid == 99999999999999999999", "Illegal integer value" },
}

guest.check("settings: bad filters show the kernel's own entry with its caret", function()
  local instance <close> = assert(tracefs.instance_create())
  for _, case in ipairs(BAD_FILTERS) do
    instance:set_filter("sched", "sched_waking", "stale == 1")
    local message = refused(instance, "set_filter", "sched", "sched_switch", case[1])
    guest.contains(message, "the kernel says:\n", case[2], "^")
    guest.truth(not message:find("stale", 1, true), "an old entry in %s", message)
    for line in instance:error_log():gmatch("[^\n]+") do
      guest.contains(message, (line:gsub("^%[ *[%d.]+%] ", "")))
    end
  end
  assert(instance:set_filter("sched", "sched_switch", "prev_pid & 1 || prev_pid == 0x10"))
end)

-- Each must be taken by the kernel as it is.
local CONDITIONS <const> = {
  { prev_comm = "tmux: client", prev_pid = { 1, 2, 3 } },
  { prev_comm = 'say "a"' },
  { prev_comm = "it's" },
  { prev_comm = 'x" || prev_pid != 0' },
  { prev_comm = "" },
  { prev_comm = ("x"):rep(255) },
  { prev_pid = { [">="] = -1, ["<"] = 2147483647 } },
  { prev_comm = { ["~"] = { "rcu*", "*/0" } } },
  { common_cpu = 0, common_comm = { ["!="] = "sh" }, common_pid = 9, common_flags = { ["&"] = 1 } },
  { "not", { prev_pid = 1, { "or", { next_pid = 2 }, { next_prio = { ["!="] = { 1, 2 } } } } } },
}

guest.check("settings: filters from Lua values are what the kernel takes", function()
  local instance <close> = assert(tracefs.instance_create())
  for _, conditions in ipairs(CONDITIONS) do
    local text = tracefs.filter(conditions, "sched:sched_switch")
    local done, message = instance:set_filter("sched", "sched_switch", text)
    guest.truth(done, "%s", message)
    guest.equal(text, instance:get_filter("sched", "sched_switch"))
  end
end)

guest.check("settings: filters from Lua values let through what they say", function()
  local one, two, three = guest.fresh_nr(), guest.fresh_nr(), guest.fresh_nr()
  local session <close> = tracefs.session { buffer_kb = 256 }
  local counts = { [one] = 0, [two] = 0, [three] = 0 }
  session:on(guest.SYSCALL, {
    "id", filter = { id = { one, three }, common_comm = "load-calls" },
  }, function(id)
    counts[id] = counts[id] + 1
  end)
  session:at_start(function()
    for _, nr in ipairs { one, two, three } do
      guest.sh(("/spec/load syscalls 11 --nr %d"):format(nr))
    end
    session:finish()
  end)
  session:run()
  guest.equal("11 0 11", table.concat({ counts[one], counts[two], counts[three] }, " "))
  local ok, message = pcall(session.on, session, "sched:sched_switch",
    { filter = { nosuch = 1 } }, print)
  guest.equal(false, ok)
  guest.contains(message, "sched:sched_switch has no field 'nosuch'; it has: ", "prev_comm")
end)

local function mark(instance, first, last)
  assert(instance:trace_on())
  for i = first, last do
    guest.truth(instance:marker(("number %d\n"):format(i)), "a marker")
  end
  assert(instance:trace_off())
end

local function marks(instance)
  local seen = {}
  for ev in tracefs.snapshot_events(instance) do
    guest.equal("ftrace:print", ev.common_event)
    seen[#seen + 1] = ev.buf:match("%d+")
  end
  return table.concat(seen, " ")
end

guest.check("settings: snapshots are taken, read, swapped, cleared and given back", function()
  need "snapshot"
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_buffer_kb(64))
  guest.equal(false, instance:has_snapshot())
  guest.equal("", marks(instance), "before the first one")
  mark(instance, 1, 5)
  assert(instance:snapshot_take())
  guest.equal(true, instance:has_snapshot())
  mark(instance, 6, 7)
  guest.contains(instance:read("snapshot"), "number 1", "number 5")
  guest.truth(not instance:read("trace"):find("number 5", 1, true), "the buffer has the snapshot")
  guest.equal("1 2 3 4 5", marks(instance), "the first one")
  guest.equal("", marks(instance), "read twice")
  assert(instance:snapshot_take())
  guest.equal("6 7", marks(instance), "the second one")
  mark(instance, 8, 9)
  assert(instance:snapshot_take())
  assert(instance:snapshot_clear())
  guest.equal("", marks(instance), "cleared")
  guest.equal(true, instance:has_snapshot())
  assert(instance:snapshot_free())
  guest.equal(false, instance:has_snapshot())
end)

guest.check("settings: a snapshot has the records of all CPUs in the order of time", function()
  need "snapshot"
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_clock("mono"))
  assert(instance:set_buffer_kb(512))
  local nr = guest.fresh_nr()
  assert(instance:set_filter("raw_syscalls", "sys_enter", "id == " .. nr))
  assert(instance:enable("raw_syscalls", "sys_enter"))
  assert(instance:trace_on())
  local start = core.now "mono"
  guest.equal(0, (guest.sh(([[
    taskset 1 /spec/load syscalls 101 --nr %d & taskset 2 /spec/load syscalls 103 --nr %d & wait
  ]]):format(nr, nr))))
  assert(instance:snapshot_take())
  local count, last, cpus = 0, start, {}
  for ev in tracefs.snapshot_events(instance) do
    guest.truth(ev.common_timestamp >= last, "out of order")
    last = ev.common_timestamp
    cpus[ev.common_cpu] = (cpus[ev.common_cpu] or 0) + 1
    count = count + 1
  end
  guest.equal(204, count)
  guest.equal(101, cpus[0])
  guest.equal(103, cpus[1])
end)

guest.check("settings: the snapshot of one CPU, or why there is none", function()
  need "snapshot"
  local instance <close> = assert(tracefs.instance_create())
  assert(instance:set_buffer_kb(64))
  assert(instance:snapshot_take())
  if has.snapshot_cpu then
    assert(instance:snapshot_take(0))
    assert(instance:snapshot_clear(0))
  else
    guest.contains(refused(instance, "snapshot_take", 0), "cannot take a snapshot of CPU 0",
      "CONFIG_TRACER_SNAPSHOT_PER_CPU_SWAP")
  end
  guest.contains(refused(instance, "snapshot_take", 64), "no CPU 64 here")
end)

guest.check("settings: a snapshot is not taken from under a session", function()
  need "snapshot"
  local session <close> = tracefs.session { buffer_kb = 64 }
  guest.contains(refused(session.instance, "snapshot_take"), "a session is reading it")
end)

guest.check("settings: where there are no snapshots that is said", function()
  if has.snapshot then
    guest.note("this kernel has them")
    return
  end
  local instance <close> = assert(tracefs.instance_create())
  guest.contains(refused(instance, "snapshot_take"), "needs CONFIG_TRACER_SNAPSHOT")
end)
