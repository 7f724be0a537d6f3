-- function_graph where only the top level has it, and what is put back there: somebody may use it.
local graphs = require "graphs"
local guest = require "harness"
local core = require "tracefs.core"
local toplevel = require "tracefs.toplevel"
local tracefs = require "tracefs"

local need_instance = graphs.need_instance
local need_top = graphs.need_top
local graph_settings = graphs.settings
local copies = graphs.copies
local run = graphs.run
local tell = graphs.tell
local refused = graphs.refused
local IN_INSTANCE <const> = graphs.IN_INSTANCE

-- A run with this setup that is killed while it traces; before that, `look` is called.
local function killed_while_on(setup, look)
  local traced = guest.start { "luatrace", "-e",
    setup .. ' at_start(function() io.stderr:write("on\\n") end)' }
  guest.wait_until(function()
    return traced.err():find("on\n", 1, true)
  end, "the start")
  if look then
    look()
  end
  traced.kill(9)
  traced.wait()
end

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
      if pid ~= graphs.teller or (not inside[pid] and expected ~= "enter") then
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
