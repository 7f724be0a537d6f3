local helper = require "spec.support.helper"
local core = require "tracefs.core"

local EPERM, ENOENT, EACCES = 1, 2, 13

describe("the tasks of an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  for list, fork in pairs {
    event = "event-fork", event_notrace = "event-fork", ["function"] = "function-fork",
    function_notrace = "function-fork",
  } do
    local set, get = ("set_%s_pids"):format(list), ("get_%s_pids"):format(list)

    it(("for %s are set, replaced, read back, and cleared"):format(list), function()
      local pids, message, errno = instance[get](instance)
      if not pids then
        assert.is_true(errno == ENOENT or errno == EPERM or errno == EACCES, message)
        assert.matches("set_ftrace", message)
        pending(message)
        return
      end
      assert.same({}, pids)
      assert.is_true(instance[set](instance, { helper.pid, 2, 1 }))
      assert.same({ 1, 2, helper.pid }, instance[get](instance))
      assert.is_true(instance[set](instance, { 1 }))
      assert.same({ 1 }, instance[get](instance))
      assert.is_true(instance[set](instance, {}))
      assert.same({}, instance[get](instance))
    end)

    it(("for %s follow their children or not"):format(list), function()
      local value, message = instance[get](instance)
      if not value then
        pending(message)
        return
      end
      assert(instance[set](instance, { 1 }, true))
      assert.is_true(instance:get_option(fork))
      assert(instance[set](instance, { 1 }))
      assert.is_true(instance:get_option(fork))
      assert(instance[set](instance, { 1 }, false))
      assert.is_false(instance:get_option(fork))
    end)

    it(("for %s are pids"):format(list), function()
      for _, bad in ipairs { { 0 }, { 1, "x" }, { 1.5 }, { 1 << 40 } } do
        assert.error_matches(function()
          instance[set](instance, bad)
        end, "bad pid at %d of the list: an integer from 1 on expected")
      end
    end)
  end

  local function seen()
    local own, others = 0, 0
    for pid in instance:read("trace"):gmatch("%-(%d+) +%[") do
      if tonumber(pid) == helper.pid then
        own = own + 1
      else
        others = others + 1
      end
    end
    return own, others
  end

  it("are those whose events are recorded, and no others", function()
    assert(instance:enable("raw_syscalls", "sys_enter"))
    assert(instance:set_event_pids { helper.pid })
    assert(instance:trace_on())
    os.execute("true")
    assert(instance:trace_off())
    local own, others = seen()
    assert.is_true(own > 0)
    assert.equal(0, others)
  end)

  it("may take what they start with them", function()
    assert(instance:enable("raw_syscalls", "sys_enter"))
    assert(instance:set_event_pids({ helper.pid }, true))
    assert(instance:trace_on())
    os.execute("true")
    assert(instance:trace_off())
    local own, others = seen()
    assert.is_true(own > 0)
    assert.is_true(others > 0)
  end)

  it("that are left out are, and others are not", function()
    assert(instance:enable("raw_syscalls", "sys_enter"))
    assert(instance:set_event_notrace_pids { helper.pid })
    assert(instance:trace_on())
    os.execute("true")
    assert(instance:trace_off())
    local own, others = seen()
    assert.equal(0, own)
    assert.is_true(others > 0)
  end)
end)
