local helper = require "spec.support.helper"
local dkjson = require "dkjson"
local elsewhere = require "spec.support.elsewhere"
local info = require "tracefs.info"
local tracefs = require "tracefs"

describe("tracefs.info", function()
  local found

  setup(function()
    found = info.gather()
  end)

  it("finds what is there", function()
    assert.equal(tracefs.version, found.version)
    assert.equal((helper.read_file("/proc/sys/kernel/osrelease"):gsub("\n", "")), found.kernel)
    local _, cpus = helper.read_file("/proc/cpuinfo"):gsub("processor%s*:", "")
    assert.equal(cpus, found.cpus)
    assert.equal(0, found.uid)
    assert.equal(tracefs.tracing_dir(), found.tracing_dir)
    assert.is_true(found.can_trace)
    assert.is_nil(found.problem)
    assert.equal(#tracefs.events(), found.events)
    local clocks = {}
    for _, clock in ipairs(found.clocks) do
      clocks[clock] = true
    end
    assert.is_true(clocks["local"] and clocks.mono)
    assert.is_true(found.buffer_kb > 0)
  end)

  it("finds features by what the kernel has", function()
    local files = {
      ["kprobe events"] = "kprobe_events",
      ["uprobe events"] = "uprobe_events",
      ["synthetic events"] = "synthetic_events",
      ["snapshot"] = "snapshot",
      ["larger sub-buffers"] = "buffer_subbuf_size_kb",
      ["hist triggers"] = "events/sched/sched_switch/hist",
    }
    local seen = 0
    for _, feature in ipairs(found.features) do
      local file = files[feature.name]
      if file then
        seen = seen + 1
        local there = os.execute(("test -e %s/%s"):format(found.tracing_dir, file)) == true
        assert.equal(there, feature.present, feature.name)
      end
      assert.equal(feature.present, feature.without == nil, feature.name)
    end
    assert.equal(6, seen)
  end)

  it("says it in lines, with what is missing", function()
    local text = info.text(found)
    assert.matches("\ncan trace +yes\n", text)
    assert.matches("\nkernel +" .. found.kernel:gsub("%p", "%%%0"), text)
    for _, feature in ipairs(found.features) do
      local line = text:match("\n" .. feature.name:gsub("%p", "%%%0") .. " +([^\n]+)")
      assert.equal(feature.present and "yes" or "no: " .. feature.without, line)
    end
  end)

  it("says what a machine that cannot trace is like", function()
    local text = info.text { version = "1", cpus = 1, can_trace = false, problem = "not mounted" }
    assert.matches("\ncan trace +no: not mounted", text)
    assert.matches("\ntracefs +not usable\n", text)
    assert.matches("\nlockdown +not in this kernel\n", text)
  end)

  it("is what luatrace --info shows", function()
    local status, out, err = helper.run { "--info" }
    assert.same({ 0, info.text(found) .. "\n", "" }, { status, out, err })
    status, out = helper.run { "--info", "-f", "json" }
    assert.equal(0, status)
    local value = assert(dkjson.decode(out))
    assert.is_true(value.can_trace)
    assert.equal(found.events, value.events)
    assert.same(found.clocks, value.clocks)
  end)

  it("exits with 1 for a user who cannot trace, and says why", function()
    local status, out, err = elsewhere.run({ user = 65534 }, [[
      os.exit(require("tracefs.info").run { format = "text" }, true)
    ]])
    assert.equal("", err)
    assert.equal(1, status)
    assert.matches("\nuser id +65534\n", out)
    assert.matches("\ncan trace +no: [^\n]*permission denied", out)
    assert.matches("Run as root", out, 1, true)
  end)
end)
