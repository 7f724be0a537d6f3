local helper = require "spec.support.helper"
local undisturbed = require "spec.support.undisturbed"

local HARDIRQS <const> = "examples/hardirqs.lua"

-- The example, and beside it handlers of their own that measure the same run by another way: from
-- records, one CPU after the other.
local BESIDE <const> = [[
  package.path = %q .. "/examples/?.lua;" .. package.path
  local trace = require "tracefs.script"
  local began, seen = {}, {}
  trace:on("irq:irq_handler_entry", function(ev) began[ev.common_cpu] = ev end)
  trace:on("irq:irq_handler_exit", function(ev)
    local entry = began[ev.common_cpu]
    began[ev.common_cpu] = nil
    if entry then
      assert(entry.irq == ev.irq)
      local what = ("%%s %%d"):format(ev.irq .. entry.name, ev.common_cpu)
      local ns = ev.common_timestamp - entry.common_timestamp
      local sum = seen[what] or { type = "seen", what = what, runs = 0, total_ns = 0, max_ns = 0 }
      sum.runs, sum.total_ns, sum.max_ns = sum.runs + 1, sum.total_ns + ns, math.max(sum.max_ns, ns)
      seen[what] = sum
    end
  end)
  trace:at_end(function()
    for _, sum in pairs(seen) do
      trace:print(sum)
    end
  end)
  require "hardirqs"
]]

-- Both measurements as { [what and CPU] = "RUNS runs, TOTAL ns, MAX ns" }, and the objects.
local function run_beside(command)
  local json = require "dkjson"
  local script = helper.tmpdir() .. "/beside.lua"
  helper.write_file(script, BESIDE:format(helper.root))
  local objects
  local found = undisturbed({ "-c", command, script, "--per-cpu" }, function(out)
    local found = { hardirq = {}, seen = {} }
    objects = {}
    for line in out:gmatch("{[^\n]+") do
      local object = assert(json.decode(line))
      if found[object.type] then
        local what = object.what or ("%s %d"):format(object.irq .. object.name, object.cpu)
        found[object.type][what] = ("%d runs, %d ns, %d ns"):format(object.runs, object.total_ns,
          object.max_ns)
        objects[#objects + 1] = object.type == "hardirq" and object or nil
      elseif object.type == "stats" then
        found.stats = object
      end
    end
    return found
  end)
  return found.hardirq, found.seen, objects
end

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

  it("measures what another way finds, and no more than the kernel counts", function()
    local dir = helper.tmpdir()
    local outer = counted(helper.read_file("/proc/interrupts"))
    -- writes that go to the disk at once, where /tmp is on one
    local command = ([[
      cat /proc/interrupts >%s/before
      dd if=/dev/zero of=%s/file bs=4096 count=97 oflag=direct 2>/dev/null ||
        dd if=/dev/zero of=%s/file bs=4096 count=97 conv=fsync 2>/dev/null
      cat /proc/interrupts >%s/after]]):gsub("%%s", dir)
    local hardirqs, seen, objects = run_beside(command)
    local after = counted(helper.read_file("/proc/interrupts"))
    assert.same(seen, hardirqs)
    local runs, handlers = {}, {}
    for _, object in ipairs(objects) do
      runs[object.irq] = (runs[object.irq] or 0) + object.runs
      handlers[object.irq] = handlers[object.irq] or {}
      handlers[object.irq][object.name] = true
    end
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
