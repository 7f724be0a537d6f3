local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local topgraph = require "tracefs.topgraph"
local toplevel = require "tracefs.toplevel"

-- Plain files stand for the top level's: spec/vm does it with the kernel's own.
local dir, note_before

local FILES <const> = {
  tracing_on = "1\n", current_tracer = "nop\n", set_event = "", set_ftrace_pid = "no pid\n",
  set_ftrace_notrace_pid = "no pid\n", set_ftrace_filter = "#### all functions enabled ####\n",
  set_ftrace_notrace = "#### no functions disabled ####\n",
  set_graph_function = "#### all functions enabled ####\n",
  set_graph_notrace = "#### no functions disabled ####\n", max_graph_depth = "0\n",
  function_profile_enabled = "0\n", trace = "",
  trace_clock = "[local] global mono\n", tracing_cpumask = "3\n",
  buffer_size_kb = "7 (expanded: 1408)\n", buffer_percent = "50\n",
  ["options/overwrite"] = "1\n", ["options/function-fork"] = "0\n",
  ["options/funcgraph-retval"] = "0\n", ["per_cpu/cpu0/stats"] = "entries: 0\n",
  ["per_cpu/cpu1/stats"] = "entries: 0\n",
  ["events/sched/a/trigger"] = "# Available triggers:\n",
  ["events/sched/b/trigger"] = "traceoff:count=1 if x % 2\n",
  snapshot = "# tracer: nop\n#\n#\n# * Snapshot is freed *\n#\n",
  ["options/funcgraph-irqs"] = "1\n", ["options/sleep-time"] = "0\n",
  ["events/ftrace/funcgraph_entry/format"] = "name: funcgraph_entry\nID: 11\nformat:\n",
  ["events/ftrace/funcgraph_exit/format"] = "name: funcgraph_exit\nID: 10\nformat:\n",
}

local function put(name, text)
  helper.write_file(dir .. "/" .. name, text)
end

local function get(name)
  return helper.read_file(dir .. "/" .. name)
end

before_each(function()
  dir = helper.tmpdir()
  assert(os.execute(("chmod 700 %s && cd %s && mkdir -p options per_cpu/cpu0 per_cpu/cpu1 "
    .. "events/sched/a events/sched/b events/ftrace/funcgraph_entry "
    .. "events/ftrace/funcgraph_exit"):format(dir, dir)))
  for name, text in pairs(FILES) do
    put(name, text)
  end
  note_before = toplevel.note
  toplevel.note = dir .. "/note"
end)

after_each(function()
  toplevel.note = note_before
end)

-- An instance that only has files.
local function instance_of(files)
  return {
    has = function(_, name) return files[name] ~= nil end,
    read = function(_, name) return files[name] end,
  }
end

local function stream_of(answer, message)
  local stream = {}
  function stream:add_top(ids)
    self.ids = ids
    return answer, message
  end
  return stream
end

describe("tracefs.topgraph", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.topgraph"))
  end)

  it("takes the top level with its recording off, as nobody uses it", function()
    assert.is_true(topgraph.check(dir, { 0, 1 }))
    local top = topgraph.take(dir, { 0, 1 })
    assert.equal("0", get "tracing_on")
    assert.is_false(pcall(topgraph.take, dir, { 0, 1 }))
    top:release()
    assert.equal("1", get "tracing_on")
  end)

  for file, case in pairs {
    current_tracer = { "blk\n", "current_tracer is blk", "echo nop > " },
    set_event = { "a:b\nc:d\ne:f\n", "its events are on: a:b and 2 more", "echo > " },
    set_ftrace_filter = { "vfs_read\n", "set_ftrace_filter is set to vfs_read", "echo > " },
    set_ftrace_notrace = { "a\nb\n", "set_ftrace_notrace is set to a and 1 more", "echo > " },
    set_graph_function = { "a\n", "set_graph_function is set to a", "echo > " },
    set_graph_notrace = { "a\n", "set_graph_notrace is set to a", "echo > " },
    set_ftrace_pid = { "17\n", "set_ftrace_pid is set to 17", "echo > " },
    set_ftrace_notrace_pid = { "17\n", "set_ftrace_notrace_pid is set to 17", "echo > " },
    max_graph_depth = { "3\n", "max_graph_depth is 3", "echo 0 > " },
    function_profile_enabled = { "1\n", "function_profile_enabled is 1", "echo 0 > " },
    ["per_cpu/cpu1/stats"] = { "entries: 23\noverrun: 5\n", "its buffer holds 23 records",
      "to clear it: echo > " },
    snapshot = { "# tracer: nop\n#\n#\n# * Snapshot is allocated *\n#\n", "it has a snapshot",
      "echo 0 > " },
  } do
    it("is refused by who uses it: " .. file, function()
      put(file, case[1])
      local ok, message = pcall(topgraph.take, dir, { 0, 1 })
      assert.is_false(ok)
      assert.equal(("functions: this kernel has function_graph at the top level only, and somebody "
        .. "uses that: %s. End that first: %s%s/%s"):format(case[2], case[3], dir,
        file:find "stats" and "trace" or file), message)
      assert.equal(case[1], get(file))
      assert.equal("1\n", get "tracing_on")
    end)
  end

  it("is refused by a trigger, which has its event on", function()
    put("set_event", "sched:a\nsched:b\n")
    local ok, message = topgraph.check(dir, { 0, 1 })
    assert.is_nil(ok)
    assert.equal(("functions: this kernel has function_graph at the top level only, and somebody "
      .. "uses that: sched:b has the trigger traceoff:count=1 if x %% 2. End that first: write it "
      .. "with a ! before it to %s/events/sched/b/trigger"):format(dir), message)
  end)

  it("records the tasks of the instance, and what they start", function()
    local top = topgraph.take(dir, { 0, 1 })
    topgraph.set_tasks(top, instance_of {
      ["options/function-fork"] = "1\n", set_ftrace_pid = "12\n34\n",
      set_ftrace_notrace_pid = "5\n",
    })
    assert.same({ "1\n", "12 34\n", "5\n" }, {
      get "options/function-fork", get "set_ftrace_pid", get "set_ftrace_notrace_pid",
    })
    -- who forks changes the list
    put("set_ftrace_pid", "12\n34\n56\n")
    top:release()
    assert.same({ "0", "", "" }, {
      get "options/function-fork", get "set_ftrace_pid", get "set_ftrace_notrace_pid",
    })
  end)

  it("turns options on that are there", function()
    local top = topgraph.take(dir, { 0 })
    assert.is_true(topgraph.set_option(top, "funcgraph-retval"))
    assert.equal("1\n", get "options/funcgraph-retval")
    assert.is_false(topgraph.set_option(top, "funcgraph-args"))
    top:release()
    assert.equal("0", get "options/funcgraph-retval")
  end)

  it("makes the buffer as the instance's is, and puts all back", function()
    local top, stream = topgraph.take(dir, { 0, 1 }), stream_of(true)
    topgraph.start(top, instance_of {
      trace_clock = "local global [mono]\n", tracing_cpumask = "3\n", buffer_size_kb = "4096\n",
      ["options/overwrite"] = "0\n", buffer_percent = "25\n", buffer_subbuf_size_kb = "64\n",
    }, stream)
    assert.same({ 11, 10 }, stream.ids)
    assert.same({ "function_graph\n", "mono\n", "3\n", "4096\n", "0\n", "25\n" }, {
      get "current_tracer", get "trace_clock", get "tracing_cpumask", get "buffer_size_kb",
      get "options/overwrite", get "buffer_percent",
    })
    assert.is_true(top.is_traced)
    -- nothing that was called is left out
    assert.same({ "1\n", "1\n" }, { get "options/funcgraph-irqs", get "options/sleep-time" })
    assert.is_true(top:write("tracing_on", "1"))
    assert.equal("1", get "tracing_on")
    put("trace", "what was recorded")
    top:release()
    assert.same({ "1\n", "0" }, { get "options/funcgraph-irqs", get "options/sleep-time" })
    assert.same({ "nop", "local", "3\n", "1408", "1", "50", "", "1" }, {
      get "current_tracer", get "trace_clock", get "tracing_cpumask", get "buffer_size_kb",
      get "options/overwrite", get "buffer_percent", get "trace", get "tracing_on",
    })
  end)

  it("leaves sizes that differ by CPU alone", function()
    put("buffer_size_kb", "X\n")
    local top = topgraph.take(dir, { 0, 1 })
    topgraph.start(top, instance_of { buffer_size_kb = "4096\n" }, stream_of(true))
    assert.equal("X\n", get "buffer_size_kb")
    top:release()
    assert.equal("X\n", get "buffer_size_kb")
  end)

  it("raises what the stream says, and all is put back", function()
    local top = topgraph.take(dir, { 0, 1 })
    local ok, message = pcall(topgraph.start, top, instance_of {}, stream_of(nil, "not to be read"))
    assert.is_false(ok)
    assert.equal("not to be read", message)
    top:release()
    assert.same({ "nop", "1" }, { get "current_tracer", get "tracing_on" })
  end)
end)
