-- fslat: where a slow write to an ext4 file system spends its time
--
-- Two operations of a task are followed from their begin to their end:
--   write  into memory, page by page: ext4_da_write_begin to ext4_da_write_end
--   sync   until it is on the disk (fsync, fdatasync, O_SYNC): ext4_sync_file_enter to _exit
-- sched_switch says when the task has no CPU meanwhile, and whether it waits; block_rq_issue and
-- block_rq_complete say when the disk has something to do.
--
-- Usage
--   luatrace fslat.lua [--device DEVICE] [--comm NAME] [--top N]
--   luatrace -d 10 fslat.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace -c 'dd if=/dev/zero of=x bs=4k count=997 oflag=dsync' fslat.lua --comm dd
--   luatrace fslat.lua --device vda1 --top 20
--
-- Sample output
--   operation   count     avg     p99     max     cpu   ready  device   other
--   write         997  3.86us  17.9us   108us    100%      0%      0%      0%
--   sync          997   573us  5.73ms  11.6ms      7%      3%     61%     29%
--
--   slowest            pid inode      time     cpu   ready  device   other
--   dd    sync       26019 12       11.6ms  61.2us     0ns  7.74ms  3.77ms
--   ...
--
--   1994 operations, 0 unfinished, 0 voided, 0 open
--
--   cpu         share of the time that the task was on a CPU
--   ready       it was not, but could have run: another task was put in its place
--   device      it was asleep while the disk had requests under way, whoever made them
--   other       it was asleep while the disk had none: waiting for the journal's thread, for a
--               lock, for memory; and from its wakeup until it ran
--   unfinished  begun anew without an end: no space, a page that was not there
--   voided      given up: events were lost while it was open, or came late
--
--   The disk is the one that the file system's partition is on. Of device mapper and RAID, and of
--   a recording (-i), it is not known: then the requests of all disks count. Kernels of some
--   virtual machines do not record the switch from an idle CPU to a task: what it does until it
--   sleeps again is taken for sleep there.
--   With luatrace -f json every line is an object, with times in ns; with -f csv a row.
--
-- Overhead
--   Every switch of tasks on the machine, two events a page that is written, and two a request: the
--   traced programs pay about 0.4 us for each, and here it is about 0.5 us of CPU time. With
--   --comm other tasks' switches and writes are not recorded. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local devices = require "tracefs.devices"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"
local units = require "tracefs.units"

local parser = argparse("fslat", "Where a slow write to an ext4 file system spends its time.")
  :help_max_width(79)
parser:option("--device", "Only this file system's, as vda1 or 254:1."):argname("DEVICE")
  :convert(devices.number)
parser:option("--comm", "Only what tasks of this name write."):argname("NAME")
  :convert(task_name)
parser:option("--top", "How many of the slowest are shown."):argname("N"):default("10")
  :convert(function(text)
    local number = math.tointeger(tonumber(text))
    if not number or number < 1 then
      return nil, ("'%s' is not a whole number above 0"):format(text)
    end
    return number
  end)
local options = parser:parse(trace.args)

local PARTS <const> = { "cpu", "ready", "device", "other" }
-- Of prev_state: a task that could have gone on has none of these.
local ASLEEP <const> = 0xff
local ANY <const> = "any"

local recorded = trace.instance.file ~= nil

-- Whose requests a file system makes.
local disk_of = setmetatable({}, { __index = function(known, dev)
  local folder = "/sys/dev/block/" .. devices.text(dev)
  local is_stacked = recorded
  for _, name in ipairs { "/dm/name", "/md/level" } do
    local file <close> = io.open(folder .. name)
    is_stacked = is_stacked or file ~= nil
  end
  known[dev] = is_stacked and ANY or devices.disk(dev)
  return known[dev]
end })

-- By disk: how many requests are under way, since when without a break, and how long before.
local disks = setmetatable({}, { __index = function(known, disk)
  known[disk] = { under_way = 0, since = 0, busy = 0 }
  return known[disk]
end })
local last = 0

local function busy_until(disk, now)
  local state = disks[disk]
  return state.busy + (state.under_way > 0 and now - state.since or 0)
end

local function change(disk, by, now)
  local state = disks[disk]
  state.busy, state.since = busy_until(disk, now), now
  state.under_way = state.under_way + by
end

local function count_request(dev, by, now)
  change(dev, by, now)
  change(ANY, by, now)
end

local disk = options.device and disk_of[options.device] or ANY
local request_filter = disk ~= ANY and { dev = disk } or nil

trace:pair {
  name = "request",
  start = { event = "block:block_rq_issue", filter = request_filter },
  stop = { event = "block:block_rq_complete", filter = request_filter },
  key = {
    start = { "dev", "sector", "rwbs" },
    -- A flush has the sector 0 when it is issued, and none, which is -1, when it has ended. The
    -- empty write that has asked for it ends too, and was never issued.
    stop = function(record)
      local sector, rwbs = record.sector, record.rwbs
      if record.nr_sector == 0 and rwbs:find "^W" then
        return nil
      end
      return record.dev, sector == -1 and 0 or sector, rwbs
    end,
  },
  on_match = function(_, key, _, complete)
    last = complete.common_timestamp
    count_request(key[1], -1, last)
  end,
  on_dropped = function(_, key) count_request(key[1], -1, last) end,
}

trace:on("block:block_rq_issue", { "dev", "common_timestamp", filter = request_filter },
  function(dev, now)
    last = now
    count_request(dev, 1, now)
  end)

-- By thread: what it does. `off` is when it has left its CPU.
local operations = {}

local function began(thread, now, dev)
  operations[thread] = { disk = disk_of[dev], ready = 0, device = 0, other = 0 }
  last = now
end

-- It is on a CPU again, or must have been.
local function resumed(operation, now)
  local time = now - operation.off
  if operation.is_ready then
    operation.ready = operation.ready + time
  else
    local busy = busy_until(operation.disk, now) - operation.busy
    operation.device = operation.device + busy
    operation.other = operation.other + time - busy
  end
  operation.off = nil
end

local names = { "or", { prev_comm = options.comm }, { next_comm = options.comm } }
trace:on("sched:sched_switch", {
  "prev_pid", "prev_state", "next_pid", "common_timestamp",
  filter = options.comm and names or nil,
}, function(prev, state, next_pid, now)
  local operation = operations[prev]
  if operation then
    if operation.off then
      resumed(operation, now)
    end
    operation.off, operation.is_ready = now, state & ASLEEP == 0
    operation.busy = busy_until(operation.disk, now)
  end
  operation = operations[next_pid]
  if operation and operation.off then
    resumed(operation, now)
  end
end)

local times = aggregate.new { "count", "sum", "average", "p99", "maximum", name = "ext4",
  by = "operation", unit = "ns" }
local parts = { write = {}, sync = {} }
local slowest = {}

local function note(found)
  local at = #slowest
  while at > 0 and slowest[at].time < found.time do
    at = at - 1
  end
  if at < options.top then
    table.insert(slowest, at + 1, found)
    slowest[options.top + 1] = nil
  end
end

local filter = { dev = options.device, common_comm = options.comm }
filter = next(filter) and filter or nil

local function event(name)
  return { event = "ext4:ext4_" .. name, filter = filter }
end

local both = trace:pair {
  name = "ext4",
  start = { event "da_write_begin", event "sync_file_enter" },
  stop = { event "da_write_end", event "sync_file_exit" },
  key = "common_pid",
  carry = { "dev", "ino", "common_comm" },
  on_match = function(delta_ns, thread, start, stop)
    local found = operations[thread]
    operations[thread] = nil
    last = stop.common_timestamp
    if found.off then
      resumed(found, last)
    end
    local kind = stop.common_event == "ext4:ext4_da_write_end" and "write" or "sync"
    found.cpu = delta_ns - found.ready - found.device - found.other
    found.time, found.comm, found.pid, found.kind = delta_ns, start.common_comm, thread, kind
    found.dev, found.ino = start.dev, start.ino
    times:add(delta_ns, kind)
    for _, part in ipairs(PARTS) do
      parts[kind][part] = (parts[kind][part] or 0) + found[part]
    end
    note(found)
  end,
  on_dropped = function(_, thread) operations[thread] = nil end,
}

-- Behind the pair, which first ends what was there before.

for _, name in ipairs { "da_write_begin", "sync_file_enter" } do
  trace:on(event(name).event, { "common_pid", "common_timestamp", "dev", filter = filter }, began)
end

local function time(ns)
  return units.format(ns, "ns")
end

local function print_tables()
  print(("%-9s %7s %7s %7s %7s %7s %7s %7s %7s"):format("operation", "count", "avg", "p99", "max",
    table.unpack(PARTS)))
  for _, row in ipairs(times:rows { sort = "sum" }) do
    local line = ("%-9s %7d %7s %7s %7s"):format(row.operation, row.count, time(row.average),
      time(row.p99), time(row.maximum))
    for _, part in ipairs(PARTS) do
      line = line .. (" %6.0f%%"):format(100 * parts[row.operation][part] / math.max(row.sum, 1))
    end
    print(line)
  end
  print(("\n%-15s %-5s %8s %-9s %6s %7s %7s %7s %7s"):format("slowest", "", "pid", "inode", "time",
    table.unpack(PARTS)))
  for _, found in ipairs(slowest) do
    print(("%-15s %-5s %8d %-9d %6s %7s %7s %7s %7s"):format(escape.line(found.comm), found.kind,
      found.pid, found.ino, time(found.time), time(found.cpu), time(found.ready),
      time(found.device), time(found.other)))
  end
  print()
end

local function print_objects(sums)
  for _, row in ipairs(times:rows { sort = "sum" }) do
    local object = {
      type = "operation", operation = row.operation, count = row.count, total_ns = row.sum,
      avg_ns = math.floor(row.average), p99_ns = row.p99, max_ns = row.maximum,
    }
    for _, part in ipairs(PARTS) do
      object[part .. "_ns"] = parts[row.operation][part]
    end
    trace:print(object)
  end
  for _, found in ipairs(slowest) do
    trace:print {
      type = "slowest", comm = found.comm, pid = found.pid, operation = found.kind,
      device = recorded and devices.text(found.dev) or devices.name(found.dev), inode = found.ino,
      total_ns = found.time, cpu_ns = found.cpu, ready_ns = found.ready,
      device_ns = found.device, other_ns = found.other,
    }
  end
  sums.type = "operations"
  trace:print(sums)
end

trace:at_end(function()
  local counts = both:counts()
  local sums = {
    operations = counts.matched, unfinished = counts.replaced,
    voided = counts.voided + counts.evicted, open = counts.open,
  }
  if trace.format == "json" or trace.format == "csv" then
    print_objects(sums)
    return
  end
  if counts.matched > 0 then
    print_tables()
  end
  print(("%d operations, %d unfinished, %d voided, %d open"):format(sums.operations,
    sums.unfinished, sums.voided, sums.open))
end)
