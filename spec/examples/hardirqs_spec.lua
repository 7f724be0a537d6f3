local helper = require "spec.support.helper"
local trace_text = require "spec.support.trace_text"

local HARDIRQS <const> = "examples/hardirqs.lua"

describe("examples/hardirqs.lua", function()
  -- By number, how often each interrupt has come, as the kernel counts it.
  local function counted(text)
    local counts = {}
    for irq, rest in text:gmatch("\n *(%d+):([%d ]+)") do
      local sum = 0
      for count in rest:gmatch("%d+") do
        sum = sum + count
      end
      counts[tonumber(irq)] = sum
    end
    return counts
  end

  it("has the times of the kernel's own text, and no more runs than the kernel counts", function()
    local dir = helper.tmpdir()
    local outer = counted(helper.read_file("/proc/interrupts"))
    -- writes that go to the disk at once, where /tmp is on one
    local command = ([[
      cat /proc/interrupts >%s/before
      dd if=/dev/zero of=%s/file bs=4096 count=97 oflag=direct 2>/dev/null ||
        dd if=/dev/zero of=%s/file bs=4096 count=97 conv=fsync 2>/dev/null
      cat /proc/interrupts >%s/after]]):gsub("%%s", dir)
    local objects, lines = trace_text.run(command, { HARDIRQS, "--per-cpu" })
    local after = counted(helper.read_file("/proc/interrupts"))
    local function key(event)
      return function(line)
        return line.event == event and ("%d on %d"):format(line.text:match "irq=(%d+)", line.cpu)
      end
    end
    local times = trace_text.intervals(lines, key "irq_handler_entry", key "irq_handler_exit",
      function(from)
        local irq, name = from.text:match "^irq=(%d+) name=(.*)$"
        return ("%d %s %d"):format(irq, name, from.cpu)
      end)
    local runs, handlers = {}, {}
    for _, object in ipairs(objects.hardirq) do
      local name = ("%d %s %d"):format(object.irq, object.name, object.cpu)
      trace_text.check(times[name], object, "runs")
      times[name] = nil
      runs[object.irq] = (runs[object.irq] or 0) + object.runs
      handlers[object.irq] = handlers[object.irq] or {}
      handlers[object.irq][object.name] = true
    end
    assert.same({}, times)
    for irq, count in pairs(runs) do
      -- one with several handlers is counted once
      if not next(handlers[irq], next(handlers[irq])) then
        assert.is_true(count <= after[irq] - (outer[irq] or 0),
          ("irq %d: %d runs"):format(irq, count))
      end
    end
    local inner = counted(helper.read_file(dir .. "/after"))
    for irq, count in pairs(counted(helper.read_file(dir .. "/before"))) do
      assert.is_true(inner[irq] == count or runs[irq] ~= nil, "no run of irq " .. irq)
    end
  end)

  it("prints a table, at each interval if asked", function()
    local status, out, err = helper.run {
      "-c", "sleep 0.25", HARDIRQS, "--interval", "0.1", "--sort", "count", timeout = 60,
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
      local status, out, err = helper.run { HARDIRQS, words[1], words[2] }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[1], 1, true), err)
    end
  end)
end)
