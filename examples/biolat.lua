-- biolat: time that block devices take for requests, by device and operation
--
-- A request is handed to its device's driver at block:block_rq_issue, and has ended at
-- block:block_rq_complete. Both events say the device, where on it, and what is done: that makes a
-- pair. What a request waited before in the queue of the kernel is not in it.
--
-- Usage
--   luatrace biolat.lua [--device DEVICE]... [--no-histogram]
--   luatrace -d 10 biolat.lua                   for ten seconds; without -d until Ctrl-C
--   luatrace -c 'dd if=/dev/vda of=/dev/null bs=1M count=100' biolat.lua --device vda
--   luatrace -i trace.dat biolat.lua --device 8:0
--
-- Sample output
--   device operation requests     min     avg     p50     p90     p99     max
--   vda    read            49   149us   292us   256us   411us   883us   883us
--   vda    write          997  64.1us  85.5us  77.1us  94.6us   211us  4.53ms
--   vda    flush            3   1.03ms 1.20ms  1.11ms  1.45ms  1.45ms  1.45ms
--
--   1049 requests, 0 issued again, 0 voided, 1 open, 0 alone
--
--   vda write, ns
--       65536 .. 131071  951 |#######################################################
--      131072 .. 262143   38 |##
--   ...
--
--   operation     read, write, discard, flush (of the device's cache), or other
--   requests      that have ended; behind it how long they took, percentiles exact to 1 %
--   issued again  the driver had no place for it at first: the clock starts at the last time
--   voided        given up: events were lost while it was open, or came late, or a hundred
--                 thousand requests were under way
--   open          still under way when the table was printed
--   alone         ended without a beginning that was seen: issued before the trace began, or
--                 the later part of a request that ended in parts
--
--   Requests are those of whole disks: of a partition, --device means the disk that it is on.
--   Devices have the names of this machine, those of a recording (-i) their numbers.
--   With luatrace -f json every line of the table is an object, with times in ns; with -f csv a
--   row.
--
-- Overhead
--   Two events a request, which cost about 0.4 us each, and about 1 us of CPU time here. With
--   --device those of others are not recorded. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local devices = require "tracefs.devices"
local trace = require "tracefs.script"

local parser = argparse("biolat", "Time that block devices take for requests."):help_max_width(79)
parser:option("--device", "Only this one, as vda or 254:0; may be given several times.")
  :argname("DEVICE"):count("*"):convert(devices.number)
parser:flag("--no-histogram", "Only the table.")
local options = parser:parse(trace.args)

-- Partitions have no requests of their own.
local disks = {}
for i, dev in ipairs(options.device) do
  disks[i] = devices.disk(dev)
end
local filter = #disks > 0 and { dev = disks } or nil

local latencies = aggregate.new {
  "count", "minimum", "average", "p50", "p90", "p99", "maximum", name = "block_request",
  by = { "device", "operation" }, unit = "ns", titles = { count = "requests" },
}

-- A recording may be another machine's.
local name_of = trace.instance.file and devices.text or devices.name
local names = setmetatable({}, { __index = function(known, dev)
  known[dev] = name_of(dev)
  return known[dev]
end })

local OPERATIONS <const> = { R = "read", W = "write", D = "discard", F = "flush" }

-- The kernel's letters: what is done, with F before it for a flush that comes first, and behind
-- it how (S sync, M metadata, ...).
local function operation(rwbs)
  return OPERATIONS[rwbs:match "^F?([RWD])" or rwbs:sub(1, 1)] or "other"
end

-- A flush has the sector 0 when it is issued, as the request that is really there, and none, which
-- is -1, when it has ended. The empty write by which somebody has asked for it ends too, and was
-- never issued.
local function key_of_end(record)
  local sector, rwbs = record.sector, record.rwbs
  if record.nr_sector == 0 and rwbs:find "^W" then
    return nil
  end
  return record.dev, sector == -1 and 0 or sector, rwbs
end

local requests = trace:pair {
  name = "request",
  start = { event = "block:block_rq_issue", filter = filter },
  stop = { event = "block:block_rq_complete", filter = filter },
  key = { start = { "dev", "sector", "rwbs" }, stop = key_of_end },
  on_match = function(delta_ns, key)
    latencies:add(delta_ns, names[key[1]], operation(key[3]))
  end,
}

trace:at_end(function()
  local counts = requests:counts()
  local sums = {
    type = "requests", requests = counts.matched, again = counts.replaced,
    voided = counts.voided + counts.evicted, open = counts.open, alone = counts.unmatched,
  }
  if trace.format == "json" or trace.format == "csv" then
    for _, row in ipairs(latencies:rows()) do
      trace:print {
        type = "latency", device = row.device or "(other)", operation = row.operation,
        requests = row.count, min_ns = row.minimum, avg_ns = math.floor(row.average),
        p50_ns = row.p50, p90_ns = row.p90, p99_ns = row.p99, max_ns = row.maximum,
      }
    end
    trace:print(sums)
    return
  end
  if counts.matched == 0 then
    print("no request has ended")
  else
    print(latencies)
  end
  print()
  print(("%d requests, %d issued again, %d voided, %d open, %d alone"):format(sums.requests,
    sums.again, sums.voided, sums.open, sums.alone))
  for _, row in ipairs(options.no_histogram and {} or latencies:rows()) do
    if not row.other then
      print()
      print(("%s %s, ns"):format(row.device, row.operation))
      print(table.concat(latencies:lines(row.device, row.operation), "\n"))
    end
  end
end)
