local globals = require "spec.support.globals"
local kernel_latency = require "tracefs.kernel_latency"

-- What it measures is checked in kernels that can (spec/vm/checks/hist.lua), what it refuses with
-- sessions (aggregation_spec).
describe("tracefs.kernel_latency", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.kernel_latency"))
  end)

  it("checks its options before it makes anything", function()
    local ok, message = pcall(kernel_latency.new, {}, { start = "a:b", stop = "a:b" })
    assert.is_false(ok)
    assert.equal('kernel_latency: key is missing: start = "system:event", stop = "system:event", '
      .. 'key = "field"', message)
  end)
end)
