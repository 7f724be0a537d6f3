local disk = require "spec.support.disk"
local helper = require "spec.support.helper"
local trace_text = require "spec.support.trace_text"

local FSLAT <const> = "examples/fslat.lua"
local PARTS <const> = { "cpu_ns", "ready_ns", "device_ns", "other_ns" }

-- Writes of a page each: so many into memory, with one sync at the end, and so many that are
-- each followed by one. Files that are written over are synced by the file system, too.
local files = 0
local function writes(lazy, synced, device)
  files = files + 1
  local dd = "dd if=/dev/zero of=" .. device.dir .. "/%s-%d bs=4096 count=%d %s 2>/dev/null"
  return dd:format("lazy", files, lazy, "conv=fsync") .. " && "
    .. dd:format("synced", files, synced, "oflag=dsync")
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

local function objects(out)
  local json = require "dkjson"
  local found = { operation = {}, slowest = {} }
  for line in out:gmatch "[^\n]+" do
    local object = assert(json.decode(line))
    if object.type == "operation" then
      found.operation[object.operation] = object
    elseif object.type == "slowest" then
      table.insert(found.slowest, object)
    else
      found[object.type] = object
    end
  end
  return found
end

local function check_parts(object)
  local sum = 0
  for _, name in ipairs(PARTS) do
    assert.is_true(object[name] >= 0, name)
    sum = sum + object[name]
  end
  assert.equal(object.total_ns, sum)
end

describe("examples/fslat.lua", function()
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

  it("finds exactly 997 writes and 23 that are synced, live and on the recording", function()
    local dir = helper.tmpdir()
    local recorder, path = dir .. "/recorder.lua", dir .. "/trace.dat"
    helper.write_file(recorder, ([[
      require("tracefs.script"):record(%q)
      dofile(%q)
    ]]):format(path, FSLAT))
    local live = objects(run {
      "-f", "json", "-c", writes(997, 23, device), recorder, "--device", device.name,
    })
    local write, sync = live.operation.write, live.operation.sync
    assert.equal(997 + 23, write.count)
    assert.equal(1 + 23, sync.count)
    assert.same({ type = "operations", operations = 997 + 23 + 1 + 23, unfinished = 0, voided = 0,
      open = 0 }, live.operations)
    check_parts(write)
    check_parts(sync)
    -- each of them waits for the journal, and that for the disk
    assert.is_true(sync.device_ns > 0)
    assert.equal(10, #live.slowest)
    for i, slow in ipairs(live.slowest) do
      check_parts(slow)
      assert.equal(device.name, slow.device)
      assert.is_true(i == 1 or slow.total_ns <= live.slowest[i - 1].total_ns)
    end
    assert.equal(math.max(write.max_ns, sync.max_ns), live.slowest[1].total_ns)

    local again = objects(run { "-f", "json", "-i", path, FSLAT })
    assert.same(live.operation, again.operation)
    assert.same(live.operations, again.operations)
  end)

  -- The operations of the kernel's text, each with where its time went: by laying the times at
  -- which its task had no CPU over those at which the disk had requests.
  local function operations_of(lines)
    local begun, away, requests, busy, found = {}, {}, {}, {}, {}
    local function back(pid, now)
      local from = away[pid]
      away[pid] = nil
      if from and begun[pid] then
        table.insert(begun[pid].away, { from = from.ns, to = now, is_ready = from.is_ready })
      end
    end
    for _, line in ipairs(lines) do
      local what, text, now = line.event, line.text, line.ns
      if what == "sched_switch" then
        local prev, state, next_pid = text:match(
          "prev_pid=(%d+) prev_prio=%d+ prev_state=(%S+) ==> .*next_pid=(%d+)")
        prev, next_pid = tonumber(prev), tonumber(next_pid)
        back(prev, now)
        away[prev] = { ns = now, is_ready = state:find "^R%+?$" ~= nil }
        back(next_pid, now)
      elseif what:find "_begin$" or what:find "_enter$" then
        begun[line.pid] = { ns = now, away = {}, inode = tonumber(text:match "ino (%d+)") }
        away[line.pid] = nil
      elseif what:find "^ext4" then
        back(line.pid, now)
        local operation = begun[line.pid]
        begun[line.pid] = nil
        operation.operation = what:find "sync" and "sync" or "write"
        operation.total_ns, operation.to, operation.pid = now - operation.ns, now, line.pid
        found[#found + 1] = operation
      else
        local is_end = what == "block_rq_complete"
        local key = is_end and text:match "^(%S+ %S+) %(.-%) (%d+)"
          or text:match "^(%S+ %S+) %d+ %(.-%) (%d+)"
        local letters = text:match "^%S+ (%S+)"
        local sector, count = text:match "%(.-%) (%d+) %+ (%d+)"
        key = ("%s %s"):format(key, letters == "FF" and "flush" or sector)
        if not is_end and not next(requests) then
          busy[#busy + 1] = { from = now, to = math.maxinteger }
        end
        if not is_end then
          requests[key] = true
        elseif requests[key] and not (count == "0" and letters:find "^W") then
          requests[key] = nil
          if not next(requests) then
            busy[#busy].to = now
          end
        end
      end
    end
    for _, operation in ipairs(found) do
      local off, ready, working = 0, 0, 0
      for _, gone in ipairs(operation.away) do
        local time = gone.to - gone.from
        off, ready = off + time, ready + (gone.is_ready and time or 0)
        for _, work in ipairs(gone.is_ready and {} or busy) do
          local overlap = math.min(work.to, gone.to) - math.max(work.from, gone.from)
          working = working + math.max(overlap, 0)
        end
      end
      operation.cpu_ns, operation.ready_ns = operation.total_ns - off, ready
      operation.device_ns, operation.other_ns = working, off - ready - working
    end
    return found
  end

  it("says where the time of each operation went as the kernel's own text has it", function()
    local out, lines = trace_text.run(writes(499, 101, device), {
      FSLAT, "--device", device.name, "--top", "1000",
    })
    local times, sums, ours = { write = {}, sync = {} }, { write = {}, sync = {} }, {}
    for _, operation in ipairs(operations_of(lines)) do
      local list = times[operation.operation]
      list[#list + 1] = operation.total_ns
      for _, name in ipairs(PARTS) do
        local sum = sums[operation.operation]
        sum[name] = (sum[name] or 0) + operation[name]
        ours[#ours + 1] = ("%d %s %d: %s %d"):format(operation.pid, operation.operation,
          operation.inode, name, operation[name])
      end
    end
    assert.equal(600, #times.write)
    assert.equal(102, #times.sync)
    for _, row in ipairs(out.operation) do
      trace_text.check(times[row.operation], row, "count")
      for _, name in ipairs(PARTS) do
        assert.equal(sums[row.operation][name], row[name], row.operation .. " " .. name)
      end
    end
    local theirs = {}
    for _, slow in ipairs(out.slowest) do
      for _, name in ipairs(PARTS) do
        theirs[#theirs + 1] = ("%d %s %d: %s %d"):format(slow.pid, slow.operation, slow.inode, name,
          slow[name])
      end
    end
    table.sort(ours)
    table.sort(theirs)
    assert.same(ours, theirs)
  end)

  it("prints a table of operations and the slowest ones", function()
    local out = run {
      "-c", writes(17, 5, device), FSLAT, "--device", device.path, "--comm", "dd", "--top", "3",
    }
    assert.matches("^operation +count +avg +p99 +max +cpu +ready +device +other\n", out)
    assert.matches("\nwrite +22 +[%d.]+[num]?s .*%%\n", out)
    assert.matches("\nsync +6 +[%d.]+[num]?s .*%%\n", out)
    local slowest = assert(out:match "\n\nslowest [^\n]*\n(.-)\n\n", out)
    assert.equal(3, select(2, (slowest .. "\n"):gsub("dd +%l+ +%d+ +%d+ [^\n]*\n", "")))
    assert.matches("\n28 operations, 0 unfinished, 0 voided, 0 open\n$", out)
    for line in out:gmatch "[^\n]+" do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("is rows and metrics, too", function()
    local out = run { "-f", "csv", "-c", writes(17, 1, device), FSLAT, "--device", device.name }
    assert.matches("^type,avg_ns,count,cpu_ns,device_ns,max_ns,operation,other_ns,p99_ns,"
      .. "ready_ns,total_ns,more\r\n", out)
    assert.matches("\noperation,%d+,18,%d+,%d+,%d+,write,%d+,%d+,%d+,%d+,\r\n", out)
    out = run { "-f", "prometheus", "-c", writes(1, 1, device), FSLAT, "--device", device.name }
    assert.matches('\nluatrace_ext4_seconds_count{operation="sync"} 2\n', out)
  end)

  it("says so when nothing was written", function()
    assert.equal("0 operations, 0 unfinished, 0 voided, 0 open\n",
      run { "-c", "true", FSLAT, "--device", device.name })
  end)

  it("refuses what makes no sense", function()
    for option, value in pairs { ["--device"] = "nosuch0", ["--top"] = "0" } do
      local status, out, err = helper.run { FSLAT, option, value }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find("'" .. value .. "'", 1, true), err)
    end
  end)
end)

-- Sequences that no load makes on purpose, brought to the script one by one.
describe("the bookkeeping of examples/fslat.lua", function()
  local made_events = require "spec.support.made_events"
  local DEV <const> = 8 << 20
  local FIELDS <const> = {
    ["ext4:ext4_da_write_begin"] = { { "dev", "u32" }, { "ino", "u64" } },
    ["ext4:ext4_da_write_end"] = { { "dev", "u32" } },
    ["ext4:ext4_sync_file_enter"] = { { "dev", "u32" }, { "ino", "u64" } },
    ["ext4:ext4_sync_file_exit"] = { { "dev", "u32" } },
    ["block:block_rq_issue"] = { { "dev", "u32" }, { "sector", "u64" }, { "rwbs", "char[16]" } },
    ["block:block_rq_complete"] = { { "dev", "u32" }, { "sector", "u64" }, { "rwbs", "char[16]" } },
  }
  local pair_list, handlers, make, at_end, rows, sums

  before_each(function()
    local set = made_events.new()
    pair_list, handlers, make, rows = {}, {}, {}, {}
    for label, fields in pairs(FIELDS) do
      make[label] = set.add(label, fields)
    end
    package.loaded["tracefs.script"] = {
      args = {},
      format = "json",
      instance = { file = "elsewhere" },
      pair = function(_, options)
        local made = require("tracefs.pair").new(options, set.find)
        table.insert(pair_list, made)
        return made
      end,
      on = function(_, event, fields, handler)
        handlers[event] = { fields = fields, call = handler }
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        if object.type == "operation" then
          rows[object.operation] = object
        elseif object.type == "operations" then
          sums = object
        end
      end,
    }
    assert(loadfile(FSLAT))()
  end)

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function bring(label, values, now)
    values.dev = DEV
    local record = make[label](values, { common_timestamp = now })
    for _, pair in ipairs(pair_list) do
      pair:feed(record)
    end
    if handlers[label] then
      local list = {}
      for i, name in ipairs(handlers[label].fields) do
        list[i] = record[name]
      end
      handlers[label].call(table.unpack(list))
    end
  end
  local function sync_begins(pid, now)
    bring("ext4:ext4_sync_file_enter", { common_pid = pid, ino = 12 }, now)
  end
  local function sync_ends(pid, now)
    bring("ext4:ext4_sync_file_exit", { common_pid = pid }, now)
  end
  local function issue(sector, now, rwbs)
    bring("block:block_rq_issue", { sector = sector, rwbs = rwbs or "WS" }, now)
  end
  local function complete(sector, now, rwbs)
    bring("block:block_rq_complete", { sector = sector, rwbs = rwbs or "WS" }, now)
  end
  local function switch(prev, state, next_pid, now)
    handlers["sched:sched_switch"].call(prev, state, next_pid, now)
  end

  local function parts(operation)
    at_end()
    local row = rows[operation]
    return ("%d cpu %d ready %d device %d other"):format(row.cpu_ns, row.ready_ns, row.device_ns,
      row.other_ns)
  end

  it("says of each moment where it went", function()
    sync_begins(5, 1000)
    switch(5, 0x100, 6, 1100)  -- another one is more important
    switch(6, 2, 5, 1400)
    issue(8, 1450)
    switch(5, 2, 0, 1500)      -- sleeps: 300 while the disk works,
    complete(8, 1800)
    issue(16, 1850)            -- 50 while it does not, 30 again, and 20 not
    complete(16, 1880)
    switch(0, 0, 5, 1900)
    sync_ends(5, 2000)
    assert.equal("300 cpu 300 ready 330 device 70 other", parts "sync")
    assert.equal(1000, rows.sync.total_ns)
  end)

  it("takes requests that overlap for one time of work, and sees flushes end", function()
    issue(0, 900, "FF")
    sync_begins(5, 1000)
    switch(5, 2, 0, 1000)
    issue(8, 1100)
    complete(-1, 1200, "FF")
    issue(16, 1300)
    complete(8, 1400)
    complete(16, 1500)
    switch(0, 0, 5, 2000)
    sync_ends(5, 2000)
    assert.equal("0 cpu 0 ready 500 device 500 other", parts "sync")
  end)

  it("does without the switch to the task where the kernel has not recorded it", function()
    sync_begins(5, 1000)
    switch(5, 2, 0, 1100)
    switch(5, 2, 0, 1600)
    sync_ends(5, 1700)
    assert.equal("100 cpu 0 ready 0 device 600 other", parts "sync")
  end)

  it("tells tasks and operations apart", function()
    sync_begins(5, 1000)
    bring("ext4:ext4_da_write_begin", { common_pid = 6, ino = 13 }, 1010)
    switch(6, 0, 7, 1030)
    switch(7, 0, 6, 1050)
    bring("ext4:ext4_da_write_end", { common_pid = 6 }, 1110)
    sync_ends(5, 1500)
    assert.equal("500 cpu 0 ready 0 device 0 other", parts "sync")
    assert.equal("80 cpu 20 ready 0 device 0 other", parts "write")
  end)

  it("does not pair over a gap, and has nothing under way behind it", function()
    issue(8, 900)
    sync_begins(5, 1000)
    switch(5, 2, 0, 1100)
    for _, pair in ipairs(pair_list) do
      pair:lost { cpu = 0, count = 5, after_ts = 1100, before_ts = 3000 }
    end
    sync_ends(5, 4000)
    sync_begins(5, 5000)
    switch(5, 2, 0, 5000)
    switch(0, 0, 5, 5100)
    sync_ends(5, 5200)
    sync_begins(5, 6000)
    sync_begins(5, 6100)
    assert.equal("100 cpu 0 ready 0 device 100 other", parts "sync")
    assert.same({ type = "operations", operations = 1, unfinished = 1, voided = 1, open = 1 }, sums)
  end)
end)
