--- What the checks of the function tracers share.
local guest = require "harness"
local tracefs = require "tracefs"

local graphs = {}

local TOP_GRAPH <const> = {
  "set_graph_function", "set_graph_notrace", "max_graph_depth", "set_ftrace_filter",
  "set_ftrace_notrace", "set_ftrace_pid", "set_ftrace_notrace_pid", "current_tracer", "trace_clock",
}

local function has_tracer(name)
  local instance <close> = assert(tracefs.instance_create())
  local there = " " .. instance:read("available_tracers"):gsub("%s+", " ")
  return there:find(" " .. name .. " ", 1, true)
end

-- The top level has it when instances have not; every kernel here has one of the two.
graphs.IN_INSTANCE = has_tracer("function_graph") ~= nil

function graphs.need_instance()
  if not graphs.IN_INSTANCE then
    guest.skip("this kernel has function_graph at the top level only")
  end
end

function graphs.need_top()
  if graphs.IN_INSTANCE then
    guest.skip("this kernel has function_graph in instances")
  end
end

-- Where the session's graph is recorded, as the kernel shows it.
function graphs.text(session)
  if graphs.IN_INSTANCE then
    assert(session.instance:trace_off())
    return session.instance:read("trace")
  end
  guest.write(guest.dir .. "/tracing_on", "0")
  return guest.read(guest.dir .. "/trace")
end

-- All that a graph changes of the top level, to be compared.
function graphs.settings()
  local parts = {}
  for _, file in ipairs(TOP_GRAPH) do
    parts[#parts + 1] = file .. "=" .. (guest.read(guest.dir .. "/" .. file) or "-")
  end
  return table.concat(parts)
end

-- A program that reads and writes so often, and does both a few times more at its start.
function graphs.copies(count)
  return ("dd if=/dev/zero of=/dev/null bs=777 count=%d 2>/dev/null"):format(count)
end

-- Records are handled behind the end of the command. What the program tells of itself, see tell(),
-- is in `teller`.
function graphs.run(session, command)
  session:start()
  local status, out = guest.sh(command)
  guest.equal(0, status)
  graphs.teller = math.tointeger(out:match "^%d+")
  session:finish()
  return session:run()
end

-- A command that tells its number first: what a number is called comes from a list of the kernel's
-- that may still have the name from before, or none.
function graphs.tell(command)
  return ("sh -c 'echo $$; exec %s'"):format(command)
end

-- The kernel or luatrace does not take the functions, and leaves nothing of them.
function graphs.refused(options, ...)
  local session <close> = tracefs.session()
  local ok, message = pcall(session.functions, session, options)
  guest.equal(false, ok, "accepted")
  guest.contains(message, ...)
  -- and what was set before it is gone
  local filter = session.instance:read("set_ftrace_filter")
  guest.contains(filter, "all functions enabled")
  guest.contains(session.instance:read("current_tracer"), "nop")
end

return graphs
