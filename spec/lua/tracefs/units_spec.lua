local globals = require "spec.support.globals"
local units = require "tracefs.units"

describe("tracefs.units", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.units"))
  end)

  it("writes times with three digits and a unit", function()
    for value, text in pairs {
      [0] = "0ns", [999] = "999ns", [999.4] = "999ns", [1000] = "1.00us", [4213] = "4.21us",
      [9996] = "10.0us", [12345] = "12.3us", [99960] = "100us", [999499] = "999us",
      [999500] = "1.00ms", [1234567] = "1.23ms", [999.5e6] = "1.00s", [61e9] = "61.0s",
      [2.0 ^ 63] = "9223372037s", [-4213] = "-4.21us", [math.mininteger] = "-9223372037s",
    } do
      assert.equal(text, units.format(value, "ns"))
    end
    assert.equal("1.50ms", units.format(1500, "us"))
    assert.equal("90.0s", units.format(90000, "ms"))
    assert.equal("500ms", units.format(0.5, "s"))
  end)

  it("writes sizes", function()
    for value, text in pairs {
      [0] = "0B", [1023] = "1023B", [1024] = "1.00KiB", [1536] = "1.50KiB", [1 << 20] = "1.00MiB",
      [1 << 40] = "1.00TiB", [math.maxinteger] = "8.00EiB",
    } do
      assert.equal(text, units.format(value, "bytes"))
    end
  end)

  it("writes what has no unit as it is", function()
    assert.equal("1234567890123", units.format(1234567890123))
    assert.equal("3", units.format(3.0))
    assert.equal("1.500", units.format(1.5))
    assert.equal("123457", units.format(123456.7))
  end)

  it("takes any number", function()
    for _, value in ipairs { 0 / 0, math.huge, -math.huge } do
      assert.equal("string", type(units.format(value, "ns")))
      assert.equal("string", type(units.format(value)))
    end
  end)

  it("knows its units", function()
    assert.is_true(units.known "ns")
    assert.is_false(units.known "parsec")
    assert.is_false(units.known(nil))
  end)
end)
