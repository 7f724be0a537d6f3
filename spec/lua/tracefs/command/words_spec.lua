local words = require "tracefs.command.words"

describe("tracefs.command.words", function()
  local OPTIONS <const> = {
    { short = "-e", long = "--event", value = "EVENT", help = "An event." },
    { short = "-f", long = "--filter", value = "FILTER", help = "Its filter." },
    { short = "-q", long = "--quiet", help = "Less." },
    { long = "--dry-run", help = "Nothing." },
    { short = "-n", long = "--count", value = "N", help = "How many.", convert = function(text)
      local number = math.tointeger(tonumber(text))
      return number, not number and ("'%s' is no number"):format(text) or nil
    end },
  }

  local function split(...)
    local given, plain = words.split(OPTIONS, { ... })
    assert.truthy(given, plain)
    local list = {}
    for i, one in ipairs(given) do
      list[i] = one.name .. "=" .. tostring(one.value)
    end
    return table.concat(list, " "), table.concat(plain, " ")
  end

  it("keeps the order of options", function()
    assert.same({ "event=a filter=x event=b filter=y quiet=true", "" },
      { split("-e", "a", "-f", "x", "--event", "b", "--filter=y", "-q") })
  end)

  it("takes values that are joined, empty, or look like options", function()
    assert.same({ "event=a:b quiet=true event=-q", "" }, { split("-ea:b", "-qe", "-q") })
    assert.same({ "event= filter=", "" }, { split("--event=", "-f", "") })
  end)

  it("names an option after its long form", function()
    assert.same({ "dry_run=true", "" }, { split("--dry-run") })
  end)

  it("finds plain words between options, - among them, and all behind --", function()
    assert.same({ "quiet=true count=3", "file - -x --event" },
      { split("file", "-q", "-", "-n", "3", "--", "-x", "--event") })
  end)

  it("leaves what follows a command to it", function()
    local given, plain = words.split(OPTIONS, { "-q", "ls", "-e", "x" }, true)
    assert.same({ 1, "ls -e x" }, { #given, table.concat(plain, " ") })
  end)

  it("says what is wrong", function()
    for message, list in pairs {
      ["unknown option '-x'"] = { "-qx" },
      ["unknown option '--nosuch'"] = { "--nosuch=1" },
      ["option '-e' needs a value: EVENT"] = { "-e" },
      ["option '--event' needs a value: EVENT"] = { "--event" },
      ["option '--quiet' takes no value"] = { "--quiet=1" },
      ["'x' is no number"] = { "-n", "x" },
    } do
      assert.same({ nil, message }, { words.split(OPTIONS, list) })
    end
  end)

  it("gives a table by name, lists where there may be many", function()
    local given, plain = words.parse(OPTIONS, { "-e", "a", "f", "-e", "b", "-n", "1", "-n", "2" },
      { event = true, filter = true })
    assert.same({ event = { "a", "b" }, filter = {}, count = 2 }, given)
    assert.same({ "f" }, plain)
    local ok, err = pcall(words.parse, OPTIONS, { "--nosuch" })
    assert.same({ false, { usage = "unknown option '--nosuch'" } }, { ok, err })
  end)

  it("shows them", function()
    local text = words.help(OPTIONS)
    assert.matches("  -e, --event EVENT          An event.\n", text, 1, true)
    assert.matches("      --dry-run              Nothing.\n", text, 1, true)
  end)
end)
