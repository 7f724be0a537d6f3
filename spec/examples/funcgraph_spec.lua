local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local SCRIPT <const> = "examples/funcgraph.lua"

local function run(...)
  return helper.run { SCRIPT, ... }
end

-- What it shows where the kernel can is checked in booted kernels: spec/vm/checks/functions.lua.
describe("examples/funcgraph.lua", function()
  it("wants a function, and whole numbers", function()
    local status, out, err = run()
    assert.not_equal(0, status)
    assert.equal("", out)
    assert.matches("missing argument 'function'", err)
    status, out, err = run("vfs_read", "--depth", "x")
    assert.equal("", out)
    assert.not_equal(0, status)
    assert.matches("'x' is not a whole number above 0", err)
  end)

  it("explains itself within 79 columns", function()
    for line in helper.read_file(SCRIPT):gmatch "[^\n]+" do
      assert.is_true(#line <= 100, line)
    end
    local head = helper.read_file(SCRIPT):match "^(.-)\n\n"
    for _, word in ipairs { "Usage", "Sample output", "Overhead" } do
      assert.matches("\n-- " .. word, head, 1, true)
    end
  end)

  it("says what the kernel lacks", function()
    if tracefs.features().graph_tracer then
      pending("this kernel has function_graph: spec/vm traces with it")
    end
    local status, out, err = run("vfs_read")
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("functions: this kernel has ", err, 1, true)
    assert.matches("function_graph", err, 1, true)
  end)
end)
