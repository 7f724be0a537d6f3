local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local inputs = require "spec.support.inputs"
local trace_text = require "spec.support.trace_text"

local NETLAT = "examples/netlat.lua"
-- A size that nobody else's packets have: 28 bytes of headers on the way up, 42 on the way down.
local SIZE <const> = loads.SIZE
local OURS <const> = ("len == %d || len == %d"):format(SIZE + 28, SIZE + 42)

local function udp(count)
  return ("%s udp %d %d >&2"):format(helper.quote(helper.program("support/load")), count, SIZE)
end

local function run(words)
  words.timeout = words.timeout or 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  for line in out:gmatch("[^\n]+") do
    assert.is_true(#line < 80, "80 columns or more: " .. line)
  end
  return out, err
end

-- The tables as { latency = { [device] = {...} }, packets = { [device] = {...} } }, and stages as
-- stage = { ["device stage"] = {...} }.
local function objects(out)
  local json = require "dkjson"
  local found = { latency = {}, packets = {}, stage = {} }
  for line in out:gmatch("[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      local stage = object.stage and " " .. object.stage or ""
      found[object.type][object.device .. stage] = object
    end
  end
  return found
end

local function run_json(words)
  local status, out, err = helper.run(
    table.move(words, 1, #words, 3, { "-f", "json", timeout = 60 }))
  assert.equal(0, status, err)
  return objects(out)
end

-- Of all devices: what was queued has one end each, and what was received one beginning or none.
local function check_sums(devices)
  local received, ends = 0, 0
  for name, packets in pairs(devices) do
    assert.equal(packets.queued,
      packets.paired + packets.freed + packets.again + packets.voided + packets.open, name)
    received, ends = received + packets.received, ends + packets.paired + packets.alone
  end
  assert.equal(received, ends)
end

-- The stages that the kernel's text has, by device and stage: the softirq of a packet is the one
-- that goes on where it is received, the interrupt the last one before that.
local function stages_of(lines)
  local irqs, softirqs, queued, found = {}, {}, {}, {}
  local function add(name, stage, ns)
    local key = ("%s %s"):format(name, stage)
    found[key] = found[key] or {}
    table.insert(found[key], ns)
  end
  for _, line in ipairs(lines) do
    local address, device = line.text:match "skbaddr=(%S+)", line.text:match "dev=(%S+)"
    if line.event == "irq_handler_entry" then
      irqs[line.cpu] = line.ns
    elseif line.event == "softirq_entry" then
      softirqs[line.cpu] = { ns = line.ns, irq_ns = irqs[line.cpu] }
      irqs[line.cpu] = nil
    elseif line.event == "softirq_exit" then
      softirqs[line.cpu] = nil
    elseif line.event == "net_dev_queue" then
      queued[address] = { ns = line.ns, device = device }
    elseif line.event ~= "netif_receive_skb" then
      queued[address] = nil
    else
      local softirq, from = softirqs[line.cpu], queued[address]
      queued[address] = nil
      if softirq and from then
        local way = from.device == device and device or from.device .. ">" .. device
        add(way, "queue>softirq", math.max(softirq.ns - from.ns, 0))
        add(way, "softirq>receive", line.ns - math.max(softirq.ns, from.ns))
      elseif softirq then
        add(device, "softirq>receive", line.ns - softirq.ns)
        if softirq.irq_ns then
          add(device, "irq>softirq", softirq.ns - softirq.irq_ns)
        end
      end
    end
  end
  return found
end

describe("examples/netlat.lua", function()
  for _, count in ipairs { 23, 10007 } do
    it(("finds exactly %d pairs over lo"):format(count), function()
      local found = run_json { "-c", udp(count), NETLAT, "--device", "lo", "--filter", OURS }
      local latency, packets = found.latency.lo, found.packets.lo
      assert.equal(count, latency.pairs)
      assert.same({
        type = "packets", device = "lo", queued = count, paired = count, freed = 0, again = 0,
        voided = 0, open = 0, received = count, alone = 0,
      }, packets)
      assert.is_true(latency.min_ns > 0)
      local before = latency.min_ns
      for _, name in ipairs { "p50_ns", "p90_ns", "p99_ns", "p99.9_ns", "max_ns" } do
        assert.is_true(latency[name] >= before, name)
        before = latency[name]
      end
      assert.is_true(latency.avg_ns >= latency.min_ns and latency.avg_ns <= latency.max_ns)
    end)
  end

  it("says of each of 1007 packets how long it waited for the softirq", function()
    local found = run_json {
      "-c", udp(1007), NETLAT, "--device", "lo", "--filter", OURS, "--stages",
    }
    local latency, waited = found.latency.lo, found.stage["lo queue>softirq"]
    local taken_up = found.stage["lo softirq>receive"]
    assert.equal(1007, latency.pairs)
    assert.equal(1007, waited.packets)
    assert.equal(1007, taken_up.packets)
    for _, stage in ipairs { waited, taken_up } do
      assert.is_true(stage.min_ns >= 0 and stage.avg_ns <= latency.avg_ns)
      assert.is_true(stage.max_ns <= latency.max_ns)
    end
    -- each of the three averages is cut to whole ns
    assert.is_true(math.abs(latency.avg_ns - waited.avg_ns - taken_up.avg_ns) <= 1)
    assert.is_nil(found.stage["lo irq>softirq"])
    local out = run { "-c", udp(23), NETLAT, "--filter", OURS, "--stages", "--no-histogram" }
    assert.matches("\nlo +queue>softirq +23 +[%d.]+[num]?s ", out)
    assert.matches("\nlo +softirq>receive +23 +[%d.]+[num]?s ", out)
  end)

  it("has the times that the kernel's own text gives for each of 10007 packets", function()
    local printed, lines = trace_text.run(udp(10007), {
      NETLAT, "--device", "lo", "--filter", OURS, "--stages",
    })
    local function key(line, ...)
      for _, event in ipairs { ... } do
        if line.event == event then
          return (line.text:match "skbaddr=(%S+)")
        end
      end
    end
    local times = trace_text.intervals(lines, function(line)
      return key(line, "net_dev_queue")
    end, function(line)
      return key(line, "netif_receive_skb", "consume_skb", "kfree_skb")
    end, function(_, to)
      return to.event == "netif_receive_skb" and "lo" or nil
    end)
    assert.equal(10007, #times.lo)
    assert.equal(1, #printed.latency)
    trace_text.check(times.lo, printed.latency[1], "pairs")

    local stages = stages_of(lines)
    assert.equal(2, #printed.stage)
    for _, row in ipairs(printed.stage) do
      trace_text.check(stages["lo " .. row.stage], row, "packets")
    end
  end)

  it("has the irq stage of the kernel's own text for what comes from a wire", function()
    -- nobody answers there, and says so
    local printed, lines = trace_text.run([[
      gateway=$(ip route 2>/dev/null | sed -n 's/^default via \([0-9.]*\) .*/\1/p;T;q')
      for i in 1 2 3 4 5; do
        [ -z "$gateway" ] || timeout 0.3 bash -c "echo >/dev/tcp/$gateway/9" 2>/dev/null || :
      done]], { NETLAT, "--stages" })
    local stages, from_wire = stages_of(lines), 0
    for _, row in ipairs(printed.stage) do
      local name = ("%s %s"):format(row.device, row.stage)
      trace_text.check(stages[name], row, "packets")
      stages[name] = nil
      from_wire = from_wire + (row.stage == "irq>softirq" and row.packets or 0)
    end
    assert.same({}, stages)
    if from_wire == 0 then
      pending "no packet has come from a wire"
    end
  end)

  it("finds what another matcher finds in recordings of other machines", function()
    if not inputs.are_there then
      pending "the folder of recordings is not there"
    end
    for name, expected in pairs {
      ["kernel-6.18/net_lo.dat"] = { 100, 621, 25949, 102620 // 100 },
      ["kernel-6.18/filtered.dat"] = { 91, 490, 1432, 47309 // 91 },
      ["s390x/be_v7_none.dat"] = { 30, 12062, 112883, 669174 // 30 },
    } do
      local found = run_json { "-i", inputs.path(name), NETLAT }.latency.lo
      assert.same(expected, { found.pairs, found.min_ns, found.max_ns, found.avg_ns })
    end
  end)

  it("finds the same on the recording of the run", function()
    local dir = helper.tmpdir()
    local recorder, path = dir .. "/recorder.lua", dir .. "/trace.dat"
    helper.write_file(recorder, ([[
      require("tracefs.script"):record(%q)
      dofile(%q)
    ]]):format(path, NETLAT))
    local live = run_json { "-c", udp(1007), recorder, "--device", "lo", "--filter", OURS }
    local again = run_json { "-i", path, NETLAT, "--device", "lo", "--filter", OURS }
    assert.equal(1007, live.latency.lo.pairs)
    assert.same(live, again)
  end)

  it("prints the tables and a histogram of the same count", function()
    local out = run { "-c", udp(23), NETLAT, "--device", "lo", "--filter", OURS }
    assert.truthy(out:find("\nlo +23 +[%d.]+[num]s "), out)
    assert.truthy(out:find("\nlo +23 +23 +0 +0 +0 +0 +23 +0\n"), out)
    local sum = 0
    for count in assert(out:match("\nlo, ns\n(.*)$"), out):gmatch("%d+ %.%. %d+ +(%d+) |") do
      sum = sum + count
    end
    assert.equal(23, sum)
  end)

  it("leaves the histogram out when asked to", function()
    local out = run { "-c", udp(23), NETLAT, "--filter", OURS, "--no-histogram" }
    assert.truthy(out:find("\nlo +23 "), out)
    assert.falsy(out:find("|", 1, true), out)
  end)

  it("starts anew at each interval", function()
    local out = run {
      "-c", ("sleep 0.1; %s; sleep 0.5; %s"):format(udp(23), udp(17)),
      NETLAT, "--filter", OURS, "--interval", "0.3", "--no-histogram", timeout = 60,
    }
    local counts = {}
    for count in out:gmatch("received   alone\nlo +%d+ +(%d+) ") do
      counts[#counts + 1] = tonumber(count)
    end
    local sum = 0
    for _, count in ipairs(counts) do
      sum = sum + count
    end
    assert.equal(40, sum, out)
    assert.is_true(#counts >= 2, out)
  end)

  it("says so when there was no packet", function()
    local out = run { "-c", "true", NETLAT, "--device", "nosuch0" }
    assert.equal("no packet was queued or received on nosuch0\n", out)
  end)

  it("follows a packet from device to device", function()
    local VETH <const> = "ip link add lt7919a type veth peer name lt7919b"
    local made, _, err = helper.execute { "unshare", "-n", "sh", "-c", VETH }
    if made ~= 0 then
      pending("no veth devices here: " .. err)
      return
    end
    -- A device that comes up sends router solicitations and the like by itself.
    local found = run_json {
      "-c", ("unshare -n sh -c '%s && ip link set lt7919a up && ip link set lt7919b up; sleep 2'")
        :format(VETH),
      NETLAT, "--device", "lt7919a", "--device", "lt7919b",
    }
    assert.is_true(found.latency["lt7919a>lt7919b"].pairs > 0)
    assert.is_true(found.latency["lt7919b>lt7919a"].pairs > 0)
    assert.is_nil(found.latency.lt7919a)
    check_sums(found.packets)
  end)

  -- Returns the longest latency. A gap lasts nearly as long as the reader does not look.
  local function run_with_gaps()
    local dir = helper.tmpdir()
    -- The reader sleeps over and over while packets are sent at full speed into a small buffer.
    helper.write_file(dir .. "/slow.lua", ([[
      package.path = %q .. "/examples/?.lua;" .. package.path
      local trace = require "tracefs.script"
      require "netlat"
      trace:on_lost(function(lost) trace:print { type = "gap", cpu = lost.cpu } end)
      trace:every(0.15, function()
        local wake = require("tracefs").now() + 100000000
        while require("tracefs").now() < wake do end
      end)
    ]]):format(helper.root))
    local status, out, err = helper.run {
      "-f", "json", "-b", "64", "-c", udp(300003), dir .. "/slow.lua",
      "--device", "lo", "--filter", OURS, timeout = 100,
    }
    assert.equal(0, status, err)
    local found = objects(out)
    local latency, packets = found.latency.lo, found.packets.lo
    check_sums(found.packets)
    assert.truthy(out:find('"type":"gap"', 1, true), out)
    -- where a gap begins or ends between the two events of a packet
    assert.is_true(packets.voided + packets.alone > 0)
    assert.is_true(packets.queued < 300003)
    return latency.max_ns
  end

  it("gives pairs up where events were lost: no latency spans a gap", function()
    -- A packet may wait that long by itself on a busy machine, but not every time.
    local max_ns = 50000000
    for _ = 1, 3 do
      if max_ns >= 50000000 then
        max_ns = run_with_gaps()
      end
    end
    assert.is_true(max_ns < 50000000, "a latency of " .. max_ns .. " ns")
  end)

  it("explains itself, and leaves nothing behind then", function()
    local before = helper.snapshot()
    local status, out = helper.run { NETLAT, "--help" }
    assert.equal(0, status)
    assert.truthy(out:find("--no-histogram", 1, true))
    assert.same({}, helper.leftovers(before))
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs {
      { NETLAT, "--interval", "0" },
      { NETLAT, "--interval", "soon" },
      { NETLAT, "--nosuch" },
      { NETLAT, "--irq" },
    } do
      local status, out, err = helper.run(words)
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[#words], 1, true), err)
    end
  end)

  it("shows the kernel's word on a filter", function()
    local status, _, err = helper.run { NETLAT, "--filter", "nosuch == 5" }
    assert.equal(1, status)
    assert.truthy(err:find("nosuch == 5", 1, true), err)
    assert.truthy(err:find("Field not found", 1, true), err)
  end)
end)

-- Sequences that no load makes on purpose, brought to the script's pair one by one.
describe("the bookkeeping of examples/netlat.lua", function()
  local made_events = require "spec.support.made_events"
  local pair, make, at_end, printed, handlers, on_lost

  local function start(...)
    local set = made_events.new()
    local fields = { { "skbaddr", "u64" }, { "name", "char[16]" } }
    make, printed, handlers = {}, {}, {}
    for _, label in ipairs {
      "net:net_dev_queue", "net:netif_receive_skb", "skb:consume_skb", "skb:kfree_skb",
    } do
      make[label:match ":(.*)"] = set.add(label, fields)
    end
    package.loaded["tracefs.script"] = {
      args = { ... },
      format = "json",
      on = function(_, event, _, handler) handlers[event:match ":(.*)"] = handler end,
      on_lost = function(_, fn) on_lost = fn end,
      pair = function(_, options)
        pair = require("tracefs.pair").new(options, set.find)
        return pair
      end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        printed[object.type .. " " .. object.device .. (object.stage or "")] = object
      end,
    }
    assert(loadfile(NETLAT))()
  end

  before_each(function()
    start()
  end)

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function bring(event, skb, now, device)
    pair:feed(make[event]({ skbaddr = skb, name = device or "lo" },
      { common_timestamp = now, common_cpu = 1 }))
  end
  local function queue(skb, now, device) bring("net_dev_queue", skb, now, device) end
  local function receive(skb, now, device) bring("netif_receive_skb", skb, now, device) end

  local function counts()
    at_end()
    check_sums { lo = printed["packets lo"] }
    local p = printed["packets lo"]
    return ("%d queued %d paired %d freed %d again %d voided %d open %d received %d alone"):format(
      p.queued, p.paired, p.freed, p.again, p.voided, p.open, p.received, p.alone)
  end

  it("does not pair an address that was freed and used again", function()
    queue(7, 100)
    bring("consume_skb", 7, 150)
    receive(7, 900)
    queue(8, 1000)
    bring("kfree_skb", 8, 1100)
    receive(8, 1900)
    bring("kfree_skb", 9, 1950)
    assert.equal("2 queued 0 paired 2 freed 0 again 0 voided 0 open 2 received 2 alone", counts())
    assert.is_nil(printed["latency lo"])
  end)

  it("starts the clock at the last queue event", function()
    queue(7, 100)
    queue(7, 250)
    receive(7, 300)
    assert.equal("2 queued 1 paired 0 freed 1 again 0 voided 0 open 1 received 0 alone", counts())
    assert.equal(50, printed["latency lo"].max_ns)
  end)

  it("pairs a packet once", function()
    queue(7, 100)
    receive(7, 130)
    receive(7, 160)
    assert.equal("1 queued 1 paired 0 freed 0 again 0 voided 0 open 2 received 1 alone", counts())
    assert.equal(30, printed["latency lo"].max_ns)
  end)

  it("forgets what was open when events are lost, whatever CPU they were lost on", function()
    queue(7, 100)
    queue(8, 110)
    receive(8, 120)
    pair:lost { cpu = 1, count = 5, after_ts = 120, before_ts = 800 }
    receive(7, 900)
    queue(7, 1000)
    assert.equal("3 queued 1 paired 0 freed 0 again 1 voided 1 open 2 received 1 alone", counts())
    assert.equal(10, printed["latency lo"].max_ns)
  end)

  it("has no latency below zero when an event was late", function()
    queue(7, 100)
    receive(7, 90)
    assert.equal("1 queued 0 paired 0 freed 0 again 1 voided 0 open 1 received 1 alone", counts())
  end)

  it("counts what is open anew for each table, also where nothing starts anew", function()
    local report, lines = nil, {}
    local set = made_events.new()
    local make_queue
    for _, label in ipairs {
      "net:net_dev_queue", "net:netif_receive_skb", "skb:consume_skb", "skb:kfree_skb",
    } do
      local made = set.add(label, { { "skbaddr", "u64" }, { "name", "char[16]" } })
      make_queue = make_queue or made
    end
    local script = package.loaded["tracefs.script"]
    script.args, script.format = { "--interval", "1" }, "prometheus"
    script.pair = function(_, options)
      pair = require("tracefs.pair").new(options, set.find)
      return pair
    end
    script.every = function(_, _, fn) report = fn end
    assert(loadfile(NETLAT, "t", setmetatable({
      print = function(line) lines[#lines + 1] = line or "" end,
    }, { __index = _G })))()
    pair:feed(make_queue({ skbaddr = 7, name = "lo" }, { common_timestamp = 100 }))
    report()
    report()
    at_end()
    for i = 1, 3 do
      assert.matches("^lo +1 +0 +0 +0 +0 +1 +0 +0$", lines[4 * i])
    end
  end)

  it("tells devices apart", function()
    queue(7, 100, "veth0")
    receive(7, 140, "lo")
    receive(9, 150, "eth0")
    at_end()
    assert.equal(40, printed["latency veth0>lo"].max_ns)
    assert.equal(1, printed["packets veth0"].paired)
    assert.equal(1, printed["packets eth0"].alone)
  end)

  it("knows the way of a packet that was queued here, and of one from the wire", function()
    start("--stages")
    handlers.irq_handler_entry(1, 50)
    handlers.irq_handler_entry(0, 90)
    queue(7, 100)
    handlers.softirq_entry(1, 130)
    receive(7, 170)
    queue(8, 180)              -- while the softirq goes on
    receive(8, 200)
    receive(9, 210, "eth0")
    handlers.softirq_exit(1)
    receive(10, 300, "eth0")   -- in none
    handlers.softirq_entry(1, 400)
    receive(11, 450, "eth0")   -- without an interrupt
    on_lost { cpu = 1 }
    receive(12, 460, "eth0")
    at_end()
    local function stage(name)
      local found = printed["stage " .. name]
      return found
        and ("%d packets %d min %d max"):format(found.packets, found.min_ns, found.max_ns)
    end
    assert.equal("2 packets 0 min 30 max", stage "loqueue>softirq")
    assert.equal("2 packets 20 min 40 max", stage "losoftirq>receive")
    assert.is_nil(stage "loirq>softirq")
    assert.equal("1 packets 80 min 80 max", stage "eth0irq>softirq")
    assert.equal("2 packets 50 min 80 max", stage "eth0softirq>receive")
    assert.equal(4, printed["packets eth0"].alone)
  end)
end)
