local globals = require "spec.support.globals"
local choosing = require "tracefs.command.choosing"
local words = require "tracefs.command.words"

-- What the choices do is in the specs of the subcommands that have them.
describe("tracefs.command.choosing", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.command.choosing"))
  end)

  it("reads lists of CPUs and ranges of time", function()
    local options, plain = words.parse(choosing.options,
      { "--cpu", "0,2-3", "--ts-range", "1.5,", "-e", "a", "-e", "b", "FILE" }, choosing.many)
    assert.same({ [0] = true, [2] = true, [3] = true }, options.cpu)
    assert.same({ from = "1.5", to = "" }, options.ts_range)
    assert.same({ "a", "b" }, options.event)
    assert.same({ "FILE" }, plain)
  end)

  it("refuses what is none", function()
    for _, text in ipairs { "", "x", "3-1", "0,,1", "70000" } do
      assert.is_false(pcall(words.parse, choosing.options, { "--cpu", text }, choosing.many))
    end
    for _, text in ipairs { "1", "a,b", "1,2,3", "1.2.3,4" } do
      assert.is_false(pcall(words.parse, choosing.options, { "--ts-range", text }, choosing.many))
    end
  end)

  it("opens a session on what is asked for", function()
    local options = words.parse(choosing.options, { "-e", "net:*", "--cpu", "9999" }, choosing.many)
    local session <close> = choosing.open("examples/demo.dat", options)
    assert.equal(0, session:run().delivered)
    local ok, message = pcall(choosing.open, "/nonexistent", options)
    assert.same({ false, "cannot open /nonexistent: No such file or directory" }, { ok, message })
  end)

  it("refuses a filter that fits no event, also beside one that does", function()
    local function open(...)
      local options = words.parse(choosing.options, { ... }, choosing.many)
      local ok, result = pcall(choosing.open, "examples/demo.dat", options)
      if ok then
        result:close()
        return nil
      end
      return result
    end
    assert.is_nil(open("-F", "len > 100", "-F", "net_dev_queue:len > 1"))
    assert.matches("nosuch", open("-F", "nosuch == 1"), 1, true)
    assert.matches("nosuch", open("-F", "len > 100", "-F", "nosuch == 1"), 1, true)
    assert.matches("len >", open("-F", "len >", "-F", "len > 100"), 1, true)
  end)
end)
