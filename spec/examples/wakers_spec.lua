local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local json = require "dkjson"

local WAKERS <const> = "examples/wakers.lua"
local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)

-- The example, and beside it handlers of their own that find the same wakeups from records.
local BESIDE <const> = [==[
  package.path = %q .. "/examples/?.lua;" .. package.path
  local trace = require "tracefs.script"
  local off, seen = {}, {}
  trace:on("sched:sched_switch", function(ev)
    off[ev.next_pid] = nil
    off[ev.prev_pid] = ev
  end)
  trace:on("sched:sched_waking", function(ev)
    local from = off[ev.pid]
    off[ev.pid] = nil
    local is_interrupt = ev.common_flags & 0x58 ~= 0
    local what = ("%%d %%d"):format(is_interrupt and 0 or ev.common_pid, ev.pid)
    local sum = seen[what] or { 0, 0, 0, 0 }
    seen[what] = sum
    sum[1] = sum[1] + 1
    if from and from.prev_state %% 256 ~= 0 then
      local ns = ev.common_timestamp - from.common_timestamp
      sum[2], sum[3], sum[4] = sum[2] + 1, sum[3] + ns, math.max(sum[4], ns)
    end
  end)
  trace:at_end(function()
    for what, sum in pairs(seen) do
      trace:print { type = "seen", what = what, sum = table.concat(sum, " ") }
    end
  end)
  require "wakers"
]==]

local function run_json(words)
  local status, out, err = helper.run(
    table.move(words, 1, #words, 5, { "-f", "json", "-b", "16384", timeout = 60 }))
  assert.equal(0, status, err)
  local found = { wakeups = {}, seen = {} }
  for line in out:gmatch("{[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      table.insert(found[object.type], object)
    else
      found[object.type] = object
    end
  end
  return found
end

describe("examples/wakers.lua", function()
  it("finds the wakeups and sleeps that another way finds in the same run", function()
    local script = helper.tmpdir() .. "/beside.lua"
    helper.write_file(script, BESIDE:format(helper.root))
    local found
    -- A machine that stood still has events that come late, and then sleeps are given up.
    for _ = 1, 3 do
      found = run_json { "-c", LOAD .. " signals 499 >&2", script, "--by", "task" }
      if found.stats.late + found.stats.lost == 0 then
        break
      end
    end
    -- a task may have had several names, and there are two kinds of interrupts
    local sums, expected, between = {}, {}, 0
    for _, row in ipairs(found.wakeups) do
      local what = ("%d %d"):format(row.waker_pid, row.woken_pid)
      local sum = sums[what] or { 0, 0, 0, 0 }
      sums[what] = sum
      sum[1], sum[2] = sum[1] + row.wakeups, sum[2] + row.asleep
      sum[3], sum[4] = sum[3] + row.slept_ns, math.max(sum[4], row.max_ns)
      if row.woken == loads.NAME .. "-target" and row.waker_pid > 0 then
        between = between + row.wakeups
      end
    end
    for what, sum in pairs(sums) do
      sums[what] = table.concat(sum, " ")
    end
    for _, row in ipairs(found.seen) do
      expected[row.what] = row.sum
    end
    assert.same(expected, sums)
    -- one that has not gone to sleep when the signal comes is not woken
    assert.is_true(between > 0)
  end)

  it("finds an interrupt behind each of 23 naps", function()
    local found = run_json { "-c", LOAD .. " naps 23 >&2", WAKERS, "--comm", loads.NAME .. "-n?ps" }
    local wakeups, asleep = 0, 0
    for _, row in ipairs(found.wakeups) do
      assert.equal(loads.NAME .. "-naps", row.woken)
      assert.matches("^%(%l+irq%)$", row.waker)
      assert.is_nil(row.waker_pid)
      wakeups, asleep = wakeups + row.wakeups, asleep + row.asleep
      assert.is_true(row.max_ns <= row.slept_ns)
    end
    assert.equal(23, wakeups)
    -- On a busy machine the timer may come before the task sleeps.
    assert.is_true(asleep > 0 and asleep <= 23)
  end)

  local function run(words)
    words.timeout = 60
    local status, out, err = helper.run(words)
    assert.equal(0, status, err)
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
    return out
  end

  it("prints a table as long as asked for", function()
    local out = run { "-c", LOAD .. " naps 23 >&2; sleep 0.01; sleep 0.01", WAKERS,
      "--sort", "max", "--top", "2" }
    assert.matches("^waker +woken +wakeups +asleep +slept +avg +max\n[^\n]+\n[^\n]+\n%.%.%. and "
      .. "%d+ more lines\n\n%d+ wakeups\n$", out)
    out = run { "-c", LOAD .. " naps 23 >&2", WAKERS, "--by", "task", "--comm",
      loads.NAME .. "-naps" }
    local wakeups = 0
    for count in out:gmatch(("irq%%) +%s[-naps]*/%%d+ +(%%d+) +%%d+ "):format(loads.NAME)) do
      wakeups = wakeups + count
    end
    assert.equal(23, wakeups, out)
    assert.matches("\n\n23 wakeups\n$", out)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs { { "--by", "cpu" }, { "--top", "0" }, { "--comm", 'a"b' } } do
      local status, out, err = helper.run { WAKERS, words[1], words[2] }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[1], 1, true), err)
    end
  end)
end)
