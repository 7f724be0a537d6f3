local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local features = require "tracefs.features"
local tracefs = require "tracefs"

describe("tracefs.features", function()
  it("requires without touching globals", function()
    local status, _, err = helper.run_lua [[
      setmetatable(_G, { __newindex = function(_, name) error("global " .. name) end })
      require "tracefs.features"
    ]]
    assert.same({ 0, "" }, { status, err })
  end)

  it("says yes, or no and what is missing, for each name", function()
    local has, missing = tracefs.features()
    local count = 0
    for name, present in pairs(has) do
      count = count + 1
      assert.equal("boolean", type(present), name)
      assert.equal(not present, type(missing[name]) == "string", name)
    end
    assert.is_true(count >= 35)
    for name in pairs(missing) do
      assert.is_false(has[name])
    end
  end)

  it("is what the kernel has", function()
    local has = tracefs.features()
    local dir = tracefs.tracing_dir()
    local function there(path)
      return os.execute(("test -e %s/%s"):format(dir, path)) == true
    end
    assert.equal(there "kprobe_events", has.kprobe)
    assert.equal(there "uprobe_events", has.uprobe)
    assert.equal(there "synthetic_events", has.synthetic)
    assert.equal(there "snapshot", has.snapshot)
    assert.equal(there "events/sched/sched_switch/hist", has.hist)
    assert.equal(there "buffer_subbuf_size_kb", has.subbuf)
    local tracers = helper.read_file(dir .. "/available_tracers")
    assert.equal(tracers:find("function_graph", 1, true) ~= nil, has.graph_tracer)
    assert.is_true(has.trigger_traceoff)
    assert.is_true(has.event_pid)
  end)

  it("raises for a name that there is not, with those that there are", function()
    local has = tracefs.features()
    local ok, message = pcall(function()
      return has.nosuch
    end)
    assert.is_false(ok)
    assert.matches("no feature 'nosuch'; there are: kprobe, uprobe, ", message, 1, true)
    assert.truthy(message:find("features_spec.lua:", 1, true), message)
  end)

  it("leaves nothing behind, and makes no dynamic event", function()
    local before = helper.snapshot()
    features.list(tracefs.tracing_dir())
    assert.same({}, helper.leftovers(before))
    local events = helper.read_file(tracefs.tracing_dir() .. "/dynamic_events") or ""
    assert.falsy(events:find("luatrace_look", 1, true))
  end)

  it("of a user without rights: the permission is what is missing", function()
    local status, out, err = elsewhere.run({ user = 65534 }, [[
      local has, missing = require("tracefs").features()
      print(has.event_pid, has.kprobe, has.cpumask)
      print(missing.event_pid)
    ]])
    assert.same({ 0, "" }, { status, err })
    assert.matches("^false\tfalse\tfalse\n", out)
    assert.matches("permission denied.*Run as root", out)
  end)

  it("where tracefs is not mounted: the mount is what is missing", function()
    local status, out, err = elsewhere.run({ mounts = [[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
    ]] }, [[
      local has, missing = require("tracefs").features()
      print(has.event_pid, has.hist)
      print(missing.hist)
    ]])
    assert.same({ 0, "" }, { status, err })
    assert.matches("^false\tfalse\ntracefs is not mounted", out)
  end)
end)
