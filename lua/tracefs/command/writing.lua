--- Writing a trace file from the command line: its end, its losses, what is said about it.
local core = require "tracefs.core"
local events = require "tracefs.events"
local report = require "tracefs.command.report"
local tracefile = require "tracefs.tracefile"
local must = require("tracefs.raising").must

local writing = {}

-- After tracing went off the kernel has this long to give what its counters still show.
local PATIENCE <const> = 2000000000

-- What is left in the buffers, over all CPUs.
local function entries(instance)
  local left = 0
  for _, stats in pairs(must(instance:stats())) do
    left = left + stats.entries
  end
  return left
end

--- Moves everything that is in the buffers. Tracing is off, or somebody else's.
---@param instance tracefs.instance
---@param recording tracefs.recording
---@param once? boolean do not wait for what is still being written
function writing.drain(instance, recording, once)
  local deadline = core.now() + PATIENCE
  repeat
    must(recording:drain())
    if once or entries(instance) == 0 then
      return
    end
    core.poll({}, 0.002)
  until core.now() > deadline
end

-- Shows how far it is, on a terminal only. Raises when a second signal wants the end now.
local function progress_line(path, signals)
  local shows, last = core.isatty(io.stderr), -1
  return function(done, all)
    if signals and signals:second() then
      error({ interrupted = true }, 0)
    end
    local percent = all > 0 and done * 100 // all or 100
    if shows and not report.quiet and percent ~= last then
      last = percent
      io.stderr:write(("\rluatrace: writing %s: %d %%%s"):format(
        require("tracefs.escape").text(path), percent, percent == 100 and "\n" or ""))
    end
  end
end

--- How many events have been read of an instance's buffers.
---@param instance tracefs.instance
---@return integer
function writing.events_read(instance)
  local read = 0
  for _, stats in pairs(must(instance:stats())) do
    read = read + stats.read
  end
  return read
end

--- Puts the file together and says what is in it.
---@param instance tracefs.instance
---@param recording tracefs.recording
---@param signals? tracefs.signals
---@param before? integer events that had been read before this recording
---@return integer lost
function writing.complete(instance, recording, signals, before)
  local path = recording:path()
  local bytes = recording:bytes()
  local stats = must(instance:stats())
  local show, own = progress_line(path, signals), 0
  must(tracefile.complete(recording, nil, function(done, all, left_out)
    own = left_out
    show(done, all)
  end))
  local read, lost, parts, cpus = -(before or 0), 0, {}, {}
  for cpu, counts in pairs(stats) do
    local gone = counts.overrun + counts.dropped + counts.commit_overrun
    read, lost = read + counts.read, lost + gone
    if gone > 0 then
      cpus[#cpus + 1] = cpu
      parts[cpu] = ("CPU %d: %d"):format(cpu, gone)
    end
  end
  table.sort(cpus)
  for i, cpu in ipairs(cpus) do
    cpus[i] = parts[cpu]
  end
  if lost > 0 then
    report.warning(("%d of %d events%s were lost (%s). The buffer was full before they were read:"
      .. " try a larger one (-b %d), or a filter."):format(lost, read + (before or 0) + lost,
      before and " since the start" or "",
      table.concat(cpus, ", "), 4 * (instance:get_buffer_kb() or 1024)))
  end
  local written = read - own
  report.note(("%s: %d event%s, %.1f MB of pages"):format(path, written, written == 1 and "" or "s",
    bytes / 1e6))
  return lost
end

--- What core.recording wants to know.
---@param version? integer
---@param instance tracefs.instance
---@return tracefs.recording_options
function writing.options(instance, version)
  local options = tracefile.check_options { version = version }
  options.kept = events.kept_ids(instance)
  return options
end

---@param text string
---@return integer? version
---@return string? message
function writing.version(text)
  if text ~= "6" and text ~= "7" then
    return nil, ("version 6 or 7, not '%s'"):format(text)
  end
  return math.tointeger(text)
end

return writing
