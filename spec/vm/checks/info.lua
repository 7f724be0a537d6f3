-- luatrace --info tells what this kernel has; the truth is looked up here.
local guest = require "harness"

local function lines_of(text)
  local found = {}
  for line in text:gmatch("[^\n]+") do
    local name, value = line:match("^(.-)%s%s+(.*)$")
    if not name then
      name, value = line:sub(1, 32):gsub("%s+$", ""), line:sub(34)
    end
    found[name] = value
  end
  return found
end

local function yes_or_no(found, name, there)
  guest.truth(found[name], "--info has no line \"%s\"", name)
  guest.equal(there and "yes" or "no", found[name]:match("^%a+"), name)
end

guest.check("--info tells what this kernel has", function()
  local status, out, err = guest.luatrace("--info")
  guest.equal(0, status, "exit status: " .. err)
  local found = lines_of(out)
  local release = guest.read("/proc/sys/kernel/osrelease"):gsub("\n", "")
  guest.contains(found.kernel, release, "2 CPUs")
  guest.equal(guest.dir, found.tracefs, "tracefs")
  guest.equal("yes", found["can trace"], "can trace")

  local function has(file)
    return guest.exists(guest.dir .. "/" .. file)
  end
  yes_or_no(found, "kprobe events", has("kprobe_events"))
  yes_or_no(found, "uprobe events", has("uprobe_events"))
  yes_or_no(found, "synthetic events", has("synthetic_events"))
  yes_or_no(found, "hist triggers", has("events/sched/sched_switch/hist"))
  yes_or_no(found, "snapshot", has("snapshot"))
  yes_or_no(found, "larger sub-buffers", has("buffer_subbuf_size_kb"))
  yes_or_no(found, "syscall events", has("events/syscalls"))
  yes_or_no(found, "pid filter", true)

  local clocks = guest.read(guest.dir .. "/trace_clock"):gsub("[%[%]\n]", "")
  guest.equal(clocks, found.clocks, "clocks")
  local events, systems, seen = 0, 0, {}
  for system in guest.read(guest.dir .. "/available_events"):gmatch("([^:\n]+):[^\n]+") do
    events = events + 1
    systems = systems + (seen[system] and 0 or 1)
    seen[system] = true
  end
  guest.equal(("%d in %d systems"):format(events, systems), found.events, "events")
  guest.equal(has("buffer_subbuf_size_kb") and "64 KB" or "one page", found["sub-buffers"],
    "sub-buffers")
end)

guest.check("-l lists the kernel's events", function()
  local status, out = guest.luatrace("-l", "sched:sched_*")
  guest.equal(0, status)
  local expected = {}
  for name in guest.read(guest.dir .. "/available_events"):gmatch("(sched:sched_[^\n]*)\n") do
    expected[#expected + 1] = name
  end
  table.sort(expected)
  guest.equal(table.concat(expected, "\n") .. "\n", out)
end)
