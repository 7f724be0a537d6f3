local helper = require "spec.support.helper"

describe("tracefs.script", function()
  it("outside of the command says what to do", function()
    local status, out, err = helper.run_lua('require "tracefs.script"')
    assert.same({ 1, "" }, { status, out })
    assert.matches("tracefs.script is the session of the luatrace command: run this file with"
      .. " `luatrace FILE`", err, 1, true)
    assert.matches('require("tracefs").session()', err, 1, true)
    -- Asking again does not make it work.
    local ok = pcall(require, "tracefs.script")
    assert.is_false(ok)
    ok = pcall(require, "tracefs.script")
    assert.is_false(ok)
  end)

  it("inside is the command's session, the same for every module", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/part.lua", 'return require "tracefs.script"')
    helper.write_file(dir .. "/script.lua", [[
      local trace = require "tracefs.script"
      print(trace == require "part", trace == require "tracefs.script")
      print(tostring(trace):match("^tracefs.session") ~= nil)
      for _, name in ipairs { "on", "enable", "events", "every", "at_start", "at_end", "on_lost",
        "run", "stop", "finish", "step", "fileno", "wait", "stats", "marker", "close", "print" } do
        assert(type(trace[name]) == "function", name)
      end
      print(trace.format, #trace.args, trace.args[1])
      print(trace.instance:get_clock(), trace.on_error)
    ]])
    local status, out, err = helper.run { "-C", "boot", dir .. "/script.lua", "x" }
    assert.same({ 0, "" }, { status, err })
    assert.equal("true\ttrue\ntrue\ntext\t1\tx\nboot\traise\n", out)
    status, out = helper.run { "-f", "json", "-e", "io.write(trace.format)" }
    assert.same({ 0, "json" }, { status, out })
  end)
end)
