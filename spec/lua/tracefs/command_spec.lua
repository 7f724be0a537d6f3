local helper = require "spec.support.helper"
local tracefs = require "tracefs"

-- What the command does on the live kernel is in spec/live/command*_spec.lua.
describe("tracefs.command", function()
  it("and its rooms are required without touching globals", function()
    local status, out, err = helper.run_lua [[
      local before = {}
      for name in pairs(_G) do before[name] = true end
      for _, name in ipairs {
        "command", "command.options", "command.report", "command.running", "command.trace",
        "command.child", "command.loading", "command.listing", "command.pids", "command.summary",
        "command.capture", "command.extract", "command.list", "command.record", "command.reset",
        "command.standing", "command.start", "command.stat", "command.stop", "command.writing",
        "command.subcommands", "command.words", "escape", "info", "json", "output",
        "record_json",
      } do
        assert(type(require("tracefs." .. name)) == "table", name)
      end
      for name in pairs(_G) do
        if not before[name] then print(name) end
      end
    ]]
    assert.same({ 0, "", "" }, { status, out, err })
  end)

  it("says its version", function()
    for _, option in ipairs { "--version", "-V" } do
      local status, out, err = helper.run { option }
      assert.same({ 0, ("luatrace %s\n"):format(tracefs.version), "" }, { status, out, err })
    end
  end)

  it("explains itself", function()
    for _, option in ipairs { "--help", "-h" } do
      local status, out, err = helper.run { option }
      assert.same({ 0, "" }, { status, err })
      assert.matches("Usage: luatrace [OPTIONS] SCRIPT", out, 1, true)
      assert.matches("--dry%-run", out)
      assert.matches("Examples:", out, 1, true)
    end
  end)

  it("exits with 2 for wrong usage, with one line that says how to learn more", function()
    for _, words in ipairs {
      {},
      { "--nosuch" },
      { "-d", "soon", "-e", "x = 1" },
      { "-f", "xml", "-e", "x = 1" },
      { "-l", "x", "y" },
    } do
      local status, out, err = helper.run(words)
      assert.same({ 2, "" }, { status, out })
      assert.matches("^luatrace: [^\n]+ %(luatrace %-%-help shows how it is used%)\n$", err)
    end
  end)

  it("makes its messages safe for a terminal", function()
    local _, _, err = helper.run { "--no\27[31msuch" }
    assert.matches("--no\\x1B[31msuch", err, 1, true)
    _, _, err = helper.run { "no\27such.lua" }
    assert.matches("no\\x1Bsuch.lua", err, 1, true)
    _, _, err = helper.run { "-e", "error('a\\27b')" }
    assert.matches("a\\x1Bb", err, 1, true)
  end)

  it("loads no more than it needs", function()
    local loaded = [[
      local names = {}
      for _, name in ipairs { "dkjson", "tracefs.json", "tracefs.record_json", "tracefs.info",
        "tracefs.command.listing", "tracefs.command.pids" } do
        if package.loaded[name] then names[#names + 1] = name end
      end
      print(table.concat(names, " "))
    ]]
    local status, out = helper.run { "-e", loaded }
    assert.same({ 0, "\n" }, { status, out })
  end)
end)
