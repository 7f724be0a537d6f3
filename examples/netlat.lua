-- netlat: time from a network device's queue to the receiving stack, packet by packet
--
-- A packet that stays on this machine (loopback, veth pairs) passes net:net_dev_queue when it
-- is handed to its device, and net:netif_receive_skb when the receiving side takes it up. Both
-- events carry the address of the packet's buffer, skbaddr: that makes a pair. Buffers are used
-- again, so a pair is given up when the buffer was freed in between (skb:consume_skb,
-- skb:kfree_skb), when it was queued again, and when events were lost: no latency spans a gap.
--
-- Usage
--   luatrace netlat.lua [--device NAME]... [--filter EXPR] [--interval SECONDS] [--no-histogram]
--                       [--stages [--irq NAME]]
--   luatrace -d 10 netlat.lua             for ten seconds; without -d until Ctrl-C
--   luatrace -c 'ping -c 5 127.0.0.1' netlat.lua --device lo
--   luatrace netlat.lua --filter 'len > 1000'
--   luatrace netlat.lua --stages --irq 'virtio*-rx'
--
-- Sample output
--   device   pairs     min     avg     p50     p90     p99   p99.9     max
--   lo       10007   401ns   617ns   461ns   493ns   763ns  27.9us  71.4us
--
--   device      queued  paired   freed   again  voided    open received   alone
--   lo           10007   10007       0       0       0       0   10007       0
--
--   lo, ns
--        256 .. 511  9110 |########################################################
--       512 .. 1023   815 |#####
--   ...
--
--   pairs     packets seen at both ends; behind it their latencies. Percentiles are exact to 1 %.
--   A packet that changes its device (veth) is listed as "veth0>veth1" in the first table; in the
--   second veth0 has it as queued and paired, veth1 as received.
--   queued    packets handed to the device: paired + freed + again + voided + open
--   freed     never received here: sent out by the hardware, or dropped
--   again     queued once more before a receive: forwarded through a bridge, a VLAN, a tunnel
--   voided    the pair was given up: events were lost while it was open, or came late, or a
--             million packets were under way
--   open      still under way when the table was printed
--   received  packets that came up from the device: the ends of pairs, and those that were alone
--   alone     without a queue event to pair: from the wire, or queued before the trace began
--
--   With --stages there is a table of where the time goes on the CPU that receives:
--   device stage           packets    min    avg    p50    p99    max
--   eth0   irq>softirq         211 1.52us 3.30us 2.46us 9.31us 12.1us
--   eth0   softirq>receive     213 2.11us 4.78us 4.03us 15.2us 21.0us
--   lo     queue>softirq     10007  152ns  241ns  193ns  361ns 27.1us
--   lo     softirq>receive   10007  202ns  376ns  259ns  501ns 63.0us
--
--   irq       the handler of the interrupt that came last before the softirq, on that CPU, one of
--             --irq NAME (* and ? stand for others); of packets that were alone
--   softirq   the kernel begins to take up what has come in, NET_RX; a packet that is queued while
--             it does has waited 0
--   A packet that is not received in a softirq (a thread of the driver's, busy polling) has no
--   stages, and one for which there was no interrupt since the softirq before has no irq.
--
--   With luatrace -f json every line of the tables is an object, with times in ns; with -f csv
--   a row. As metrics (-f prometheus, --listen PORT) the latencies are there all the time.
--   With --interval every table covers the time since the one before it; what was open there
--   is open here, and counted when it ends. Objects and rows have time_ns then, the end of that
--   time by the trace's clock.
--
-- Overhead
--   Two or three events a packet, which cost the traffic about 0.4 us each; about 1 us of CPU time
--   a packet here. --stages adds one for each interrupt, and two for each softirq of the network.
--   With --device or --filter the others are not recorded. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local trace = require "tracefs.script"

local parser = argparse("netlat", "Time from net_dev_queue to netif_receive_skb, per device.")
  :help_max_width(79)
parser:option("--device", "Only this device; may be given several times.")
  :argname("NAME"):count("*")
parser:option("--filter", "Only packets that this kernel filter lets through at both ends.")
  :argname("EXPR")
parser:option("--interval", "Print every SECONDS, and start anew."):argname("SECONDS")
  :convert(function(text)
    local seconds = tonumber(text)
    if not seconds or seconds <= 0 then
      return nil, ("--interval takes seconds above 0, not '%s'"):format(text)
    end
    return seconds
  end)
parser:flag("--no-histogram", "Only the tables.")
parser:flag("--stages", "Where the time goes: from interrupt or queue to softirq to stack.")
parser:option("--irq", "With --stages: only interrupts of this name."):argname("NAME")
local options = parser:parse(trace.args)
if options.irq and not options.stages then
  parser:error("--irq goes with --stages")
end
for _, name in ipairs(options.device) do
  if name:find('"', 1, true) then
    parser:error("--device: a name with a quote in it cannot be told to the kernel")
  end
end

local COUNTERS <const> = { "queued", "paired", "freed", "again", "voided", "open", "received",
  "alone" }
-- What the ends of a start that is not matched are called here.
local ENDS <const> = {
  cancelled = "freed", replaced = "again", voided = "voided", evicted = "voided",
}

-- The kernel drops other packets before they reach a buffer.
local function packet_filter()
  local terms = {}
  for _, name in ipairs(options.device) do
    terms[#terms + 1] = ('name == "%s"'):format(name)
  end
  local filter = #terms > 0 and "(" .. table.concat(terms, " || ") .. ")" or nil
  if options.filter then
    filter = (filter and filter .. " && " or "") .. "(" .. options.filter .. ")"
  end
  return filter
end

local latencies = aggregate.new {
  "count", "minimum", "average", "p50", "p90", "p99", "p99.9", "maximum",
  name = "latency", by = "device", unit = "ns", titles = { count = "pairs" },
}
-- By device name, since the last table; and what was open there.
local counters, open_before = {}, {}

local function counters_of(device)
  local found = counters[device]
  if not found then
    found = {}
    for _, name in ipairs(COUNTERS) do
      found[name] = 0
    end
    counters[device] = found
  end
  return found
end

local function count(device, ...)
  local found = counters_of(device)
  for _, name in ipairs { ... } do
    found[name] = found[name] + 1
  end
end

local NET_RX <const> = 3
local stages = options.stages and aggregate.new {
  "count", "minimum", "average", "p50", "p99", "maximum",
  name = "stage", by = { "device", "stage" }, unit = "ns", titles = { count = "packets" },
}
-- By CPU: when the softirq that goes on there has begun, and the interrupt before it; and the
-- last interrupt since.
local softirqs, irqs_before, irqs = {}, {}, {}

local function watch_stages()
  trace:on("irq:irq_handler_entry", {
    "common_cpu", "common_timestamp", filter = options.irq and { name = { ["~"] = options.irq } }
      or nil,
  }, function(cpu, now) irqs[cpu] = now end)
  local filter = { vec = NET_RX }
  trace:on("irq:softirq_entry", { "common_cpu", "common_timestamp", filter = filter },
    function(cpu, now)
      softirqs[cpu], irqs_before[cpu], irqs[cpu] = now, irqs[cpu], nil
    end)
  trace:on("irq:softirq_exit", { "common_cpu", filter = filter },
    function(cpu) softirqs[cpu] = nil end)
  trace:on_lost(function(lost)
    softirqs[lost.cpu], irqs[lost.cpu] = nil, nil
  end)
end

-- A packet has come up; it was queued at that time, if ever.
local function add_stages(device, received, queued)
  local cpu = received.common_cpu
  local begun = softirqs[cpu]
  if not begun then
    return
  end
  if queued then
    stages:add(math.max(begun - queued, 0), device, "queue>softirq")
    begun = math.max(begun, queued)
  elseif irqs_before[cpu] then
    stages:add(begun - irqs_before[cpu], device, "irq>softirq")
  end
  stages:add(received.common_timestamp - begun, device, "softirq>receive")
end

if stages then
  watch_stages()
end

local packets = trace:pair {
  start = { event = "net:net_dev_queue", filter = packet_filter() },
  stop = { event = "net:netif_receive_skb", filter = packet_filter() },
  cancel = { "skb:consume_skb", "skb:kfree_skb" },
  key = "skbaddr",
  carry = "name",
  max = 1000000,
  on_match = function(delta_ns, _, sent, received)
    local device = received.name
    local way = sent.name == device and device or sent.name .. ">" .. device
    latencies:add(delta_ns, way)
    if stages then
      add_stages(way, received, received.common_timestamp - delta_ns)
    end
    count(sent.name, "paired")
    count(device, "received")
  end,
  on_dropped = function(how, _, sent) count(sent.name, ENDS[how]) end,
  on_unmatched = function(_, received)
    count(received.name, "received", "alone")
    if stages then
      add_stages(received.name, received)
    end
  end,
}

-- What is under way now, and with it how many packets were queued.
local function complete_counters()
  for _, found in pairs(counters) do
    found.open = 0
  end
  for _, packet in ipairs(packets:open()) do
    count(packet.values.name, "open")
  end
  for device, found in pairs(counters) do
    found.queued = found.paired + found.freed + found.again + found.voided + found.open
      - (open_before[device] or 0)
  end
end

local function sorted_devices()
  local names = {}
  for name in pairs(counters) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function print_counters()
  print()
  local head = ("%-10s"):format("device")
  for _, name in ipairs(COUNTERS) do
    head = head .. (" %7s"):format(name)
  end
  print(head)
  for _, device in ipairs(sorted_devices()) do
    -- a name that is too long for its column gets a line of its own
    local line = ("%-10s"):format(device)
    if #line > 10 then
      print(line)
      line = (" "):rep(10)
    end
    for _, name in ipairs(COUNTERS) do
      line = line .. (" %7d"):format(counters[device][name])
    end
    print(line)
  end
end

local function print_histograms()
  for _, row in ipairs(latencies:rows()) do
    if not row.other then
      print()
      print(row.device .. ", ns")
      print(table.concat(latencies:lines(row.device), "\n"))
    end
  end
end

-- With --interval: the end of the time that is reported.
local tick

-- Under -f json: an object for each line of the two tables.
local function print_objects()
  for _, row in ipairs(latencies:rows()) do
    trace:print {
      type = "latency",
      device = row.device or "(other)",
      pairs = row.count,
      min_ns = row.minimum,
      avg_ns = math.floor(row.average),
      p50_ns = row.p50,
      p90_ns = row.p90,
      p99_ns = row.p99,
      ["p99.9_ns"] = row["p99.9"],
      max_ns = row.maximum,
      time_ns = tick,
    }
  end
  for _, row in ipairs(stages and stages:rows() or {}) do
    trace:print {
      type = "stage", device = row.device or "(other)", stage = row.stage, packets = row.count,
      min_ns = row.minimum, avg_ns = math.floor(row.average), p50_ns = row.p50, p99_ns = row.p99,
      max_ns = row.maximum, time_ns = tick,
    }
  end
  for _, device in ipairs(sorted_devices()) do
    local object = { type = "packets", device = device, time_ns = tick }
    for _, name in ipairs(COUNTERS) do
      object[name] = counters[device][name]
    end
    trace:print(object)
  end
end

local function report()
  complete_counters()
  if trace.format == "json" or trace.format == "csv" then
    print_objects()
    return
  end
  if not next(counters) then
    print("no packet was queued or received" ..
      (#options.device > 0 and " on " .. table.concat(options.device, ", ") or ""))
    return
  end
  print(latencies)
  if stages then
    print()
    print(stages)
  end
  print_counters()
  if not options.no_histogram then
    print_histograms()
  end
end

local function start_anew()
  open_before = {}
  for device, found in pairs(counters) do
    open_before[device] = found.open
  end
  counters = {}
  latencies:reset()
  if stages then
    stages:reset()
  end
end

if options.interval then
  trace:every(options.interval, function(now)
    tick = now
    report()
    tick = nil
    -- metrics go on counting
    if trace.format ~= "prometheus" then
      start_anew()
    end
    if trace.format == "text" then
      print()
    end
  end)
end
trace:at_end(report)
