-- What the terminal looks like is spec/lua/tracefs/command/top_spec.lua's.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local terminal = require "spec.support.terminal"

describe("tracefs.core.screen", function()
  it("is refused when standard output is no terminal", function()
    local status, out, err = helper.run_lua [[print(require("tracefs.core").screen())]]
    assert.same({ 0, "nil\tstandard output: Inappropriate ioctl for device\t25\n", "" },
      { status, out, err })
  end)

  it("takes its terminal and gives it back, at the end of the program too", function()
    if not terminal.is_there() then
      pending "script(1) is not there"
    end
    local script = helper.tmpdir() .. "/screen.lua"
    helper.write_file(script, ([[
      package.path, package.cpath = %q, %q
      local core = require "tracefs.core"
      local screen = assert(core.screen(true))
      assert(not pcall(core.screen))
      local rows, columns = screen:size()
      assert(rows >= 1 and columns >= 1)
      assert(not screen:changed() and screen:fileno() > 2)
      assert(screen:keys() == "")
      assert(screen:show "[one]" == true)
      assert(screen:show "[two]" == true)
      screen:leave()
      screen:leave()
      screen:close()
      assert(tostring(select(2, pcall(screen.show, screen, "x"))):find "the screen is closed")
      screen:close()
      local again = assert(core.screen())
      again:show "[three]"
      os.exit(7)
    ]]):format(package.path, package.cpath))
    local enter, leave = "\27[?1049h\27[?25l\27[?7l\27[H\27[2J", "\27[?7h\27[?25h\27[?1049l"
    local status, out = terminal.run(("%s %s"):format(helper.quote(helper.interpreter),
      helper.quote(script)))
    assert.equal(7, status, out)
    assert.equal(enter .. "[one][two]" .. leave .. enter .. "[three]" .. leave,
      (out:gsub("\n", "")))
    assert.is_function(core.screen)
  end)
end)
