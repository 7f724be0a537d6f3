local globals = require "spec.support.globals"
local values = require "tracefs.command.values"

describe("tracefs.command.values", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.command.values"))
  end)

  it("reads times", function()
    for text, seconds in pairs {
      ["10"] = 10, ["0.5"] = 0.5, ["200ms"] = 0.2, ["3s"] = 3, ["10m"] = 600, ["1h"] = 3600,
    } do
      assert.equal(seconds, values.seconds(text))
    end
    for _, text in ipairs { "", "x", "-1", "1d", "1 s", "." } do
      local message = ("'%s' is no time: seconds, or a number with ms, s, m or h"):format(text)
      assert.same({ nil, message }, { values.seconds(text) })
    end
    assert.equal("a time above 0 is needed, not '0'", select(2, values.seconds("0")))
    assert.equal("above 0", select(2, values.seconds("0", "above 0")))
  end)

  it("reads pids and sizes", function()
    assert.equal(1, values.pid "1")
    assert.equal(0x7fffffff, values.pid "2147483647")
    for _, text in ipairs { "0", "2147483648", "x", "1.5", "-1", "" } do
      assert.same({ nil, ("'%s' is no pid"):format(text) }, { values.pid(text) })
    end
    assert.equal(4096, values.kb "4096")
    assert.equal(8, values.kb("8", 8))
    for _, text in ipairs { "9", "0", "x" } do
      assert.same({ nil, ("'%s' is no size in KB"):format(text) }, { values.kb(text, 8) })
    end
  end)
end)
