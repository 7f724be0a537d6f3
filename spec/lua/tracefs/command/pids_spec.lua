local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local loads = require "spec.support.loads"
local core = require "tracefs.core"
local pids = require "tracefs.command.pids"
local tracefs = require "tracefs"

describe("pids.restrict", function()
  local instance

  before_each(function()
    instance = assert(tracefs.instance_create())
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function traced()
    local set = {}
    for pid in assert(instance:read("set_event_pid")):gmatch("%d+") do
      set[tonumber(pid)] = true
    end
    return set
  end

  it("puts processes, their threads and descendants into the filter", function()
    local process <close> = assert(core.spawn("sleep 1000 & sleep 1001; true"))
    process:release()
    local children = helper.wait_until(function()
      local list = core.descendants(process:pid())
      return #list == 2 and list
    end)
    local count = #loads.cpus() + 1
    local threads = helper.start {
      helper.program("support/load"), "--cpu", "all", "--rate", "100", "syscalls", "10000",
    }
    local tids = helper.wait_until(function()
      local list = core.threads(threads.pid)
      return list and #list == count and list
    end)

    local watched = pids.restrict(instance, { process:pid(), threads.pid })
    local expected = { [process:pid()] = true }
    for _, list in ipairs { children, tids } do
      for _, pid in ipairs(list) do
        expected[pid] = true
      end
    end
    assert.same(expected, traced())
    assert.is_true(instance:get_option("event-fork"))
    assert.equal(2, #watched)
    for i, pid in ipairs { process:pid(), threads.pid } do
      assert.equal(pid, watched[i]:pid())
      assert.is_nil(watched[i]:wait())
      watched[i]:close()
    end
    threads:kill("TERM")
    threads:wait()
  end)

  it("refuses a process that is not there, and leaves the filter empty", function()
    local ok, message = pcall(pids.restrict, instance, { helper.pid, 2147483647 })
    assert.is_false(ok)
    assert.equal("there is no process 2147483647", message)
    assert.same({}, traced())
    collectgarbage()
  end)

  it("refuses inside a pid namespace, where the kernel's numbers are others", function()
    local status, out, err = elsewhere.run({ pids = true }, [[
      local pids = require "tracefs.command.pids"
      print(require("tracefs.core").in_pid_namespace(), pcall(pids.restrict, nil, { 1 }))
    ]])
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("^true\tfalse\t%-p 1: luatrace is in a pid namespace of its own", out)
    assert.matches("Run it on the host", out, 1, true)
  end)
end)
