local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local json = require "dkjson"
local trace_text = require "spec.support.trace_text"
local undisturbed = require "spec.support.undisturbed"

local WAKERS <const> = "examples/wakers.lua"
local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)

local function objects(out)
  local found = { wakeups = {} }
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

local function run_json(words)
  return undisturbed(words, objects)
end

describe("examples/wakers.lua", function()
  it("has the wakeups and sleeps that the kernel's own text gives", function()
    local printed, lines = trace_text.run(LOAD .. " signals 499", { WAKERS, "--by", "task" })
    local off, expected = {}, {}
    for _, line in ipairs(lines) do
      local prev, state, next_pid = line.text:match(
        "prev_pid=(%d+) prev_prio=%d+ prev_state=(%S+) ==> .*next_pid=(%d+)")
      if prev then
        off[next_pid] = nil
        off[prev] = { ns = line.ns, sleeps = not state:find "^R%+?$" }
      else
        local woken = line.text:match "pid=(%d+)"
        local from, context = off[woken], line.flags:sub(3, 3)
        off[woken] = nil
        local what = ("%s %s"):format(context:find "[hHzZ]" and "(hardirq)"
          or context == "s" and "(softirq)" or line.pid, woken)
        local sum = expected[what] or { 0, 0, 0, 0 }
        expected[what] = sum
        sum[1] = sum[1] + 1
        if from and from.sleeps then
          local ns = line.ns - from.ns
          sum[2], sum[3], sum[4] = sum[2] + 1, sum[3] + ns, math.max(sum[4], ns)
        end
      end
    end
    -- a task may have had several names
    local sums, between = {}, 0
    for _, row in ipairs(printed.wakeups) do
      local what = ("%s %d"):format(row.waker_pid > 0 and row.waker_pid or row.waker, row.woken_pid)
      local sum = sums[what] or { 0, 0, 0, 0 }
      sums[what] = sum
      sum[1], sum[2] = sum[1] + row.wakeups, sum[2] + row.asleep
      sum[3], sum[4] = sum[3] + row.slept_ns, math.max(sum[4], row.max_ns)
      if row.woken == loads.NAME .. "-target" and row.waker_pid > 0 then
        between = between + row.wakeups
      end
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

-- Sequences that no load makes on purpose, brought to the script one by one.
describe("the bookkeeping of examples/wakers.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, at_end, printed

  before_each(function()
    local set = made_events.new()
    make = {
      waking = set.add("sched:sched_waking", { { "comm", "char[16]" }, { "pid", "int" } }),
      switch = set.add("sched:sched_switch",
        { { "prev_pid", "int" }, { "prev_state", "s64" }, { "next_pid", "int" } }),
    }
    printed = {}
    package.loaded["tracefs.script"] = {
      args = { "--by", "task" }, format = "json",
      pair = function(_, options)
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, row)
        printed[#printed + 1] = ("%s %d>%d: %d, %d asleep, %d ns, %d ns"):format(
          row.waker:match "^%b()$" or "task", row.waker_pid, row.woken_pid, row.wakeups, row.asleep,
          row.slept_ns, row.max_ns)
      end,
    }
    assert(loadfile(WAKERS))()
  end)

  after_each(function() package.loaded["tracefs.script"] = nil end)

  local function switch(ts, from, state, to)
    pair:feed(make.switch({ prev_pid = from, prev_state = state, next_pid = to },
      { common_timestamp = ts, common_cpu = 0 }))
  end
  local function waking(ts, by, pid, flags)
    pair:feed(make.waking({ common_pid = by, common_flags = flags, pid = pid, comm = "a" },
      { common_timestamp = ts, common_cpu = 0 }))
  end
  local function ended()
    at_end()
    return table.concat(printed, "; ")
  end

  it("adds up sleeps, from the switch away", function()
    switch(100, 5, 1, 9)
    waking(130, 9, 5)
    switch(140, 9, 1, 5)
    switch(200, 5, 2, 9)
    waking(250, 9, 5)
    assert.equal("task 9>5: 2, 2 asleep, 80 ns, 50 ns", ended())
  end)

  it("tells interrupts from the task that they have interrupted", function()
    for i, flags in ipairs { 0x01, 0x08, 0x11, 0x18, 0x40 } do
      waking(100 * i, 9, 5, flags)
    end
    assert.equal("(hardirq) 0>5: 3, 0 asleep, 0 ns, 0 ns; (softirq) 0>5: 1, 0 asleep, 0 ns, 0 ns; "
      .. "task 9>5: 1, 0 asleep, 0 ns, 0 ns", ended())
  end)

  it("knows no sleep of a task that runs again, was only put off, or was not seen", function()
    switch(100, 5, 1, 9)
    -- whoever has woken it was not seen
    switch(500, 9, 1, 5)
    waking(600, 9, 5)
    switch(700, 5, 256, 9)
    waking(750, 9, 5)
    waking(800, 9, 6)
    assert.equal("task 9>5: 2, 0 asleep, 0 ns, 0 ns; task 9>6: 1, 0 asleep, 0 ns, 0 ns", ended())
  end)

  it("knows no sleep across a gap", function()
    switch(100, 5, 1, 9)
    pair:lost { cpu = 1, after_ts = 100, before_ts = 800 }
    waking(900, 9, 5)
    assert.equal("task 9>5: 1, 0 asleep, 0 ns, 0 ns", ended())
  end)
end)
