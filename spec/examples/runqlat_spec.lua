local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local json = require "dkjson"
local undisturbed = require "spec.support.undisturbed"

local RUNQLAT <const> = "examples/runqlat.lua"
local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)

-- The example, and beside it handlers of their own that find the same waits from records.
local BESIDE <const> = [==[
  package.path = %q .. "/examples/?.lua;" .. package.path
  local trace = require "tracefs.script"
  local since, kind, seen, not_seen = {}, {}, {}, 0
  local function begin(pid, ts, what)
    if not since[pid] then
      since[pid], kind[pid] = ts, what
    end
  end
  local function wakeup(ev) begin(ev.pid, ev.common_timestamp, "wakeup") end
  trace:on("sched:sched_wakeup", wakeup)
  trace:on("sched:sched_wakeup_new", wakeup)
  trace:on("sched:sched_switch", function(ev)
    local from, to, ts = ev.prev_pid, ev.next_pid, ev.common_timestamp
    if since[from] then
      since[from], not_seen = nil, not_seen + 1
    end
    if since[to] then
      local ns = ts - since[to]
      since[to] = nil
      local sum = seen[kind[to]] or { waits = 0, ns = 0, min_ns = ns, max_ns = ns }
      seen[kind[to]] = sum
      sum.waits, sum.ns = sum.waits + 1, sum.ns + ns
      sum.min_ns, sum.max_ns = math.min(sum.min_ns, ns), math.max(sum.max_ns, ns)
    end
    if from ~= 0 and ev.prev_state %% 256 == 0 then
      begin(from, ts, "preemption")
    end
  end)
  trace:at_end(function()
    local sums = { type = "seen", not_seen = not_seen }
    for what, sum in pairs(seen) do
      sums[what] = ("%%d waits, %%d to %%d ns, %%d on average"):format(sum.waits, sum.min_ns,
        sum.max_ns, sum.ns // sum.waits)
    end
    trace:print(sums)
  end)
  require "runqlat"
]==]

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
  it("finds the waits that another way finds in the same run", function()
    local script = helper.tmpdir() .. "/beside.lua"
    helper.write_file(script, BESIDE:format(helper.root))
    local found = run_busy(run_json, { "-c", LOAD .. " threads 2 97 >&2", script })
    local sums, waits = { type = "seen", not_seen = found.waits.not_seen }, 0
    for _, row in ipairs(found.wait) do
      sums[row.after] = ("%d waits, %d to %d ns, %d on average"):format(row.waits, row.min_ns,
        row.max_ns, row.avg_ns)
      waits = waits + row.waits
    end
    assert.same(found.seen, sums)
    assert.equal(waits, found.waits.waits)
    -- A CPU has one place, and there are tasks that only compute.
    assert.truthy(sums.wakeup)
    assert.truthy(sums.preemption)
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

  it("starts at the first of two wakeups, and with a new task", function()
    wakeup(100, 5)
    wakeup(150, 5)
    switch(180, 9, 1, 5)
    wakeup(200, 6, "new")
    switch(210, 5, 1, 6)
    assert.equal("wakeup 2, 10 to 80; 0 not seen, 0 voided, 0 open", ended())
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
