local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local loads = require "spec.support.loads"
local json = require "dkjson"
local trace_text = require "spec.support.trace_text"
local undisturbed = require "spec.support.undisturbed"

local RUNQLAT <const> = "examples/runqlat.lua"
local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)

local function objects(out)
  local found = { wait = {} }
  for line in out:gmatch("{[^\n]+") do
    local object = assert(json.decode(line))
    if object.type == "wait" then
      table.insert(found.wait, object)
    else
      found[object.type] = object
    end
  end
  return found
end

local function run_json(words)
  return undisturbed(words, objects)
end

local function run_busy(run, words)
  local found
  loads.on_busy_cpus(function() found = run(words) end)
  return found
end

describe("examples/runqlat.lua", function()
  it("has the waits that the kernel's own text gives", function()
    local printed, lines
    loads.on_busy_cpus(function()
      printed, lines = trace_text.run(LOAD .. " threads 2 97", { RUNQLAT })
    end)
    local since, times, not_seen = {}, { wakeup = {}, preemption = {} }, 0
    -- who is woken once more has run in between; who was preempted may not have slept yet
    local function begin(pid, line, what)
      local before = since[pid]
      if before and before.list == times.preemption and not before.is_woken then
        before.is_woken = true
      else
        not_seen = not_seen + (before and 1 or 0)
        since[pid] = { ns = line.ns, list = times[what] }
      end
    end
    for _, line in ipairs(lines) do
      local prev, state, next_pid = line.text:match(
        "prev_pid=(%d+) prev_prio=%d+ prev_state=(%S+) ==> .*next_pid=(%d+)")
      if not prev then
        begin(line.text:match "pid=(%d+)", line, "wakeup")
      else
        not_seen = not_seen + (since[prev] and 1 or 0)
        local from = since[next_pid]
        since[prev], since[next_pid] = nil, nil
        if from then
          table.insert(from.list, line.ns - from.ns)
        end
        if prev ~= "0" and state:find "^R%+?$" then
          begin(prev, line, "preemption")
        end
      end
    end
    local open = 0
    for _ in pairs(since) do
      open = open + 1
    end
    assert.same({ type = "waits", waits = #times.wakeup + #times.preemption, not_seen = not_seen,
      voided = 0, open = open }, printed.waits[1])
    -- A CPU has one place, and there are tasks that only compute.
    assert.equal(2, #printed.wait)
    for _, row in ipairs(printed.wait) do
      trace_text.check(times[row.after], row, "waits")
    end
  end)

  it("finds what another matcher finds in a recording, with switches that were left out", function()
    if not inputs.are_there then
      pending "the folder of recordings is not there"
    end
    local found = objects(select(2, helper.run {
      "-q", "-f", "json", "-i", inputs.path "kernel-6.18/block_sched.dat", RUNQLAT,
    }))
    for _, row in ipairs(found.wait) do
      if row.after == "wakeup" then
        assert.same({ 141, 672, 3998362, 11027094 // 141 },
          { row.waits, row.min_ns, row.max_ns, row.avg_ns })
      end
    end
    assert.equal(2, #found.wait)
  end)

  it("finds each of 23 wakeups of one name", function()
    local found = run_busy(run_json, {
      "-c", LOAD .. " naps 23 >&2", RUNQLAT, "--comm", loads.NAME .. "-naps",
    })
    local waits = { wakeup = 0, preemption = 0 }
    for _, row in ipairs(found.wait) do
      waits[row.after] = row.waits
    end
    -- One that is preempted on its way to sleep, and woken then, waits since it was preempted.
    local woken = waits.wakeup + found.waits.not_seen
    assert.is_true(woken <= 23 and woken + waits.preemption >= 23,
      ("%d waits after wakeups, %d after preemptions, %d not seen"):format(waits.wakeup,
        waits.preemption, found.waits.not_seen))
    assert.equal(0, found.waits.voided + found.waits.open)
  end)

  it("prints a table by name and a histogram of the same count, at each interval", function()
    local out = run_busy(function(words)
      local status, shown, err = helper.run(words)
      assert.equal(0, status, err)
      return shown
    end, {
      "-c", LOAD .. " naps 47 >&2", RUNQLAT, "--by", "comm", "--comm", loads.NAME .. "-n?ps",
      "--interval", "0.05", timeout = 60,
    })
    local tables, in_table, in_histogram = 0, 0, 0
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
      tables = tables + (line:find "^%d+ waits, %d+ not seen, %d+ voided, %d+ open$" and 1 or 0)
      in_table = in_table + (line:match(("^%s%%-naps +(%%d+) +[%%d.]+[num]?s "):format(loads.NAME))
        or 0)
      in_histogram = in_histogram + (line:match "^ *%d+ %.%. %d+ +(%d+) |" or 0)
    end
    assert.is_true(tables >= 2, out)
    assert.is_true(in_table > 0, out)
    assert.equal(in_table, in_histogram, out)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs {
      { "--top", "0.5" }, { "--interval", "0" }, { "--comm", 'a"b' },
    } do
      local status, out, err = helper.run { RUNQLAT, words[1], words[2] }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[1], 1, true), err)
    end
  end)
end)

-- Sequences that no load makes on purpose, brought to the script one by one.
describe("the bookkeeping of examples/runqlat.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, at_end, printed

  local function start(args)
    local set = made_events.new()
    local task = { { "pid", "int" }, { "comm", "char[16]" } }
    make = {
      wakeup = set.add("sched:sched_wakeup", task),
      new = set.add("sched:sched_wakeup_new", task),
      switch = set.add("sched:sched_switch", { { "prev_comm", "char[16]" }, { "prev_pid", "int" },
        { "prev_state", "s64" }, { "next_comm", "char[16]" }, { "next_pid", "int" } }),
    }
    printed = {}
    package.loaded["tracefs.script"] = {
      args = args or {}, format = "json",
      pair = function(_, options)
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        printed[object.after or object.comm or object.cpu or object.type] = object
      end,
    }
    assert(loadfile(RUNQLAT))()
  end

  before_each(function() start() end)

  after_each(function() package.loaded["tracefs.script"] = nil end)

  local function wakeup(ts, pid, what)
    pair:feed(make[what or "wakeup"]({ pid = pid, comm = "a" }, { common_timestamp = ts,
      common_cpu = 0 }))
  end
  local function switch(ts, from, state, to, names)
    pair:feed(make.switch({
      prev_pid = from, prev_state = state, next_pid = to,
      prev_comm = names and names[1], next_comm = names and names[2],
    }, { common_timestamp = ts, common_cpu = 3 }))
  end

  local function ended()
    at_end()
    local list = {}
    for _, what in ipairs { "wakeup", "preemption" } do
      local row = printed[what]
      list[#list + 1] = row and ("%s %d, %d to %d"):format(what, row.waits, row.min_ns, row.max_ns)
    end
    local sums = printed.waits
    list[#list + 1] = ("%d not seen, %d voided, %d open"):format(sums.not_seen, sums.voided,
      sums.open)
    return table.concat(list, "; ")
  end

  it("starts at the last of two wakeups, and with a new task", function()
    wakeup(100, 5)
    wakeup(150, 5)
    switch(180, 9, 1, 5)
    wakeup(200, 6, "new")
    switch(210, 5, 1, 6)
    assert.equal("wakeup 2, 10 to 30; 1 not seen, 0 voided, 0 open", ended())
  end)

  it("starts where a task that could run was put off, not where it went to sleep", function()
    for i, state in ipairs { 0, 256, 1, 2, 128 } do
      switch(1000 * i, 10 + i, state, 9)
      switch(1000 * i + 10 * i, 9, 1, 10 + i)
    end
    switch(9000, 0, 0, 7)
    switch(9100, 7, 1, 0)
    assert.equal("preemption 2, 10 to 20; 0 not seen, 0 voided, 0 open", ended())
  end)

  it("counts one wait of a task that was put off on its way to sleep and woken then", function()
    switch(100, 5, 256, 9)
    wakeup(150, 5)
    switch(190, 9, 1, 5)
    assert.equal("preemption 1, 90 to 90; 0 not seen, 0 voided, 0 open", ended())
  end)

  it("counts no wait since it was put off if it was woken twice, or went, since", function()
    switch(100, 5, 256, 9)
    wakeup(150, 5)
    wakeup(300, 5)
    switch(320, 9, 1, 5)
    switch(400, 5, 256, 9)
    wakeup(450, 5)
    switch(500, 5, 1, 9)
    wakeup(600, 5)
    switch(640, 9, 1, 5)
    assert.equal("wakeup 2, 20 to 40; 2 not seen, 0 voided, 0 open", ended())
  end)

  it("has no wait of a task that was woken while it ran, nor of a switch not recorded", function()
    wakeup(100, 5)
    switch(150, 5, 1, 9)
    switch(900, 9, 1, 5)
    assert.equal("1 not seen, 0 voided, 0 open", ended())
  end)

  it("gives up what was open when events are lost", function()
    wakeup(100, 5)
    switch(110, 6, 0, 9)
    pair:lost { cpu = 1, after_ts = 100, before_ts = 800 }
    switch(900, 9, 1, 5)
    switch(950, 5, 1, 6)
    wakeup(960, 7)
    assert.equal("0 not seen, 2 voided, 1 open", ended())
  end)

  it("leaves the others alone when it looks at one name, and has lines by it", function()
    start { "--comm", "a*", "--by", "comm" }
    switch(100, 5, 0, 6, { "b", "ab" })
    switch(150, 6, 0, 5, { "ab", "b" })
    switch(190, 5, 0, 6, { "b", "ac" })
    at_end()
    assert.equal(40, printed.ac.max_ns)
    assert.equal(1, printed.waits.waits)
    assert.equal(0, printed.waits.open)
  end)
end)
