-- sockleak: sockets that are opened and never closed, by process
--
-- Follows the system calls that open descriptors and those that close them. What a process has
-- opened since the trace began and not closed is left: at the end of the trace, or when the process
-- ended, which closes everything. A program that means to keep its sockets has some, and the
-- same number an hour later; one that leaks has more and more, and an "oldest" that grows.
--
-- Usage
--   luatrace sockleak.lua [--all] [--comm NAME] [--top N]
--   luatrace -d 60 sockleak.lua              for a minute; without -d until Ctrl-C
--   luatrace -p 1234 sockleak.lua --all      one process and its children; files and all else, too
--   luatrace -c './server --selftest' sockleak.lua
--
-- Sample output
--   process             pid kind    opened  closed    exec unknown    left  oldest
--   server            26019 accept      23      18       0       0       5   59.1s
--   ...
--
--   61 opened, 54 closed, 2 exec, 0 unknown, 5 left
--
--   process  the name of the thread that was the first to open one
--   kind     socket or accept: the system call. With --all also file (open, creat), dup, and other
--            (epoll, eventfd, timerfd, signalfd, inotify, memfd, pidfd)
--   closed   by close, close_range or dup2, by whichever thread shares the descriptors
--   exec     open when the process became another program: which of them that closed is not seen
--   unknown  given up: events were lost while they were open, or their number came once more
--   left     opened - closed - exec - unknown; only processes with some are shown
--   oldest   how long the oldest of these has been open
--
--   Not seen as opened: what was open before, what a child has from its parent, what comes over
--   a socket, and what pipe, socketpair and fcntl make.
--   With luatrace -f json every line is an object, with -f csv a row, with -f prometheus there
--   are metrics of them; times in ns.
--
-- Overhead
--   An event for each descriptor that is opened or closed, and for each start, exec, new name and
--   end of a task, each of which costs it about 0.4 us. Here about 1 us of CPU time an event.
--   See docs/guide.md.

local argparse = require "argparse"
local escape = require "tracefs.escape"
local task_name = require "tracefs.task_name"
local tracefs = require "tracefs"
local trace = require "tracefs.script"
local units = require "tracefs.units"

local parser = argparse("sockleak", "Sockets that are opened and never closed, by process.")
  :help_max_width(79)
parser:flag("--all", "All descriptors, not only sockets.")
parser:option("--comm", "Only what tasks of this name open."):argname("NAME")
  :convert(task_name)
parser:option("--top", "Lines of the table."):argname("N"):default("20"):convert(function(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end)
local options = parser:parse(trace.args)

local SOCKETS <const> = { socket = "socket", accept = "accept", accept4 = "accept" }
local OTHERS <const> = {
  open = "file", openat = "file", openat2 = "file", creat = "file", dup = "dup",
  epoll_create = "other", epoll_create1 = "other", eventfd = "other", eventfd2 = "other",
  timerfd_create = "other", signalfd = "other", signalfd4 = "other", inotify_init = "other",
  inotify_init1 = "other", memfd_create = "other", pidfd_open = "other",
}
local CLONE_FILES <const> = 0x400
local CLOSE_RANGE_CLOEXEC <const> = 4
-- What the kernel looks at of an argument that is a descriptor.
local ARGUMENT <const> = 0xffffffff
local RETURNED <const> = {
  "common_pid", "common_comm", "common_timestamp", "ret", filter = "ret >= 0",
}
-- Processes that ended with some open are kept, so many of them.
local MAX_ROWS <const> = 10000
local COUNTERS <const> = { "opened", "closed", "exec", "unknown", "left" }

-- On a recording (-i) nothing depends on what this machine has.
local recorded = trace.instance.file ~= nil
if not recorded and not tracefs.features().syscalls then
  error("this kernel has no events of system calls", 0)
end

-- By thread: the descriptors that it has, alone or with others: { pid =, threads =, is_older =,
-- comm =, rows = { [kind] = row }, fds = { [fd] = { row =, at = } } }.
local tables = {}
-- By thread, of those that were seen to get one: common_comm comes from a list of the kernel's,
-- which may miss the name of a task that does not live long.
local names = {}
-- Of those that are gone: what is printed.
local done, more = {}, 0
local sums = { opened = 0, closed = 0, exec = 0, unknown = 0, left = 0 }
local last = 0

local function new_table(thread, pid)
  local descriptors = { pid = pid, threads = 1, rows = {}, fds = {} }
  tables[thread] = descriptors
  return descriptors
end

-- Of a thread that was there before the trace: what process it belongs to, if that can be known.
local function process_of(thread)
  local file <close> = not recorded and io.open(("/proc/%d/status"):format(thread)) or nil
  return file and math.tointeger(file:read("a"):match "\nTgid:%s*(%d+)") or thread
end

local function table_of(thread)
  local found = tables[thread]
  if not found then
    local pid = process_of(thread)
    found = tables[pid] or new_table(pid, pid)
    found.is_older = true
    tables[thread] = found
  end
  return found
end

local function row_of(descriptors, kind, comm)
  local row = descriptors.rows[kind]
  if not row then
    descriptors.comm = descriptors.comm or comm
    row = { comm = descriptors.comm, pid = descriptors.pid, kind = kind, oldest = 0 }
    for _, name in ipairs(COUNTERS) do
      row[name] = 0
    end
    descriptors.rows[kind] = row
  end
  return row
end

local function count(row, what)
  row[what] = row[what] + 1
  sums[what] = sums[what] + 1
end

-- A descriptor is none any more; what is "left" has never been closed.
local function ended(descriptors, fd, what)
  local open = descriptors.fds[fd]
  if open then
    descriptors.fds[fd] = nil
    count(open.row, what)
    if what == "left" then
      open.row.oldest = math.max(open.row.oldest, last - open.at)
    end
  end
end

local function all_ended(descriptors, what)
  for fd in pairs(descriptors.fds) do
    ended(descriptors, fd, what)
  end
  for kind, row in pairs(descriptors.rows) do
    descriptors.rows[kind] = nil
    if row.left > 0 and #done < MAX_ROWS then
      done[#done + 1] = row
    elseif row.left > 0 then
      more = more + 1
    end
  end
end

local function opened(kind, thread, comm, now, fd)
  last = now
  comm = names[thread] or comm
  if options.comm and comm ~= options.comm then
    return
  end
  local descriptors = table_of(thread)
  -- How the one that had this number before has ended was not seen.
  ended(descriptors, fd, "unknown")
  local row = row_of(descriptors, kind, comm)
  descriptors.fds[fd] = { row = row, at = now }
  count(row, "opened")
end

-- Turns an event of a system call on, if this machine has the call.
local function on_call(event, fields, handler)
  event = "syscalls:sys_" .. event
  if recorded or tracefs.event(event) then
    trace:on(event, fields, handler)
  end
end

local function on_open(calls)
  for call, kind in pairs(calls) do
    on_call("exit_" .. call, RETURNED, function(...) opened(kind, ...) end)
  end
end

on_open(SOCKETS)
if options.all then
  on_open(OTHERS)
end

on_call("enter_close", { "common_pid", "common_timestamp", "fd" }, function(thread, now, fd)
  last = now
  ended(table_of(thread), fd & ARGUMENT, "closed")
end)

on_call("enter_close_range", { "common_pid", "fd", "max_fd", "flags" },
  function(thread, from, to, flags)
    if flags & CLOSE_RANGE_CLOEXEC == 0 then
      local descriptors = table_of(thread)
      for fd in pairs(descriptors.fds) do
        if fd >= from & ARGUMENT and fd <= to & ARGUMENT then
          ended(descriptors, fd, "closed")
        end
      end
    end
  end)

for _, call in ipairs { "dup2", "dup3" } do
  on_call("enter_" .. call, { "common_pid", "oldfd", "newfd" }, function(thread, from, to)
    if (from ~ to) & ARGUMENT ~= 0 then
      ended(table_of(thread), to & ARGUMENT, "closed")
    end
  end)
end
if options.all then
  for _, call in ipairs { "dup2", "dup3" } do
    on_call("exit_" .. call, RETURNED, function(thread, comm, now, fd)
      -- to the number that it has already changes nothing
      if not table_of(thread).fds[fd] then
        opened("dup", thread, comm, now, fd)
      end
    end)
  end
end

trace:on("task:task_rename", { "pid", "newcomm" }, function(thread, comm)
  names[thread] = comm
end)

trace:on("task:task_newtask", {
  "common_pid", "pid", "clone_flags", "comm",
}, function(parent, pid, flags, comm)
  names[pid] = comm
  if flags & CLONE_FILES == 0 then
    new_table(pid, pid)
  else
    local descriptors = table_of(parent)
    descriptors.threads = descriptors.threads + 1
    tables[pid] = descriptors
  end
end)

-- Is there nobody left who has these descriptors?
local function is_gone(descriptors)
  if descriptors.is_older and not recorded then
    -- it may have threads that have not done anything yet
    local file <close> = io.open(("/proc/%d/status"):format(descriptors.pid))
    return file == nil
  end
  return descriptors.threads == 0
end

trace:on("sched:sched_process_exit", { "pid", "common_timestamp" }, function(thread, now)
  last = now
  local descriptors = tables[thread]
  tables[thread], names[thread] = nil, nil
  if descriptors then
    descriptors.threads = descriptors.threads - 1
    if is_gone(descriptors) then
      all_ended(descriptors, "left")
    end
  end
end)

trace:on("sched:sched_process_exec", { "pid", "old_pid" }, function(pid, thread)
  local descriptors = tables[thread]
  tables[thread] = nil
  if descriptors and pid ~= descriptors.pid then
    -- of its parent's, which keeps them: the new program has a copy
    descriptors.threads = descriptors.threads - 1
  elseif descriptors then
    all_ended(descriptors, "exec")
  end
  new_table(pid, pid)
end)

-- What is missing may be the end of any of them.
trace:on_lost(function()
  for _, descriptors in pairs(tables) do
    all_ended(descriptors, "unknown")
  end
  tables, names = {}, {}
end)

local LINE <const> = "%-15s %7s %-6s" .. (" %7s"):rep(#COUNTERS + 1)

local function print_table()
  print(LINE:format("process", "pid", "kind", "opened", "closed", "exec", "unknown", "left",
    "oldest"))
  for i = 1, math.min(options.top, #done) do
    local row = done[i]
    print(LINE:format(escape.line(row.comm), row.pid, row.kind, row.opened, row.closed, row.exec,
      row.unknown, row.left, units.format(row.oldest, "ns")))
  end
  more = more + math.max(0, #done - options.top)
  if more > 0 then
    print(("... and %d more"):format(more))
  end
  print()
end

-- For programs. What is to be a label of a metric is no number.
local function print_objects()
  local is_metric = trace.format == "prometheus"
  for _, row in ipairs(done) do
    trace:print {
      type = "descriptors", comm = row.comm, pid = is_metric and tostring(row.pid) or row.pid,
      kind = row.kind, opened = row.opened, closed = row.closed, exec = row.exec,
      unknown = row.unknown, left = row.left, oldest_ns = row.oldest,
    }
  end
  sums.type = "total"
  trace:print(sums)
end

trace:at_end(function()
  for _, descriptors in pairs(tables) do
    all_ended(descriptors, "left")
  end
  table.sort(done, function(a, b)
    if a.left ~= b.left then
      return a.left > b.left
    elseif a.pid ~= b.pid then
      return a.pid < b.pid
    end
    return a.kind < b.kind
  end)
  if trace.format == "json" or trace.format == "csv" or trace.format == "prometheus" then
    print_objects()
    return
  end
  if #done > 0 then
    print_table()
  end
  print(("%d opened, %d closed, %d exec, %d unknown, %d left"):format(sums.opened, sums.closed,
    sums.exec, sums.unknown, sums.left))
end)
