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

  -- What it makes of calls, brought to it one by one.
  local function totals(format)
    local handlers, at_end, printed = {}, nil, {}
    package.loaded["tracefs.script"] = {
      args = { "vfs_read" },
      format = format,
      functions = function() end,
      on = function(_, event, handler) handlers[event] = handler end,
      on_lost = function() end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, value) table.insert(printed, value) end,
    }
    local ok, err = pcall(function()
      assert(loadfile(SCRIPT))()
      for i = 1, 7 do
        handlers["ftrace:funcgraph_entry"] { func = 0, depth = 0, common_cpu = 0 }
        handlers["ftrace:funcgraph_exit"] {
          func = 0, depth = 0, common_cpu = 0, calltime = 1000 * i, rettime = 1000 * i + i,
        }
      end
      at_end()
    end)
    package.loaded["tracefs.script"] = nil
    assert(ok, err)
    return printed
  end

  it("has the totals and no lines in the formats for programs", function()
    for _, format in ipairs { "json", "csv" } do
      assert.same({ {
        type = "function", name = "0", calls = 7, avg_ns = 4, p99_ns = 7, max_ns = 7,
        total_ns = 28,
      } }, totals(format))
    end
    for _, format in ipairs { "prometheus", "svg" } do
      local printed = totals(format)
      assert.equal(1, #printed)
      local row = printed[1]:rows()[1]
      assert.equal("0", row["function"])
      assert.equal(7, row.count)
      assert.equal(28, row.sum)
      assert.equal("function", printed[1]:options().name)
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
