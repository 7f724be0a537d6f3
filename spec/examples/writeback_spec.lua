local disk = require "spec.support.disk"
local helper = require "spec.support.helper"
local lfs = require "lfs"
local trace_text = require "spec.support.trace_text"

local WRITEBACK <const> = "examples/writeback.lua"
local PAGE <const> = 4096

local function file_of(count, device)
  return ("%s/%d-pages"):format(device.dir, count)
end

-- Dirties so many pages of a new file and has the kernel write them out; one that is written over
-- is written out at once, by whoever closes it.
local function dirty(count, device)
  local file = file_of(count, device)
  return ("dd if=/dev/zero of=%s bs=%d count=%d 2>/dev/null && sync -f %s"):format(file, PAGE,
    count, file)
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

describe("examples/writeback.lua", function()
  local device, why

  setup(function()
    device, why = disk.attach "ext4"
  end)

  teardown(function()
    if device then
      device:close()
    end
  end)

  local it = helper.it_after(it, function()
    if not device then
      pending(why)
    end
  end)

  it("finds exactly 1009 pages that were written out, of one file", function()
    local json = require "dkjson"
    local found = { writeback = {}, inode = {}, rounds = {}, paused = {}, stats = {} }
    for line in run({
      "-f", "json", "-c", dirty(1009, device), WRITEBACK, "--device", device.name, "--inodes",
    }):gmatch "[^\n]+" do
      local object = assert(json.decode(line))
      table.insert(found[object.type], object)
    end
    -- Somebody may have had the idea before the command asked for it.
    local pages, rounds = 0, 0
    for _, row in ipairs(found.writeback) do
      assert.equal(device.name, row.device)
      assert.is_true(row.avg_ns > 0 and row.max_ns >= row.avg_ns)
      pages, rounds = pages + row.pages, rounds + row.rounds
    end
    local sums = found.rounds[1]
    assert.equal(1009, pages)
    assert.equal(1009, sums.pages)
    assert.equal(rounds, sums.rounds)
    assert.equal(0, sums.voided + sums.open)
    assert.equal(1, #found.inode)
    assert.equal(1009, found.inode[1].pages)
    assert.equal(lfs.attributes(file_of(1009, device), "ino"), found.inode[1].inode)
  end)

  it("has the times and pages of rounds that the kernel's own text gives", function()
    local load = {}
    for i, count in ipairs { 499, 101, 29, 7 } do
      load[i] = dirty(count, device)
    end
    local objects, lines = trace_text.run(table.concat(load, " && "),
      { WRITEBACK, "--device", device.name })
    local started, times, pages, empty = {}, {}, {}, 0
    for _, line in ipairs(lines) do
      local left, reason = line.text:match "nr_pages=(%-?%d+) .*reason=(%S+)"
      local from = started[line.pid]
      if line.event == "writeback_start" then
        started[line.pid] = { ns = line.ns, left = left }
      elseif from then
        started[line.pid] = nil
        if from.left - left > 0 then
          times[reason] = times[reason] or {}
          table.insert(times[reason], line.ns - from.ns)
          pages[reason] = (pages[reason] or 0) + (from.left - left)
        else
          empty = empty + 1
        end
      end
    end
    local sum = 0
    for _, row in ipairs(objects.writeback) do
      trace_text.check(times[row.reason], row, "rounds")
      assert.equal(pages[row.reason], row.pages)
      times[row.reason], sum = nil, sum + row.pages
    end
    assert.same({}, times)
    assert.equal(636, sum)
    assert.equal(empty, objects.rounds[1].empty)
  end)

  it("prints tables", function()
    local out = run {
      "-c", dirty(23, device), WRITEBACK, "--device", device.path, "--inodes",
    }
    assert.matches("^device +reason +rounds +pages +avg +p99 +max\n", out)
    assert.matches(("\n%s +%%l+ +%%d+ +%%d+ +[%%d.]+[num]?s "):format(device.name), out)
    assert.matches("\n%d+ rounds of 23 pages, %d+ empty, 0 voided, 0 open\n", out)
    assert.matches(("\n%s +%d +%%d+ +23\n"):format(device.name,
      lfs.attributes(file_of(23, device), "ino")), out)
    for line in out:gmatch "[^\n]+" do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("is rows and metrics, too", function()
    local out = run { "-f", "csv", "-c", dirty(17, device), WRITEBACK, "--device", device.name }
    assert.matches("^type,avg_ns,device,max_ns,p99_ns,pages,reason,rounds,more\r\n"
      .. ("writeback,%%d+,%s,%%d+,%%d+,17,%%l+,%%d+,\r\n"):format(device.name), out)
    out = run {
      "-f", "prometheus", "-c", dirty(19, device), WRITEBACK, "--device", device.name,
    }
    assert.matches(('\nluatrace_writeback_pages_sum{device="%s",reason="%%l+"} 19\n'):format(
      device.name), out)
  end)

  it("refuses what makes no sense", function()
    for option, value in pairs { ["--device"] = "nosuch0", ["--top"] = "0" } do
      local status, out, err = helper.run { WRITEBACK, option, value }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find("'" .. value .. "'", 1, true), err)
    end
  end)
end)

-- Sequences that no load makes on purpose, brought to the script one by one.
describe("the bookkeeping of examples/writeback.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, handlers, filters, at_end, printed

  local function start(...)
    local set = made_events.new()
    local fields = { { "name", "char[16]" }, { "nr_pages", "s64" }, { "reason", "int" } }
    make, handlers, filters, printed = {}, {}, {}, {}
    for _, name in ipairs { "writeback_start", "writeback_written" } do
      make[name] = set.add("writeback:" .. name, fields)
    end
    package.loaded["tracefs.script"] = {
      args = { ... },
      format = "json",
      instance = { file = "elsewhere" },
      pair = function(_, options)
        filters.pair = options.start.filter
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      on = function(_, event, fields_of, handler)
        handlers[event:match ":(.*)"], filters[event:match ":(.*)"] = handler, fields_of.filter
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        printed[object.type] = printed[object.type] or {}
        table.insert(printed[object.type], object)
      end,
    }
    assert(loadfile(WRITEBACK))()
  end

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function bring(event, pages, now, reason)
    pair:feed(make[event]({ name = "8:0", nr_pages = pages, reason = reason or 2 },
      { common_timestamp = now }))
  end

  local function counts()
    at_end()
    local sums = printed.rounds[1]
    return ("%d rounds %d pages %d empty %d voided %d open"):format(sums.rounds, sums.pages,
      sums.empty, sums.voided, sums.open)
  end

  it("takes what a round has done, and no round that had nothing to do", function()
    start()
    bring("writeback_start", 9000, 100)
    bring("writeback_written", 7976, 350)
    bring("writeback_start", 7976, 400)
    bring("writeback_written", 7966, 450)
    bring("writeback_start", 7966, 500)
    bring("writeback_written", 7966, 900)
    bring("writeback_start", 7966, 1000)
    assert.equal("2 rounds 1034 pages 1 empty 0 voided 1 open", counts())
    local row = printed.writeback[1]
    assert.equal("8:0", row.device)
    assert.equal(1034, row.pages)
    assert.equal(250, row.max_ns)
    assert.equal(150, row.avg_ns)
  end)

  it("does not pair over a gap", function()
    start()
    bring("writeback_start", 9000, 100)
    pair:lost { cpu = 0, count = 3, after_ts = 100, before_ts = 700 }
    bring("writeback_written", 10, 800)
    assert.equal("0 rounds 0 pages 0 empty 1 voided 0 open", counts())
    assert.is_nil(printed.writeback)
  end)

  it("adds up the pauses of each task", function()
    start()
    handlers.balance_dirty_pages("cp", 50, 200)
    handlers.balance_dirty_pages("cp", 50, 4)
    handlers.balance_dirty_pages("dd", 60, 12)
    at_end()
    assert.same({
      { type = "paused", comm = "cp", pid = 50, times = 2, total_ns = 204000000,
        max_ns = 200000000 },
      { type = "paused", comm = "dd", pid = 60, times = 1, total_ns = 12000000, max_ns = 12000000 },
    }, printed.paused)
  end)

  it("asks the kernel for what is to be shown only", function()
    start()
    assert.is_nil(filters.pair)
    assert.same({ pause = { [">"] = 0 } }, filters.balance_dirty_pages)
    assert.is_nil(handlers.writeback_single_inode)
    start("--device", "4095:7", "--inodes")
    assert.same({ name = { "4095:7" } }, filters.pair)
    assert.same({ bdi = { "4095:7" }, pause = { [">"] = 0 } }, filters.balance_dirty_pages)
    assert.same({ name = { "4095:7" }, wrote = { [">"] = 0 } }, filters.writeback_single_inode)
  end)
end)
