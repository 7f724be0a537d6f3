local helper = require "spec.support.helper"
local core = require "tracefs.core"

describe("the statistics of an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function total(field)
    local sum = 0
    for _, cpu in pairs(assert(instance:stats())) do
      sum = sum + cpu[field]
    end
    return sum
  end

  local function markers(count)
    local taken = 0
    assert(instance:trace_on())
    for i = 1, count do
      taken = taken + (instance:marker(("marker %06d"):format(i)) and 1 or 0)
    end
    assert(instance:trace_off())
    return taken
  end

  it("have every CPU that has a buffer, and nothing at first", function()
    local cpus = {}
    for cpu in helper.read_file("/proc/stat"):gmatch("cpu(%d+)") do
      cpus[tonumber(cpu)] = {
        entries = 0, overrun = 0, commit_overrun = 0, bytes = 0, dropped = 0, read = 0,
      }
    end
    local stats = instance:stats()
    for cpu in pairs(cpus) do
      assert.same(cpus[cpu], stats[cpu])
    end
  end)

  it("count what is there and what was read", function()
    assert.equal(23, markers(23))
    assert.equal(23, total("entries"))
    assert.is_true(total("bytes") >= 23 * #"marker 000000")
    assert.equal(0, total("read"))
    instance:read("trace_pipe")
    assert.equal(0, total("entries"))
    assert.equal(23, total("read"))
  end)

  it("count what was written over", function()
    assert(instance:set_buffer_kb(16))
    assert.equal(10007, markers(10007))
    assert.is_true(total("overrun") > 5000)
    assert.equal(10007, total("entries") + total("overrun"))
    assert.equal(0, total("dropped"))
  end)

  it("count what did not fit", function()
    assert(instance:set_buffer_kb(16))
    assert(instance:set_option("overwrite", false))
    local taken = markers(10007)
    assert.is_true(total("dropped") > 5000)
    assert.equal(taken, total("entries"))
    assert.equal(10007, total("entries") + total("dropped"))
    assert.equal(0, total("overrun"))
  end)

  for _, clock in ipairs { "counter", "uptime", "x86-tsc", "boot" } do
    it("are read with the clock " .. clock, function()
      local set, message = instance:set_clock(clock)
      if not set then
        pending(message)
        return
      end
      assert.equal(23, markers(23))
      assert.equal(23, total("entries"))
      assert.equal(0, total("overrun"))
    end)
  end
end)
