local helper = require "spec.support.helper"
local undisturbed = require "spec.support.undisturbed"

local SOFTIRQS <const> = "examples/softirqs.lua"

-- The example, and beside it handlers of their own that measure the same run by another way: from
-- records, one CPU after the other.
local BESIDE <const> = [[
  package.path = %q .. "/examples/?.lua;" .. package.path
  local trace = require "tracefs.script"
  local tracefs = require "tracefs"
  local began, seen = {}, {}
  trace:on("irq:softirq_entry", function(ev) began[ev.common_cpu] = ev end)
  trace:on("irq:softirq_exit", function(ev)
    local entry = began[ev.common_cpu]
    began[ev.common_cpu] = nil
    if entry then
      assert(entry.vec == ev.vec)
      local what = ("%%s %%d"):format(tracefs.text(ev, "vec"), ev.common_cpu)
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
  require "softirqs"
]]

-- Both measurements as { [what and CPU] = "RUNS runs, TOTAL ns, MAX ns" }, and the objects.
local function run_beside(command)
  local json = require "dkjson"
  local script = helper.tmpdir() .. "/beside.lua"
  helper.write_file(script, BESIDE:format(helper.root))
  local objects
  local found = undisturbed({ "-c", command, script, "--per-cpu" }, function(out)
    local found = { softirq = {}, seen = {} }
    objects = {}
    for line in out:gmatch("{[^\n]+") do
      local object = assert(json.decode(line))
      if found[object.type] then
        local what = object.what or ("%s %d"):format(object.softirq, object.cpu)
        found[object.type][what] = ("%d runs, %d ns, %d ns"):format(object.runs, object.total_ns,
          object.max_ns)
        objects[#objects + 1] = object.type == "softirq" and object or nil
      elseif object.type == "stats" then
        found.stats = object
      end
    end
    return found
  end)
  return found.softirq, found.seen, objects
end

describe("examples/softirqs.lua", function()
  it("measures what another way finds in the same run, and each of 997 packets", function()
    local softirqs, seen, objects = run_beside(
      ("%s udp 997 >&2"):format(helper.quote(helper.program("support/load"))))
    assert.same(seen, softirqs)
    local received = 0
    for _, object in ipairs(objects) do
      received = received + (object.softirq == "NET_RX" and object.runs or 0)
      assert.is_true(object.p50_ns <= object.p99_ns and object.p99_ns <= object.max_ns)
      assert.equal(object.total_ns // object.runs, object.avg_ns)
    end
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
