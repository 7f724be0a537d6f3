local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local loads = require "spec.support.loads"
local trace_text = require "spec.support.trace_text"

local WAKELAT = "examples/wakelat.lua"
local LOAD = ("%s --name %s"):format(helper.quote(helper.program("support/load")), loads.NAME)
local NAPS = loads.NAME .. "-naps"

-- On a busy machine the timer may come before the task has left its CPU: then it is woken while
-- it still runs, and once more before it has left if that happens twice in a row. Some kernels of
-- virtual machines do not record the switch from an idle CPU.
local function naps()
  return LOAD .. " naps 23 >&2"
end

local function run_busy(words)
  local status, out, err
  loads.on_busy_cpus(function()
    status, out, err = helper.run(words)
  end)
  return status, out, err
end

local function run(words)
  words.timeout = words.timeout or 60
  local status, out, err = run_busy(words)
  assert.equal(0, status, err)
  for line in out:gmatch("[^\n]+") do
    assert.is_true(#line < 80, "80 columns or more: " .. line)
  end
  return out
end

local function run_json(words)
  local json = require "dkjson"
  local status, out, err = run_busy(
    table.move(words, 1, #words, 3, { "-f", "json", timeout = 60 }))
  assert.equal(0, status, err)
  local found = { latency = {}, wakeups = {} }
  for line in out:gmatch("[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      table.insert(found[object.type], object)
    end
  end
  return found
end

describe("examples/wakelat.lua", function()
  for _, from in ipairs { "waking", "wakeup" } do
    it(("counts each of 23 wakeups once, from sched_%s"):format(from), function()
      local found = run_json { "-c", naps(), WAKELAT, "--from", from, "--comm", NAPS }
      assert.equal(1, #found.latency)
      local task = found.latency[1]
      assert.equal(NAPS, task.comm)
      local sums = found.wakeups[1]
      assert.equal(23, sums.wakeups + sums.repeated + sums.still_running + sums.unseen)
      assert.equal(0, sums.voided + sums.open)
      assert.equal(sums.wakeups, task.wakeups)
      assert.is_true(task.min_ns > 0)
      assert.is_true(task.avg_ns >= task.min_ns and task.avg_ns <= task.max_ns)
      assert.is_true(task.p50_ns <= task.p99_ns and task.p99_ns <= task.max_ns)
    end)
  end

  it("has the latencies that the kernel's own text gives", function()
    local printed, lines
    loads.on_busy_cpus(function()
      printed, lines = trace_text.run(LOAD .. " threads 2 97", { WAKELAT })
    end)
    local woken, times, repeated, gone = {}, {}, 0, 0
    for _, line in ipairs(lines) do
      local prev, next_pid = line.text:match "prev_pid=(%d+) .* next_pid=(%d+)"
      if not prev then
        local comm, pid = line.text:match "comm=(.*) pid=(%d+)"
        repeated = repeated + (woken[pid] and 1 or 0)
        woken[pid] = { ns = line.ns, who = comm .. " " .. pid }
      else
        gone = gone + (woken[prev] and 1 or 0)
        local from = woken[next_pid]
        woken[prev], woken[next_pid] = nil, nil
        if from then
          times[from.who] = times[from.who] or {}
          table.insert(times[from.who], line.ns - from.ns)
        end
      end
    end
    local sums = printed.wakeups[1]
    assert.same({ repeated, gone }, { sums.repeated, sums.still_running + sums.unseen })
    for _, row in ipairs(printed.latency) do
      local who = ("%s %d"):format(row.comm, row.pid)
      trace_text.check(times[who], row, "wakeups")
      times[who] = nil
    end
    assert.same({}, times)
  end)

  it("finds what another matcher finds in a recording, with switches that were left out", function()
    if not inputs.are_there then
      pending "the folder of recordings is not there"
    end
    local _, out = helper.run {
      "-q", "-f", "json", "-i", inputs.path "kernel-6.18/block_sched.dat", WAKELAT, "--from",
      "wakeup",
    }
    local count, least, most = 0, math.maxinteger, 0
    for line in out:gmatch "[^\n]+" do
      local object = assert(require("dkjson").decode(line))
      if object.type == "latency" then
        count = count + object.wakeups
        least, most = math.min(least, object.min_ns), math.max(most, object.max_ns)
      end
    end
    assert.same({ 141, 672, 3998362 }, { count, least, most })
  end)

  it("prints the table and a histogram of the same count", function()
    local out = run { "-c", naps(), WAKELAT, "--comm", NAPS }
    local wakeups, repeated, still_running, unseen = out:match(
      "\n(%d+) wakeups, (%d+) repeated, (%d+) still running, (%d+) unseen, 0 voided, 0 open\n")
    assert.equal(23, wakeups + repeated + still_running + unseen, out)
    assert.matches(("\n%s%%-naps +%%d+ +%s +[%%d.]+[num]?s "):format(loads.NAME, wakeups), out)
    local sum = 0
    for count in assert(out:match("\nall wakeups, ns\n(.*)$"), out):gmatch("%.%. %d+ +(%d+) |") do
      sum = sum + count
    end
    assert.equal(tonumber(wakeups), sum)
  end)

  it("follows tasks from CPU to CPU", function()
    local found = run_json {
      "-c", LOAD .. " threads 3 499 >&2",
      WAKELAT, "--by", "comm", "--comm", loads.NAME .. "-p[io]ng", "--sort", "count",
    }
    assert.equal(2, #found.latency)
    local sum = 0
    for _, name in ipairs(found.latency) do
      assert.is_nil(name.pid)
      -- Fewer than rounds where the byte was there already, more where a lock was waited for.
      assert.is_true(name.wakeups > 0)
      sum = sum + name.wakeups
    end
    assert.equal(found.wakeups[1].wakeups, sum)
    assert.is_true(found.latency[1].wakeups >= found.latency[2].wakeups)
  end)

  it("shows as many tasks as asked for, and how many there are besides", function()
    local out = run { "-c", "for i in 1 2 3 4 5; do sleep 0.01; done", WAKELAT, "--top", "2",
      "--no-histogram" }
    local lines = 0
    for _ in out:match("max\n(.-)%.%.%. and %d+ more tasks\n"):gmatch("\n") do
      lines = lines + 1
    end
    assert.equal(2, lines, out)
    assert.falsy(out:find("|", 1, true), out)
  end)

  it("sorts by what it is told", function()
    for _, key in ipairs { "max", "avg", "p99", "count" } do
      local found = run_json { "-c", "for i in 1 2 3 4 5; do sleep 0.01; done", WAKELAT,
        "--sort", key }
      local name = key == "count" and "wakeups" or key .. "_ns"
      assert.is_true(#found.latency > 1)
      for i = 2, #found.latency do
        assert.is_true(found.latency[i - 1][name] >= found.latency[i][name], key)
      end
    end
  end)

  it("is told one task by its pid", function()
    -- it outlives the run, however long that takes to start
    local sleeper = helper.start { "sh", "-c", "for i in $(seq 2000); do sleep 0.05; done" }
    local found = run_json { "-d", "1", WAKELAT, "--pid", tostring(sleeper.pid) }
    sleeper:kill "KILL"
    sleeper:wait()
    assert.equal(1, #found.latency)
    assert.equal(sleeper.pid, found.latency[1].pid)
  end)

  it("says so when nothing was woken", function()
    local out = run { "-c", "true", WAKELAT, "--comm", "no-such-task" }
    assert.equal("no wakeup\n\n" ..
      "0 wakeups, 0 repeated, 0 still running, 0 unseen, 0 voided, 0 open\n",
      out)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs {
      { WAKELAT, "--from", "birth" },
      { WAKELAT, "--top", "0" },
      { WAKELAT, "--pid", "x" },
      { WAKELAT, "--sort", "name" },
    } do
      local status, out, err = helper.run(words)
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[2], 1, true) or err:find(words[3], 1, true), err)
    end
  end)
end)

-- Sequences that no load makes on purpose, brought to the script one by one.
describe("the bookkeeping of examples/wakelat.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, set, make, starts, handlers, at_end, lost, tasks, sums

  before_each(function()
    local fields = { { "pid", "int" }, { "comm", "char[16]" } }
    set, make, handlers, tasks = made_events.new(), {}, {}, {}
    make.sched_waking = set.add("sched:sched_waking", fields)
    make.sched_wakeup_new = set.add("sched:sched_wakeup_new", fields)
    make.sched_switch = set.add("sched:sched_switch",
      { { "prev_pid", "int" }, { "next_pid", "int" } })
    package.loaded["tracefs.script"] = {
      args = {},
      format = "json",
      pair = function(_, options)
        starts = options.start
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      on = function(_, event, _, handler) handlers[event:match(":(.*)")] = handler end,
      on_lost = function(_, fn) lost = fn end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        if object.type == "wakeups" then
          sums = object
        else
          tasks[object.comm .. " " .. object.pid] = object
        end
      end,
    }
    assert(loadfile(WAKELAT))()
  end)

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function bring(event, values, now)
    pair:feed(make[event](values, { common_timestamp = now, common_cpu = 0 }))
  end
  local function waking(pid, now, comm)
    bring("sched_waking", { pid = pid, comm = comm or "a" }, now)
  end
  local function switch(prev, next, now)
    bring("sched_switch", { prev_pid = prev, next_pid = next }, now)
    handlers.sched_switch(next, 0)
  end

  local function counts()
    at_end()
    return ("%d wakeups %d repeated %d still running %d unseen %d voided %d open"):format(
      sums.wakeups, sums.repeated, sums.still_running, sums.unseen, sums.voided, sums.open)
  end

  it("turns on one event that starts the clock, and the one of new tasks", function()
    assert.equal(2, #starts)
    assert.equal("sched:sched_waking", starts[1].event)
    assert.equal("sched:sched_wakeup_new", starts[2].event)
  end)

  it("starts at the last of two wakeups: a task that waits is not woken", function()
    waking(5, 100)
    waking(5, 150)
    switch(0, 5, 180)
    assert.equal("1 wakeups 1 repeated 0 still running 0 unseen 0 voided 0 open", counts())
    assert.equal(30, tasks["a 5"].max_ns)
  end)

  it("does not count a switch without a wakeup", function()
    switch(0, 5, 100)
    switch(5, 0, 120)
    switch(0, 5, 140)
    assert.equal("0 wakeups 0 repeated 0 still running 0 unseen 0 voided 0 open", counts())
  end)

  it("gives up a wakeup of a task that had not left its CPU", function()
    switch(0, 5, 100)
    waking(5, 110)
    switch(5, 0, 120)
    switch(0, 5, 9000)
    assert.equal("0 wakeups 0 repeated 1 still running 0 unseen 0 voided 0 open", counts())
  end)

  it("tells a switch to a task that was not recorded from a task that still ran", function()
    switch(0, 5, 100)
    switch(5, 0, 110)
    waking(5, 200)
    switch(5, 0, 260)
    waking(5, 300)
    switch(0, 5, 310)
    switch(5, 0, 320)
    assert.equal("1 wakeups 0 repeated 0 still running 1 unseen 0 voided 0 open", counts())
  end)

  it("takes the name that the task had when it was woken", function()
    bring("sched_wakeup_new", { pid = 5, comm = "sh" }, 100)
    switch(0, 5, 110)
    switch(5, 0, 120)
    waking(5, 200, "ls")
    switch(0, 5, 230)
    assert.equal("2 wakeups 0 repeated 0 still running 0 unseen 0 voided 0 open", counts())
    assert.equal(10, tasks["sh 5"].max_ns)
    assert.equal(30, tasks["ls 5"].max_ns)
  end)

  it("forgets who was woken when events are lost, and what came late", function()
    waking(5, 100)
    waking(6, 100)
    pair:lost { cpu = 0, after_ts = 100, before_ts = 8000 }
    lost { cpu = 0 }
    switch(0, 5, 9000)
    waking(7, 9100)
    switch(0, 7, 9050)
    waking(8, 9200)
    assert.equal("0 wakeups 0 repeated 0 still running 0 unseen 3 voided 1 open", counts())
  end)
end)
