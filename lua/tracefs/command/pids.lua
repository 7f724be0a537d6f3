--- -p: only events of some processes, their threads and what they start.
local core = require "tracefs.core"
local must = require("tracefs.raising").must

local pids = {}

-- Adds the threads of a process to list; those that are in it already are passed over.
local function add_threads(pid, list, seen)
  for _, tid in ipairs(core.threads(pid) or {}) do
    if not seen[tid] then
      seen[tid] = true
      list[#list + 1] = tid
    end
  end
end

-- What has come since `seen`: threads of the processes and of their descendants.
local function collect(processes, seen)
  local list = {}
  for _, pid in ipairs(processes) do
    add_threads(pid, list, seen)
    for _, descendant in ipairs(core.descendants(pid) or {}) do
      add_threads(descendant, list, seen)
    end
  end
  return list
end

--- Restricts an instance to processes. What they start from now on is followed by the kernel; a
--- thread or child that appears while their list is made is found by looking again.
---@param instance tracefs.instance
---@param processes integer[]
---@return tracefs.process[] watched to see them end
function pids.restrict(instance, processes)
  if core.in_pid_namespace() then
    error(("-p %d: luatrace is in a pid namespace of its own (a container), and the kernel's tracer"
      .. " knows that process by another number. Run it on the host, or in the host's pid"
      .. " namespace (docker run --pid=host)"):format(processes[1]), 0)
  end
  local watched = {}
  for i, pid in ipairs(processes) do
    watched[i] = must(core.watch(pid))
  end
  must(instance:set_option("event-fork", true))
  local seen = {}
  must(instance:set_event_pids(collect(processes, seen)))
  while true do
    local more = collect(processes, seen)
    if #more == 0 then
      return watched
    end
    must(instance:append("set_event_pid", table.concat(more, " ")))
  end
end

return pids
