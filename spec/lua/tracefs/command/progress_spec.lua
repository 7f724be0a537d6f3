local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local terminal = require "spec.support.terminal"

describe("tracefs.command.progress", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.command.progress"))
  end)

  -- A reader that takes its time.
  local SLOW <const> = [[
    local core = require "tracefs.core"
    local progress = require "tracefs.command.progress"
    local shown = progress.new("writing ", arg[1] == "quiet")
    for done = 1, 4 do
      core.poll({}, 0.25)
      shown:show("a\27b.dat", done, 4)
    end
    shown:clear()
    io.stderr:write("done\n")
  ]]

  local function command(...)
    local script = helper.tmpdir() .. "/slow.lua"
    helper.write_file(script, SLOW)
    local words = {
      "env", "LUA_PATH=" .. helper.lua_dir .. "/?.lua;;",
      "LUA_CPATH=" .. helper.core_dir .. "/?.so;;", helper.interpreter, script, ...,
    }
    local plain = table.move(words, 1, #words, 1, {})
    for i, word in ipairs(words) do
      words[i] = helper.quote(word)
    end
    return table.concat(words, " "), plain
  end

  it("shows how far it is on a terminal, and goes away", function()
    if not terminal.is_there() then
      pending("script(1) is not installed")
      return
    end
    local status, text = terminal.run((command()))
    assert.equal(0, status)
    local lines = ""
    for _, percent in ipairs { 25, 50, 75, 100 } do
      lines = lines .. ("\rwriting a\\x1Bb.dat: %3d %%\27[K"):format(percent)
    end
    assert.equal(lines .. "\r\27[Kdone\n", text)
    status, text = terminal.run((command "quiet"))
    assert.same({ 0, "done\n" }, { status, text })
  end)

  it("is nothing where there is no terminal", function()
    local _, words = command()
    local status, out, err = helper.execute(words)
    assert.same({ 0, "", "done\n" }, { status, out, err })
  end)

  it("is there while the command puts a recording together", function()
    if not terminal.is_there() or not helper.tracing_dir then
      pending("no script(1), or no tracefs")
      return
    end
    local path = helper.tmpdir() .. "/out.dat"
    local words = ("%s record -e sched:sched_switch -o %s sleep 0.1"):format(
      helper.quote(helper.program "luatrace"), path)
    local status, text = terminal.run(words)
    assert.equal(0, status)
    assert.matches("\rluatrace: writing .*out%.dat: 100 %%\n", text)
    local _, _, err = helper.run { "record", "-e", "sched:sched_switch", "-o", path, "true" }
    assert.is_nil(err:find("writing", 1, true))
  end)
end)
