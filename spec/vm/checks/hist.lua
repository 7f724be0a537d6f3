-- What the kernel counts by itself, against what handlers saw of the same events.
local guest = require "harness"
local hists = require "hists"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local new_session = hists.new_session
local need_synthetic = hists.need_synthetic
local syntax = hists.syntax

local function sum_of(result)
  local sum = 0
  for _, row in ipairs(result.rows) do
    sum = sum + row.values.hitcount
  end
  return sum
end

-- Rows as "key key: count" lines, sorted: to compare with what a handler has counted.
local function lines_of(counts)
  local lines = {}
  for key, count in pairs(counts) do
    lines[#lines + 1] = ("%s: %d"):format(key, count)
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

guest.check("hist: system calls by process and call are those that a handler counts", function()
  local session <close> = new_session()
  local counts, seen = {}, 0
  local filter = 'COMM ~ "load*"'
  local counted = session:hist(guest.SYSCALL, {
    keys = { "common_pid.execname", "id.syscall" }, sort = "hitcount.descending", filter = filter,
  })
  session:on(guest.SYSCALL, { "common_pid", "id", filter = filter }, function(pid, id)
    local key = ("%d %d"):format(pid, id)
    counts[key] = (counts[key] or 0) + 1
    seen = seen + 1
  end)
  local stats = guest.run_load(session, "syscalls", "1009")
  guest.equal(0, stats.lost, "lost")
  local result = assert(counted:read())
  local rows, names = {}, {}
  for _, row in ipairs(result.rows) do
    local who, call = row.keys.common_pid, row.keys.id
    rows[("%d %d"):format(who.pid, call.id)] = row.values.hitcount
    guest.truth(who.comm:find "^load", "a row of %s", who.comm)
    names[call.name or "?"] = row.values.hitcount
  end
  guest.equal(lines_of(counts), lines_of(rows), "rows")
  guest.equal(seen, result.hits, "hits")
  guest.equal(seen, sum_of(result), "the sum of the rows")
  guest.equal(#result.rows, result.entries, "entries")
  guest.equal(0, result.dropped, "dropped")
  guest.equal(0, result.unreadable, "unreadable")
  guest.equal(1009, names.sys_getppid, "calls of getppid")
  guest.equal(result.rows[1].keys.id.name, "sys_getppid", "the most frequent call")
end)

guest.check("hist: the tracer's own calls are left out, and what comes after the end", function()
  local session <close> = new_session()
  local counted = session:hist(guest.SYSCALL, { keys = "common_pid" })
  guest.sh("/spec/load syscalls 101 >/dev/null")
  guest.equal(0, assert(counted:read()).hits, "before the start")
  guest.run_load(session, "syscalls", "101")
  local result = assert(counted:read())
  guest.truth(result.hits >= 101, "%d hits", result.hits)
  for _, row in ipairs(result.rows) do
    guest.truth(row.keys.common_pid ~= guest.pid, "the tracer is in it")
  end
  guest.sh("/spec/load syscalls 101 >/dev/null")
  guest.equal(result.hits, assert(counted:read()).hits, "after the end")
  guest.equal(true, assert(counted:read()).paused, "paused")
end)

guest.check("hist: pause, continue, clear, remove", function()
  local session <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local counted = session:hist(guest.SYSCALL, {
    keys = "id", filter = filter, size = 128, pause = true,
  })
  local function after(calls)
    guest.equal(0, (guest.sh(("/spec/load syscalls %d --nr %d"):format(calls, nr))))
    local result = assert(counted:read())
    guest.equal(result.hits, sum_of(result))
    return result.hits
  end
  session:start()
  guest.equal(0, after(7), "made paused")
  assert(counted:continue())
  guest.equal(11, after(11), "continued")
  assert(counted:pause())
  guest.equal(11, after(13), "paused")
  assert(counted:clear())
  guest.equal(0, assert(counted:read()).hits, "cleared")
  assert(counted:continue())
  local result = assert(counted:read())
  guest.equal(17, after(17), "continued")
  guest.equal(false, result.paused)
  assert(counted:remove())
  guest.equal(0, #session.instance:triggers("raw_syscalls", "sys_enter"), "triggers")
  guest.equal(false, (pcall(counted.read, counted)))
end)

guest.check("hist: kinds of keys", function()
  local session <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local plain = session:hist(guest.SYSCALL, { keys = { "id", "common_cpu" }, filter = filter })
  local hex = session:hist(guest.SYSCALL, { keys = "id.hex", filter = filter })
  local log2 = session:hist(guest.SYSCALL, { keys = "id.log2", filter = filter })
  local buckets = session:hist(guest.SYSCALL, { keys = "id.buckets=1000", filter = filter })
  local stack = session:hist(guest.SYSCALL, {
    keys = { "common_pid.execname", "common_stacktrace", "id" }, filter = filter,
  })
  local exec = session:hist("sched:sched_process_exec", { keys = { "filename", "pid" } })
  local sums = session:hist("net:net_dev_queue", {
    keys = "name", values = "len", sort = { "len.descending" }, size = 100,
  })
  guest.run_load(session, "syscalls", "23", "--nr", nr, "--cpu", 1)
  local row = assert(plain:read()).rows[1]
  guest.equal(nr, row.keys.id)
  guest.equal(1, row.keys.common_cpu)
  guest.equal(23, row.values.hitcount)
  guest.equal(nr, assert(hex:read()).rows[1].keys.id)
  local bucket = assert(log2:read()).rows[1].keys.id
  guest.truth(bucket.low <= nr and nr <= bucket.high and bucket.low == bucket.high // 2 + 1,
    "%d is not from %d to %d", nr, bucket.low, bucket.high)
  bucket = assert(buckets:read()).rows[1].keys.id
  guest.equal(nr // 1000 * 1000, bucket.low)
  guest.equal(bucket.low + 999, bucket.high)
  row = assert(stack:read()).rows[1]
  guest.equal("load-calls", row.keys.common_pid.comm)
  guest.equal(nr, row.keys.id)
  local functions = {}
  for i, frame in ipairs(row.keys.common_stacktrace) do
    functions[i] = frame.symbol
    guest.truth(frame.offset > 0 and frame.offset <= frame.size, "frame %s", frame.text)
  end
  guest.contains(table.concat(functions, " "), "do_syscall_64", "entry_SYSCALL_64")
  -- The shell's and the load's, once each: in which order depends on their number.
  local files = {}
  for i, one in ipairs(assert(exec:read()).rows) do
    files[i] = ("%s: %d"):format(one.keys.filename, one.values.hitcount)
  end
  table.sort(files)
  guest.equal("/bin/sh: 1\n/spec/load: 1", table.concat(files, "\n"), "programs")
  guest.equal(0, assert(sums:read()).hits)
end)

guest.check("hist: sums, and addresses as symbols", function()
  local session <close> = new_session()
  local sent, count = 0, 0
  local sums = session:hist("net:net_dev_queue", {
    keys = "name", values = "len", sort = { "len.descending" }, size = 100,
  })
  local sites = session:hist("kmem:kmalloc", {
    keys = "call_site.sym-offset", values = { "bytes_req" }, filter = 'COMM == "load"',
  })
  session:on("net:net_dev_queue", { "len" }, function(len)
    sent, count = sent + len, count + 1
  end)
  guest.run_load(session, "udp", 31, 777)
  local row = assert(sums:read()).rows[1]
  guest.equal("lo", row.keys.name)
  guest.equal(count, row.values.hitcount)
  guest.equal(sent, row.values.len)
  local result = assert(sites:read())
  guest.truth(#result.rows > 0, "no kmalloc")
  for _, site in ipairs(result.rows) do
    local at = site.keys.call_site
    guest.truth(at.address < 0 and at.symbol and at.offset < at.size, "call site %s", at.text)
  end
end)

guest.check("hist: names that are made to confuse", function()
  local session <close> = new_session()
  -- 15 bytes: a line's end, and what looks like the end of a key and the next row
  local name = '1], } x: 9\n{ c"'
  local nr, filter = guest.fresh_nr()
  local by_pid = session:hist(guest.SYSCALL, {
    keys = { "common_pid.execname", "id" }, filter = filter,
  })
  local by_comm = session:hist("task:task_rename", { keys = { "newcomm", "pid" } })
  session:at_start(function()
    local status, _, err = guest.sh(([[lua=$(cat /interpreter)
      "$lua" -e 'local f = io.open("/proc/self/comm", "w") f:setvbuf("no")
        f:write(string.char(%s)) os.execute("exec /spec/load syscalls 3 --nr %d")']]):format(
      table.concat({ name:byte(1, -1) }, ","), nr))
    guest.equal(0, status, err)
    session:finish()
  end)
  session:run { duration = 60 }
  local result = assert(by_comm:read())
  guest.equal(0, result.unreadable, "unreadable")
  guest.equal(result.entries, #result.rows, "entries")
  local found = false
  for _, row in ipairs(result.rows) do
    found = found or row.keys.newcomm == name
  end
  guest.truth(found, "the name is not among the rows")
  guest.equal(3, assert(by_pid:read()).hits)
end)

guest.check("hist: one name, one table; the names of two sessions are two", function()
  local session <close> = new_session()
  local other <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local options = { keys = "id", name = "both", filter = filter }
  local enter = session:hist(guest.SYSCALL, options)
  local exit = session:hist("raw_syscalls:sys_exit", options)
  local theirs = other:hist(guest.SYSCALL, options)
  other:start()
  guest.run_load(session, "syscalls", "29", "--nr", nr)
  other:finish()
  guest.equal(58, assert(enter:read()).hits, "enter and exit")
  guest.equal(58, assert(exit:read()).hits, "exit and enter")
  guest.equal(29, assert(theirs:read()).hits, "the other session")
end)

guest.check("hist: too many keys for its size are counted as dropped", function()
  local session <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local counted = session:hist(guest.SYSCALL, {
    keys = "common_timestamp", size = 128, filter = filter,
  })
  guest.run_load(session, "syscalls", "1009", "--nr", nr)
  local result = assert(counted:read())
  guest.note("%d rows, %d hits, %d dropped", #result.rows, result.hits, result.dropped)
  guest.truth(result.dropped > 0, "nothing was dropped")
  guest.equal(result.hits, sum_of(result), "hits")
  guest.equal(1009, result.hits + result.dropped, "hits and dropped")
end)

guest.check("hist: variables; onmax and onchange save", function()
  local session <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local longest = session:hist(guest.SYSCALL, {
    keys = "id", variables = { pid = "common_pid" }, filter = filter,
    actions = { { onmax = "$pid", save = { "common_pid", "id" } } },
  })
  local changed = session:hist("sched:sched_switch", {
    keys = "next_pid", variables = { "prio=next_prio" }, filter = 'next_comm == "load"',
    actions = { { onchange = "$prio", save = { "next_comm", "prev_comm", "prev_pid" } } },
  })
  guest.run_load(session, "syscalls", "7", "--nr", nr)
  local row = assert(longest:read()).rows[1]
  guest.equal(nr, row.saved.id)
  guest.equal(row.max, row.saved.common_pid)
  local result = assert(changed:read())
  guest.equal(0, result.unreadable)
  row = result.rows[1]
  guest.equal(120, row.changed)
  guest.equal("load", row.saved.next_comm)
  guest.truth(type(row.saved.prev_comm) == "string", "prev_comm is not a string")
  local ok, message = longest:pause()
  guest.equal(nil, ok)
  guest.contains(message, "cannot pause a histogram with variables")
end)

guest.check("hist: snapshots of an instance that no session reads", function()
  new_session():close()
  if not guest.exists(guest.dir .. "/snapshot") then
    guest.skip("this kernel has no snapshots")
  end
  local instance <close> = assert(tracefs.instance_create())
  local nr, filter = guest.fresh_nr()
  assert(instance:trace_on())
  local counted = hist.add({ instance = instance }, guest.SYSCALL, {
    keys = "id", variables = { pid = "common_pid" }, filter = filter,
    actions = { { onmax = "$pid", snapshot = true } },
  })
  guest.equal(0, (guest.sh(("/spec/load syscalls 3 --nr %d"):format(nr))))
  local result = assert(counted:read())
  guest.contains(result.snapshot, "triggered by event with key", tostring(nr))
  guest.equal(3, result.hits)
  do
    local session <close> = new_session()
    local ok, err = pcall(session.hist, session, guest.SYSCALL, {
      keys = "id", variables = { pid = "common_pid" },
      actions = { { onmax = "$pid", snapshot = true } },
    })
    guest.equal(false, ok)
    guest.contains(err, "a session is reading it")
  end
end)

guest.check("hist: percentages, bars, and rows without their hits", function()
  local session <close> = new_session()
  if not (syntax().modifiers.percent and syntax().nohitcount) then
    guest.skip("this kernel has no .percent, .graph and nohitcount")
  end
  local nr, filter = guest.fresh_nr()
  local shown = session:hist(guest.SYSCALL, {
    keys = "id", values = { "hitcount.percent", "hitcount.graph" }, filter = filter,
  })
  local bare = session:hist(guest.SYSCALL, {
    keys = { "common_cpu", "id" }, values = { "id.hex" }, nohitcount = true, filter = filter,
    sort = "id",
  })
  guest.run_load(session, "syscalls", "20", "--nr", nr, "--cpu", 1)
  local values = assert(shown:read()).rows[1].values
  guest.equal(20, values.hitcount)
  guest.equal(100.0, values["hitcount.percent"])
  guest.equal(20, values["hitcount.graph"])
  local result = assert(bare:read())
  guest.equal(1, result.rows[1].keys.common_cpu)
  guest.equal(20 * nr, result.rows[1].values.id)
  guest.equal(nil, result.rows[1].values.hitcount)
  guest.equal(20, result.hits)
end)

guest.check("hist: the name of the running task as a key, where the kernel takes it", function()
  local session <close> = new_session()
  local nr, filter = guest.fresh_nr()
  local ok, counted = pcall(session.hist, session, guest.SYSCALL, {
    keys = { "common_comm", "id" }, filter = filter,
  })
  if not ok then
    guest.contains(counted, "Couldn't find field", "keys=common_comm,id")
    guest.skip("this kernel has no common_comm")
  end
  guest.run_load(session, "syscalls", "11", "--nr", nr)
  local row = assert(counted:read()).rows[1]
  guest.equal("load-calls", row.keys.common_comm)
  guest.equal(nr, row.keys.id)
  guest.equal(11, row.values.hitcount)
end)

guest.check("a session that is forgotten leaves no histogram and no synthetic event", function()
  need_synthetic()
  local before = guest.read(guest.dir .. "/dynamic_events")
  local session = new_session()
  session:kernel_latency {
    start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr", size = 128,
  }
  session:start()
  guest.truth(before ~= guest.read(guest.dir .. "/dynamic_events"), "no dynamic event")
  session = nil
  collectgarbage()
  collectgarbage()
  guest.equal(nil, session)
  guest.equal(0, #tracefs.instances(), "instances")
  guest.equal(before, guest.read(guest.dir .. "/dynamic_events"), "dynamic events")
end)

local DYING <const> = [[
  kernel_latency { start = "net:net_dev_queue", stop = "net:netif_receive_skb",
    key = "skbaddr", size = 128 }
  hist("sched:sched_switch", { keys = { "common_cpu", "prev_pid.log2" },
    variables = { x = "prev_prio" }, sort = "prev_pid", size = 128 })
  start()
  print "ready"
  io.stdout:flush()
  require "tracefs.core".poll({}, 100)
]]

guest.check("after SIGKILL the next session removes histograms and synthetic events", function()
  need_synthetic()
  new_session():close()
  local before = guest.read(guest.dir .. "/dynamic_events")
  local started = guest.start { "luatrace", "-e", DYING }
  guest.wait_until(function()
    return started.out():find "ready"
  end, "the session that is to be killed: " .. started.err())
  started.kill(9)
  guest.equal(137, started.wait(), "status")
  guest.truth(guest.read(guest.dir .. "/dynamic_events") ~= before, "no dynamic event was there")
  guest.equal(1, #tracefs.instances(), "instances of the dead")
  tracefs.session {}:close()
  guest.equal(0, #tracefs.instances(), "instances")
  guest.equal(before, guest.read(guest.dir .. "/dynamic_events"), "dynamic events")
end)

guest.check("the kernel's reason for a histogram that it refuses, with its caret", function()
  local session <close> = new_session()
  for _, case in ipairs {
    { { keys = "next_pid", variables = { d = "common_timestamp-$undef" } },
      "Couldn't find variable", "$undef" },
    { { keys = "next_pid", filter = "nosuch == 1" }, "Field not found", "nosuch == 1" },
    { { keys = "next_pid", actions = { { onmax = "$x", save = "next_comm" } } },
      "Couldn't find onmax or onchange variable", "onmax($x)" },
  } do
    local ok, err = pcall(session.hist, session, "sched:sched_switch", case[1])
    guest.equal(false, ok)
    guest.contains(err, "the kernel says:", case[2], case[3])
    guest.truth(err:find("\n +%^"), "no caret in %s", err)
  end
  -- nothing of the refusals before is shown again
  local _, err = pcall(session.hist, session, "sched:sched_switch", {
    keys = "next_pid", filter = "prev_pid ==",
  })
  guest.truth(not err:find("nosuch", 1, true) and not err:find("undef", 1, true), "stale: %s", err)
  guest.equal(0, #session.instance:triggers("sched", "sched_switch"), "triggers")
end)

guest.check("mistakes in a histogram's table are told with what there is", function()
  local session <close> = new_session()
  for text, options in pairs {
    ["has no field 'nosuch'; it has: "] = { keys = "nosuch" },
    ["no modifier .bogus; this kernel has: "] = { keys = "next_pid.bogus" },
    ["sort: 'prev_pid' is neither a key nor a value; there are: hitcount, next_pid"] = {
      keys = "next_pid", sort = "prev_pid",
    },
    ["no synthetic event 'nosuch'"] = {
      keys = "next_pid",
      actions = { { onmatch = "sched:sched_waking", trace = "nosuch", with = "next_pid" } },
    },
  } do
    local ok, err = pcall(session.hist, session, "sched:sched_switch", options)
    guest.equal(false, ok)
    guest.contains(err, text)
  end
  guest.equal("", session.instance:error_log())
end)

guest.check("the guide's examples of counting run", function()
  need_synthetic()
  new_session():close()
  local guide = assert(guest.read "/usr/local/share/doc/luatrace/guide.md")
  local section = guide:match "\n## Counting in the kernel\n(.-)\n## "
  local count = 0
  for code in section:gmatch "\n```lua\n(.-)\n```" do
    guest.write("/tmp/example.lua", code)
    -- They count for a second what everybody does: somebody must, and wait for a CPU.
    local load = guest.start { "sh", "-c", "while :; do /spec/load threads 4 97; done" }
    local status, out, err = guest.sh [[
      LUA_PATH="/usr/local/share/lua/5.4/?.lua;/usr/local/share/lua/5.4/?/init.lua" \
        LUA_CPATH="/usr/local/lib/lua/5.4/?.so" "$(cat /interpreter)" /tmp/example.lua]]
    load.kill(9)
    load.wait()
    guest.equal(0, status, err)
    guest.truth(#out > 0, "the example prints nothing:\n%s", code)
    count = count + 1
  end
  guest.equal(3, count, "examples")
end)

guest.check("-v shows what is written where", function()
  new_session():close()
  local status, _, err = guest.luatrace("-v", "-d", "0.1", "-e",
    'h = hist("sched:sched_switch", { keys = "prev_pid" }) at_end(function() assert(h:read()) end)')
  guest.equal(0, status, err)
  guest.contains(err, "events/sched/sched_switch/trigger << hist:keys=prev_pid:pause\n",
    "events/sched/sched_switch/trigger << hist:keys=prev_pid:continue\n",
    "events/sched/sched_switch/trigger << hist:keys=prev_pid:pause\n")
end)

guest.check("a kernel without histograms says so", function()
  local session <close> = tracefs.session { buffer_kb = 256 }
  if hist.supported(session.instance) then
    guest.skip("this kernel has hist triggers")
  end
  local ok, err = pcall(session.hist, session, guest.SYSCALL, { keys = "id" })
  guest.equal(false, ok)
  guest.contains(err, "this kernel has no histograms", "CONFIG_HIST_TRIGGERS")
end)
