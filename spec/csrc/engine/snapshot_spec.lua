local core = require "tracefs.core"
local tracefs = require "tracefs"

local ENOENT = 2

-- What snapshots hold is looked at in spec/vm/checks/settings.lua, on kernels that have them.
describe("the snapshot of an instance", function()
  local instance

  before_each(function()
    instance = assert(core.instance_create(assert(core.tracing_dir())))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  it("is refused with what the kernel lacks where there are none", function()
    if instance:has("snapshot") then
      pending("this kernel takes snapshots")
      return
    end
    for _, call in ipairs { "snapshot_take", "snapshot_clear", "snapshot_free", "has_snapshot" } do
      local done, message, errno = instance[call](instance)
      assert.is_nil(done)
      assert.equal(ENOENT, errno)
      assert.equal(("this kernel takes no snapshots: %s/snapshot needs CONFIG_TRACER_SNAPSHOT")
        :format(instance:dir()), message)
    end
    local ok, message = pcall(tracefs.snapshot_events, instance)
    assert.is_false(ok)
    assert.matches("this kernel takes no snapshots", message)
  end)

  it("has memory when it was taken, and none when that was given back", function()
    if not instance:has("snapshot") then
      pending("this kernel takes no snapshots")
      return
    end
    assert.is_false(instance:has_snapshot())
    assert(instance:snapshot_take())
    assert.is_true(instance:has_snapshot())
    assert(instance:snapshot_clear())
    assert(instance:snapshot_free())
    assert.is_false(instance:has_snapshot())
  end)

  it("is not taken from under a session", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    local done, message = session.instance:snapshot_take()
    assert.is_nil(done)
    assert.matches("cannot take a snapshot of instance .* a session is reading it", message)
  end)

  it("of a CPU needs a CPU's number", function()
    for _, call in ipairs { "snapshot_take", "snapshot_clear" } do
      assert.error_matches(function()
        instance[call](instance, -1)
      end, "a CPU's number expected")
    end
  end)
end)
