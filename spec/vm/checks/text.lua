-- A record's text is the line of the kernel's trace file, for everything that can be made to
-- happen here.
local guest = require "harness"
local tracefs = require "tracefs"

local PATTERNS <const> = {
  "sched:*", "irq:*", "timer:*", "net:*", "skb:*", "sock:*", "udp:*", "tcp:*", "napi:*", "qdisc:*",
  "block:*", "kmem:*", "writeback:*", "workqueue:*", "rcu:*", "signal:*", "task:*",
  "raw_syscalls:*", "exceptions:*", "ipi:*", "cgroup:*", "csd:*", "power:*", "percpu:*",
  "filelock:*", "notifier:*", "filemap:*", "syscalls:sys_*_openat", "syscalls:sys_*_read",
  "syscalls:sys_*_write", "syscalls:sys_*_execve", "syscalls:sys_*_exit_group",
  "syscalls:sys_*_kill", "syscalls:sys_*_mmap", "syscalls:sys_*_sendto", "syscalls:sys_*_recvfrom",
  "syscalls:sys_*_futex", "syscalls:sys_*_clone", "syscalls:sys_*_wait4",
  "syscalls:sys_*_nanosleep", "syscalls:sys_*_mkdir",
}

local LOAD <const> = [[
  set -e
  /spec/load udp 5
  /spec/load threads 2 11
  /spec/load syscalls 3 --cpu all
  sh -c 'kill -USR1 $$' || true
  if [ -b /dev/ram0 ]; then
    dd if=/dev/zero of=/dev/ram0 bs=4096 count=7
    dd if=/dev/ram0 of=/dev/null bs=4096 count=7
  fi
  mkdir -p /tmp/text && /spec/variety /tmp/text && rm -r /tmp/text
  sleep 0.1
  sync
]]

-- What cannot be equal, and why.
local MASKS <const> = {
  -- The format says vmemmap_base, which is nowhere to be read.
  { event = "^mm_page_", word = "page=%S+" },
  { event = "^mm_filemap_", word = "page=%S+" },
  -- The kernel, too, counts these seconds when it prints them.
  { event = "^writeback_single_inode", word = "age=%d+" },
}

-- The guest is booted with no_hash_pointers. A kernel that does not know that (before 5.13)
-- prints a hash where we print the address, or says that it has none yet.
local hashes = not guest.exists(guest.dir .. "/options/hash-ptr")
local ADDRESS <const> = "%f[%x]" .. ("%x"):rep(16) .. "%f[^%x]"

local function name_of(line)
  return line:match("%d: ([%w_]+)") or "?"
end

local function masked(line)
  local name = name_of(line)
  for _, mask in ipairs(MASKS) do
    if name:find(mask.event) then
      line = line:gsub(mask.word, "...")
    end
  end
  if hashes then
    line = line:gsub("%(____ptrval____%)", "..."):gsub(ADDRESS, "...")
  end
  return line
end

-- Records of a trace file by CPU; lines without a head belong to the record before.
local function split(text)
  local cpus, current = {}, nil
  for line in text:gmatch("[^\n]*") do
    local cpu = line:sub(1, 1) ~= "#" and line:match("^ *.-%-%d+ +%[(%d+)%] ")
    if cpu then
      cpu = tonumber(cpu)
      cpus[cpu] = cpus[cpu] or {}
      table.insert(cpus[cpu], line)
      current = cpus[cpu]
    elseif current and line ~= "" and line:sub(1, 1) ~= "#" then
      current[#current] = current[#current] .. "\n" .. line
    end
  end
  return cpus
end

-- Counts of kinds, and for each kind that differs how often and one example.
local function compare(theirs, ours)
  local kinds, differs, total = {}, {}, 0
  for cpu = 0, 1 do
    local kernel, us = theirs[cpu] or {}, ours[cpu] or {}
    guest.forget_names(kernel, us)
    guest.equal(#kernel, #us, "records of CPU " .. cpu)
    for i, line in ipairs(kernel) do
      local name = name_of(line)
      kinds[name] = (kinds[name] or 0) + 1
      total = total + 1
      if line ~= us[i] and masked(line) ~= masked(us[i]) then
        differs[name] = differs[name] or { count = 0, kernel = line, us = us[i] }
        differs[name].count = differs[name].count + 1
      end
    end
  end
  local names = {}
  for name in pairs(differs) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local one = differs[name]
    names[i] = ("%s: %d of %d\n  kernel: %s\n  ours:   %s"):format(name, one.count, kinds[name],
      one.kernel, one.us)
  end
  local fired = 0
  for _ in pairs(kinds) do
    fired = fired + 1
  end
  guest.note("%d records of %d kinds, %d kinds differ", total, fired, #names)
  guest.truth(#names == 0, "%d kinds differ:\n%s", #names, table.concat(names, "\n"))
  return fired
end

local function record_all(options)
  local session <close> = tracefs.session {
    own_events = true, margin = 1, buffer_kb = 24576, clock = options.clock,
  }
  local instance = session.instance
  if options.stacks then
    assert(instance:set_option("stacktrace", true))
  end
  local lines = {}
  -- Markers and stacks come unasked.
  for _, pattern in ipairs { "ftrace:print", "ftrace:kernel_stack", table.unpack(options) } do
    if tracefs.events(pattern) then
      session:on(pattern, function(ev)
        lines[#lines + 1] = tostring(ev)
      end)
    end
  end
  session:start()
  session:marker("a marker\twith a tab")
  local status, _, err = guest.sh(options.load)
  assert(instance:trace_off())
  local text = assert(instance:read("trace"))
  session:finish()
  local stats = session:run()
  guest.equal(0, status, "the load's status: " .. err)
  guest.equal(0, stats.lost, "lost")
  return split(text), split(table.concat(lines, "\n"))
end

guest.check("text of records is the kernel's, line for line", function()
  local fired = compare(record_all { load = LOAD, table.unpack(PATTERNS) })
  guest.truth(fired >= 80, "only %d kinds of events happened", fired)
end)

guest.check("text of stacks is the kernel's", function()
  local fired = compare(record_all {
    "sched:sched_switch", "sched:sched_waking", stacks = true, load = "/spec/load threads 1 5",
  })
  guest.equal(4, fired, "kinds of lines")
end)

guest.check("text of records with the clock counter has its plain number", function()
  compare(record_all { "sched:*", clock = "counter", load = "/spec/load threads 1 5" })
end)

guest.check("text of raw markers and of user stacks is the kernel's", function()
  local session <close> = tracefs.session { own_events = true, margin = 1, buffer_kb = 1024 }
  local instance = session.instance
  assert(instance:set_option("userstacktrace", true))
  local lines, kinds = {}, {}
  for _, event in ipairs { "ftrace:raw_data", "ftrace:user_stack", "ftrace:print",
    "sched:sched_process_fork" } do
    session:on(event, function(ev)
      lines[#lines + 1] = tostring(ev)
      kinds[event] = true
    end)
  end
  session:start()
  session:marker("before\n")
  assert(instance:marker_raw("\xd2\4\0\0a\0\xff\n"))
  guest.equal(0, (guest.sh("ls / >/dev/null")))
  assert(instance:trace_off())
  local text = assert(instance:read("trace"))
  session:finish()
  guest.equal(0, session:run().lost, "lost")
  compare(split(text), split(table.concat(lines, "\n")))
  guest.truth(kinds["ftrace:raw_data"] and kinds["ftrace:print"] and kinds["ftrace:user_stack"],
    "kinds are missing")
end)

guest.check("the flag columns are as many as this kernel's", function()
  local session <close> = tracefs.session()
  local head = session.instance:read("trace")
  local columns = head:find("migrate-disable", 1, true) and 5 or 4
  local line
  session:on("ftrace:print", function(ev)
    line = tostring(ev)
  end)
  session:start()
  session:marker("columns")
  session:finish()
  session:run()
  guest.equal(columns, #line:match("%[%d+%] (%S+) "), "columns in: " .. line)
  guest.note("%d columns", columns)
end)
