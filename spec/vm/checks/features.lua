-- tracefs.features() says what there is: each thing is done with the shell's own means, and must
-- work where it says so and nowhere else.
local guest = require "harness"
local tracefs = require "tracefs"

local has, missing = tracefs.features()

-- To trace them all takes seconds to set up.
local ONE_FUNCTION <const> = "echo do_exit >set_ftrace_filter; "

-- A command in the directory of an instance, $TOP is tracefs: it succeeds where the kernel can.
local TRIALS <const> = {
  kprobe = "echo 'p:look/k do_exit' >>$TOP/kprobe_events && echo '-:look/k' >>$TOP/kprobe_events",
  uprobe = "echo 'p:look/u /bin/busybox:0x40' >>$TOP/uprobe_events && "
    .. "echo '-:look/u' >>$TOP/uprobe_events",
  fprobe = "echo 'f:look/f do_exit' >>$TOP/dynamic_events && "
    .. "echo '-:look/f' >>$TOP/dynamic_events",
  tprobe = "echo 't:look/t sched_switch' >>$TOP/dynamic_events && "
    .. "echo '-:look/t' >>$TOP/dynamic_events",
  eprobe = "echo 'e:look/e sched.sched_switch pid=$next_pid' >>$TOP/dynamic_events && "
    .. "echo '-:look/e' >>$TOP/dynamic_events",
  dynamic_events = "cat $TOP/dynamic_events",
  user_strings = "echo 'p:look/s do_exit a=+0(%di):ustring' >>$TOP/kprobe_events && "
    .. "echo '-:look/s' >>$TOP/kprobe_events",
  symbol_strings = "echo 'p:look/s do_exit a=%di:symstr' >>$TOP/kprobe_events && "
    .. "echo '-:look/s' >>$TOP/kprobe_events",
  btf_args = "echo 'p:look/b vfs_read count' >>$TOP/kprobe_events && "
    .. "echo '-:look/b' >>$TOP/kprobe_events",
  synthetic = "echo 'look u64 a' >>$TOP/synthetic_events && "
    .. "echo '!look' >>$TOP/synthetic_events",
  hist = "echo hist:keys=next_pid >>events/sched/sched_switch/trigger",
  hist_buckets = "echo hist:keys=next_pid.buckets=10 >>events/sched/sched_switch/trigger",
  hist_stacktrace = "echo hist:keys=common_stacktrace >>events/sched/sched_switch/trigger",
  hist_nohitcount = "echo hist:keys=next_pid:vals=prev_pid:nohitcount "
    .. ">>events/sched/sched_switch/trigger",
  hist_percent = "echo hist:keys=next_prio:vals=hitcount.percent "
    .. ">>events/sched/sched_switch/trigger",
  user_events = "cat $TOP/user_events_status",
  snapshot = "echo 1 >snapshot",
  snapshot_cpu = "echo 1 >snapshot && echo 1 >per_cpu/cpu0/snapshot",
  trigger_traceoff = "echo traceoff >>events/sched/sched_switch/trigger",
  trigger_snapshot = "echo snapshot >>events/sched/sched_switch/trigger",
  trigger_stacktrace = "echo stacktrace >>events/sched/sched_switch/trigger",
  trigger_enable_event = "echo enable_event:irq:softirq_entry >>events/sched/sched_switch/trigger",
  function_tracer = ONE_FUNCTION .. "echo function >current_tracer",
  graph_tracer = "grep -qw function_graph $TOP/available_tracers",
  graph_tracer_instance = ONE_FUNCTION .. "echo function_graph >current_tracer",
  function_filter = "echo do_exit >set_ftrace_filter",
  function_pid = "echo 1 >set_ftrace_pid",
  function_notrace_pid = "echo 1 >set_ftrace_notrace_pid",
  function_fork = "echo 1 >options/function-fork",
  functions_on = "grep -qx 1 /proc/sys/kernel/ftrace_enabled",
  syscalls = "echo 1 >events/syscalls/sys_enter_openat/enable",
  event_pid = "echo 1 >set_event_pid",
  event_notrace_pid = "echo 1 >set_event_notrace_pid",
  event_fork = "echo 1 >options/event-fork",
  cpumask = "echo 1 >tracing_cpumask",
  subbuf = "echo 16 >buffer_subbuf_size_kb",
  error_log = "echo >error_log",
  raw_markers = "echo 1 >tracing_on && echo 12345678 >trace_marker_raw",
  ksym = "grep -q '^0*[1-9a-f].* do_exit$' /proc/kallsyms",
  btf = "test -r /sys/kernel/btf/vmlinux",
}

guest.check("features: each is there where it can be done, and only there", function()
  local wrong, names = {}, {}
  for id in pairs(has) do
    names[#names + 1] = id
  end
  table.sort(names)
  local lacking = {}
  for _, id in ipairs(names) do
    guest.truth(TRIALS[id], "no trial of %s", id)
    local instance <close> = assert(tracefs.instance_create("look"))
    local status, _, err = guest.sh(("cd %s && TOP=%s && { %s; }"):format(
      instance:dir(), guest.dir, TRIALS[id]))
    if (status == 0) ~= has[id] then
      wrong[#wrong + 1] = ("%s: said %s, the trial ended with %d: %s"):format(
        id, has[id], status, err)
    end
    if not has[id] then
      lacking[#lacking + 1] = id
      guest.contains(missing[id], "needs ")
    end
    guest.equal(not has[id], missing[id] ~= nil, "missing." .. id)
  end
  for id in pairs(TRIALS) do
    guest.truth(rawget(has, id) ~= nil, "features() does not know %s", id)
  end
  guest.equal("", table.concat(wrong, "\n"), "wrong")
  guest.note("not in this kernel: %s", table.concat(lacking, " "))
end)

guest.check("features: a name that there is not raises", function()
  local ok, message = pcall(function()
    return has.nosuch
  end)
  guest.equal(false, ok)
  guest.contains(message, "no feature 'nosuch'; there are: kprobe, uprobe, ")
end)

guest.check("features: to a user who may not trace, the permission is what is missing", function()
  guest.write("/etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
  guest.write("/tmp/look.lua", [[
    local has, missing = require("tracefs").features()
    assert(not has.event_pid and not has.hist, "can do what it may not")
    io.write(missing.event_pid, "\n", missing.hist, "\n")
  ]])
  local status, out, err = guest.sh("su nobody -c 'lua5.4 /tmp/look.lua'")
  guest.equal(0, status, err)
  local _, count = out:gsub("permission denied", "")
  guest.equal(2, count, out)
end)
