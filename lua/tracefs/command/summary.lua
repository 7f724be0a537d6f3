--- What is to be said when a run is over: losses above all.
local report = require "tracefs.command.report"

local summary = {}

local function plural(count, noun)
  return ("%d %s%s"):format(count, noun, count == 1 and "" or "s")
end

-- "CPU 0: 12, CPU 3: 1"
local function per_cpu(stats)
  local cpus, parts = {}, {}
  for cpu, counts in pairs(stats.per_cpu) do
    if counts.lost > 0 then
      cpus[#cpus + 1] = cpu
    end
  end
  table.sort(cpus)
  for i, cpu in ipairs(cpus) do
    parts[i] = ("CPU %d: %d"):format(cpu, stats.per_cpu[cpu].lost)
  end
  return table.concat(parts, ", ")
end

local function advice(instance)
  if type(instance) == "string" then
    return "They were lost when it was recorded."
  end
  local kb = instance and instance:get_buffer_kb()
  return ("The buffer was full before the script took them: try a larger one (-b %s), a filter,"
    .. " or fields instead of records."):format(kb and ("%d"):format(4 * kb) or "KB")
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

--- Says what was lost, late or wrong, and under -v how much there was.
---@param stats table of the session
---@param instance? tracefs.instance|string the path of a file
function summary.report(stats, instance)
  if stats.lost > 0 then
    report.warning(("%d of %s lost (%s). %s"):format(
      stats.lost,
      plural(stats.produced, "event") .. (stats.produced == 1 and " was" or " were"),
      per_cpu(stats),
      advice(instance)
    ))
  end
  if stats.late > 0 then
    report.warning(("%s came late, behind younger ones; ev.common_late marks them"):format(
      plural(stats.late, "event")))
  end
  if stats.errors > 0 then
    report.warning(("%s in handlers"):format(plural(stats.errors, "error")))
  end
  for _, label in ipairs(sorted_keys(stats.samples or {})) do
    local sample = stats.samples[label]
    report.note(("%s is a sample: %d records, each of which stands for %d%s"):format(label,
      sample.taken, sample.scale, sample.seen and (", of %d"):format(sample.seen) or ""))
  end
  report.detail(("%s in %.3f s: %d delivered, %d lost, %d not read"):format(
    plural(stats.produced, "event"),
    stats.elapsed,
    stats.delivered,
    stats.lost,
    stats.pending
  ))
end

return summary
