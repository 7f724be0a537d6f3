local pages = require "spec.support.pages"
local u64 = require("tracefs").u64

local LAYOUT = pages.layout({ data_size = 496 })

-- Commands for the program, built up step by step.
local function script(...)
  return { LAYOUT:command(), "cpus " .. table.concat({ ... }, " ") }
end

local function push(commands, lane, page)
  table.insert(commands, ("page %d %s"):format(lane, pages.hex(page)))
end

-- A page of records at these times, each with its time as data. The page starts at the first one's.
local function page_of(times, options)
  local page = { ts = options and options.ts or times[1] or 0, lost = options and options.lost }
  local last = page.ts
  for i, ts in ipairs(times) do
    page[i] = LAYOUT:short(ts - last, ("<I8"):pack(ts))
    last = ts
  end
  for _, bytes in ipairs(options or {}) do
    table.insert(page, bytes)
  end
  page.commit = options and options.commit
  return LAYOUT:page(page)
end

-- What is printed, without the line of the layout, events shortened to "TS CPU [late]".
local function run(commands)
  local lines = pages.run(commands)
  assert.matches("^layout ", table.remove(lines, 1))
  for i, line in ipairs(lines) do
    local ts, cpu, late, data = line:match("^event (%d+) (%d+) 8 (%S+) (%x+)$")
    if ts then
      assert.equal(ts, u64(("<i8"):unpack(pages.bytes(data))))
      lines[i] = ("%s %s%s"):format(ts, cpu, late == "late" and " late" or "")
    end
  end
  return lines
end

local function drain(commands, watermark)
  table.insert(commands, "drain " .. (watermark or "max"))
  return run(commands)
end

describe("the merge's order", function()
  it("is that of the timestamps across CPUs", function()
    local commands = script(0, 1, 2)
    push(commands, 0, page_of { 10, 40, 70 })
    push(commands, 1, page_of { 20, 50 })
    push(commands, 2, page_of { 30, 60, 80 })
    assert.same({ "10 0", "20 1", "30 2", "40 0", "50 1", "60 2", "70 0", "80 2", "none" },
      drain(commands))
  end)

  it("goes over the pages of a CPU, and over pages without records", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 0, page_of {})
    push(commands, 0, page_of { 20, 30 })
    push(commands, 1, page_of {})
    push(commands, 1, page_of { 25 })
    push(commands, 0, page_of { 40 })
    assert.same({ "10 0", "20 0", "25 1", "30 0", "40 0", "none" }, drain(commands))
  end)

  it("is the CPU's own for equal times, and the smaller CPU's first across CPUs", function()
    local commands = { LAYOUT:command(), "cpus 7 3 5" }
    local function same(lane, marks)
      local list = { ts = 10 }
      for i, mark in ipairs(marks) do
        list[i] = LAYOUT:short(0, mark)
      end
      push(commands, lane, LAYOUT:page(list))
    end
    same(0, { "a7..", "b7.." })
    same(1, { "a3..", "b3..", "c3.." })
    same(2, { "a5.." })
    same(0, { "c7.." })
    table.insert(commands, "drain max")
    local lines = pages.run(commands)
    local marks = {}
    for i, mark in ipairs({ "a3..", "b3..", "c3..", "a5..", "a7..", "b7..", "c7.." }) do
      marks[i] = ("event 10 %s 4 - %s"):format(mark:sub(2, 2), pages.hex(mark))
    end
    assert.same(marks, table.move(lines, 2, 8, 1, {}))
    assert.equal("none", lines[9])
  end)

  it("compares times as unsigned numbers", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { -3 })
    push(commands, 1, page_of { 5 })
    assert.same({ "5 1", "18446744073709551613 0", "none" }, drain(commands))
  end)

  it("hands out nothing newer than the watermark, and that exactly", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10, 20 })
    push(commands, 1, page_of { 20, 21 })
    for _, watermark in ipairs({ 9, 10, 19, 20, 20 }) do
      table.insert(commands, "drain " .. watermark)
    end
    assert.same({ "none", "10 0", "none", "none", "20 0", "20 1", "none", "none", "21 1", "none" },
      drain(commands))
  end)

  it("goes on with what is pushed later", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10, 30 })
    table.insert(commands, "drain 20")
    push(commands, 1, page_of { 25 })
    push(commands, 0, page_of { 35 })
    table.insert(commands, "drain 32")
    push(commands, 1, page_of { 33 })
    assert.same({ "10 0", "none", "25 1", "30 0", "none", "33 1", "35 0", "none" }, drain(commands))
  end)
end)

describe("late events in the merge", function()
  it("are handed out, flagged and counted", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10, 50 })
    table.insert(commands, "drain 60")
    push(commands, 1, page_of { 20, 50, 55 })
    table.insert(commands, "drain 60")
    push(commands, 0, page_of { 54 })
    table.insert(commands, "drain max")
    table.insert(commands, "state 0")
    assert.same({
      "10 0", "50 0", "none",
      "20 1 late", "50 1", "55 1", "none",
      "54 0 late", "none",
      "state empty open start 54 late 2",
    }, run(commands))
  end)

  it("of one CPU, as after a clock that was set back, are late too", function()
    local commands = script(0)
    push(commands, 0, page_of { 10, 20 })
    push(commands, 0, page_of { 15, 21 })
    assert.same({ "10 0", "20 0", "15 0 late", "21 0", "none" }, drain(commands))
  end)
end)

describe("losses in the merge", function()
  it("stand right behind the last record before the gap, before later ones of all CPUs", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 0, page_of({ 50 }, { lost = 5 }))
    push(commands, 1, page_of { 20, 30, 60 })
    assert.same({ "10 0", "lost 5 10 50 0 overrun", "20 1", "30 1", "50 0", "60 1", "none" },
      drain(commands))
  end)

  it("stand before everything when there was no record before", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 1, page_of({ 50 }, { lost = 7 }))
    assert.same({ "lost 7 0 50 1 overrun", "10 0", "50 1", "none" }, drain(commands))
  end)

  it("come at once when the CPU's records before the gap were handed out already", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 1, page_of { 20, 40 })
    table.insert(commands, "drain 30")
    push(commands, 0, page_of({ 35, 50 }, { lost = 3 }))
    table.insert(commands, "next 30")
    assert.same({ "10 0", "20 1", "none", "lost 3 10 35 0 overrun", "35 0", "40 1", "50 0",
      "none" },
      drain(commands))
  end)

  it("are held back with the record before the gap", function()
    local commands = script(0)
    push(commands, 0, page_of { 10 })
    push(commands, 0, page_of({ 50 }, { lost = 3 }))
    for _, watermark in ipairs({ 9, 10, 49, 50 }) do
      table.insert(commands, "drain " .. watermark)
    end
    assert.same({ "none", "10 0", "lost 3 10 50 0 overrun", "none", "none", "50 0", "none" },
      run(commands))
  end)

  it("may have a number that nobody knows", function()
    local commands = script(4)
    push(commands, 0, page_of({ 10 }, { lost = "unknown" }))
    assert.same({ "lost unknown 0 10 4 overrun", "10 4", "none" }, drain(commands))
  end)

  it("are one when no record lies between", function()
    local commands = script(0)
    push(commands, 0, page_of({}, { lost = 5 }))
    push(commands, 0, page_of({}, {}))
    push(commands, 0, page_of({ 10 }, { lost = 6 }))
    push(commands, 0, page_of({}, { lost = 2 }))
    push(commands, 0, page_of({ 20 }, { lost = "unknown" }))
    assert.same({ "lost 11 0 10 0 overrun", "10 0", "lost unknown 10 20 0 overrun", "20 0",
      "none" },
      drain(commands))
  end)

  it("at the very end come when all is asked for", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 0, page_of({}, { lost = 4 }))
    push(commands, 1, page_of({}, { lost = "unknown" }))
    table.insert(commands, "drain 100")
    table.insert(commands, "state 0")
    table.insert(commands, "drain max")
    table.insert(commands, "state 0")
    assert.same({
      "10 0", "none", "state waiting open start 10 late 0",
      "lost 4 10 0 0 overrun", "lost unknown 0 0 1 overrun", "none",
      "state empty open start 10 late 0",
    }, run(commands))
  end)

  it("are what a damaged page leaves out, of an unknown number", function()
    local commands = script(0, 1)
    push(commands, 0, page_of({ 10 }, { LAYOUT:long(1, "....", 2) }))
    push(commands, 0, page_of { 40 })
    push(commands, 1, page_of { 20 })
    assert.same({ "10 0", "lost unknown 10 40 0 damaged", "20 1", "40 0", "none" }, drain(commands))
  end)

  it("are damage when there is any in the gap", function()
    local commands = script(0)
    push(commands, 0, page_of({ 10 }, { LAYOUT:long(1, "....", 2) }))
    push(commands, 0, page_of({ 20 }, { lost = 5 }))
    push(commands, 0, page_of({}, { lost = 5, LAYOUT:long(1, "....", 2) }))
    push(commands, 0, page_of { 40 })
    push(commands, 0, page_of({}, { lost = 5 }))
    push(commands, 0, page_of({}, { commit = 1000 }))
    assert.same({
      "10 0", "lost unknown 10 20 0 damaged", "20 0", "lost unknown 20 40 0 damaged", "40 0",
      "lost unknown 40 0 0 damaged", "none",
    }, drain(commands))
  end)

  it("of a page that is shorter than its header are damage", function()
    local commands = script(0)
    table.insert(commands, "page 0 0011223344")
    table.insert(commands, "page 0 ")
    assert.same({ "lost unknown 0 0 0 damaged", "none" }, drain(commands))
  end)
end)

describe("a lane of the merge", function()
  it("says when it has as many pages as it may", function()
    local commands = { LAYOUT:command(), "lanes 3", "cpus 0 1" }
    local function state()
      table.insert(commands, "state 0")
    end
    state()
    push(commands, 0, page_of { 10, 11 })
    push(commands, 0, page_of { 20 })
    state()
    push(commands, 0, page_of { 30 })
    state()
    table.insert(commands, "next max")
    state()
    table.insert(commands, "next max")
    state()
    assert.same({
      "state empty open start 0 late 0",
      "state waiting open start 20 late 0",
      "state waiting full start 30 late 0",
      "10 0",
      "state waiting full start 30 late 0",
      "11 0",
      "state waiting open start 30 late 0",
    }, run(commands))
  end)

  it("has room for two pages at least", function()
    for lanes = 0, 2 do
      local commands = { LAYOUT:command(), "lanes " .. lanes, "cpus 0" }
      push(commands, 0, page_of { 10 })
      table.insert(commands, "state 0")
      push(commands, 0, page_of { 20 })
      table.insert(commands, "state 0")
      assert.same({ "state waiting open start 10 late 0", "state waiting full start 20 late 0" },
        run(commands))
    end
  end)

  it("does not fill up with pages that have no records", function()
    local commands = { LAYOUT:command(), "lanes 2", "cpus 0" }
    for _ = 1, 5 do
      push(commands, 0, page_of {})
    end
    table.insert(commands, "state 0")
    assert.same({ "state empty open start 0 late 0" }, run(commands))
  end)

  it("knows the start of its newest page, of a damaged one too", function()
    local commands = script(0)
    push(commands, 0, page_of({ 10 }, { ts = 5 }))
    push(commands, 0, page_of({}, { ts = 30, commit = 1000 }))
    table.insert(commands, "state 0")
    assert.same({ "state waiting open start 30 late 0" }, run(commands))
  end)
end)

describe("an event's data", function()
  it("stays as it is until the next call, though it was the last of its page", function()
    local commands = script(0, 1)
    push(commands, 0, page_of { 10 })
    push(commands, 0, page_of { 20 })
    push(commands, 1, page_of { 15 })
    for _ = 1, 3 do
      table.insert(commands, "next max")
      table.insert(commands, "again")
    end
    assert.same({ "10 0", "10 0", "15 1", "15 1", "20 0", "20 0" }, run(commands))
  end)
end)

-- What the merge must do, written down in the simplest way: each CPU has a list of records, each
-- with what was lost before it; of the CPUs that have a record the oldest comes first.
local Model = {}
Model.__index = Model

local function model_of(cpus)
  local self = setmetatable({ newest = 0, lanes = {} }, Model)
  for i, cpu in ipairs(cpus) do
    self.lanes[i] = { cpu = cpu, records = {}, first = 1, last_ts = 0 }
  end
  return self
end

local function add_loss(loss, count, why)
  loss = loss or { count = 0, why = "overrun" }
  if why == "damaged" then
    loss.why = why
  end
  if count == "unknown" or loss.count == "unknown" then
    loss.count = "unknown"
  else
    loss.count = loss.count + count
  end
  return loss
end

function Model:push(index, page)
  local lane = self.lanes[index]
  if page.lost then
    lane.loss = add_loss(lane.loss, page.lost)
  end
  for _, ts in ipairs(page.times) do
    table.insert(lane.records, { ts = ts, loss = lane.loss })
    lane.loss = nil
  end
  if page.damaged then
    lane.loss = add_loss(lane.loss, "unknown", "damaged")
  end
end

local function position(lane, record)
  return record.loss and lane.last_ts or record.ts
end

function Model:next(watermark)
  local best, best_at
  for _, lane in ipairs(self.lanes) do
    local record = lane.records[lane.first]
    local at = record and position(lane, record)
    if record and (not best or at < best_at or at == best_at and lane.cpu < best.cpu) then
      best, best_at = lane, at
    end
  end
  if best and best_at <= watermark then
    local record = best.records[best.first]
    local loss = record.loss
    if loss then
      record.loss = nil
      return ("lost %s %d %d %d %s"):format(loss.count, best.last_ts, record.ts, best.cpu, loss.why)
    end
    best.first = best.first + 1
    best.last_ts = record.ts
    local late = record.ts < self.newest
    self.newest = math.max(self.newest, record.ts)
    return ("%d %d%s"):format(record.ts, best.cpu, late and " late" or "")
  end
  if watermark == math.maxinteger then
    for _, lane in ipairs(self.lanes) do
      if lane.loss and lane.first > #lane.records then
        local loss = lane.loss
        lane.loss = nil
        return ("lost %s %d 0 %d %s"):format(loss.count, lane.last_ts, lane.cpu, loss.why)
      end
    end
  end
  return "none"
end

describe("thousands of random pages", function()
  -- Rounds as a stream does them, with hostile ones between: a CPU's time may stand still, few
  -- times are shared by many records, watermarks may lie anywhere.
  local function round(commands, expected, seed)
    math.randomseed(seed)
    local cpus = {}
    for i = 1, math.random(1, 6) do
      cpus[i] = i * 3 % 7
    end
    table.insert(commands, "cpus " .. table.concat(cpus, " "))
    local model, clocks = model_of(cpus), {}
    local function drain_to(watermark)
      table.insert(commands, "drain " .. (watermark == math.maxinteger and "max" or watermark))
      repeat
        local item = model:next(watermark)
        table.insert(expected, item)
      until item == "none"
    end
    for _ = 1, math.random(5, 40) do
      local lane = math.random(#cpus)
      local times, ts = {}, clocks[lane] or math.random(0, 20)
      for i = 1, math.random(0, 12) do
        ts = ts + math.random(0, 5)
        times[i] = ts
      end
      clocks[lane] = ts
      local page = { times = times, damaged = math.random(8) == 1 }
      if math.random(4) == 1 then
        page.lost = math.random(2) == 1 and math.random(9) or "unknown"
      end
      push(commands, lane - 1, page_of(times, {
        ts = times[1] or ts, lost = page.lost, page.damaged and LAYOUT:long(1, "....", 3) or nil,
      }))
      model:push(lane, page)
      if math.random(3) == 1 then
        drain_to(math.random(0, 10) + (clocks[math.random(#cpus)] or 0))
      end
    end
    drain_to(math.maxinteger)
  end

  it("come as from a simple model", function()
    local first = os.time()
    local commands, expected = { LAYOUT:command() }, {}
    for i = 1, 300 do
      round(commands, expected, first + i)
    end
    local lines = run(commands)
    for i, line in ipairs(expected) do
      if line ~= lines[i] then
        error(("seeds from %d: item %d is '%s', and not '%s'"):format(first + 1, i,
          tostring(lines[i]), line))
      end
    end
    assert.equal(#expected, #lines)
    assert.is_true(#expected > 10000)
  end)

  -- Every page is damaged at random: no crash, and each CPU's damage is told of.
  it("may be damaged in any way", function()
    math.randomseed(os.time())
    local commands, damaged = { LAYOUT:command() }, 0
    for _ = 1, 500 do
      table.insert(commands, "cpus 0 1 2")
      for _ = 1, 40 do
        local times, ts = {}, math.random(100)
        for i = 1, math.random(0, 20) do
          ts = ts + math.random(50)
          times[i] = ts
        end
        local page = page_of(times,
          { ts = times[1] or ts, lost = ({ 3, "unknown" })[math.random(5)] })
        for _ = 1, math.random(5) do
          local at = math.random(math.min(#page, 16 + 12 * #times + 8))
          page = page:sub(1, at - 1) .. string.char(math.random(0, 255)) .. page:sub(at + 1)
        end
        push(commands, math.random(0, 2),
          page:sub(1, math.random(9) == 1 and math.random(0, #page) or #page))
        damaged = damaged + 1
        if math.random(5) == 1 then
          table.insert(commands, "drain " .. math.random(1000))
        end
      end
      table.insert(commands, "drain max")
      table.insert(commands, "state 0")
    end
    assert.equal(20000, damaged)
    local ends, told = 0, 0
    for _, line in ipairs(pages.run(commands)) do
      if line:find("^state") then
        assert.matches("^state empty open", line)
        ends = ends + 1
      elseif line:find("^lost unknown .* damaged$") then
        told = told + 1
      end
    end
    assert.equal(500, ends)
    assert.is_true(told > 1000)
  end)
end)
