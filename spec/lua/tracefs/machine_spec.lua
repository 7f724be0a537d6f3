local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local tracefs = require "tracefs"

-- The top level is everybody's: setting is tried in spec/vm/checks/settings.lua.
describe("tracefs.machine", function()
  for _, name in ipairs { "tracing_thresh", "saved_cmdlines_size" } do
    it("reads " .. name, function()
      local path = tracefs.tracing_dir() .. "/" .. name
      local text = helper.read_file(path)
      local value, message = tracefs[name]()
      if not text then
        assert.matches("cannot read " .. path, message, 1, true)
        return
      end
      assert.equal(math.tointeger(tonumber(text)), value)
    end)

    it("refuses what is no number for " .. name, function()
      for _, bad in ipairs { -1, 1.5, "7", true } do
        assert.error_matches(function()
          tracefs[name](bad)
        end, name .. ": a whole number from %d is needed, not ")
      end
    end)
  end

  it("tells a user who may not that root may", function()
    local status, out = elsewhere.run({ user = 65534 }, [[
      print(require("tracefs").tracing_thresh())
      print(require("tracefs.machine").number({
        tracing_dir = function() return "/sys/kernel/tracing" end
      }, "tracing_thresh", nil, 0))
    ]])
    assert.equal(0, status)
    assert.matches("^nil\t[^\n]*permission denied", out)
    assert.matches("\nnil\tcannot read /sys/kernel/tracing/tracing_thresh: Permission denied: "
      .. "run as root\t13", out, 1, true)
  end)

  it("says what is not there", function()
    local machine = require "tracefs.machine"
    local value, message, errno = machine.number({
      tracing_dir = function()
        return helper.tmpdir()
      end,
    }, "tracing_thresh", nil, 0)
    assert.is_nil(value)
    assert.equal(2, errno)
    assert.matches("this kernel has no such file", message)
  end)
end)
