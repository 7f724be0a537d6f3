local helper = require "spec.support.helper"
local tracefs = require "tracefs"

-- The records themselves: spec/vm/checks/settings.lua, on kernels that take snapshots.
describe("tracefs.snapshot", function()
  it("requires without touching globals", function()
    local status, _, err = helper.run_lua [[
      setmetatable(_G, { __newindex = function(_, name) error("global " .. name) end })
      require "tracefs.snapshot"
    ]]
    assert.same({ 0, "" }, { status, err })
  end)

  it("wants an instance and knows its options", function()
    assert.error_matches(function()
      tracefs.snapshot_events("name")
    end, "snapshot_events%(instance, options%): an instance is needed, not string")
    local instance <close> = assert(tracefs.instance_create())
    assert.error_matches(function()
      tracefs.snapshot_events(instance, { lost = print })
    end, "snapshot_events: unknown option 'lost'; there is: on_lost")
  end)

  it("raises where there are none, at its caller", function()
    local instance <close> = assert(tracefs.instance_create())
    if instance:has("snapshot") then
      pending("this kernel takes snapshots")
      return
    end
    assert.error_matches(function()
      tracefs.snapshot_events(instance)
    end, "this kernel takes no snapshots: .*CONFIG_TRACER_SNAPSHOT")
  end)
end)
