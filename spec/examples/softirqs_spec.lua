local helper = require "spec.support.helper"
local trace_text = require "spec.support.trace_text"

local SOFTIRQS <const> = "examples/softirqs.lua"

describe("examples/softirqs.lua", function()
  it("has the times of the kernel's own text, and each of 997 packets", function()
    local objects, lines = trace_text.run(
      helper.quote(helper.program "support/load") .. " udp 997", { SOFTIRQS, "--per-cpu" })
    local function key(event)
      return function(line) return line.event == event and line.cpu .. line.text end
    end
    local times = trace_text.intervals(lines, key "softirq_entry", key "softirq_exit",
      function(from) return ("%s %d"):format(from.text:match "action=([%w_]+)", from.cpu) end)
    local received = 0
    for _, row in ipairs(objects.softirq) do
      local name = ("%s %d"):format(row.softirq, row.cpu)
      trace_text.check(times[name], row, "runs")
      times[name] = nil
      received = received + (row.softirq == "NET_RX" and row.runs or 0)
    end
    assert.same({}, times)
    -- One is received before the next is sent; there may be others' packets.
    assert.is_true(received >= 997, received .. " runs of NET_RX")
  end)

  it("prints a table, at each interval if asked", function()
    local status, out, err = helper.run {
      "-c", "sleep 0.25", SOFTIRQS, "--interval", "0.1", "--sort", "count", timeout = 60,
    }
    assert.equal(0, status, err)
    local tables, sum, before = 0, 0, math.huge
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
      local all = line:match("^(%d+) runs, [%d.]+[num]?s in all; %d+ open, %d+ voided$")
      local runs = tonumber(line:match(" (%d+) +[%d.]+[num]?s +[%d.]+[num]?s +"))
      if all then
        assert.equal(tonumber(all), sum, out)
        tables, sum, before = tables + 1, 0, math.huge
      elseif runs then
        assert.is_true(runs <= before, out)
        sum, before = sum + runs, runs
      end
    end
    assert.is_true(tables >= 2, out)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs { { "--interval", "0" }, { "--sort", "name" } } do
      local status, out, err = helper.run { SOFTIRQS, words[1], words[2] }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[1], 1, true), err)
    end
  end)
end)
