-- pagefaults: page faults by process, and of which kind they are
--
-- A page fault is an access to memory that the processor could not make by itself: the page is not
-- there yet, is shared and has to be copied first, or is not to be touched at all. The kernel's
-- events exceptions:page_fault_user and exceptions:page_fault_kernel see each, on x86. They do not
-- tell what came of it, nor whether something had to be read from a disk.
--
-- Usage
--   luatrace pagefaults.lua [--by task|comm] [--top N] [--comm NAME] [--range FROM-TO]
--   luatrace -d 10 pagefaults.lua                     for ten seconds; without -d until Ctrl-C
--   luatrace -c 'make -j4' pagefaults.lua --by comm
--   luatrace -p 1234 pagefaults.lua --range 7f5c00000000-7f5c80000000
--
-- Sample output (luatrace -c 'ls -lR /usr/include >/dev/null' pagefaults.lua)
--   task                  pid   faults     read    write     exec   denied   kernel
--   ls                   3319      171       40       93       30        8        8
--   sh                   3318       62       17       20       19        6        2
--   ...
--   ... and 3 more lines
--
--   407 page faults
--
--   task, pid  whose access it was, under the name that it is known by; --comm looks at the name of
--              the moment. With --by comm all tasks of a name are one
--   faults     all: read + write + exec + denied
--   read       of a page that was not there; write the same
--   exec       of code that was not there
--   denied     the page was there, but not for this access: as a rule a write to a page that is
--              shared with a parent or a file, and is copied now
--   kernel     how many of these the kernel met, in a system call that reads or writes the
--              process's memory
--
--   --range looks at addresses in hexadecimal only, the second one not included.
--   With luatrace -f json every line is an object; with -f csv a row. As metrics (-f prometheus)
--   they are anew every five seconds, and with -f svg bars at the end.
--
-- Overhead
--   An event for each fault, which costs the process about 0.4 us beside the microsecond or more
--   that the fault takes, and about 0.9 us of CPU time here. With --comm and --range the others are
--   not recorded. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local tracefs = require "tracefs"
local trace = require "tracefs.script"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local function range(text)
  local from, to = text:match "^0?x?(%x+)%-0?x?(%x+)$"
  if not from or #from > 16 or #to > 16 then
    return nil, ("--range takes two addresses as 7f00a000-7f00b000, not '%s'"):format(text)
  end
  return ("address >= 0x%s && address < 0x%s"):format(from, to)
end

local parser = argparse("pagefaults", "Page faults by process and kind."):help_max_width(79)
parser:option("--by", "A line for each task, or for all tasks of a name.")
  :choices({ "task", "comm" }):default("task")
parser:option("--top", "Lines of the table."):argname("N"):default("10"):convert(whole_number)
parser:option("--comm", "Only tasks of this name; * and ? stand for others."):argname("NAME")
  :convert(task_name)
parser:option("--range", "Only these addresses."):argname("FROM-TO"):convert(range)
local options = parser:parse(trace.args)

-- Bits of error_code: arch/x86/include/asm/trap_pf.h.
local PRESENT <const>, WRITE <const>, FETCH <const> = 1, 2, 16
local KINDS <const> = { "faults", "read", "write", "exec", "denied", "kernel" }

local filter = options.range
if options.comm then
  if options.comm:find('"', 1, true) then
    parser:error("--comm: a name with a quote in it cannot be told to the kernel")
  end
  filter = ('COMM ~ "%s"%s'):format(options.comm, filter and " && " .. filter or "")
end

if not trace.instance.file and not tracefs.event("exceptions:page_fault_user") then
  error("pagefaults: this kernel has no event exceptions:page_fault_user, which x86 has and others "
    .. "have not", 0)
end

-- By pid. A name is what the kernel knew last: it may come to light only later.
local tasks, total = {}, 0

local function new_line(comm, pid)
  local line = { type = "faults", comm = comm, pid = pid }
  for _, kind in ipairs(KINDS) do
    line[kind] = 0
  end
  return line
end

local function kind_of(error_code)
  if error_code & PRESENT ~= 0 then
    return "denied"
  elseif error_code & FETCH ~= 0 then
    return "exec"
  end
  return error_code & WRITE ~= 0 and "write" or "read"
end

local function count(where, in_kernel)
  trace:on("exceptions:page_fault_" .. where, {
    "common_comm", "common_pid", "error_code", filter = filter,
  }, function(comm, pid, error_code)
    local task, kind = tasks[pid], kind_of(error_code)
    if not task then
      task = new_line(comm, pid)
      tasks[pid] = task
    end
    total = total + 1
    task.comm = comm
    task.faults = task.faults + 1
    task[kind] = task[kind] + 1
    task.kernel = task.kernel + in_kernel
  end)
end

count("user", 0)
count("kernel", 1)

local function sorted_lines()
  local lines, by_comm = {}, {}
  for _, task in pairs(tasks) do
    if options.by == "comm" then
      local line = by_comm[task.comm]
      if not line then
        line = new_line(task.comm)
        by_comm[task.comm], lines[#lines + 1] = line, line
      end
      for _, kind in ipairs(KINDS) do
        line[kind] = line[kind] + task[kind]
      end
    else
      lines[#lines + 1] = task
    end
  end
  table.sort(lines, function(a, b)
    if a.faults ~= b.faults then
      return a.faults > b.faults
    elseif a.comm ~= b.comm then
      return a.comm < b.comm
    end
    return (a.pid or 0) < (b.pid or 0)
  end)
  return lines
end

local LINE <const> = "%-16s %8s" .. (" %8s"):rep(#KINDS)

local function print_table(lines)
  if total > 0 then
    print(LINE:format("task", options.by == "task" and "pid" or "", table.unpack(KINDS)))
  end
  for i = 1, math.min(options.top, #lines) do
    local line, numbers = lines[i], {}
    for k, kind in ipairs(KINDS) do
      numbers[k] = line[kind]
    end
    print(LINE:format(escape.line(line.comm), line.pid or "", table.unpack(numbers)))
  end
  if #lines > options.top then
    print(("... and %d more lines"):format(#lines - options.top))
  end
  if total > 0 then
    print()
  end
  print(("%d page faults"):format(total))
end

local function print_objects()
  for _, line in ipairs(sorted_lines()) do
    trace:print(line)
  end
  if trace.format == "json" then
    trace:print { type = "total", faults = total }
  end
end

-- A pid is a label here, and labels are texts.
local function print_metrics()
  for _, line in ipairs(sorted_lines()) do
    local object = { type = line.type, comm = line.comm, pid = line.pid and tostring(line.pid) }
    for _, kind in ipairs(KINDS) do
      object[kind] = line[kind]
    end
    trace:print(object)
  end
  trace:print { type = "total", faults = total }
end

local function print_bars()
  local bars = aggregate.new {
    "sum", name = "page faults", by = { "comm", options.by == "task" and "pid" or nil },
    max = 1000000,
  }
  for _, line in ipairs(sorted_lines()) do
    bars:add(line.faults, line.comm, line.pid)
  end
  trace:print(bars)
end

local PRINT <const> = {
  json = print_objects, csv = print_objects, prometheus = print_metrics, svg = print_bars,
}
if trace.format == "prometheus" then
  trace:every(5, print_metrics)
end
trace:at_end(PRINT[trace.format] or function() print_table(sorted_lines()) end)
