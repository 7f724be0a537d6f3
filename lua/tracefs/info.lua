--- What this kernel offers a tracer, found by looking, never by version numbers.
local tracefs = require "tracefs"

local info = {}

local function read(path)
  local file <close> = io.open(path)
  local text = file and file:read("a")
  return text and (text:gsub("%s+$", ""))
end

local function words(text)
  local list = {}
  for word in (text or ""):gmatch("%S+") do
    list[#list + 1] = word
  end
  return list
end

-- "0-3,5" as a number of CPUs.
local function count_cpus(text)
  local count = 0
  for first, last in (text or ""):gmatch("(%d+)%-?(%d*)") do
    count = count + (tonumber(last) or tonumber(first)) - tonumber(first) + 1
  end
  return count
end

-- The word in brackets is the mode; kernels without lockdown have no such file.
local function lockdown()
  local text = read("/sys/kernel/security/lockdown")
  return text and text:match("%[(.-)%]")
end

local function count_events(text)
  local events, systems, count = 0, {}, 0
  for system in text:gmatch("([^:\n]+):[^\n]+") do
    events = events + 1
    if not systems[system] then
      systems[system] = true
      count = count + 1
    end
  end
  return events, count
end

-- What only a session can say: it sets an instance up as every run does.
local function probe_session(found)
  local ok, result = pcall(tracefs.session)
  if not ok then
    found.problem = require("tracefs.command.loading").without_position(result)
    return
  end
  local session <close> = result
  local instance = session.instance
  found.can_trace = true
  found.clocks = instance:clocks() or {}
  found.buffer_kb = instance:get_buffer_kb()
  found.subbuf_kb = instance:get_subbuf_kb()
end

--- Looks at everything.
---@return table found
function info.gather()
  local found = {
    version = tracefs.version,
    kernel = read("/proc/sys/kernel/osrelease"),
    machine = read("/proc/sys/kernel/arch"),
    cpus = count_cpus(read("/sys/devices/system/cpu/online")),
    uid = tonumber((read("/proc/self/status") or ""):match("\nUid:%s+%d+%s+(%d+)")),
    lockdown = lockdown(),
    can_trace = false,
  }
  local dir, message = tracefs.tracing_dir()
  if not dir then
    found.problem = message
    return found
  end
  found.tracing_dir = dir
  probe_session(found)
  local events = read(dir .. "/available_events")
  if events then
    found.events, found.systems = count_events(events)
    found.tracers = words(read(dir .. "/available_tracers"))
    found.features = require("tracefs.features").list(dir)
  end
  return found
end

local function subbuf_text(found)
  if found.subbuf_kb then
    return ("%d KB"):format(found.subbuf_kb)
  end
  return "one page"
end

--- The findings as lines.
---@param found table what gather() returned
---@return string
function info.text(found)
  local lines = {}
  local function line(name, value)
    lines[#lines + 1] = ("%-32s %s"):format(name, value)
  end

  line("luatrace", found.version)
  line("kernel", ("%s%s, %d CPU%s"):format(found.kernel or "unknown",
    found.machine and " " .. found.machine or "", found.cpus, found.cpus == 1 and "" or "s"))
  line("lockdown", found.lockdown or "not in this kernel")
  line("user id", found.uid or "unknown")
  line("tracefs", found.tracing_dir or "not usable")
  line("can trace", found.can_trace and "yes" or "no: " .. tostring(found.problem))
  if found.events then
    line("events", ("%d in %d systems"):format(found.events, found.systems))
  end
  if found.can_trace then
    line("clocks", table.concat(found.clocks, " "))
    line("buffer for each CPU", found.buffer_kb and ("%d KB unless -b says otherwise"):format(
      found.buffer_kb) or "unknown")
    line("sub-buffers", subbuf_text(found))
  end
  if found.tracers then
    line("tracers", table.concat(found.tracers, " "))
  end
  for _, feature in ipairs(found.features or {}) do
    line(feature.name, feature.present and "yes" or "no: " .. feature.without)
  end
  return table.concat(lines, "\n")
end

--- luatrace --info. 1 when this machine, or this user, cannot trace.
---@param options tracefs.command.options
---@return integer status
function info.run(options)
  local output = require "tracefs.output"
  local report = require "tracefs.command.report"
  local out, message = output.open { path = options.output, format = options.format }
  if not out then
    report.failure(message)
    return 1
  end
  local found = info.gather()
  pcall(function()
    if out.format == "json" then
      out:show(found)
    else
      out:write(info.text(found) .. "\n")
    end
  end)
  local failure = out:close()
  if failure then
    report.failure(tostring(failure))
  end
  return found.can_trace and not failure and 0 or 1
end

return info
