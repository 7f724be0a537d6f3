local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local trace_text = require "spec.support.trace_text"
local tracefs = require "tracefs"
local units = require "tracefs.units"

local OFFCPU = "examples/offcpu.lua"
local LOAD = ("%s --name %s"):format(helper.quote(helper.program("support/load")), loads.NAME)
local NAPS = loads.NAME .. "-naps"

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out, err
end

local function lines_of(out)
  for line in out:gmatch("[^\n]+") do
    assert.is_true(#line < 80, "80 columns or more: " .. line)
  end
  return out
end

local function objects(out)
  local json = require "dkjson"
  local found = { task = {}, stack = {}, offcpu = {} }
  for line in out:gmatch("[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      table.insert(found[object.type], object)
    end
  end
  return found, found.offcpu[1]
end

local function sum(list, name)
  local total = 0
  for _, object in ipairs(list) do
    total = total + object[name]
  end
  return total
end

-- "stack NS" lines as a list, and their sum.
local function parse_folded(out)
  local list, total = {}, 0
  for line in out:gmatch("[^\n]+") do
    local stack, ns = line:match("^(.+) (%d+)$")
    list[#list + 1] = { stack = stack, ns = math.tointeger(ns) }
    total = total + ns
  end
  return list, total
end

describe("examples/offcpu.lua", function()
  if not tracefs.features().trigger_stacktrace then
    pending "the kernel has no trigger stacktrace"
    return
  end

  -- The kernel counts how often a thread gives its CPU away because it has to wait; a nap whose
  -- timer is faster than the thread is none.
  it("sees each wait of 23 naps, by the kernel's own count", function()
    local out, err
    loads.on_busy_cpus(function()
      out, err = run { "-f", "json", "-c", LOAD .. " naps 23 >&2", OFFCPU, "--comm", NAPS }
    end)
    local waits = math.tointeger(err:match("naps=23 waits=(%d+)"))
    assert.is_true(waits > 0)
    local found, sums = objects(out)
    -- All of them, unless a CPU was stopped in the middle of an event.
    local given_up = sums.unseen + sums.voided
    assert.is_true(sums.intervals <= waits and sums.intervals + given_up >= waits, out)
    assert.equal(1, #found.task)
    assert.equal(NAPS, found.task[1].comm)
    assert.equal(sums.intervals, found.task[1].intervals)
    assert.equal(sums.total_ns, found.task[1].total_ns)
    assert.equal(sums.total_ns, sum(found.stack, "total_ns"))
    assert.equal(1, found.stack[1].stack:find(NAPS .. ";", 1, true), out)
    assert.truthy(found.stack[1].stack:find("nanosleep.*schedule"), out)
    assert.is_true(found.task[1].max_ns >= 1000000)
  end)

  for state, load in pairs { blocked = "naps 101", runnable = "--cpu all syscalls 200000" } do
    it(("has the times and stacks of the kernel's own text, %s"):format(state), function()
      local out, lines
      loads.on_busy_cpus(function()
        out, lines = trace_text.run(("%s %s"):format(LOAD, load), {
          OFFCPU, "--comm", loads.NAME .. "-*", "--state", state,
        })
      end)
      local away, times, stacks, count, unseen = {}, {}, {}, 0, 0
      for _, line in ipairs(lines) do
        local comm, prev, letters, next_pid = line.text:match(
          "^prev_comm=(.*) prev_pid=(%d+) prev_prio=%d+ prev_state=(%S+) ==> .*next_pid=(%d+)")
        local from = away[next_pid]
        away[next_pid] = nil
        if from then
          count = count + 1
          times[next_pid] = times[next_pid] or {}
          table.insert(times[next_pid], line.ns - from.ns)
          stacks[from.stack] = (stacks[from.stack] or 0) + line.ns - from.ns
        end
        unseen = unseen + (away[prev] and 1 or 0)
        local is_wanted = comm:find(loads.NAME .. "-", 1, true) == 1 and not letters:find "[XZ]"
          and (letters:find "^R%+?$" ~= nil) == (state == "runnable")
        -- the last ones are of the tracing itself
        away[prev] = is_wanted and {
          ns = line.ns, stack = comm .. ";" .. line.stack:gsub(";__traceiter_.*$", ""),
        } or nil
      end
      local found = {}
      for _, row in ipairs(out.stack) do
        found[row.stack] = row.total_ns
      end
      assert.is_true(count > 0)
      assert.same(stacks, found)
      assert.same({ count, unseen }, { out.offcpu[1].intervals, out.offcpu[1].unseen })
      for _, row in ipairs(out.task) do
        local pid = tostring(row.pid)
        trace_text.check(times[pid], row, "intervals")
        times[pid] = nil
      end
      assert.same({}, times)
    end)
  end

  describe("on a recording", function()
    local path, waits, seen

    -- What another way of counting makes of the same records.
    local function record()
      local off = {}
      seen = { blocked = { n = 0, ns = 0 }, runnable = { n = 0, ns = 0 } }
      path = helper.tmpdir() .. "/offcpu.dat"
      local session <close> = tracefs.session {}
      session:record(path)
      session:on("sched:sched_switch", {
        "prev_comm", "prev_pid", "prev_state", "next_pid", "common_timestamp",
        filter = ('prev_comm == "%s" || next_comm == "%s"'):format(NAPS, NAPS), stack = true,
      }, function(comm, prev, state, next, now)
        local start = off[next]
        off[next] = nil
        if start then
          local sums = seen[start.waits and "blocked" or "runnable"]
          sums.n, sums.ns = sums.n + 1, sums.ns + now - start.at
        end
        if comm == NAPS then
          off[prev] = { at = now, waits = state ~= 0 and state < 0x100 }
        end
      end)
      local load, stats
      loads.on_busy_cpus(function()
        load, stats = loads.run_session(session, { "--name", loads.NAME, "naps", 23 })
      end)
      waits = load.waits
      return stats.late == 0 and seen.blocked.n == waits
    end

    it("gives the same numbers in each of its outputs", function()
      -- Where a CPU was stopped in the middle of an event that one comes late, and other times. And
      -- kernels of virtual machines leave out switches from idle CPUs: both are tried again.
      local is_whole
      for _ = 1, 10 do
        is_whole = is_whole or record()
      end
      assert.is_true(is_whole, ("%d waits, %d seen"):format(waits, seen.blocked.n))
      for _, state in ipairs { "blocked", "runnable" } do
        local _, sums = objects(run { "-i", path, "-f", "json", OFFCPU, "--comm", NAPS,
          "--state", state })
        assert.equal(seen[state].n, sums.intervals)
        assert.equal(seen[state].ns, sums.total_ns)
      end
      local flame = helper.tmpdir() .. "/offcpu.svg"
      local list, total = parse_folded(run { "-i", path, OFFCPU, "--comm", NAPS, "--folded",
        "--flame", flame })
      assert.equal(seen.blocked.ns, total)
      for _, entry in ipairs(list) do
        assert.equal(1, entry.stack:find(NAPS .. ";", 1, true), entry.stack)
        assert.truthy(entry.stack:find("schedule", 1, true), entry.stack)
      end
      local svg = helper.read_file(flame)
      assert.truthy(svg:find(("<title>all: %s, 100.00 %%</title>"):format(
        units.format(total, "ns")), 1, true))
      assert.truthy(svg:find("<title>" .. NAPS .. ": ", 1, true))
      assert.matches("</svg>\n$", svg)

      local out = lines_of(run { "-i", path, OFFCPU, "--comm", NAPS })
      assert.truthy(out:find(("\n%d intervals, %s; 0 unseen, 0 voided, "):format(waits,
        units.format(total, "ns")), 1, true), out)
      assert.truthy(out:find("\n   schedule\n", 1, true), out)

      out = run { "-i", path, OFFCPU, "--comm", NAPS, "--min", "1000000000" }
      assert.matches("^no interval\n\n0 intervals, 0ns;", out)
    end)
  end)

  it("is told one task by its pid", function()
    -- it outlives the run, however long that takes to start
    local sleeper = helper.start { "sh", "-c", "for i in $(seq 2000); do sleep 0.05; done" }
    local out = run { "-d", "1", "-f", "json", OFFCPU, "--pid", tostring(sleeper.pid) }
    sleeper:kill "KILL"
    sleeper:wait()
    local found, sums = objects(out)
    assert.equal(1, #found.task, out)
    assert.equal(sleeper.pid, found.task[1].pid)
    assert.equal(sums.intervals, found.task[1].intervals)
    assert.truthy(found.stack[1].stack:find("wait", 1, true), out)
  end)

  it("prints what it has seen also when the picture cannot be written", function()
    local status, out, err = helper.run {
      "-q", "-i", "examples/demo.dat", OFFCPU, "--flame", "/nowhere/x.svg",
    }
    assert.equal(1, status)
    assert.matches("^no interval\n\n0 intervals, ", out)
    assert.matches("cannot write to '/nowhere/x.svg'", err, 1, true)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs {
      { OFFCPU, "--state", "asleep" }, { OFFCPU, "--top", "0" }, { OFFCPU, "--pid", "x" },
      { OFFCPU, "--min", "-1" }, { OFFCPU, "--comm", "a[" },
    } do
      local status, out, err = helper.run(words)
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[2], 1, true) or err:find(words[3], 1, true), err)
    end
  end)
end)

-- Sequences that no load makes on purpose, brought to the script's pair one by one.
describe("the bookkeeping of examples/offcpu.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, at_end, printed

  local function start(...)
    local set = made_events.new()
    printed = {}
    make = set.add("sched:sched_switch", {
      { "prev_comm", "char[16]" }, { "prev_pid", "int" }, { "prev_state", "s64" },
      { "next_pid", "int" },
    })
    package.loaded["tracefs.script"] = {
      args = { ... },
      format = "json",
      pair = function(_, options)
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object) printed[object.type] = object end,
    }
    assert(loadfile(OFFCPU))()
  end

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function switch(now, prev, state, next_pid)
    pair:feed(make({ prev_comm = "task" .. prev, prev_pid = prev, prev_state = state,
      next_pid = next_pid }, { common_timestamp = now, common_cpu = 1 }))
  end

  it("does not wait for a task that has ended, nor take another one of its pid for it", function()
    for _, state in ipairs { "blocked", "all" } do
      start("--state", state)
      switch(100, 7, 0x20, 0)  -- Z
      switch(110, 8, 0x10, 0)  -- X
      switch(120, 9, 1, 0)
      switch(130, 10, 2, 0)
      switch(900, 0, 0, 8)
      switch(950, 0, 0, 10)
      at_end()
      local sums = printed.offcpu
      assert.same({ 1, 820, 1, 0 },
        { sums.intervals, sums.total_ns, sums.still_off, sums.unseen }, state)
      assert.equal("task10", printed.task.comm)
    end
  end)
end)
