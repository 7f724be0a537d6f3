-- The function tracers: what is recorded is what was asked for, exactly, and nothing is left.
local guest = require "harness"
local core = require "tracefs.core"
local toplevel = require "tracefs.toplevel"
local tracefs = require "tracefs"

local TOP_GRAPH <const> = {
  "set_graph_function", "set_graph_notrace", "max_graph_depth", "set_ftrace_filter",
  "set_ftrace_notrace", "set_ftrace_pid", "set_ftrace_notrace_pid", "current_tracer", "trace_clock",
}

local function has_tracer(name)
  local instance <close> = assert(tracefs.instance_create())
  local there = " " .. instance:read("available_tracers"):gsub("%s+", " ")
  return there:find(" " .. name .. " ", 1, true)
end

-- The top level has it when instances have not; every kernel here has one of the two.
local IN_INSTANCE <const> = has_tracer("function_graph") ~= nil

local function need_instance()
  if not IN_INSTANCE then
    guest.skip("this kernel has function_graph at the top level only")
  end
end

local function need_top()
  if IN_INSTANCE then
    guest.skip("this kernel has function_graph in instances")
  end
end

-- Where the session's graph is recorded, as the kernel shows it.
local function graph_text(session)
  if IN_INSTANCE then
    assert(session.instance:trace_off())
    return session.instance:read("trace")
  end
  guest.write(guest.dir .. "/tracing_on", "0")
  return guest.read(guest.dir .. "/trace")
end

local function graph_settings()
  local parts = {}
  for _, file in ipairs(TOP_GRAPH) do
    parts[#parts + 1] = file .. "=" .. (guest.read(guest.dir .. "/" .. file) or "-")
  end
  return table.concat(parts)
end

-- A run with this setup that is killed while it traces; before that, `look` is called.
local function killed_while_on(setup, look)
  local run = guest.start { "luatrace", "-e",
    setup .. ' at_start(function() io.stderr:write("on\\n") end)' }
  guest.wait_until(function()
    return run.err():find("on\n", 1, true)
  end, "the start")
  if look then
    look()
  end
  run.kill(9)
  run.wait()
end

-- A program that reads and writes so often, and does both a few times more at its start.
local function copies(count)
  return ("dd if=/dev/zero of=/dev/null bs=777 count=%d 2>/dev/null"):format(count)
end

-- Tracing all functions takes an emulated CPU many seconds: these are enough.
local SOME <const> = {
  "vfs_*", "ksys_*", "rw_verify_area", "security_file_*", "fsnotify*", "mutex_*", "*seq_*",
  "check_*", "__check_*",
}

local function some(options)
  return table.move(SOME, 1, #SOME, 1, options)
end

-- The number that the program that was run last has told of itself, see tell().
local teller

-- Records are handled behind the end of the command.
local function run(session, command)
  session:start()
  local status, out = guest.sh(command)
  guest.equal(0, status)
  teller = math.tointeger(out:match "^%d+")
  session:finish()
  return session:run()
end

-- A command that tells its number first: what a number is called comes from a list of the kernel's
-- that may still have the name from before, or none.
local function tell(command)
  return ("sh -c 'echo $$; exec %s'"):format(command)
end

local function without_head(trace)
  return (("\n" .. trace):gsub("\n#[^\n]*", ""):sub(2))
end

-- Calls of vfs_read by dd, and all of it else.
local function count_reads(command)
  local session <close> = tracefs.session()
  guest.equal(1, session:functions { "vfs_read" })
  local calls = 0
  session:on("ftrace:function", { "ip", "parent_ip", "common_pid" }, function(ip, parent, pid)
    guest.equal("vfs_read", (tracefs.ksym(ip)))
    guest.truth(tracefs.ksym(parent), "the caller has no name")
    calls = calls + (pid == teller and 1 or 0)
  end)
  local stats = run(session, tell(command))
  guest.equal(0, stats.lost)
  guest.balanced(stats)
  return calls
end

guest.check("functions: as many calls as there were, of the function that was chosen", function()
  -- What the program reads when it starts is the same in both.
  local few = count_reads(copies(23))
  local many = count_reads(copies(1009))
  guest.truth(few >= 23, "%d calls for 23 reads", few)
  guest.equal(1009 - 23, many - few, "calls for 986 reads more")
end)

guest.check("functions: globs, lists and notrace", function()
  local seen = {}
  local session <close> = tracefs.session()
  local count = session:functions { "vfs_*", "ksys_read", notrace = { "vfs_read", "vfs_stat*" } }
  guest.truth(count > 10, "%s functions", count)
  session:on("ftrace:function", { "ip" }, function(ip)
    local name = tracefs.ksym(ip)
    seen[name] = (seen[name] or 0) + 1
  end)
  run(session, copies(3))
  guest.truth(seen.ksys_read, "ksys_read is there")
  guest.truth(seen.vfs_open or seen.vfs_getattr, "others of the glob are there")
  guest.equal(nil, seen.vfs_read, "a function of notrace")
  for name in pairs(seen) do
    guest.truth(name == "ksys_read" or name:find("^vfs_"), "%s was not asked for", name)
  end
end)

guest.check("functions: one module's", function()
  if not guest.exists("/sys/module/brd") then
    guest.skip("there is no module to trace")
  end
  local session <close> = tracefs.session()
  local count = session:functions { "*:mod:brd" }
  guest.truth(count > 0 and count < 100, "%s functions", count)
  local seen, modules = 0, {}
  session:on("ftrace:function", { "ip" }, function(ip)
    local name, _, module = tracefs.ksym(ip)
    seen = seen + 1
    modules[tostring(module)] = name
  end)
  run(session, "dd if=/dev/zero of=/dev/ram0 bs=4096 count=7 2>/dev/null; sync")
  guest.truth(seen > 0, "nothing was called")
  guest.equal("brd", next(modules))
  guest.equal(nil, next(modules, "brd"))
end)

guest.check("functions: a record's text is the kernel's", function()
  local session <close> = tracefs.session { own_events = true, margin = 1, buffer_kb = 8192 }
  session:functions { "vfs_*", "*:mod:brd" }
  local lines = {}
  session:on("ftrace:function", function(ev)
    lines[#lines + 1] = tostring(ev)
  end)
  session:start()
  guest.equal(0, (guest.sh("ls -l / >/dev/null; dd if=/dev/zero of=/dev/ram0 bs=4096 count=7")))
  assert(session.instance:trace_off())
  local text = without_head(session.instance:read("trace"))
  session:finish()
  session:run()
  local at, theirs = 0, {}
  for line in text:gmatch("[^\n]+") do
    theirs[#theirs + 1] = line
  end
  guest.forget_names(theirs, lines)
  for _, line in ipairs(theirs) do
    at = at + 1
    guest.equal(line, lines[at], "line " .. at)
  end
  guest.equal(at, #lines, "lines")
  guest.truth(at > 50, "only %d lines", at)
  guest.note("%d lines", at)
end)

guest.check("function_graph: the text is the kernel's, leaves, switches, comments", function()
  local before = graph_settings()
  local session <close> = tracefs.session { own_events = true, margin = 1, buffer_kb = 8192 }
  local wanted = some { graph = { "vfs_read", "vfs_write" } }
  if guest.exists("/sys/module/brd") then
    table.insert(wanted, "*:mod:brd")
    table.insert(wanted.graph, "brd_submit_bio")
  end
  session:functions(wanted)
  local lines = {}
  local graph = require("tracefs.funcgraph").new(function(line)
    lines[#lines + 1] = line
  end)
  local alone = {}
  local events = { "ftrace:funcgraph_entry", "ftrace:funcgraph_exit" }
  if IN_INSTANCE then
    -- comments in the graph, as they are in the same buffer
    table.move({ "ftrace:print", "sched:sched_process_exec" }, 1, 2, 3, events)
  end
  for _, event in ipairs(events) do
    session:on(event, function(ev)
      graph:add(ev)
      alone[#alone + 1] = event:find("funcgraph") and tostring(ev) or nil
    end)
  end
  session:start()
  session:marker("a marker\n")
  guest.equal(0, (guest.sh("cat /proc/version >/dev/null; dd if=/dev/zero of=/dev/ram0 bs=4096 "
    .. "count=3 2>/dev/null; sync")))
  local text = without_head(graph_text(session))
  session:finish()
  local stats = session:run()
  graph:finish()
  guest.equal(0, stats.lost)
  local at, leaves = 0, 0
  for line in text:gmatch("([^\n]*)\n") do
    at = at + 1
    guest.equal(line, lines[at], "line " .. at)
    leaves = leaves + (line:find("();", 1, true) and 1 or 0)
  end
  guest.equal(at, #lines, "lines")
  guest.truth(leaves > 10, "only %d leaves", leaves)
  -- A record on its own: an end has its name, a leaf is two records.
  local ours = {}
  for _, line in ipairs(alone) do
    ours[line:gsub("%} /%*.*", "}")] = true
  end
  for line in text:gmatch("[^\n]+") do
    if line:find("() {", 1, true) or line:find("%}$") then
      guest.truth(ours[line], "no record has the line %q", line)
    end
  end
  guest.note("%d lines, %d leaves", at, leaves)
  session:close()
  guest.equal(before, graph_settings(), "the top level")
end)

guest.check("function_graph: every beginning has its end, as deep and not earlier", function()
  local session <close> = tracefs.session()
  session:functions(some { graph = "vfs_read", depth = 3 })
  local open, pairs_seen, deepest, roots = {}, 0, 0, 0
  session:on("ftrace:funcgraph_entry", function(ev)
    local stack = open[ev.common_pid] or {}
    open[ev.common_pid] = stack
    stack[#stack + 1] = ev
    deepest = math.max(deepest, ev.depth)
    if ev.depth == 0 then
      local name = tracefs.ksym(ev.func)
      roots = roots + (name == "vfs_read" and 1 or 0)
      -- Kernels with the tracer at the top level only go on with a task that was inside such a
      -- function, or with its children, when an earlier tracer ended.
      guest.truth(name == "vfs_read" or not IN_INSTANCE, "%s is not called by vfs_read", name)
    end
  end)
  session:on("ftrace:funcgraph_exit", function(ev)
    local stack = open[ev.common_pid] or {}
    local entry = table.remove(stack)
    if entry then
      guest.equal(entry.func, ev.func, "function")
      guest.equal(entry.depth, ev.depth, "depth")
      guest.truth(ev.rettime >= ev.calltime, "duration")
      pairs_seen = pairs_seen + 1
    end
  end)
  run(session, copies(13))
  guest.truth(pairs_seen > 13, "%d calls", pairs_seen)
  guest.truth(roots >= 13, "%d calls of vfs_read", roots)
  guest.truth(deepest <= 2, "a call %d deep within three levels", deepest)
  for pid, stack in pairs(open) do
    guest.equal(0, #stack, "calls without an end of process " .. pid)
  end
end)

guest.check("function_graph: without graph functions, in the instance alone", function()
  need_instance()
  local before = graph_settings()
  local session <close> = tracefs.session()
  guest.equal(2, session:functions { "vfs_read", "vfs_write", tracer = "function_graph" })
  guest.equal(before, graph_settings(), "the top level")
  local names = {}
  session:on("ftrace:funcgraph_exit", function(ev)
    names[tracefs.ksym(ev.func)] = true
  end)
  run(session, copies(3))
  guest.truth(names.vfs_read and names.vfs_write, "both are there")
  names.vfs_read, names.vfs_write = nil, nil
  guest.equal(nil, next(names))
end)

guest.check("arguments and return values where the kernel has them", function()
  local session <close> = tracefs.session()
  local ok, message = pcall(session.functions, session, { "vfs_read", args = true })
  if not ok then
    guest.contains(message, "this kernel cannot record args", "CONFIG_FUNCTION_TRACE_ARGS")
    guest.skip(message)
  end
  local counts = {}
  session:on("ftrace:function", function(ev)
    counts[ev.args[3]] = (counts[ev.args[3]] or 0) + 1
  end)
  run(session, copies(23))
  guest.equal(23, counts[777], "reads of 777 bytes")
end)

-- ---------------------------------------------------------------------------
-- Refusals
-- ---------------------------------------------------------------------------

local function refused(options, ...)
  local session <close> = tracefs.session()
  local ok, message = pcall(session.functions, session, options)
  guest.equal(false, ok, "accepted")
  guest.contains(message, ...)
  -- and what was set before it is gone
  local filter = session.instance:read("set_ftrace_filter")
  guest.contains(filter, "all functions enabled")
  guest.contains(session.instance:read("current_tracer"), "nop")
end

guest.check("functions: what is not there is refused by its name, with the nearest ones", function()
  refused({ "vfs_raed" }, 'no function "vfs_raed" among the ', "Did you mean vfs_read")
  refused({ "vfs_read", notrace = "vfs_raed" }, 'no function "vfs_raed"', "vfs_read")
  refused({ "*:mod:nosuch" }, 'no module "nosuch" with functions that can be traced')
  if guest.exists("/sys/module/brd") then
    refused({ "nosuch*:mod:brd" }, 'no function "nosuch*" among the ', "the module brd")
  end
end)

guest.check("functions: a second time, and in a session that has started", function()
  local session <close> = tracefs.session()
  session:functions { "vfs_read" }
  local ok, message = pcall(session.functions, session, { "vfs_write" })
  guest.equal(false, ok)
  guest.contains(message, "one set of functions")
  local other <close> = tracefs.session()
  other:start()
  ok, message = pcall(other.functions, other, { "vfs_read" })
  guest.equal(false, ok)
  guest.contains(message, "the session has started")
end)

guest.check("function_graph: refused while somebody uses the top level, where it is only there",
  function()
  need_top()
  local before = graph_settings()
  local top = guest.dir .. "/"
  local function in_use(file, text, back, ...)
    guest.write(top .. file, text)
    refused({ "vfs_read", graph = "vfs_read" },
      "has function_graph at the top level only, and somebody uses that", ...)
    guest.contains(guest.read(top .. file), text:match("[%w_:]+"))
    guest.write(top .. file, back)
    guest.equal(before, graph_settings(), "the top level")
  end
  in_use("set_ftrace_filter", "vfs_w*\n", "", "set_ftrace_filter is set to vfs_w", " and ", "more")
  in_use("current_tracer", "function", "nop", "current_tracer is function", "echo nop > " .. top)
  guest.write(top .. "trace", "")
  in_use("set_event", "sched:sched_process_exit\n", "", "events are on: sched:sched_process_exit")
  guest.write(top .. "trace", "")
  in_use("set_graph_function", "vfs_read\n", "", "set_graph_function is set to vfs_read")
  in_use("max_graph_depth", "7\n", "0\n", "max_graph_depth is 7", "echo 0 > ")
  in_use("set_ftrace_pid", "1\n", "", "set_ftrace_pid is set to 1")

  guest.write(top .. "trace_marker", "theirs\n")
  refused({ "vfs_read", tracer = "function_graph" }, "its buffer holds 1 record.", "/trace")
  guest.contains(guest.read(top .. "trace"), "theirs")
  guest.write(top .. "trace", "")

  local reader = guest.start { "cat", top .. "trace_pipe" }
  guest.wait_until(function()
    local _, out = guest.sh("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c '/trace_pipe$'")
    return tonumber(out) > 0
  end, "the reader")
  refused({ "vfs_read", graph = "vfs_read" }, "somebody reads that", "trace_pipe")
  reader.kill(9)
  reader.wait()
  guest.equal(before, graph_settings(), "the top level")

  local trigger = top .. "events/sched/sched_process_exit/trigger"
  guest.write(trigger, "traceoff:1 if prio < 0\n")
  refused({ "vfs_read", graph = "vfs_read" },
    "sched:sched_process_exit has the trigger traceoff", "with a ! before it to " .. trigger)
  guest.write(trigger, "!traceoff:1 if prio < 0\n")
  if guest.exists(top .. "snapshot") then
    guest.write(top .. "snapshot", "1\n")
    refused({ "vfs_read", graph = "vfs_read" }, "it has a snapshot", "echo 0 > " .. top)
    guest.truth(not guest.read(top .. "snapshot"):find("is freed", 1, true), "the snapshot is gone")
    guest.write(top .. "snapshot", "0\n")
    guest.write(top .. "trace", "")
  end
  guest.equal(before, graph_settings(), "the top level")

  -- what the kernel refuses when something has been set
  refused({ "vfs_raed", tracer = "function_graph" }, 'no function "vfs_raed"', "vfs_read")
  refused({ "vfs_read", graph = "vfs_raed" }, 'no function "vfs_raed"', "vfs_read")
  refused({ "vfs_read", graph = "*:mod:brd" }, "takes no :mod: in set_graph_function")
  guest.equal(before, graph_settings(), "the top level")

  local first <close> = tracefs.session()
  first:functions { "vfs_read", graph = "vfs_read" }
  refused({ "vfs_*", graph = "vfs_write" }, "current_tracer is function_graph",
    ("(luatrace, process %d)"):format(guest.pid))
  local ok, message = pcall(first.record, first, "/tmp/graph.dat")
  guest.equal(false, ok)
  guest.contains(message, "a recording has the instance's records alone")
  first:close()
  guest.equal(before, graph_settings(), "the top level")
end)

guest.check("function_graph: one stream with the events, in the order of time", function()
  local before = graph_settings()
  local session <close> = tracefs.session()
  session:functions { "vfs_read", graph = "vfs_read" }
  -- a system call of dd that reads begins, its function does, and both end
  local inside, order, reads, last = {}, {}, 0, 0
  local function on(event, expected)
    session:on(event, function(ev)
      guest.truth(ev.common_timestamp >= last or ev.common_late, "%s is out of order", event)
      last = math.max(last, ev.common_timestamp)
      local pid = ev.common_pid
      if pid ~= teller or (not inside[pid] and expected ~= "enter") then
        return
      elseif expected == "enter" then
        inside[pid], order[pid] = true, "enter"
        return
      end
      local was = order[pid]
      order[pid] = expected
      if expected == "entry" then
        guest.equal("enter", was, "before the function's beginning")
      elseif expected == "end" then
        guest.equal("entry", was, "before the function's end")
        reads = reads + 1
      else
        guest.truth(was == "end" or was == "enter", "%s before the system call's end", was)
      end
    end)
  end
  on("raw_syscalls:sys_enter", "enter")
  on("ftrace:funcgraph_entry", "entry")
  on("ftrace:funcgraph_exit", "end")
  on("raw_syscalls:sys_exit", "exit")
  local stats = run(session, tell(copies(23)))
  guest.truth(reads >= 23, "%d reads", reads)
  guest.equal(0, stats.lost)
  guest.balanced(stats)
  session:close()
  guest.equal(before, graph_settings(), "the top level")
end)

guest.check("function_graph: what the buffer has no room for is counted, and told of", function()
  local session <close> = tracefs.session { buffer_kb = 32 }
  session:functions { "vfs_read", graph = "vfs_read" }
  local delivered, told, is_more = 0, 0, false
  for _, event in ipairs { "ftrace:funcgraph_entry", "ftrace:funcgraph_exit" } do
    session:on(event, function()
      delivered = delivered + 1
    end)
  end
  session:on_lost(function(lost)
    told = told + (lost.count or 0)
    is_more = is_more or not lost.count
  end)
  session:start()
  guest.equal(0, (guest.sh(copies(4001))))
  session:finish()
  local stats = session:run()
  guest.truth(stats.lost > 0, "nothing was lost")
  guest.truth(stats.produced >= 2 * 4001, "%d records", stats.produced)
  guest.equal(stats.delivered, delivered, "delivered")
  guest.truth(told == stats.lost or is_more and told < stats.lost, "told of %d lost", told)
  guest.balanced(stats)
end)

guest.check("function_graph: one process and its children, without others' markers", function()
  -- Before the session: what waits to be let go has the files open that were open here.
  local process = assert(core.spawn("exec /bin/sh -c '" .. copies(31) .. "; :'"))
  local session <close> = tracefs.session()
  assert(session.instance:set_event_pids({ process:pid() }, true))
  session:functions { "vfs_read", tracer = "function_graph" }
  local calls, by, markers = 0, {}, 0
  session:on("ftrace:funcgraph_exit", { "common_comm" }, function(comm)
    calls, by[comm] = calls + 1, true
  end)
  session:on("ftrace:print", function()
    markers = markers + 1
  end)
  session:start()
  if not IN_INSTANCE then
    guest.write(guest.dir .. "/trace_marker", "theirs\n")
  end
  session:marker("ours\n")
  assert(process:release())
  guest.sh("cat /proc/version")
  guest.wait_until(function()
    return process:wait() ~= nil
  end, "the end of the process")
  process:close()
  session:finish()
  session:run()
  guest.truth(calls >= 31, "%d calls", calls)
  guest.equal(nil, by.cat, "calls by another task")
  guest.equal(1, markers, "markers")
end)

guest.check("function_graph: refused when somebody else begins at the same time", function()
  need_instance()
  local before = graph_settings()
  local theirs <close> = assert(tracefs.instance_create("vm-theirs"))
  assert(theirs:write("set_ftrace_filter", "vfs_read\n"))
  -- right behind the last look at what others do
  local function meanwhile(looks, act, ...)
    local check = toplevel.check_graph
    toplevel.check_graph = function(...)
      local result = table.pack(check(...))
      looks = looks - 1
      if looks == 0 then
        toplevel.check_graph = check
        act()
      end
      return table.unpack(result, 1, result.n)
    end
    local ok, err = pcall(refused, ...)
    toplevel.check_graph = check
    guest.truth(ok, "%s", err)
  end
  meanwhile(1, function()
    guest.write(guest.dir .. "/set_graph_function", "vfs_write\n")
  end, { "vfs_read", tracer = "function_graph" }, "set_graph_function is set to vfs_write")
  guest.write(guest.dir .. "/set_graph_function", "")
  meanwhile(2, function()
    assert(theirs:write("current_tracer", "function_graph"))
  end, { "vfs_read", graph = "vfs_read" }, "the instance vm-theirs traces with function_graph")
  assert(theirs:write("current_tracer", "nop"))
  guest.equal(before, graph_settings(), "the top level")
end)

guest.check("function_graph: graph functions are refused while somebody else uses it", function()
  need_instance()
  refused({ "vfs_read", graph = "vfs_raed" }, 'no function "vfs_raed"', "vfs_read")
  refused({ "vfs_read", graph = "*:mod:brd" }, "takes no :mod: in set_graph_function")
  local before = graph_settings()

  local theirs <close> = assert(tracefs.instance_create("vm-theirs"))
  assert(theirs:write("set_ftrace_filter", "vfs_read\n"))
  assert(theirs:write("current_tracer", "function_graph"))
  refused({ "vfs_read", graph = "vfs_read" }, "the instance vm-theirs traces with function_graph")
  assert(theirs:write("current_tracer", "nop"))

  guest.write(guest.dir .. "/set_graph_function", "vfs_write\n")
  refused({ "vfs_read", graph = "vfs_read" },
    "set_graph_function is set to vfs_write by somebody else")
  refused({ "vfs_read", tracer = "function_graph" }, "which restricts function_graph for everybody")
  guest.equal("vfs_write\n", guest.read(guest.dir .. "/set_graph_function"))
  guest.write(guest.dir .. "/set_graph_function", "")
  guest.equal(before, graph_settings(), "the top level")

  local first <close> = tracefs.session()
  first:functions { "vfs_read", graph = "vfs_read" }
  refused({ "vfs_*", graph = "vfs_write" },
    ("by somebody else (luatrace, process %d)"):format(guest.pid))
  first:close()
  guest.equal(before, graph_settings(), "the top level")
end)

-- ---------------------------------------------------------------------------
-- Whatever happens
-- ---------------------------------------------------------------------------

guest.check("function_graph: the top level is put back after an error, and by the next run after "
  .. "SIGKILL", function()
  local before = graph_settings()
  local script = 'functions{ "vfs_*", graph = { "vfs_read", "vfs_w*" }, depth = 4 } '
    .. 'on("ftrace:funcgraph_exit", function() end) '
  local status = guest.luatrace("-d", "0.1", "-e", script)
  guest.equal(0, status)
  guest.equal(before, graph_settings(), "after a run")
  status = guest.luatrace("-e", script .. 'error("no")')
  guest.equal(1, status)
  guest.equal(before, graph_settings(), "after an error")

  killed_while_on(script, function()
    guest.truth(before ~= graph_settings(), "the top level is in use")
  end)
  guest.contains(graph_settings(), "vfs_read", "max_graph_depth=4")

  local session <close> = tracefs.session()
  guest.equal(before, graph_settings(), "after the next run")
  session:functions { "vfs_*", graph = "vfs_read" }
end)

guest.check("function_graph: what somebody has set since a SIGKILL is theirs", function()
  local before = graph_settings()
  killed_while_on 'functions{ "vfs_*", graph = "vfs_read" }'
  guest.write(guest.dir .. "/set_graph_function", "vfs_write\n")
  tracefs.session():close()
  guest.equal("vfs_write\n", guest.read(guest.dir .. "/set_graph_function"))
  guest.write(guest.dir .. "/set_graph_function", "")
  guest.equal(before, graph_settings())
end)

guest.check("function_graph: who takes over the top level after a SIGKILL is left alone", function()
  need_top()
  local before = graph_settings()
  killed_while_on 'functions{ "vfs_*", graph = "vfs_read" }'
  guest.write(guest.dir .. "/current_tracer", "function")
  local session <close> = tracefs.session()
  guest.equal("function\n", guest.read(guest.dir .. "/current_tracer"))
  local ok, message = pcall(session.functions, session, { "vfs_read", graph = "vfs_read" })
  guest.equal(false, ok)
  guest.contains(message, "current_tracer is function")
  guest.write(guest.dir .. "/current_tracer", "nop")
  tracefs.session():close()
  guest.equal(before, graph_settings())
end)

guest.check("function_graph: keeps its filters while a reader of the top level does not let it end",
  function()
    need_top()
    local before, everything = graph_settings(), guest.top_level()
    local top = guest.dir .. "/"
    local session <close> = tracefs.session()
    session:functions { "vfs_read", graph = "vfs_read" }
    session:start()
    -- one that only has it open: cat may come to an end by itself
    local reader = guest.start { "sh", "-c", "exec sleep 1000 <" .. top .. "trace_pipe" }
    guest.wait_until(function()
      local _, out = guest.sh("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c '/trace_pipe$'")
      return tonumber(out) > 0
    end, "the reader")
    local ok, message = session:close()
    guest.equal(nil, ok)
    guest.contains(message, "the top level is not as it was: function_graph cannot be ended there",
      "trace_pipe open")
    guest.contains(guest.read(top .. "set_ftrace_filter"), "vfs_read")
    guest.contains(guest.read(top .. "set_graph_function"), "vfs_read")
    guest.contains(guest.read(top .. "tracing_on"), "0")
    refused({ "vfs_read", graph = "vfs_read" }, "current_tracer is function_graph")
    reader.kill(9)
    reader.wait()
    tracefs.session():close()
    guest.equal(before, graph_settings(), "the top level")
    guest.equal(everything, guest.top_level(), "the top level")
  end)

guest.check("function_graph: options that leave functions out are on meanwhile", function()
  need_top()
  local options = guest.dir .. "/options/"
  guest.write(options .. "sleep-time", "0\n")
  local session <close> = tracefs.session()
  session:functions { "vfs_read", graph = "vfs_read" }
  guest.contains(guest.read(options .. "sleep-time"), "1")
  session:close()
  guest.contains(guest.read(options .. "sleep-time"), "0")
  guest.write(options .. "sleep-time", "1\n")
end)

local RECORD <const> = {
  "record", "-q", "-p", "function_graph", "-l", "vfs_read", "-g", "vfs_read", "-o",
  "/tmp/graph.dat",
}

local function record(...)
  local argv = table.move(RECORD, 1, #RECORD, 1, {})
  return guest.luatrace(table.unpack(table.move({ ... }, 1, select("#", ...), #argv + 1, argv)))
end

guest.check("luatrace record -g: the functions, which are put back at the end", function()
  need_instance()
  local before = graph_settings()
  local status, _, err = record("-g", "vfs_write", "sh", "-c", copies(23))
  guest.equal(0, status, err)
  guest.equal(before, graph_settings(), "the top level")
  local _, out = guest.luatrace("report", "-e", "ftrace:funcgraph_exit", "/tmp/graph.dat")
  local calls = select(2, out:gsub("\n[^\n]*funcgraph_exit", ""))
  guest.truth(calls >= 23, "%d calls in:\n%s", calls, out)
  os.remove "/tmp/graph.dat"

  status, _, err = record("-g", "vfs_raed", "true")
  guest.equal(1, status)
  guest.contains(err, "vfs_raed")
  guest.write(guest.dir .. "/set_graph_function", "vfs_write\n")
  status, _, err = record "true"
  guest.equal(1, status)
  guest.contains(err, "-g: ", "set_graph_function is set to vfs_write by somebody else")
  guest.write(guest.dir .. "/set_graph_function", "")
  guest.equal(before, graph_settings(), "the top level")

  local killed = guest.start { "luatrace", table.unpack(RECORD) }
  guest.wait_until(function()
    return guest.exists "/tmp/graph.dat"
  end, "the recording")
  guest.contains(graph_settings(), "set_graph_function=vfs_read")
  killed.kill(9)
  killed.wait()
  guest.equal(0, (guest.luatrace("record", "-q", "-e", "ftrace:print", "-o", "/tmp/x.dat", "true")))
  guest.equal(before, graph_settings(), "after the next run")
  os.remove "/tmp/x.dat"
  os.remove "/tmp/graph.dat"
end)

guest.check("functions: those of one process and its children", function()
  local status, out, err = guest.luatrace("-c", copies(5), "-e", [[
    functions{ "vfs_read" }
    calls = 0
    on("ftrace:function", function() calls = calls + 1 end)
    at_end(function() print(calls) end)
  ]])
  guest.equal(0, status, err)
  guest.truth(tonumber(out) >= 5, "calls: %s", out)
  local sleeper = assert(core.spawn("exec sleep 1000"))
  assert(sleeper:release())
  local session <close> = tracefs.session()
  assert(session.instance:set_event_pids { sleeper:pid() })
  session:functions { "vfs_*" }
  guest.equal(tostring(sleeper:pid()), session.instance:read("set_ftrace_pid"):match("%d+"))
  local calls = 0
  session:on("ftrace:function", function(ev)
    guest.equal(sleeper:pid(), ev.common_pid)
    calls = calls + 1
  end)
  run(session, "cat /proc/version >/dev/null")
  sleeper:kill(9)
  sleeper:close()
end)

local EXAMPLE <const> = [[
  LUA_PATH="/usr/local/share/lua/5.4/?.lua;/usr/local/share/lua/5.4/?/init.lua" \
    LUA_CPATH="/usr/local/lib/lua/5.4/?.so" "$(cat /interpreter)" /tmp/example.lua]]

guest.check("the guide's examples of kernel functions run", function()
  local guide = assert(guest.read "/usr/local/share/doc/luatrace/guide.md")
  local section = guide:match "\n## Kernel functions\n(.-)\n## "
  local count = 0
  for code in section:gmatch "\n```lua\n(.-)\n```" do
    count = count + 1
    -- They trace for a second what everybody does: somebody must.
    guest.write("/tmp/example.lua", code)
    local load = guest.start {
      "sh", "-c", "while :; do dd if=/dev/zero of=/dev/null bs=1 count=9; sleep 0.1; done",
    }
    local status, out, err = guest.sh(EXAMPLE)
    load.kill(9)
    load.wait()
    guest.equal(0, status, err)
    guest.contains(out, "vfs_read")
  end
  guest.equal(2, count, "examples")
end)

guest.check("funcgraph: what a function calls, with totals", function()
  local example = "/usr/local/share/luatrace/examples/funcgraph.lua"
  local status, out, err = guest.luatrace("-c", copies(23), example, "vfs_read", "--only",
    "rw_verify_area", "--only", "security_file_*", "--only", "fsnotify*")
  guest.equal(0, status, err)
  guest.contains(out, "|  vfs_read", "\nfunction ", " 0 records lost\n")
  local calls = tonumber(out:match("\nvfs_read +(%d+) "))
  guest.truth(calls and calls >= 23, "calls of vfs_read in:\n%s", out)
  -- What is counted are ends of calls, and each has its line: a leaf or the end of a block. A call
  -- that is open at the end of the run has a beginning alone, one from before it an end alone.
  local leaves = select(2, out:gsub("|  +[%w_.]+%(%);\n", ""))
  local blocks = select(2, out:gsub("|  +%}[^\n]*\n", ""))
  guest.equal(tonumber(out:match("\n(%d+) calls of ")), leaves + blocks, "calls in the graph")
  for line in out:gmatch("[^\n]+") do
    guest.truth(#line < 80, "80 columns or more: %s", line)
  end
  status, out, err = guest.luatrace("-f", "json", "-c", copies(23), example, "vfs_read", "--only",
    "vfs_read", "--depth", "1")
  guest.equal(0, status, err)
  guest.contains(out, '"type":"function"', '"name":"vfs_read"')
end)
