local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT, ENOMEM = 2, 12

-- What is said of all CPUs together is in settings_spec.lua.
describe("the buffer of one CPU", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  it("has a size of its own, and all have a sum", function()
    assert(instance:set_buffer_kb(64))
    local others = instance:get_buffer_kb(0)
    local size = assert(instance:set_buffer_kb(512, 0))
    assert.is_true(size >= 512 and size < 600)
    assert.equal(size, instance:get_buffer_kb(0))
    assert.equal(tonumber(helper.read_file(instance:dir() .. "/per_cpu/cpu0/buffer_size_kb")), size)
    local sum = 0
    for cpu in pairs(instance:stats()) do
      assert.equal(cpu == 0 and size or others, instance:get_buffer_kb(cpu))
      sum = sum + instance:get_buffer_kb(cpu)
    end
    assert.equal(sum, instance:get_buffer_total_kb())
    assert.equal(size, instance:get_buffer_kb())
  end)

  it("is refused when there is no memory for it, and the old one stays", function()
    local old = assert(instance:set_buffer_kb(64, 0))
    local size, message, errno = instance:set_buffer_kb(40000000000, 0)
    assert.is_nil(size)
    assert.equal(ENOMEM, errno)
    assert.equal(("cannot set the buffer of CPU 0 to 40000000000 KiB (%s/per_cpu/cpu0/"
      .. "buffer_size_kb): there is no memory for it. It stays at %d KiB; ask for less"):format(
      instance:dir(), old), message)
    assert.equal(old, instance:get_buffer_kb(0))
  end)

  it("is refused when there is no such CPU", function()
    for _, call in ipairs {
      function() return instance:get_buffer_kb(4000) end,
      function() return instance:set_buffer_kb(64, 4000) end,
    } do
      local size, message, errno = call()
      assert.is_nil(size)
      assert.equal(ENOENT, errno)
      assert.matches("no CPU 4000 here: ", message, 1, true)
    end
    assert.error_matches(function()
      instance:get_buffer_kb(-1)
    end, "a CPU's number expected")
  end)
end)
