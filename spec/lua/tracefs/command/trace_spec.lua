require "spec.support.helper"
local trace = require "tracefs.command.trace"

-- What the command makes of a session is seen on the live kernel: spec/live/command_spec.lua.
describe("the globals of -e", function()
  local run, env

  before_each(function()
    run = {}
    env = trace.environment(run)
    run.session = {
      on = function(self, pattern)
        return self == run.session, pattern
      end,
      print = function() end,
      args = {},
      _inner = function() end,
    }
  end)

  it("are the session's methods, bound to it", function()
    local is_session, pattern = env.on("x")
    assert.is_true(is_session)
    assert.equal("x", pattern)
    assert.equal(env.on, env.on)
    assert.equal(run.session, env.trace)
  end)

  it("are the real ones where both have the name", function()
    assert.equal(print, env.print)
    assert.equal(string, env.string)
  end)

  it("have nothing else of the session", function()
    assert.is_nil(env.args)
    assert.is_nil(env._inner)
    assert.is_nil(env.nosuch)
    assert.is_nil(env[1])
  end)

  it("follow a method that is replaced later", function()
    local on = env.on
    run.session.on = function()
      return "replaced"
    end
    assert.equal("replaced", on())
  end)

  it("take what the code sets, and nothing gets into the real globals", function()
    env.on = 5
    env.mine = 6
    assert.equal(5, env.on)
    assert.equal(6, env.mine)
    assert.is_nil(rawget(_G, "mine"))
    assert.is_nil(rawget(_G, "on"))
  end)
end)
