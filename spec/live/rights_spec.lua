local helper = require "spec.support.helper"

local NOBODY <const> = "65534"

-- As an ordinary user who has these capabilities and cannot get others.
local function run_as_nobody(capabilities, ...)
  local words = {
    "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs",
    "--inh-caps=-all" .. capabilities, "--ambient-caps=-all" .. capabilities, helper.command, ...,
  }
  return helper.execute(words)
end

describe("a user who is not root", function()
  local CODE <const> = [[
    local count = 0
    on("ftrace:print", { "buf" }, function() count = count + 1 end)
    at_start(function() for _ = 1, 7 do trace:marker("x") end end)
    at_end(function()
      for line in io.lines("/proc/self/status") do
        if line:find("^Uid") or line:find("^CapEff") then print((line:gsub("\t", " "))) end
      end
      print(count)
    end)
  ]]

  local function need_setpriv()
    if not os.execute("command -v setpriv >/dev/null") then
      pending("no setpriv here")
    end
  end

  it("traces with the capability CAP_DAC_OVERRIDE and no other", function()
    need_setpriv()
    local status, out, err = run_as_nobody(",+dac_override", "-d", "0.2", "-e", CODE)
    assert.equal("", err)
    assert.equal(("Uid: %s %s %s %s\nCapEff: 0000000000000002\n7\n"):format(
      NOBODY, NOBODY, NOBODY, NOBODY), out)
    assert.equal(0, status)
  end)

  it("is told without it who may", function()
    need_setpriv()
    -- the build lies where only root may read: what can be read is not the matter here
    local status, out, err = run_as_nobody(",+dac_read_search", "-d", "0.2", "-e", CODE)
    assert.equal("", out)
    assert.equal(1, status)
    assert.is_truthy(err:find("permission denied", 1, true), err)
    assert.is_truthy(err:find("Run as root", 1, true), err)
  end)

  it("is told what a script is for, but nothing that needs the right to trace", function()
    need_setpriv()
    local status, out, err = run_as_nobody(",+dac_read_search", "examples/runqlat.lua", "--help")
    assert.equal("", err)
    assert.is_truthy(out:find("Usage: runqlat", 1, true), out)
    assert.equal(0, status)
    -- one that takes no notice of the word
    local script = helper.tmpdir() .. "/script.lua"
    helper.write_file(script, [[
      local trace = require "tracefs.script"
      print(trace.args[1])
      trace:on("ftrace:print", print)
    ]])
    status, out, err = run_as_nobody(",+dac_read_search", script, "--help")
    assert.equal("--help\n", out)
    assert.is_truthy(err:find("Run as root", 1, true), err)
    assert.equal(1, status)
  end)
end)
