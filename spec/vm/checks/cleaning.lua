-- Sessions one after the other and at once; errors at every point. That nothing is left behind
-- and the top level is as it was is part of every check.
local guest = require "harness"
local tracefs = require "tracefs"

guest.check("8 sessions one after the other", function()
  for _ = 1, 8 do
    local session <close> = tracefs.session { buffer_kb = 256 }
    session:on("sched:sched_switch", function() end)
    session:run { duration = 0.01 }
    guest.equal(1, #tracefs.instances(), "instances")
  end
end)

guest.check("4 sessions at once see the same events", function()
  local nr, filter = guest.fresh_nr()
  local sessions, counts = {}, { 0, 0, 0, 0 }
  for i = 1, 4 do
    local session = tracefs.session { buffer_kb = 256 }
    sessions[i] = session
    session:on(guest.SYSCALL, { "id", filter = filter }, function()
      counts[i] = counts[i] + 1
    end)
    session:start()
  end
  guest.equal(4, #tracefs.instances(), "instances")
  guest.equal(0, (guest.sh(("/spec/load syscalls 101 --nr %d"):format(nr))))
  for _, session in ipairs(sessions) do
    session:finish()
    session:run()
    session:close()
  end
  guest.equal("101 101 101 101", table.concat(counts, " "))
end)

guest.check("a session that is only forgotten", function()
  tracefs.session { buffer_kb = 256 }:on("sched:sched_switch", function() end)
  collectgarbage()
  collectgarbage()
  guest.equal(0, #tracefs.instances(), "instances")
end)

guest.check("an error in setup, in a handler, in at_end", function()
  for _, code in ipairs {
    'on("sched:sched_switch") error("stop")',
    'on("sched:sched_switch", function() error("stop") end)',
    'on("sched:sched_switch", function() end) at_end(function() error("stop") end)',
  } do
    local status, _, err = guest.luatrace("-d", "0.2", "-e", code)
    guest.equal(1, status, code)
    guest.contains(err, "stop")
    guest.equal(0, #tracefs.instances(), "instances after " .. code)
  end
end)

guest.check("a closed pipe and a full disk", function()
  local command = [[luatrace -d 5 -e 'on("sched:sched_switch")' | head -n 3 >/dev/null]]
  guest.equal(0, (guest.sh(command)))
  local code = 'on("sched:sched_switch")'
  local status, _, err = guest.luatrace("-d", "5", "-o", "/dev/full", "-e", code)
  guest.equal(1, status)
  guest.contains(err, "No space left on device")
end)

-- All that a session can make, at once.
local EVERYTHING <const> = [[
  local has = require("tracefs").features()
  on("uprobe:/spec/probed:probed_work", { args = { n = "%di:s32" } }, function() end)
  on("uretprobe:/spec/probed:probed_work", { args = { r = "$retval:s32" } }, function() end)
  on("kprobe:do_sys_openat2", { args = { name = "+0($arg2):ustring" } }, function() end)
  on("kretprobe:do_sys_openat2", { args = { fd = "$retval:s32" } }, function() end)
  if has.fprobe then
    on("fprobe:do_sys_openat2", { args = "$arg1:s32" }, function() end)
    on("fexit:do_sys_openat2", { args = "$retval:s32" }, function() end)
  end
  if has.tprobe then
    on("tprobe:sched_switch", { args = "preempt=$arg1:u8" }, function() end)
  end
  if has.eprobe then
    on("eprobe:syscalls:sys_enter_openat", { args = "flags=$flags:x32" }, function() end)
  end
  if has.hist then
    hist("sched:sched_wakeup", { keys = { "common_cpu", "pid.log2" }, size = 128,
      variables = { x = "prio" } })
  end
  if has.synthetic then
    on(synthetic("mine", { "u64 lat" }), function() end)
    kernel_latency { start = "net:net_dev_queue", stop = "net:netif_receive_skb",
      key = "skbaddr", size = 128 }
  end
  trigger("sched:sched_process_fork", "stacktrace if child_pid == 1")
  trigger("sched:sched_process_exit", "enable_event:sched:sched_waking:3")
  on("sched:sched_switch", { filter = "prev_pid == 1" }, function() end)
  functions { "vfs_read", "vfs_write", graph = "vfs_read", depth = 2 }
  on("ftrace:funcgraph_exit", function() end)
  at_start(function() io.stderr:write "ready\n" end)
]]

-- The triggers of all events, at the top level.
local function triggers()
  local _, out = guest.sh("cd " .. guest.dir .. "/events && grep -hv '^#' */*/trigger")
  return out
end

guest.check("all at once: after the end, and after SIGKILL and the next run, all is as before",
  function()
  local function state()
    return table.concat({ guest.read(guest.dir .. "/dynamic_events") or "", triggers(),
      table.concat(tracefs.instances(), " "), guest.top_level() }, "\n--\n")
  end
  local before = state()
  local status, _, err = guest.luatrace("-d", "0.1", "-e", EVERYTHING)
  guest.equal(0, status, err)
  guest.equal(before, state(), "after the end")
  local run = guest.start { "luatrace", "-e", EVERYTHING }
  guest.wait_until(function()
    return run.err():find("ready\n", 1, true) or run.process:wait()
  end, "the start")
  guest.contains(run.err(), "ready\n")
  local dynamic = #assert(tracefs.dynamic_events())
  guest.truth(dynamic >= 4, "only %d dynamic events", dynamic)
  run.kill(9)
  guest.equal(128 + 9, run.wait())
  guest.equal(1, #tracefs.instances(), "instances of the dead")
  guest.equal(dynamic, #assert(tracefs.dynamic_events()), "dynamic events of the dead")
  guest.truth(state() ~= before, "nothing is left by the kill")
  status, _, err = guest.luatrace("-d", "0.1", "-e", 'on("sched:sched_switch", function() end)')
  guest.equal(0, status, err)
  guest.equal(before, state(), "after the next run")
  guest.note("%d dynamic events", dynamic)
end)

guest.check("an instance of somebody else is left alone", function()
  guest.equal(0, (guest.sh("mkdir " .. guest.dir .. "/instances/theirs")))
  do
    local theirs <close> = assert(tracefs.instance_open("theirs"))
    guest.equal("theirs", theirs:name())
  end
  tracefs.remove_stale()
  guest.equal("theirs", table.concat(tracefs.instances(), " "))
  guest.equal(0, (guest.sh("rmdir " .. guest.dir .. "/instances/theirs")))
end)
