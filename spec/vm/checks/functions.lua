-- The function tracers: what is recorded is what was asked for, exactly, and nothing is left.
local graphs = require "graphs"
local guest = require "harness"
local core = require "tracefs.core"
local tracefs = require "tracefs"

local need_instance = graphs.need_instance
local graph_text = graphs.text
local graph_settings = graphs.settings
local copies = graphs.copies
local run = graphs.run
local tell = graphs.tell
local refused = graphs.refused
local IN_INSTANCE <const> = graphs.IN_INSTANCE

-- Tracing all functions takes an emulated CPU many seconds: these are enough.
local SOME <const> = {
  "vfs_*", "ksys_*", "rw_verify_area", "security_file_*", "fsnotify*", "mutex_*", "*seq_*",
  "check_*", "__check_*",
}

local function some(options)
  return table.move(SOME, 1, #SOME, 1, options)
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
    calls = calls + (pid == graphs.teller and 1 or 0)
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
