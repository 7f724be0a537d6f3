local core = require "tracefs.core"
local helper = require "spec.support.helper"

describe("core.clock_info", function()
  it("knows the kernel's clocks", function()
    local known = {
      ["local"] = { true, false }, global = { true, false }, perf = { true, false },
      counter = { false, false }, uptime = { false, false }, ["x86-tsc"] = { false, false },
      mono = { true, true }, mono_raw = { true, true }, boot = { true, true }, tai = { true, true },
      ["ppc-tb"] = { false, false }, [""] = { false, false },
    }
    for name, expected in pairs(known) do
      assert.same(expected, { core.clock_info(name) }, name)
    end
    assert.has_error(function()
      core.clock_info()
    end)
    assert.has_error(function()
      core.clock_info({})
    end)
  end)

  it("agrees with core.now", function()
    for _, name in ipairs({ "local", "mono", "mono_raw", "boot", "tai", "perf", "nosuch" }) do
      local _, readable = core.clock_info(name)
      assert.equal(readable, core.now(name) ~= nil)
    end
  end)
end)

describe("a process in a time namespace", function()
  it("reads what the kernel does, and gets its records in order and at once", function()
    local script = helper.tmpdir() .. "/script.lua"
    helper.write_file(script, [[
      local tracefs = require "tracefs"
      for _, clock in ipairs { "mono", "boot", "mono_raw" } do
        local session <close> = tracefs.session { clock = clock }
        local seen
        session:on("ftrace:print", { "common_timestamp" }, function(ts)
          seen = ts
          session:stop()
        end)
        local ticks = 0
        session:every(0.01, function(ts)
          assert(math.abs(ts - tracefs.now(clock)) < 10000000000)
          ticks = ticks + 1
        end)
        session:at_start(function() session:marker("a") end)
        local before = tracefs.now(clock)
        session:run { duration = 10 }
        assert(seen, "no record has come")
        assert(seen >= before and seen <= tracefs.now(clock))
        session:run { duration = 0.1 }
        assert(ticks > 0 and ticks < 1000)
      end
      print "done"
    ]])
    for _, ahead in ipairs { -30, 100000 } do
      local words = {
        "unshare", "--time", "--fork", "--monotonic", ahead, "--boottime", 2 * ahead,
        helper.interpreter, script,
        env = { LUA_PATH = package.path .. ";;", LUA_CPATH = package.cpath .. ";;" },
      }
      local status, stdout, stderr = helper.execute(words)
      if stderr:find("^unshare: ") then
        pending("there are no time namespaces here")
      end
      assert.equal("", stderr)
      assert.equal("done\n", stdout)
      assert.equal(0, status)
    end
  end)
end)
