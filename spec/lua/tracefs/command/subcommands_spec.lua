local helper = require "spec.support.helper"
local subcommands = require "tracefs.command.subcommands"

describe("tracefs.command.subcommands", function()
  it("have a room each, with run and help, and a line in --help", function()
    local _, out = helper.run { "--help" }
    for _, entry in ipairs(subcommands.list) do
      local room = require("tracefs.command." .. entry.module)
      assert.equal("function", type(room.run), entry.name)
      assert.matches(entry.name, room.help(), 1, true)
      assert.matches(entry.help, out, 1, true)
      assert.equal(entry, subcommands.find(entry.name))
      for _, option in ipairs { "--help", "-h" } do
        local status, text, err = helper.run { entry.name, option }
        assert.same({ 0, room.help() .. "\n", "" }, { status, text, err })
      end
    end
    assert.is_nil(subcommands.find "nosuch")
    assert.is_nil(subcommands.find(nil))
  end)

  -- Runs a subcommand that is there for one test only.
  local function run(body, ...)
    return helper.run_lua(([[
      local subcommands = require "tracefs.command.subcommands"
      subcommands.list[#subcommands.list + 1] =
        { name = "try", module = "try", usage = "[WORD...]", help = "Only here." }
      package.preload["tracefs.command.try"] = function()
        return { help = function() return "how to try" end, run = function(words) %s end }
      end
      os.exit(require("tracefs.command").main { "try", %s })
    ]]):format(body, table.concat({ ... }, ", ")))
  end

  it("get the words behind their name and give the status", function()
    assert.same({ 7, "a -x --help\n", "" },
      { run("print(table.concat(words, ' ')) return 7", "'a'", "'-x'", "'--help'") })
    assert.same({ 0, "how to try\n", "" }, { run("return 7", "'--help'") })
  end)

  it("raise wrong usage", function()
    local status, out, err = run("require('tracefs.command.words').wrong('no %s', 'file')")
    assert.same({
      2, "", "luatrace: try: no file (luatrace try --help shows how it is used)\n",
    }, { status, out, err })
  end)

  it("do not hide a mistake in their code", function()
    local status, out, err = run("error 'a mistake'")
    assert.same({ 1, "" }, { status, out })
    assert.matches("a mistake", err, 1, true)
    assert.matches("stack traceback", err, 1, true)
  end)
end)
