-- writeback: dirty pages that the kernel writes out, why, and who has to wait for it
--
-- What programs write goes into memory first. The kernel's threads write it out in rounds, from
-- writeback:writeback_start to writeback:writeback_written, and both events say how many pages are
-- to be written: the difference is what the round has done. Programs that make pages dirty faster
-- than that are made to pause: writeback:balance_dirty_pages.
--
-- What a program writes out itself is not in here: by fsync, O_SYNC or O_DIRECT, and with ext4 when
-- it closes a file that it has emptied and filled anew. See biolat.lua.
--
-- Usage
--   luatrace writeback.lua [--device DEVICE]... [--inodes] [--top N]
--   luatrace -d 60 writeback.lua                  for a minute; without -d until Ctrl-C
--   luatrace -c 'cp -r /usr/share /tmp/x; sync' writeback.lua --device vda --inodes
--
-- Sample output
--   device     reason        rounds   pages     avg     p99     max
--   vda        background         4   40960   102ms   188ms   188ms
--   vda        sync               1    1009  4.51ms  4.51ms  4.51ms
--
--   5 rounds of 41969 pages, 3 empty, 0 voided, 0 open
--
--   paused                  pid   times   total     max
--   cp                    26019      17   1.84s   200ms
--
--   device      of this machine; of a recording (-i) its number. Network file systems have numbers
--   reason      periodic (dirty for too long), background (too many are dirty), sync (somebody
--               has asked), vmscan (memory is needed), ...
--   rounds      that wrote something; behind it pages, and how long the rounds took
--   empty       rounds that found nothing to write
--   voided      given up: events were lost while it was open, or came late
--   paused      the task that was stopped while it wrote, how often, and for how long
--
--   With --inodes there is a table of the files, too: find / -xdev -inum N knows their names.
--   With luatrace -f json every line is an object, with times in ns; with -f csv a row. As
--   metrics (-f prometheus) all of it is there all the time.
--
-- Overhead
--   Two events a round, which is up to some thousand pages, one for each pause of a task, and
--   with --inodes one for each file that is written: nothing that could be measured.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local devices = require "tracefs.devices"
local escape = require "tracefs.escape"
local tracefs = require "tracefs"
local trace = require "tracefs.script"
local units = require "tracefs.units"

local parser = argparse("writeback", "Dirty pages that the kernel writes out, and why.")
  :help_max_width(79)
parser:option("--device", "Only this one, as vda or 254:0; may be given several times.")
  :argname("DEVICE"):count("*"):convert(devices.number)
parser:flag("--inodes", "Also which files, by the numbers of their inodes.")
parser:option("--top", "Tasks and inodes that are shown."):argname("N"):default("10")
  :convert(function(text)
    local number = math.tointeger(tonumber(text))
    if not number or number < 1 then
      return nil, ("'%s' is not a whole number above 0"):format(text)
    end
    return number
  end)
local options = parser:parse(trace.args)

-- Writing out belongs to the whole disk; these events have its number as a text.
local disks = {}
for i, dev in ipairs(options.device) do
  disks[i] = devices.text(devices.disk(dev))
end

local function filter(field, positive)
  local conditions = { [field] = #disks > 0 and disks or nil }
  if positive then
    conditions[positive] = { [">"] = 0 }
  end
  return next(conditions) and conditions or nil
end

local names = setmetatable({}, { __index = function(known, text)
  local dev = not trace.instance.file and devices.number(text)
  known[text] = dev and devices.name(dev) or text
  return known[text]
end })

local by_reason <const> = { "device", "reason" }
local times = aggregate.new { "count", "average", "p99", "maximum", name = "writeback",
  by = by_reason, unit = "ns" }
local pages = aggregate.new { "sum", name = "writeback_pages", by = by_reason }
local paused = aggregate.new { "count", "sum", "maximum", name = "writeback_paused",
  by = { "comm", "pid" }, unit = "ns", max = 10000 }
local inodes = aggregate.new { "count", "sum", name = "writeback_inode_pages",
  by = { "device", "inode" }, max = 10000 }
local total, empty = 0, 0

local rounds = trace:pair {
  name = "writeback",
  start = { event = "writeback:writeback_start", filter = filter "name" },
  stop = { event = "writeback:writeback_written", filter = filter "name" },
  -- one thread does one thing at a time
  key = "common_pid",
  carry = { "name", "nr_pages" },
  on_match = function(delta_ns, _, started, written)
    local wrote = started.nr_pages - written.nr_pages
    if wrote <= 0 then
      empty = empty + 1
      return
    end
    local device, reason = names[started.name], tracefs.text(written, "reason")
    times:add(delta_ns, device, reason)
    pages:add(wrote, device, reason)
    total = total + wrote
  end,
}

trace:on("writeback:balance_dirty_pages", {
  "common_comm", "common_pid", "pause", filter = filter("bdi", "pause"),
}, function(comm, pid, pause_ms)
  paused:add(pause_ms * 1000000, comm, pid)
end)

if options.inodes then
  trace:on("writeback:writeback_single_inode", {
    "name", "ino", "wrote", filter = filter("name", "wrote"),
  }, function(device, inode, wrote)
    inodes:add(wrote, names[device], inode)
  end)
end

-- The rounds of each device and reason, those with most pages first.
local function reasons()
  local list = times:rows()
  for _, row in ipairs(list) do
    row.pages = row.other and 0 or pages:get(row.device, row.reason).sum
  end
  table.sort(list, function(a, b) return a.pages > b.pages end)
  return list
end

local function time(ns)
  return units.format(ns, "ns")
end

local function print_tables(sums)
  if total > 0 then
    print(("%-10s %-12s %7s %7s %7s %7s %7s"):format("device", "reason", "rounds", "pages", "avg",
      "p99", "max"))
    for _, row in ipairs(reasons()) do
      print(("%-10s %-12s %7d %7d %7s %7s %7s"):format(row.device or "(other)", row.reason or "",
        row.count, row.pages, time(row.average), time(row.p99), time(row.maximum)))
    end
    print()
  end
  print(("%d rounds of %d pages, %d empty, %d voided, %d open"):format(sums.rounds, sums.pages,
    sums.empty, sums.voided, sums.open))
  if #paused > 0 then
    print(("\n%-18s %8s %7s %7s %7s"):format("paused", "pid", "times", "total", "max"))
    for _, row in ipairs(paused:rows { sort = "sum", top = options.top }) do
      print(("%-18s %8s %7d %7s %7s"):format(escape.line(row.comm or "(other)"), row.pid or "",
        row.count, time(row.sum), time(row.maximum)))
    end
  end
  if #inodes > 0 then
    print(("\n%-10s %20s %7s %7s"):format("device", "inode", "times", "pages"))
    for _, row in ipairs(inodes:rows { sort = "sum", top = options.top }) do
      print(("%-10s %20s %7d %7d"):format(row.device or "(other)", row.inode or "", row.count,
        row.sum))
    end
  end
end

local function print_objects(sums)
  for _, row in ipairs(reasons()) do
    trace:print {
      type = "writeback", device = row.device or "(other)", reason = row.reason, rounds = row.count,
      pages = row.pages, avg_ns = math.floor(row.average), p99_ns = row.p99, max_ns = row.maximum,
    }
  end
  for _, row in ipairs(paused:rows { sort = "sum" }) do
    trace:print {
      type = "paused", comm = row.comm or "(other)", pid = row.pid, times = row.count,
      total_ns = row.sum, max_ns = row.maximum,
    }
  end
  for _, row in ipairs(inodes:rows { sort = "sum" }) do
    trace:print {
      type = "inode", device = row.device or "(other)", inode = row.inode,
      times = row.count, pages = row.sum,
    }
  end
  sums.type = "rounds"
  trace:print(sums)
end

trace:at_end(function()
  local counts = rounds:counts()
  local sums = {
    rounds = counts.matched - empty, pages = total, empty = empty,
    voided = counts.voided + counts.evicted, open = counts.open,
  }
  if trace.format == "json" or trace.format == "csv" then
    print_objects(sums)
  else
    print_tables(sums)
  end
end)
