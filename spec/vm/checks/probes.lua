-- Probes of every kind that the kernel has: values, text, refusals, and that none is left.
local guest = require "harness"
local core = require "tracefs.core"
local tracefs = require "tracefs"

local has, missing = tracefs.features()
local readme = guest.read(guest.dir .. "/README")
local PROGRAM <const> = "/spec/probed"

local function need(kind)
  if not has[kind] then
    guest.skip(("no %ss in this kernel: %s"):format(kind, missing[kind]))
  end
end

local function names(count)
  local list = {}
  for i = 1, count do
    list[i] = ("/tmp/opened-%d"):format(i)
  end
  return list
end

-- Opens so many named files in one process of another name.
local function open_files(count)
  local list = table.concat(names(count), " ")
  return ("rm -f %s; touch %s"):format(list, list)
end

-- Runs a command while a session traces; returns the kernel's lines and ours, sorted.
local function both_texts(command, set_up)
  local session <close> = tracefs.session { own_events = true, margin = 1, buffer_kb = 1024 }
  local ours, theirs = {}, {}
  set_up(session, function(ev)
    ours[#ours + 1] = tostring(ev)
  end)
  session:start()
  guest.equal(0, (guest.sh(command)))
  assert(session.instance:trace_off())
  for line in assert(session.instance:read("trace")):gmatch("[^\n]+") do
    theirs[#theirs + 1] = line:sub(1, 1) ~= "#" and line or nil
  end
  session:finish()
  guest.equal(0, session:run().lost, "lost")
  guest.forget_names(theirs, ours)
  table.sort(ours)
  table.sort(theirs)
  return theirs, ours
end

local function same_text(least, command, set_up)
  local theirs, ours = both_texts(command, set_up)
  guest.truth(#theirs >= least, "only %d lines", #theirs)
  guest.equal(table.concat(theirs, "\n"), table.concat(ours, "\n"))
  guest.note("%d lines, such as %s", #theirs, theirs[1])
  return theirs
end

guest.check("kprobe: 23 files that are opened are 23 names", function()
  need("kprobe")
  local session <close> = tracefs.session()
  local seen, opened, results = {}, {}, {}
  session:on("kprobe:do_sys_openat2", {
    "name", "common_event", args = { name = "+0($arg2):ustring" },
  }, function(name, event)
    guest.equal("kprobe:do_sys_openat2", event)
    if name:find("^/tmp/opened%-") then
      seen[#seen + 1] = name
    end
  end)
  -- The kretprobe of the same function has a group of its own, and the same name.
  session:on("kretprobe:do_sys_openat2", { args = "fd=$retval:s32" }, function(ev)
    results[#results + 1] = ev.common_pid .. ":" .. ev.fd
    guest.equal("kretprobe:do_sys_openat2", ev.common_event)
  end)
  session:start()
  guest.equal(0, (guest.sh(open_files(23))))
  session:finish()
  local stats = session:run()
  for _, name in ipairs(names(23)) do
    opened[#opened + 1] = name
  end
  guest.equal(table.concat(opened, "\n"), table.concat(seen, "\n"))
  guest.truth(#results >= 23, "%d results", #results)
  for _, result in ipairs(results) do
    guest.truth(result:match("^%d+:%-?%d+$"), "result %s", result)
  end
  guest.balanced(stats)
end)

guest.check("kprobe: the kernel's filter on what was fetched; registers, places, comm", function()
  need("kprobe")
  local session <close> = tracefs.session()
  local seen = {}
  session:on("kprobe:do_sys_openat2", {
    filter = 'name ~ "*opened-1?"',
    args = { "+0(%si):ustring", name = "+0($arg2):ustring", comm = "$comm", at = "%ip:symbol" },
    name = "opened",
  }, function(ev)
    seen[#seen + 1] = ev.name
    guest.equal(ev.name, ev.arg1, "the one without a name")
    guest.equal("touch", ev.comm)
    guest.equal("kprobe:opened", ev.common_event)
  end)
  session:start()
  guest.equal(0, (guest.sh(open_files(23))))
  session:finish()
  session:run()
  guest.equal(10, #seen)
end)

guest.check("uprobe, uretprobe: arguments, an array, 23 results", function()
  need("uprobe")
  local session <close> = tracefs.session()
  local calls, results = {}, {}
  session:on(("uprobe:%s:probed_work"):format(PROGRAM), {
    args = {
      n = "%di:s32", list = "+8(%si):s32[4]", name = "+0(+0(%si)):ustring", big = "+24(%si):u64",
      text = "+0(+0(%si)):string",
    },
  }, function(ev)
    guest.equal(#calls + 1, ev.n, "n")
    guest.equal("1 -2 3 4", table.concat(ev.list, " "), "list")
    guest.equal("a name", ev.name, "name")
    guest.equal("a name", ev.text, "text")
    guest.equal(-1, ev.big, "big")
    guest.equal("uprobe:probed_work", ev.common_event)
    calls[#calls + 1] = ev.n
  end)
  session:on(("uretprobe:%s:probed_work"):format(PROGRAM), {
    "result", args = { result = "$retval:s32" },
  }, function(result)
    results[#results + 1] = result
  end)
  session:start()
  local status, out = guest.sh(PROGRAM .. " 23")
  guest.equal(0, status)
  session:finish()
  session:run()
  guest.equal(23, #calls, "calls")
  local expected = {}
  for n = 1, 23 do
    expected[n] = 3 * n - 4
  end
  guest.equal(table.concat(expected, " "), table.concat(results, " "), "results")
  guest.equal("736\n", out)
end)

guest.check("uprobe: a library without a path; a place within a function", function()
  need("uprobe")
  local session <close> = tracefs.session()
  local count, inside = 0, 0
  session:on("uprobe:libc.so.6:getppid", { filter = 'COMM == "probed"' }, function()
    count = count + 1
  end)
  session:on(("uprobe:%s:probed_tail+3"):format(PROGRAM), function()
    inside = inside + 1
  end)
  session:start()
  guest.equal(0, (guest.sh(PROGRAM .. " 7")))
  session:finish()
  session:run()
  guest.equal(7, inside)
  guest.equal(1, count, "calls of getppid")
end)

guest.check("text of kprobes and kretprobes is the kernel's", function()
  need("kprobe")
  same_text(46, open_files(23), function(session, note)
    local letter = readme:find(", char, ", 1, true) and "char" or "u8"
    session:on("kprobe:do_sys_openat2", {
      args = {
        name = "+0($arg2):ustring", dfd = "$arg1:s32", how = "+0($arg3):x64[3]", comm = "$comm",
        bytes = "+0($arg2):u8[4]", bits = "$arg1:b4@2/32", at = "%ip:symbol", ip = "%ip",
        chars = "+0(%ip):x8", two = "+0($arg2):ustring[1]", short = "$arg1:s16",
        letter = "+u1($arg2):" .. letter,
      },
    }, note)
    session:on("kretprobe:do_sys_openat2", { args = { fd = "$retval:s32" } }, note)
    session:on("kretprobe:vfs_write", { args = "$retval $retval:x64 \\-5:s32", maxactive = 16 },
      note)
  end)
end)

guest.check("text of uprobes and uretprobes is the kernel's", function()
  need("uprobe")
  same_text(22, PROGRAM .. " 11", function(session, note)
    session:on(("uprobe:%s:probed_work"):format(PROGRAM), {
      args = {
        n = "%di:s32", list = "+8(%si):s32[4]", name = "+0(+0(%si)):ustring", big = "+24(%si):u64",
        hex = "+24(%si):x64", nothing = "+0(%di):string", comm = "$comm",
      },
    }, note)
    session:on(("uretprobe:%s:probed_work"):format(PROGRAM), { args = "$retval:s32" }, note)
  end)
end)

guest.check("fprobe and fexit: names, results, and the kernel's text", function()
  need("fprobe")
  do
    local session <close> = tracefs.session()
    local seen, results = {}, 0
    session:on("fprobe:do_sys_openat2", {
      "name", "common_event", args = { name = "+0($arg2):ustring" },
    }, function(name, event)
      guest.equal("fprobe:do_sys_openat2", event)
      if name:find("^/tmp/opened%-") then
        seen[#seen + 1] = name
      end
    end)
    session:on("fexit:do_sys_openat2", { "fd", args = { fd = "$retval:s32" } }, function()
      results = results + 1
    end)
    session:start()
    guest.equal(0, (guest.sh(open_files(23))))
    session:finish()
    session:run()
    guest.equal(table.concat(names(23), "\n"), table.concat(seen, "\n"))
    guest.truth(results >= 23, "%d results", results)
  end
  same_text(46, open_files(23), function(session, note)
    session:on("fprobe:do_sys_openat2", { args = "$arg1:s32 name=+0($arg2):ustring" }, note)
    session:on("fexit:do_sys_openat2", { args = { fd = "$retval:s32" } }, note)
  end)
end)

guest.check("tprobe: what a tracepoint is called with, and the kernel's text", function()
  need("tprobe")
  same_text(4, "/spec/load threads 1 5", function(session, note)
    session:on("tprobe:sched_switch", { args = "preempt=$arg1:u8 prev=$arg2:x64" }, note)
  end)
end)

guest.check("eprobe: fields of an event, and what they point to; the kernel's text", function()
  need("eprobe")
  local theirs = same_text(23, open_files(23), function(session, note)
    session:on("eprobe:syscalls:sys_enter_openat", {
      args = { name = "+0($filename):ustring", flags = "$flags:x32" },
    }, note)
  end)
  local session <close> = tracefs.session()
  local seen, calls = {}, 0
  session:on("eprobe:syscalls:sys_enter_openat", {
    "name", "dfd", "common_event",
    args = { name = "+0($filename):ustring", dfd = "$dfd:s32" },
  }, function(name, dfd, event)
    guest.equal(-100, dfd)
    guest.equal("eprobe:sys_enter_openat", event)
    calls = calls + 1
    if name:find("^/tmp/opened%-") then
      seen[#seen + 1] = name
    end
  end)
  session:start()
  guest.equal(0, (guest.sh(open_files(23))))
  session:finish()
  session:run()
  guest.truth(calls >= 23, "%d calls", calls)
  if theirs[#theirs]:find("name=(fault)", 1, true) then
    -- 6.1 reads no user memory here.
    guest.note("the kernel itself reads no name")
    guest.equal(0, #seen)
  else
    guest.equal(table.concat(names(23), "\n"), table.concat(seen, "\n"))
  end
end)

guest.check("opensnoop: 23 files that are opened and 7 that are not there, by name", function()
  need("kprobe")
  local json = require "dkjson"
  local script = {}
  for i = 1, 30 do
    script[i] = ("cat %s-%d"):format(i <= 23 and "/tmp/opened" or "/tmp/missing", i)
  end
  guest.sh(open_files(23))
  local status, out, err = guest.luatrace("-f", "json", "-c",
    ("{ %s; } 2>/dev/null; true"):format(table.concat(script, "; ")),
    "/usr/local/share/luatrace/examples/opensnoop.lua", "--name", "^/tmp/", "--comm", "cat")
  guest.equal(0, status, err)
  local opened, failed = {}, 0
  for line in out:gmatch("[^\n]+") do
    local object = json.decode(line)
    if object.type == "open" and object.result >= 0 then
      opened[#opened + 1] = object.name
    elseif object.type == "open" then
      failed = failed + 1
      guest.equal("ENOENT", object.error)
      guest.equal(("/tmp/missing-%d"):format(23 + failed), object.name)
    end
  end
  guest.equal(table.concat(names(23), "\n"), table.concat(opened, "\n"))
  guest.equal(7, failed, "failed")
end)

guest.check("the guide's example of probes runs", function()
  need("kprobe")
  local guide = assert(guest.read "/usr/local/share/doc/luatrace/guide.md")
  local code = assert(guide:match "\n## Probes\n.-\n```lua\n(.-)\n```")
  guest.contains(code, "uprobe:/bin/bash:readline", "uretprobe:/bin/bash:readline")
  -- there is no bash here
  code = code:gsub("/bin/bash:readline", PROGRAM .. ":probed_work")
  guest.write("/tmp/example.lua", 'local trace = require "tracefs.script"\n' .. code)
  local status, out, err = guest.luatrace("-c", open_files(2) .. "; " .. PROGRAM .. " 3 >/dev/null",
    "/tmp/example.lua")
  guest.equal(0, status, err)
  -- Whoever reads while it runs may know it under the name that it had before.
  out = ("\n" .. out):gsub("\n[^\t\n]+\t", "\n")
  guest.contains(out, "\n/tmp/opened-1\n", "\n/tmp/opened-2\n")
  guest.equal(3, select(2, out:gsub("somebody types\n", "")), "calls")
  guest.equal(3, select(2, out:gsub(" line=", "")), "results")
end)

-- The same in a script of the command: what is said, with the line that has the caret.
local function refused(pattern, options)
  local session <close> = tracefs.session()
  local before = session.instance:read("set_event")
  local ok, message = pcall(session.on, session, pattern, options, print)
  guest.equal(false, ok, pattern)
  guest.equal(before, session.instance:read("set_event"), "events that are on")
  guest.equal(nil, (guest.read(guest.dir .. "/dynamic_events") or ""):match("luatrace_%S+"),
    "dynamic events")
  return message
end

guest.check("kprobes that the kernel refuses: its words, its caret, never older ones", function()
  need("kprobe")
  local message = refused("kprobe:do_sys_opnat2", {})
  guest.contains(message, "kprobe:do_sys_opnat2: cannot write to ", "the kernel says:\n",
    "trace_kprobe: error: ", "no function 'do_sys_opnat2' in this kernel",
    "Did you mean do_sys_open")
  for args, word in pairs {
    ["a=%nosuch"] = "Invalid register name",
    ["a=%di:u7"] = "Unknown type is specified",
    ["a=+(%di)"] = "Invalid dereference offset",
    ["a=%di a=%si"] = "This argument name is already used",
    ["common_pid=%di"] = "This argument name is already used",
  } do
    message = refused("kprobe:do_sys_openat2", { args = args })
    guest.contains(message, word, "do_sys_openat2 " .. args .. "\n")
    local caret = message:match("\n  Command: [^\n]*\n( *)%^")
    guest.truth(caret, "no caret in %s", message)
    guest.equal(1, select(2, message:gsub("Command:", "")), "entries shown")
    if word:find("register") then
      guest.contains(message, "registers are: %")
    end
  end
end)

guest.check("probes of others are listed and left alone; two sessions at once", function()
  need("uprobe")
  local theirs <close> = core.dynevents(guest.dir)
  local place = ("uprobe:%s:probed_work"):format(PROGRAM)
  local offset = assert(core.elf_offset(PROGRAM, "probed_work"))
  local group = theirs:name()
  assert(theirs:add(("p:%s/work %s:0x%x"):format(group, PROGRAM, offset)))
  local before = guest.read(guest.dir .. "/dynamic_events")
  do
    local counts = { 0, 0 }
    local first <close> = tracefs.session()
    local second <close> = tracefs.session()
    first:on(place, { "n", args = "n=%di:s32" }, function(n)
      counts[1] = counts[1] + n
    end)
    second:on(place, { "m", args = "m=%di:s32" }, function(m)
      counts[2] = counts[2] + m
    end)
    guest.equal(3, #assert(tracefs.dynamic_events()), "dynamic events")
    first:start()
    second:start()
    guest.equal(0, (guest.sh(PROGRAM .. " 5")))
    first:finish()
    first:run()
    first:close()
    guest.equal(2, #assert(tracefs.dynamic_events()), "dynamic events then")
    guest.equal(0, (guest.sh(PROGRAM .. " 2")))
    second:finish()
    second:run()
    guest.equal("15 18", table.concat(counts, " "))
  end
  tracefs.remove_stale()
  guest.equal(before, guest.read(guest.dir .. "/dynamic_events"))
end)

guest.check("after SIGKILL the next run removes the probes, and the instance with them", function()
  need("uprobe")
  local code = ([[
    on("uprobe:%s:probed_work", { args = { n = "%%di:s32" } }, function() end)
    on("uretprobe:%s:probed_work", function() end)
    at_start(function() print("on") io.stdout:flush() end)
  ]]):format(PROGRAM, PROGRAM)
  if guest.exists(guest.dir .. "/kprobe_events") then
    code = code .. [[
      on("kprobe:do_sys_openat2", { args = { name = "+0($arg2):ustring" } }, function() end)
    ]]
  end
  local started = guest.start { "luatrace", "-e", code }
  guest.wait_until(function()
    return started.out():find("on\n", 1, true) or started.process:wait()
  end, "the start of luatrace")
  guest.contains(started.out(), "on\n")
  local left = #assert(tracefs.dynamic_events())
  guest.truth(left >= 2, "%d dynamic events while it runs", left)
  local instances, events = tracefs.remove_stale()
  guest.equal("0 0", instances .. " " .. events, "removed while it lives")
  started.kill(9)
  guest.equal(128 + 9, started.wait())
  guest.equal(left, #assert(tracefs.dynamic_events()), "dynamic events then")
  local status, _, err = guest.luatrace("-v", "-d", "0.1", "-e",
    'on("sched:sched_wakeup", function() end)')
  guest.equal(0, status, err)
  guest.contains(err, "removed 1 instance of luatrace processes that are gone",
    ("removed %d dynamic events of luatrace processes that are gone"):format(left))
  guest.equal(0, #assert(tracefs.dynamic_events()), "dynamic events at the end")
end)
