local helper = require "spec.support.helper"

local LONG <const> = (os.getenv("LUATRACE_LONG") or "") ~= ""

describe("make bench in a booted kernel", function()
  it("has the instructions of a load, untraced and with pairs of both kinds", function()
    if not LONG then
      pending("runs with LUATRACE_LONG=1")
      return
    end
    local status, out, err = helper.execute({
      helper.interpreter, "spec/bench/run.lua", helper.build, "--quick", "--only", "m",
      timeout = 540, collector = "usual",
    })
    assert.equal(0, status, err)
    local why = out:match "no [%w_-]+ here[^\n]*"
    if why then
      pending(why)
      return
    end
    local figures = {}
    for figure in out:gmatch "\nm  [^ ][^\n]-  +(%d+%.%d)" do
      figures[#figures + 1] = tonumber(figure)
    end
    assert.equal(3, #figures, out)
    -- instructions: that nothing is traced is never more
    assert.is_true(figures[1] < figures[2] and figures[1] < figures[3], out)
  end)
end)
