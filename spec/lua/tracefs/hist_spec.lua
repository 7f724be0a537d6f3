local globals = require "spec.support.globals"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

describe("tracefs.hist", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.hist"))
  end)

  it("knows whether the kernel has histograms", function()
    local instance <close> = assert(tracefs.instance_create())
    assert.equal(instance:has("events/sched/sched_switch/hist"), hist.supported(instance))
  end)

  it("refuses what is no event, or more than one", function()
    local instance <close> = assert(tracefs.instance_create())
    local function refused(label, options)
      local ok, message = pcall(hist.add, { instance = instance }, label, options or { keys = "x" })
      assert.is_false(ok)
      return message
    end
    assert.matches('an event is a string such as "sched:sched_switch", not nil', refused(nil))
    assert.matches("Did you mean sched:sched_switch", refused("sched:sched_swich"))
    assert.matches("'sched:sched_wak%*' means %d+ events; a histogram is of one",
      refused("sched:sched_wak*"))
    assert.matches("one of the tracer's own events", refused("ftrace:print"))
    assert.same({}, (instance:triggers("sched", "sched_switch")))
  end)

  it("says that the kernel has none, and what to do", function()
    local instance <close> = assert(tracefs.instance_create())
    if hist.supported(instance) then
      pending("this kernel has hist triggers")
      return
    end
    local ok, message = pcall(hist.add, { instance = instance }, "sched:sched_switch",
      { keys = "prev_pid" })
    assert.is_false(ok)
    assert.matches("^hist: this kernel has no histograms for sched:sched_switch: /.*/events/sched/"
      .. "sched_switch/hist is not there %(the kernel was built without CONFIG_HIST_TRIGGERS%); "
      .. "count in Lua, with on%(%)$", message)
  end)
end)
