-- opensnoop: files that are opened, by whom, and what came of it
--
-- The system calls open, openat, openat2 and creat, each with its result. That a call was made and
-- how it ended is told by the kernel's events of system calls, where it has them, else by probes
-- on do_sys_openat2. What neither says on most kernels is the name: the event has its address in
-- the caller's memory, not the text. Then the name comes from a probe on do_filp_open, where the
-- kernel has its own copy, which is always readable. A kernel without kprobes does not tell it
-- before 6.19.
--
-- Usage
--   luatrace opensnoop.lua [--failed] [--comm NAME] [--name PATTERN]
--   luatrace -d 10 opensnoop.lua --failed        what is looked for and not found
--   luatrace -c 'make' opensnoop.lua --name '%.h$'
--   luatrace -p 1234 opensnoop.lua               one process and its children
--
-- Sample output
--   TIME       COMM             PID     RESULT  NAME
--   0.003184   cat              2817    3       /etc/ld.so.cache
--   0.003391   cat              2817    3       /lib/x86_64-linux-gnu/libc.so.6
--   0.004127   cat              2817    ENOENT  /etc/nosuch
--
--   TIME    seconds since the trace began
--   PID     of the thread that made the call
--   RESULT  the new descriptor, or the error
--   NAME    as the process gave it: it may be relative. "?" when it cannot be known: the address
--           that was given is not readable, or the kernel has no kprobes
--
--   With luatrace -f json every line is an object, with flags (open and openat) as a number; with
--   -f csv a row. With -f prometheus and -f svg they are counted by COMM and RESULT ("ok" for a
--   descriptor). With -f perfetto each call is a slice, whatever its name and result.
--
-- Overhead
--   Two events and a probe a call, which cost the caller about 1.5 us; about 1 us of CPU time a
--   call here. With --comm other processes' calls are not recorded; --failed and --name are
--   applied here. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local glob = require "tracefs.glob"
local task_name = require "tracefs.task_name"
local tracefs = require "tracefs"
local trace = require "tracefs.script"

local parser = argparse("opensnoop", "Files that are opened, by whom, and the result.")
  :help_max_width(79)
parser:flag("--failed", "Only calls that failed.")
parser:option("--comm", "Only tasks of this name."):argname("NAME")
  :convert(task_name)
parser:option("--name", "Only names that this Lua pattern matches."):argname("PATTERN")
local options = parser:parse(trace.args)
if options.comm and options.comm:find('"', 1, true) then
  parser:error("--comm: a name with a quote in it cannot be told to the kernel")
end
local mistake = options.name and glob.mistake(options.name)
if mistake then
  parser:error(("--name takes a Lua pattern, which '%s' is not: %s"):format(options.name, mistake))
end

local as_slices = trace.format == "perfetto"
if as_slices and (options.failed or options.name) then
  parser:error("--failed and --name choose lines: there are none with -f perfetto")
end

local CALLS <const> = { "open", "openat", "openat2", "creat" }

-- include/uapi/asm-generic/errno-base.h and errno.h: what opening a file may end with.
local ERRORS <const> = {
  [1] = "EPERM", [2] = "ENOENT", [4] = "EINTR", [5] = "EIO", [6] = "ENXIO", [7] = "E2BIG",
  [9] = "EBADF", [11] = "EAGAIN", [12] = "ENOMEM", [13] = "EACCES", [14] = "EFAULT",
  [16] = "EBUSY", [17] = "EEXIST", [18] = "EXDEV", [19] = "ENODEV", [20] = "ENOTDIR",
  [21] = "EISDIR", [22] = "EINVAL", [23] = "ENFILE", [24] = "EMFILE", [26] = "ETXTBSY",
  [27] = "EFBIG", [28] = "ENOSPC", [30] = "EROFS", [36] = "ENAMETOOLONG", [40] = "ELOOP",
  [75] = "EOVERFLOW", [95] = "EOPNOTSUPP", [116] = "ESTALE", [122] = "EDQUOT",
}

local filter = options.comm and ('COMM == "%s"'):format(options.comm) or nil
-- On a recording (-i) nothing depends on what this machine has.
local recorded = trace.instance.file ~= nil
local has = recorded and {} or tracefs.features()
-- Calls under way, by thread.
local open = {}
local first
local calls, known = 0, 0
local counted = aggregate.new { "count", name = "opens", by = { "comm", "result" }, max = 10000 }
-- The first row of a CSV table says which columns there are.
local absent = trace.format == "csv" and "" or nil

local function ended(pid, comm, now, result)
  local call = open[pid]
  open[pid] = nil
  -- The kernel has compared the name itself; what the record's pid is called comes from a list.
  comm = options.comm or comm
  first = first or now
  -- One that had begun before the trace did has no name.
  if not call or options.failed and result >= 0 then
    return
  end
  local name = call.name
  if options.name and not (name and name:find(options.name)) then
    return
  end
  local ended_how = result < 0 and (ERRORS[-result] or tostring(result)) or tostring(result)
  if trace.format == "json" or trace.format == "csv" then
    trace:print {
      type = "open", time_ns = now, comm = comm, pid = pid, result = result, name = name or absent,
      error = result < 0 and ended_how or absent, flags = call.flags or absent,
    }
    return
  elseif trace.format ~= "text" then
    counted:count(comm, result < 0 and ended_how or "ok")
    return
  end
  print(("%-10.6f %-16s %-7d %-7s %s"):format((now - first) / 1e9, escape.line(comm), pid,
    ended_how, name and escape.line(name) or "?"))
end

local function began(pid, now, name, flags)
  first = first or now
  -- What a probe could not read is empty.
  name = name ~= "" and name or nil
  open[pid] = { name = name, flags = flags }
  calls, known = calls + 1, known + (name and 1 or 0)
end

local function note_name(pid, name)
  local call = open[pid]
  if call and not call.name and name ~= "" then
    call.name = name
    known = known + 1
  end
end

-- Does the event have the text? Kernels from 6.19 on read it.
local named = false

local function slices(starts, stops)
  trace:pair {
    name = "open", start = starts, stop = stops, key = "common_pid", carry = "common_comm",
  }
end

local function by_events()
  local starts, stops = {}, {}
  for _, call in ipairs(CALLS) do
    local enter = "syscalls:sys_enter_" .. call
    local event = not recorded and tracefs.event(enter)
    if event or recorded then
      named = named or event and event:has("__filename_val")
      starts[#starts + 1] = { event = enter, filter = filter }
      stops[#stops + 1] = { event = "syscalls:sys_exit_" .. call, filter = filter }
    end
  end
  if as_slices then
    slices(starts, stops)
    return
  end
  for i, start in ipairs(starts) do
    trace:on(start.event, { filter = filter }, function(ev)
      began(ev.common_pid, ev.common_timestamp, ev.__filename_val, ev.flags)
    end)
    trace:on(stops[i].event, {
      "common_pid", "common_comm", "common_timestamp", "ret", filter = filter,
    }, ended)
  end
end

local function by_probes()
  if as_slices then
    slices({ event = "kprobe:do_sys_openat2", filter = filter },
      { event = "kretprobe:do_sys_openat2", filter = filter })
    return
  end
  trace:on("kprobe:do_sys_openat2", { filter = filter }, function(ev)
    began(ev.common_pid, ev.common_timestamp)
  end)
  trace:on("kretprobe:do_sys_openat2", {
    "common_pid", "common_comm", "common_timestamp", "result", filter = filter,
    args = { result = "$retval:s32" },
  }, ended)
end

if recorded or has.syscalls then
  by_events()
elseif has.kprobe then
  by_probes()
else
  error("this kernel has neither events of system calls nor kprobes", 0)
end
if has.kprobe and not named and not as_slices then
  -- int dfd, struct filename *name, ...: the structure begins with the pointer to the text.
  local inside = tracefs.core.kernel_function("do_filp_open") == false and "do_file_open"
    or "do_filp_open"
  trace:on("kprobe:" .. inside, {
    "common_pid", "name", filter = filter, args = { name = "+0(+0($arg2)):string" },
  }, note_name)
end

trace:at_end(function()
  if trace.format == "svg" then
    trace:print(counted)
  end
  if calls > 0 and known == 0 then
    io.stderr:write(("opensnoop: %d files, and no name is known: %s\n"):format(calls, recorded
      and "the recording does not have them" or "this kernel has no kprobes, and is before 6.19"))
  end
end)

-- The end of any call may be what is missing.
trace:on_lost(function()
  open = {}
end)

if trace.format == "text" then
  trace:at_start(function()
    print(("%-10s %-16s %-7s %-7s %s"):format("TIME", "COMM", "PID", "RESULT", "NAME"))
  end)
end
