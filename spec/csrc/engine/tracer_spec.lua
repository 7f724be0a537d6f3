local helper = require "spec.support.helper"
local core = require "tracefs.core"

local EBUSY, EINVAL = 16, 22

describe("the tracer of an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function contains(text, ...)
    for _, part in ipairs { ... } do
      assert.truthy(text:find(part, 1, true), ("%q is not in %q"):format(part, text))
    end
  end

  it("is none at first, and one of those that there are", function()
    assert.equal("nop", instance:get_tracer())
    local names = instance:tracers()
    assert.equal((helper.read_file(instance:dir() .. "/available_tracers"):gsub("%s+$", "")),
      table.concat(names, " "))
    assert.is_true(instance:set_tracer("nop"))
    assert.equal("nop", instance:get_tracer())
  end)

  it("that is not there is refused, with those that are", function()
    for _, name in ipairs { "nopp", "", "nosuch" } do
      local done, message, errno = instance:set_tracer(name)
      assert.is_nil(done)
      assert.equal(EINVAL, errno)
      contains(message, ("no tracer %q in this kernel (%s/current_tracer)."):format(
        name, instance:dir()), "It has: " .. table.concat(instance:tracers(), " "))
      assert.equal(name == "nopp", message:find("Did you mean nop?", 1, true) ~= nil)
    end
    assert.equal("nop", instance:get_tracer())
  end)

  it("that only the top level has is refused as such", function()
    local own = {}
    for _, name in ipairs(instance:tracers()) do
      own[name] = true
    end
    for name in helper.read_file(dir .. "/available_tracers"):gmatch("%S+") do
      if not own[name] then
        local done, message = instance:set_tracer(name)
        assert.is_nil(done)
        contains(message, ("no tracer %q in an instance"):format(name),
          "this kernel has it at the top level only")
        return
      end
    end
    pending("all tracers of this kernel can be had in instances")
  end)

  it("stays while a session reads the instance", function()
    local tracefs = require "tracefs"
    local session <close> = tracefs.session { buffer_kb = 64 }
    local other
    for _, name in ipairs(session.instance:tracers()) do
      other = name ~= "nop" and name or other
    end
    if not other then
      pending("this kernel has no tracer but nop in instances")
      return
    end
    local done, message, errno = session.instance:set_tracer(other)
    assert.is_nil(done)
    assert.equal(EBUSY, errno)
    contains(message, "the buffer is being read", "Set it before")
  end)
end)
