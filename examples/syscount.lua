-- syscount: system calls, by process and call, counted in the kernel
--
-- The kernel counts into a table of its own (a histogram of raw_syscalls:sys_enter), and only the
-- table is read, once, at the end: no call is copied. Where the kernel has no histograms, or they
-- cannot do what is asked for (luatrace -p), syscount says so and counts in Lua, call by call.
--
-- Usage
--   luatrace syscount.lua [--by task|comm|call] [--top N] [--comm NAME] [--size ROWS] [--in-lua]
--   luatrace -d 10 syscount.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make -j4' syscount.lua --by call   while a command runs; of the whole machine
--   luatrace -c 'ls -R /usr' syscount.lua --comm ls
--
-- Sample output
--   task                   pid  call                          calls
--   load-calls             182  sys_getppid                    1009
--   luatrace               171  sys_read                         48
--   ...
--   ... and 49 more lines
--
--   1530 calls, counted in the kernel
--
--   task, pid   who has called; the name that it had at the first of these calls. With --by comm
--               all tasks of a name are one, with --by call all tasks are
--   call        the kernel's name of the call, or its number where there is none for it; counted
--               in Lua it is the name that programs know the call by, with the kernel's sys_
--   calls       how often. The tracer's own calls are left out
--
--   "N calls found no place" is said when there were more tasks and calls than ROWS (8192): these
--   are not in the table.
--   With luatrace -f json every line is an object, with -f csv a row, of all tasks and calls. With
--   -f svg they are bars. With -f prometheus they are metrics, read every five seconds.
--
-- Overhead
--   In the kernel: each system call of every process looks a row up and adds to it. With --comm
--   those of others pay for the filter only, about 0.1 us. Nothing here until the end.
--   In Lua: about 0.4 us for each call in the process that makes it, and 0.1 us here.
--   See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local trace = require "tracefs.script"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local parser = argparse("syscount", "System calls, by process and call, counted in the kernel.")
  :help_max_width(79)
parser:option("--by", "One line for each task, for all tasks of a name, or for all tasks.")
  :choices({ "task", "comm", "call" }):default("task")
parser:option("--top", "Lines of the table."):argname("N"):default("10"):convert(whole_number)
parser:option("--comm", "Only tasks of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:option("--size", "Different tasks and calls that there is place for."):argname("ROWS")
  :default("8192"):convert(function(text)
    local number = whole_number(text)
    if not number or number < 65 or number > 131072 then
      return nil, ("--size takes from 65 to 131072 rows, not '%s'"):format(text)
    end
    return number
  end)
parser:flag("--in-lua", "Count here and not in the kernel.")
local options = parser:parse(trace.args)

local EVENT <const> = "raw_syscalls:sys_enter"

local filter
if options.comm then
  if options.comm:find('"', 1, true) then
    parser:error("--comm: a name with a quote in it cannot be told to the kernel")
  end
  filter = ('COMM ~ "%s"'):format(options.comm)
end

-- Lines of the table by what makes them one.
local lines, order, total, dropped = {}, {}, 0, 0

local function add(comm, pid, call, count)
  total = total + count
  comm = options.by ~= "call" and comm or ""
  pid = options.by == "task" and pid or ""
  local key = ("%s\0%s\0%s"):format(comm, pid, call)
  local line = lines[key]
  if not line then
    line = { comm = comm, pid = pid, call = call, calls = 0 }
    lines[key] = line
    order[#order + 1] = line
  end
  line.calls = line.calls + count
end

-- Returns what reads the kernel's table, or nil and why there is none.
local function count_in_kernel()
  local ok, counted = pcall(trace.hist, trace, EVENT, {
    keys = { "common_pid.execname", "id.syscall" }, size = options.size, filter = filter,
  })
  if not ok then
    return nil, counted
  end
  return function()
    local result = assert(counted:read())
    for _, row in ipairs(result.rows) do
      local who, call = row.keys.common_pid, row.keys.id
      add(who.comm, who.pid, call.name or tostring(call.id), row.values.hitcount)
    end
    dropped = result.dropped
  end
end

local function count_in_lua()
  -- What a record's pid is called comes from a list of the kernel's, which may miss the name of a
  -- task that does not live long: those that begin, or get another name, are kept.
  local names = {}
  local function note(pid, comm)
    names[pid] = comm
  end
  trace:on("task:task_newtask", { "pid", "comm" }, note)
  trace:on("task:task_rename", { "pid", "newcomm" }, note)
  trace:on("sched:sched_process_exit", { "pid" }, note)
  trace:on_lost(function() names = {} end)
  local calls = setmetatable({}, { __index = function(known, id)
    known[id] = trace:syscall_name(id) or tostring(id)
    return known[id]
  end })
  trace:on(EVENT, { "common_comm", "common_pid", "id", filter = filter }, function(comm, pid, id)
    add(names[pid] or comm, pid, calls[id], 1)
  end)
end

local read_kernel, why
if not options.in_lua then
  read_kernel, why = count_in_kernel()
  if not read_kernel then
    io.stderr:write(("syscount: %s\nsyscount: counting in Lua, every call is copied\n"):format(why))
  end
end
if not read_kernel then
  count_in_lua()
end

local function print_table()
  print(("%-20s %8s  %-26s %8s"):format("task", "pid", "call", "calls"))
  for i = 1, math.min(options.top, #order) do
    local line = order[i]
    print(("%-20s %8s  %-26s %8d"):format(escape.line(line.comm), line.pid, line.call, line.calls))
  end
  if #order > options.top then
    print(("... and %d more lines"):format(#order - options.top))
  end
  print(("\n%d calls, counted in %s"):format(total, read_kernel and "the kernel" or "Lua"))
  if dropped > 0 then
    print(("%d calls found no place: choose a larger --size"):format(dropped))
  end
end

-- What has been counted until now.
local function collect()
  if read_kernel then
    lines, order, total, dropped = {}, {}, 0, 0
    read_kernel()
  end
  table.sort(order, function(a, b)
    if a.calls ~= b.calls then
      return a.calls > b.calls
    end
    return ("%s\0%s\0%s"):format(a.comm, a.pid, a.call) < ("%s\0%s\0%s"):format(b.comm, b.pid,
      b.call)
  end)
end

local function print_objects()
  for _, line in ipairs(order) do
    trace:print {
      type = "calls", comm = line.comm, pid = math.tointeger(line.pid), call = line.call,
      calls = line.calls,
    }
  end
  trace:print {
    type = "total", calls = total, dropped = dropped,
    counted_in = read_kernel and "kernel" or "lua",
  }
end

-- What stands beside the number of calls: texts, in a picture and as labels of metrics.
local function keys_of(line)
  local by = { call = { "call" }, comm = { "comm", "call" }, task = { "comm", "pid", "call" } }
  local keys = {}
  for i, name in ipairs(by[options.by]) do
    keys[i] = tostring(line[name])
  end
  return keys, by[options.by]
end

local function print_metrics()
  collect()
  for _, line in ipairs(order) do
    local object = { type = "syscall", calls = line.calls }
    local keys, names = keys_of(line)
    for i, name in ipairs(names) do
      object[name] = keys[i]
    end
    trace:print(object)
  end
  trace:print { type = "syscalls", calls = total, dropped = dropped }
end

local function print_bars()
  local _, names = keys_of {}
  local calls = aggregate.new { "sum", name = "system calls", by = names, max = 1000000 }
  for _, line in ipairs(order) do
    calls:add(line.calls, table.unpack((keys_of(line))))
  end
  trace:print(calls)
end

if trace.format == "prometheus" then
  trace:every(5, print_metrics)
  trace:at_end(print_metrics)
else
  trace:at_end(function()
    collect()
    if trace.format == "json" or trace.format == "csv" then
      print_objects()
    elseif trace.format == "svg" then
      print_bars()
    else
      print_table()
    end
  end)
end
