local helper = require "spec.support.helper"
local core = require "tracefs.core"

local EINVAL = 22

describe("the CPUs that record", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function all()
    local cpus = {}
    for cpu in pairs(instance:stats()) do
      cpus[#cpus + 1] = cpu
    end
    table.sort(cpus)
    return cpus
  end

  it("are all at first, each alone, and all again", function()
    local cpus = all()
    assert.same(cpus, instance:get_cpus())
    for _, cpu in ipairs(cpus) do
      assert.is_true(instance:set_cpus { cpu })
      assert.same({ cpu }, instance:get_cpus())
      local mask = 0
      for digits in helper.read_file(instance:dir() .. "/tracing_cpumask"):gmatch("%x+") do
        mask = mask << 32 | tonumber(digits, 16)
      end
      assert.equal(1 << cpu, mask)
    end
    assert.is_true(instance:set_cpus())
    assert.same(cpus, instance:get_cpus())
    assert.is_true(instance:set_cpus(cpus))
    assert.same(cpus, instance:get_cpus())
  end)

  it("are the only ones whose events are there", function()
    local cpu = all()[1]
    assert(instance:set_cpus { cpu })
    assert(instance:enable("raw_syscalls", "sys_enter"))
    assert(instance:trace_on())
    for _ = 1, 3 do
      for _, other in ipairs(all()) do
        os.execute(("taskset -c %d true"):format(other))
      end
    end
    assert(instance:trace_off())
    for number, stats in pairs(instance:stats()) do
      assert.equal(number == cpu, stats.entries > 0, "CPU " .. number)
    end
  end)

  it("are refused by number when they are not there", function()
    local cpus = all()
    local done, message, errno = instance:set_cpus { cpus[1], 4000 }
    assert.is_nil(done)
    assert.equal(EINVAL, errno)
    assert.equal(("no CPU 4000 in %s/per_cpu. There are: %s"):format(instance:dir(),
      table.concat(cpus, ", ")), message)
    assert.same(cpus, instance:get_cpus())
    assert.error_matches(function()
      instance:set_cpus {}
    end, "one CPU at least expected")
    assert.error_matches(function()
      instance:set_cpus { -1 }
    end, "bad CPU at 1 of the list: an integer from 0 on expected")
  end)
end)
