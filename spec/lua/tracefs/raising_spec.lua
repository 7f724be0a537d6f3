local globals = require "spec.support.globals"
local raising = require "tracefs.raising"

describe("tracefs.raising", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.raising"))
  end)

  it("gives a value, false too, and raises the message of none as it is", function()
    assert.equal(7, raising.must(7, "no"))
    assert.is_false(raising.must(false, "no"))
    local ok, message = pcall(raising.must, nil, "no such thing")
    assert.same({ false, "no such thing" }, { ok, message })
  end)

  it("gives an error the position of the call, and leaves what is no text alone", function()
    local function method(fault)
      local result = raising.at_caller(2, function(value)
        if value then
          error(value, 0)
        end
        return "done"
      end, fault)
      return result
    end
    assert.equal("done", method())
    local ok, message = pcall(function()
      local result = method("trouble")
      return result
    end)
    assert.is_false(ok)
    assert.matches("^spec/lua/tracefs/raising_spec%.lua:%d+: trouble$", message)
    local fault = {}
    ok, message = pcall(method, fault)
    assert.is_false(ok)
    assert.equal(fault, message)
  end)
end)
