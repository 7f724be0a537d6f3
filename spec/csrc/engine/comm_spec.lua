local core = require "tracefs.core"
local decode = require "spec.support.decode"
local helper = require "spec.support.helper"

describe("a command name", function()
  it("is what the kernel prints for the idle task and for those it does not know", function()
    local catalog = core.catalog()
    assert.equal("<idle>", catalog:comm(0))
    assert.equal("<...>", catalog:comm(4711))
    assert.equal("<XXX>", catalog:comm(-1))
  end)

  it("is what was set for the pid, spaces and all, and the last of two", function()
    local catalog = core.catalog()
    for pid = 1, 5000 do
      assert.is_true(catalog:set_comm(pid, pid % 3 == 0 and "tmux: client" or "task-" .. pid))
    end
    catalog:set_comm(7, "renamed")
    assert.equal("task-1", catalog:comm(1))
    assert.equal("tmux: client", catalog:comm(3))
    assert.equal("renamed", catalog:comm(7))
    assert.equal("task-5000", catalog:comm(5000))
    assert.equal("<...>", catalog:comm(5001))
  end)

  it("is in the record and in its line, and does not act on a terminal", function()
    local catalog = core.catalog()
    catalog:set_comm(42, "\27[31mred\n")
    local record = decode.record { catalog = catalog, pid = 42 }
    assert.equal("\27[31mred\n", record.common_comm)
    assert.matches("^       \\x1b%[31mred\\x0a%-42 ", tostring(record))
  end)

  it("refuses what is no pid", function()
    assert.has_error(function() core.catalog():set_comm(-1, "x") end)
    assert.has_error(function() core.catalog():set_comm(1 << 40, "x") end)
    assert.has_error(function() core.catalog():comm(1 << 40) end)
  end)
end)

describe("a live command name", function()
  local function live()
    local catalog = core.catalog()
    assert.is_true(catalog:set_live(assert(core.tracing_dir())))
    return catalog
  end

  it("comes from /proc for a task that the tracer has never seen", function()
    local seen = helper.read_file(core.tracing_dir() .. "/saved_cmdlines")
    if ("\n" .. seen):find(("\n%d "):format(helper.pid), 1, true) then
      -- Or who had the pid before us: pids come round again.
      pending("the tracer has seen this task")
    end
    local own = helper.read_file("/proc/self/comm"):gsub("\n", "")
    assert.equal(own, live():comm(helper.pid))
  end)

  it("comes from saved_cmdlines for a task that has been seen and is gone", function()
    local catalog = live()
    local found = 0
    for line in helper.read_file(core.tracing_dir() .. "/saved_cmdlines"):gmatch("[^\n]+") do
      local pid, name = line:match("^(%d+) (.+)$")
      -- the list goes on while we look: only pids that are gone keep their name
      if pid and not helper.read_file("/proc/" .. pid .. "/comm") then
        found = found + (catalog:comm(math.tointeger(pid)) == name and 1 or 0)
      end
    end
    if found == 0 then
      pending("saved_cmdlines has no task that is gone")
    end
  end)

  it("is kept for a task that has ended since", function()
    local catalog = live()
    local sleeper
    for _ = 1, 100 do
      sleeper = helper.start { "sleep", "30" }
      helper.wait_until(function()
        return helper.read_file(("/proc/%d/comm"):format(sleeper.pid)) == "sleep\n"
      end)
      if live():comm(sleeper.pid) == "sleep" then
        break
      end
      -- The tracer remembers who had the pid before: pids come round again.
      sleeper:kill("KILL")
      sleeper:wait()
    end
    assert.equal("sleep", catalog:comm(sleeper.pid))
    sleeper:kill("KILL")
    sleeper:wait()
    assert.equal("sleep", catalog:comm(sleeper.pid))
  end)

  it("is not known when there is no such task", function()
    assert.equal("<...>", live():comm(4194304))
  end)
end)
