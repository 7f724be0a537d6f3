local disk = require "spec.support.disk"
local helper = require "spec.support.helper"
local trace_text = require "spec.support.trace_text"

local BIOLAT <const> = "examples/biolat.lua"

-- So many writes, and one flush of the device's cache.
local function writes(count, device)
  return ("dd if=/dev/zero of=%s bs=4096 count=%d oflag=direct conv=fsync 2>/dev/null"):format(
    device.path, count)
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

-- What others do on the device (somebody may look what is new on it) is no write.
local function written(out)
  local json = require "dkjson"
  local found
  for line in out:gmatch "[^\n]+" do
    local object = assert(json.decode(line))
    if object.type == "latency" and object.operation == "write" then
      assert.is_nil(found)
      found = object
    end
  end
  return found
end

describe("examples/biolat.lua", function()
  local device, why

  setup(function()
    device, why = disk.attach "raw"
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

  it("finds exactly 997 writes, live and on the recording", function()
    local dir = helper.tmpdir()
    local recorder, path = dir .. "/recorder.lua", dir .. "/trace.dat"
    helper.write_file(recorder, ([[
      require("tracefs.script"):record(%q)
      dofile(%q)
    ]]):format(path, BIOLAT))
    local live = written(run {
      "-f", "json", "-c", writes(997, device), recorder, "--device", device.name,
    })
    assert.equal(997, live.requests)
    assert.equal(device.name, live.device)
    local before = 1
    for _, name in ipairs { "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns" } do
      assert.is_true(live[name] >= before, name)
      before = live[name]
    end
    assert.is_true(live.avg_ns >= live.min_ns and live.avg_ns <= live.max_ns)

    local number = ("%d:%d"):format(device.dev >> 20, device.dev & 0xfffff)
    local again = written(run { "-f", "json", "-i", path, BIOLAT, "--device", number })
    assert.equal(number, again.device)
    again.device = device.name
    assert.same(live, again)
  end)

  it("has the times that the kernel's own text gives for each of 997 writes", function()
    local objects, lines = trace_text.run(writes(997, device), { BIOLAT, "--device", device.name })
    -- "7,0 WS 4096 () 8 + 8 ...": device, operation, size of one that is issued, and where
    local times = trace_text.intervals(lines, function(line)
      return line.event == "block_rq_issue"
        and table.concat({ line.text:match "^(%S+ %S+) %d+ %(.-%) (%d+) " }, " at ")
    end, function(line)
      local what, sector, count = line.text:match "^(%S+ %S+) %(.-%) (%d+) %+ (%d+) "
      if line.event ~= "block_rq_complete" or count == "0" and what:find " W" then
        return nil
      end
      return ("%s at %s"):format(what, #sector > 19 and "0" or sector)
    end, function(_, to)
      local letters = to.text:match "^%S+ (%S+)"
      return letters:find "^F?W" and "write" or letters:find "^F?R" and "read"
        or letters:find "^FF" and "flush" or "other"
    end)
    assert.equal(997, #times.write)
    for _, row in ipairs(objects.latency) do
      trace_text.check(times[row.operation], row, "requests")
      times[row.operation] = nil
    end
    assert.same({}, times)
  end)

  it("prints the table and a histogram of the same count", function()
    local out = run { "-c", writes(23, device), BIOLAT, "--device", device.path }
    assert.matches(("\n%s +write +23 +[%%d.]+[num]?s "):format(device.name), out)
    assert.matches(("\n%s +flush +1 +[%%d.]+[num]?s "):format(device.name), out)
    assert.matches("\n%d+ requests, %d+ issued again, 0 voided, 0 open, %d+ alone\n", out)
    local sum = 0
    local bars = (out .. "\n"):match(("\n%s write, ns\n(.-)\n\n"):format(device.name))
    for count in bars:gmatch "%.%. %d+ +(%d+) |" do
      sum = sum + count
    end
    assert.equal(23, sum, out)
    for line in out:gmatch "[^\n]+" do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("is a table and metrics, too", function()
    local out = run { "-f", "csv", "-c", writes(23, device), BIOLAT, "--device", device.name }
    assert.matches("^type,avg_ns,device,max_ns,min_ns,operation,p50_ns,p90_ns,p99_ns,requests,",
      out)
    assert.matches(("\nlatency,%%d+,%s,%%d+,%%d+,write,%%d+,%%d+,%%d+,23,\r\n"):format(device.name),
      out)
    out = run { "-f", "prometheus", "-c", writes(17, device), BIOLAT, "--device", device.name }
    assert.matches(('\nluatrace_block_request_seconds_count{device="%s",operation="write"} 17\n')
      :format(device.name), out)
  end)

  it("says so when no request has ended", function()
    assert.equal("no request has ended\n\n"
      .. "0 requests, 0 issued again, 0 voided, 0 open, 0 alone\n",
      run { "-c", "true", BIOLAT, "--device", "4095:7" })
  end)

  it("refuses what is no device", function()
    local status, out, err = helper.run { BIOLAT, "--device", "nosuch0" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.truthy(err:find("there is no block device 'nosuch0'", 1, true), err)
  end)
end)

-- Sequences that no load makes on purpose, brought to the script's pair one by one.
describe("the bookkeeping of examples/biolat.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, at_end, printed

  before_each(function()
    local set = made_events.new()
    local fields = { { "dev", "u32" }, { "sector", "u64" }, { "rwbs", "char[16]" },
      { "nr_sector", "u32" } }
    make, printed = {}, {}
    for _, name in ipairs { "block_rq_issue", "block_rq_complete" } do
      make[name] = set.add("block:" .. name, fields)
    end
    package.loaded["tracefs.script"] = {
      args = {},
      format = "json",
      instance = { file = "elsewhere" },
      pair = function(_, options)
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        local name = object.device and object.device .. " " .. object.operation or "sums"
        printed[name] = object
      end,
    }
    assert(loadfile(BIOLAT))()
  end)

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function bring(event, sector, rwbs, now, dev, count)
    pair:feed(make[event]({ dev = dev or 8 << 20, sector = sector, rwbs = rwbs,
      nr_sector = count or rwbs == "FF" and 0 or 8 }, { common_timestamp = now }))
  end
  local function issue(...) bring("block_rq_issue", ...) end
  local function complete(...) bring("block_rq_complete", ...) end

  local function counts()
    at_end()
    local sums = printed.sums
    return ("%d requests %d again %d voided %d open %d alone"):format(
      sums.requests, sums.again, sums.voided, sums.open, sums.alone)
  end

  it("tells operations apart", function()
    for i, rwbs in ipairs { "R", "RA", "W", "WS", "FWFS", "WFSM", "DS", "FF", "N", "ZR" } do
      issue(rwbs == "FF" and 0 or i, rwbs, 100 * i)
      complete(rwbs == "FF" and -1 or i, rwbs, 100 * i + i)
    end
    assert.equal("10 requests 0 again 0 voided 0 open 0 alone", counts())
    local found = {}
    for name, object in pairs(printed) do
      found[name] = object.requests
    end
    assert.same({ sums = 10, ["8:0 read"] = 2, ["8:0 write"] = 4, ["8:0 discard"] = 1,
      ["8:0 flush"] = 1, ["8:0 other"] = 2 }, found)
    assert.equal(6, printed["8:0 write"].max_ns)
  end)

  it("tells a flush from the first sector, and devices apart", function()
    issue(0, "FF", 100)
    issue(0, "WS", 110)
    issue(0, "WS", 120, 9 << 20)
    complete(0, "WS", 150)
    complete(-1, "FF", 400)
    assert.equal("2 requests 0 again 0 voided 1 open 0 alone", counts())
    assert.equal(40, printed["8:0 write"].max_ns)
    assert.equal(300, printed["8:0 flush"].max_ns)
    assert.is_nil(printed["9:0 write"])
  end)

  it("takes the empty write that asked for a flush for no request", function()
    issue(0, "WS", 90)
    issue(0, "FF", 100)
    complete(-1, "FF", 130)
    complete(0, "WS", 140, nil, 0)
    complete(0, "WS", 150)
    assert.equal("2 requests 0 again 0 voided 0 open 0 alone", counts())
    assert.equal(60, printed["8:0 write"].max_ns)
  end)

  it("starts at the last issue, and counts a request once, ended in parts or not", function()
    issue(64, "R", 100)
    issue(64, "R", 300)
    complete(64, "R", 350)
    complete(96, "R", 380)
    assert.equal("1 requests 1 again 0 voided 0 open 1 alone", counts())
    assert.equal(50, printed["8:0 read"].max_ns)
  end)

  it("has no latency over a gap", function()
    issue(64, "R", 100)
    pair:lost { cpu = 1, count = 5, after_ts = 120, before_ts = 800 }
    complete(64, "R", 900)
    assert.equal("0 requests 0 again 1 voided 0 open 1 alone", counts())
    assert.is_nil(printed["8:0 read"])
  end)

  it("looks at the disk of a partition", function()
    local devices = require "tracefs.devices"
    local real, wanted = devices.disk, nil
    finally(function() devices.disk = real end)
    devices.disk = function(dev) return dev & ~15 end
    local script = package.loaded["tracefs.script"]
    script.args = { "--device", "8:1", "--device", "9:0" }
    script.pair = function(_, options)
      wanted = { options.start.filter, options.stop.filter }
      return {}
    end
    assert(loadfile(BIOLAT))()
    local both = { dev = { 8 << 20, 9 << 20 } }
    assert.same({ both, both }, wanted)
  end)
end)
