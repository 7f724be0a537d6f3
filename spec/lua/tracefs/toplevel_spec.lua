local core = require "tracefs.core"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local toplevel = require "tracefs.toplevel"

-- Plain files stand for the kernel's: what is tested here is who may change what, and what is put
-- back. spec/vm does it with the kernel's own.
local dir, note_before

local function put(name, text)
  local file <close> = assert(io.open(dir .. "/" .. name, "w"))
  file:write(text)
end

local function get(name)
  local file <close> = assert(io.open(dir .. "/" .. name))
  return file:read "a"
end

before_each(function()
  dir = os.tmpname()
  os.remove(dir)
  assert(os.execute("mkdir -p -m 700 " .. dir .. "/instances"))
  put("set_graph_function", "")
  put("set_graph_notrace", "")
  put("max_graph_depth", "0\n")
  put("current_tracer", "nop\n")
  note_before = toplevel.note
  toplevel.note = dir .. "/note"
end)

after_each(function()
  toplevel.note = note_before
  os.execute("rm -r " .. dir)
end)

describe("tracefs.toplevel", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.toplevel"))
  end)

  it("sets what nobody uses, and puts it back", function()
    assert.is_true(toplevel.check_graph(dir, "mine", ""))
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("set_graph_function", { "vfs_read\n", "vfs_write\n" }))
    assert.is_true(top:set("max_graph_depth", { "3\n" }, "0\n"))
    assert.equal("vfs_read\nvfs_write\n", get("set_graph_function"))
    assert.equal("3\n", get("max_graph_depth"))
    assert.not_equal("", get("note"))
    assert.is_true(top:release())
    assert.is_true(top:release())
    assert.equal("", get("set_graph_function"))
    assert.equal("0\n", get("max_graph_depth"))
    assert.equal("", get("note"))
  end)

  it("is one session's at a time", function()
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("max_graph_depth", { "3\n" }, "0\n"))
    local other, message, errno = toplevel.take(dir, "functions: ")
    assert.is_nil(other)
    assert.matches("^functions: another session %(luatrace, process %d+%) has changed settings",
      message)
    assert.equal(11, errno)
    -- and a session that begins leaves it alone
    toplevel.undo_stale(dir)
    assert.equal("3\n", get("max_graph_depth"))
    top:release()
    assert(toplevel.take(dir, "")):release()
  end)

  it("is refused while somebody else has set something, who is named if it is a session", function()
    put("set_graph_function", "vfs_read\nvfs_write\n")
    local ok, message = toplevel.check_graph(dir, nil, "functions: ")
    assert.is_nil(ok)
    assert.matches("^functions: " .. dir:gsub("%p", "%%%0")
      .. "/set_graph_function is set to vfs_read and 1 more by somebody else, which", message)
    put("set_graph_function", "#### all functions enabled ####\n")
    put("set_graph_notrace", "#### no functions disabled ####\n")
    assert.is_true(toplevel.check_graph(dir, nil, ""))
    put("max_graph_depth", "5\n")
    assert.matches("max_graph_depth is set to 5 by somebody else",
      select(2, toplevel.check_graph(dir, nil, "")))
  end)

  it("is refused while function_graph runs at the top level or in another instance", function()
    put("current_tracer", "function_graph\n")
    assert.matches("^the top level traces with function_graph",
      select(2, toplevel.check_graph(dir, "mine", "")))
    -- who changes nothing disturbs nobody
    assert.is_true(toplevel.check_graph(dir, nil, ""))
    put("current_tracer", "function\n")
    os.execute(("mkdir %s/instances/theirs %s/instances/mine"):format(dir, dir))
    put("instances/mine/current_tracer", "function_graph\n")
    assert.is_true(toplevel.check_graph(dir, "mine", ""))
    put("instances/theirs/current_tracer", "function_graph\n")
    assert.matches("^the instance theirs traces with function_graph",
      select(2, toplevel.check_graph(dir, "mine", "")))
    assert.matches("^the instance theirs traces with function_graph",
      select(2, toplevel.check_graph_user(dir, "mine", "")))
    put("instances/mine/current_tracer", "nop\n")
    assert.is_true(toplevel.check_graph_user(dir, "theirs", ""))
  end)

  it("says which text was refused, and puts back what was set before it", function()
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("set_graph_function", { "vfs_read\n" }))
    os.execute(("cd %s && rm set_graph_notrace && mkdir set_graph_notrace"):format(dir))
    local ok, message, errno, index = top:set("set_graph_notrace", { "x\n" })
    assert.is_nil(ok)
    assert.matches("^cannot open .*/set_graph_notrace: Is a directory", message)
    assert.same({ 21, 1 }, { errno, index })
    top:release()
    assert.equal("", get("set_graph_function"))
  end)

  local function killed(code)
    local status, out = helper.run_lua(([[
      local core = require "tracefs.core"
      local toplevel = require "tracefs.toplevel"
      local dir = %q
      toplevel.note = dir .. "/note"
      local top = assert(toplevel.take(dir, ""))
      %s
      local pid = assert(io.open "/proc/self/stat"):read "n"
      assert(core.spawn("kill -9 " .. pid)):release()
      core.poll({}, 60)
    ]]):format(dir, code))
    assert.equal("", out)
    assert.not_equal(0, status)
  end

  it("is put back by the next session when a process was killed", function()
    killed [[
      assert(top:set("set_graph_function", { "vfs_read\n" }))
      assert(top:set("max_graph_depth", { "3\n" }, "0\n"))
    ]]
    assert.equal("vfs_read\n", get("set_graph_function"))
    toplevel.undo_stale(dir)
    assert.equal("", get("set_graph_function"))
    assert.equal("0\n", get("max_graph_depth"))
    assert.equal("", get("note"))
  end)

  it("is put back also when the kill came before the kernel's answer was noted", function()
    killed [[
      toplevel = nil
      local file = assert(io.open(dir .. "/note", "w"))
      file:write("luatrace top level 1\npid 1\nset_graph_function - ?\nend\nan older note\n")
      file:close()
      file = assert(io.open(dir .. "/set_graph_function", "w"))
      file:write "vfs_read\n"
      file:close()
    ]]
    assert(toplevel.take(dir, "")):release()
    assert.equal("", get("set_graph_function"))
  end)

  it("leaves alone what somebody has set since", function()
    killed [[assert(top:set("set_graph_function", { "vfs_read\n" }))]]
    put("set_graph_function", "vfs_write\n")
    toplevel.undo_stale(dir)
    assert.equal("vfs_write\n", get("set_graph_function"))
    assert.equal("", get("note"))
  end)

  it("does nothing while somebody uses a tracer or events there since", function()
    killed [[
      assert(top:set("set_ftrace_filter", { "vfs_read\n" }))
      assert(top:set("current_tracer", { "function_graph\n" }, "nop"))
    ]]
    for _, use in ipairs { { "current_tracer", "function\n", "nop\n" },
      { "set_event", "sched:sched_switch\n", "" } } do
      put(use[1], use[2])
      toplevel.undo_stale(dir)
      assert.equal("vfs_read\n", get("set_ftrace_filter"))
      local top, message = toplevel.take(dir, "functions: ")
      assert.is_nil(top)
      assert.matches("^functions: the session of process %d+ has left the top level changed, and "
        .. "somebody else uses the tracer or the events of ", message)
      put(use[1], use[3])
    end
    put("current_tracer", "function_graph\n")
    toplevel.undo_stale(dir)
    assert.equal("", get("set_ftrace_filter"))
    assert.same({ "nop\n", "" }, { get("current_tracer"), get("note") })
  end)

  it("puts back what changes by itself, and lists that lost a module's functions", function()
    put("tracing_on", "1\n")
    put("trace", "theirs")
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("tracing_on", { "0" }, "1"))
    assert.is_true(top:set("trace", {}))
    assert.equal("theirs", get("trace"))
    assert.is_true(top:set("set_ftrace_filter", { "vfs_read\nbrd_open [brd]\n" }))
    assert.is_true(top:set("set_graph_function", { "vfs_read\n" }))
    assert.is_true(top:write("tracing_on", "1"))
    assert.is_true(top:write("tracing_on", "0"))
    put("set_ftrace_filter", "vfs_read\n")
    put("set_graph_function", "vfs_write\n")
    top:release()
    assert.same({ "1", "", "", "vfs_write\n" },
      { get("tracing_on"), get("trace"), get("set_ftrace_filter"), get("set_graph_function") })
  end)

  it("leaves all to who uses the top level since the kill came before the tracer", function()
    put("tracing_on", "1\n")
    killed [[
      assert(top:set("tracing_on", { "0" }, "1"))
      assert(top:set("trace", {}))
    ]]
    put("trace", "theirs")
    put("current_tracer", "function\n")
    toplevel.undo_stale(dir)
    assert.same({ "theirs", "0" }, { get("trace"), get("tracing_on") })
    put("current_tracer", "nop\n")
    toplevel.undo_stale(dir)
    assert.same({ "", "1\n" }, { get("trace"), get("tracing_on") })
  end)

  -- As the kernel answers who writes this file.
  local function refusing(file, why, errno, fn)
    local open = io.open
    local stubbed = stub(io, "open")
    stubbed.invokes(function(path, mode)
      if path == dir .. "/" .. file and mode == "w" then
        return nil, path .. ": " .. why, errno
      end
      return open(path, mode)
    end)
    local result = table.pack(pcall(fn))
    stubbed:revert()
    assert(table.unpack(result, 1, 2))
    return table.unpack(result, 2, result.n)
  end

  local function busy_while(fn)
    return refusing("current_tracer", "Device or resource busy", 16, fn)
  end

  it("keeps what restricts the tracer as long as that cannot be ended", function()
    put("tracing_on", "1\n")
    put("trace_clock", "local\n")
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("tracing_on", { "0" }, "1"))
    assert.is_true(top:set("set_ftrace_filter", { "vfs_read\n" }))
    assert.is_true(top:set("current_tracer", { "function_graph\n" }, "nop"))
    assert.is_true(top:set("trace_clock", { "mono\n" }, "local"))
    assert.is_true(top:write("tracing_on", "1"))
    local function settings()
      return { get "tracing_on", get "set_ftrace_filter", get "current_tracer", get "trace_clock" }
    end
    local ok, message = busy_while(function()
      return top:release()
    end)
    assert.is_nil(ok)
    assert.equal(("the top level is not as it was: function_graph cannot be ended there: cannot "
      .. "open %s/current_tracer: Device or resource busy. Somebody has %s/trace_pipe open, or the "
      .. "raw file of a CPU: nothing is recorded any more, and the next session after that puts "
      .. "the rest back"):format(dir, dir), message)
    assert.same({ "0", "vfs_read\n", "function_graph\n", "local" }, settings())
    busy_while(function()
      toplevel.undo_stale(dir)
      local other, why = toplevel.take(dir, "functions: ")
      assert.is_nil(other)
      assert.matches("has left the top level changed, and function_graph cannot be ended", why)
    end)
    assert.same({ "0", "vfs_read\n", "function_graph\n", "local" }, settings())
    toplevel.undo_stale(dir)
    assert.same({ "1\n", "", "nop\n", "local" }, settings())
    assert.equal("", get "note")
  end)

  it("says what the kernel does not take back, and puts back the rest", function()
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("max_graph_depth", { "3\n" }, "0\n"))
    assert.is_true(top:set("current_tracer", { "function_graph\n" }, "nop"))
    local ok, message = refusing("max_graph_depth", "No space left on device", 28, function()
      return top:release()
    end)
    assert.is_nil(ok)
    assert.matches("^the top level is not as it was: cannot open .*/max_graph_depth: No space left",
      message)
    assert.same({ "nop", "" }, { get "current_tracer", get "note" })
  end)

  it("is not switched while somebody else uses it", function()
    put("tracing_on", "1\n")
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("tracing_on", { "0" }, "1"))
    put("current_tracer", "function\n")
    put("tracing_on", "theirs")
    local ok, message = top:write("tracing_on", "0")
    assert.is_nil(ok)
    assert.equal("somebody else has begun to use the tracer or the events of " .. dir, message)
    ok, message = top:release()
    assert.is_nil(ok)
    assert.matches("somebody else uses the tracer or the events of ", message)
    assert.equal("theirs", get "tracing_on")
  end)

  it("believes no note that it has not written", function()
    for _, text in ipairs {
      "x", "luatrace top level 1\n", "luatrace top level 1\npid 1\n../current_tracer - ?\nend\n",
      "luatrace top level 2\npid 1\nset_graph_function - ?\nend\n",
      "luatrace top level 1\npid 1\nset_graph_function - ?\n",
    } do
      put("note", text)
      put("set_graph_function", "vfs_write\n")
      toplevel.undo_stale(dir)
      assert.equal("vfs_write\n", get("set_graph_function"), text)
      assert.equal("nop\n", get("current_tracer"))
    end
  end)

  it("is left alone by a child of the process that took it", function()
    local top = assert(toplevel.take(dir, ""))
    assert.is_true(top:set("max_graph_depth", { "3\n" }, "0\n"))
    local real = top.lease
    top.lease = { is_ours = function() return false end, close = function() end }
    top:release()
    assert.equal("3\n", get("max_graph_depth"))
    top.lease = real
    top:release()
    assert.equal("0\n", get("max_graph_depth"))
  end)

  it("says so when the note cannot be written", function()
    toplevel.note = "/nosuch/folder/note"
    local top, message = toplevel.take(dir, "functions: ")
    assert.is_nil(top)
    assert.equal("functions: what is changed for everybody is noted in /nosuch/folder/note, so that"
      .. " it can be put back: cannot open /nosuch/folder/note: No such file or directory", message)
    assert(core.lease(dir .. "/note")):close()
  end)
end)
