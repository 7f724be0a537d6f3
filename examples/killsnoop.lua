-- killsnoop: who sends which signal to whom
--
-- A line for each signal that a process sends (kill, tkill, sigqueue and their relatives), from
-- signal:signal_generate. With --kernel also those that the kernel makes by itself: for the end of
-- a child, a timer, an access that failed. An attempt that is refused (no such process, not
-- permitted) makes no signal and is not seen.
--
-- Usage
--   luatrace killsnoop.lua [--signal NAME]... [--to PID] [--kernel] [--summary]
--   luatrace -d 10 killsnoop.lua                 for ten seconds; without -d until Ctrl-C
--   luatrace killsnoop.lua --signal KILL --signal TERM
--   luatrace -c 'make test' killsnoop.lua --kernel --summary
--
-- Sample output (luatrace -c 'sleep 9 & kill -CONT $!; kill $!' killsnoop.lua)
--      time from                  pid signal    to                    pid result
--     0.000 sh                  15013 CONT      sleep               15014 ignored
--     0.001 sh                  15013 TERM      sleep               15014 sent
--
--   2 signals
--
--   time      seconds since the first line
--   from      the thread that sent it. With --kernel it is the task that the kernel was at: for
--             CHLD the child, for a timer or a key press any task
--   to        the thread that it is for, one of its process when it is for all of that
--   result    sent; ignored: by that process, or not taken at that time; pending: one of its kind
--             was waiting already; lost: no memory for it; bare: sent without what belongs to it
--
--   With --summary there is a line for each sender's name, signal and target's name instead.
--   With luatrace -f json every line is an object, with time_ns of the trace's clock, code (what
--   the target sees as si_code) and whole_process; with -f csv a row, with -f perfetto an instant.
--   With -f svg the sums are bars, with -f prometheus counters.
--
-- Overhead
--   An event for each signal, which costs its sender about 0.4 us, and about 5 us of CPU time
--   here, most of it for the line. See docs/guide.md.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local escape = require "tracefs.escape"
local trace = require "tracefs.script"

-- Of nearly all machines; MIPS, Alpha, SPARC and PA-RISC have others.
local NAMES <const> = {
  "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
  "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU",
  "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
}
-- enum in include/trace/events/signal.h, from 0 on.
local RESULTS <const> = { [0] = "sent", "ignored", "pending", "lost", "bare" }
-- SI_USER, SI_QUEUE, SI_TKILL: somebody has made a system call for it.
local BY_PROCESSES <const> = { 0, -1, -6 }

local function signal_number(text)
  local number = math.tointeger(tonumber(text))
  if number and number >= 1 and number <= 64 then
    return number
  end
  local wanted = text:upper():gsub("^SIG", "")
  for i, name in ipairs(NAMES) do
    if name == wanted then
      return i
    end
  end
  return nil, ("--signal takes a name as TERM, or a number up to 64, not '%s'"):format(text)
end

local parser = argparse("killsnoop", "Who sends which signal to whom."):help_max_width(79)
parser:option("--signal", "Only this one; may be given several times.")
  :argname("NAME"):count("*"):convert(signal_number)
parser:option("--to", "Only signals to this thread or process."):argname("PID")
  :convert(function(text)
    return math.tointeger(tonumber(text)), ("--to takes a number, not '%s'"):format(text)
  end)
parser:flag("--kernel", "Also what the kernel sends by itself.")
parser:flag("--summary", "How often who has sent what to whom, instead of a line for each.")
local options = parser:parse(trace.args)

local function name_of(signal)
  return NAMES[signal] or tostring(signal)
end

local sums = aggregate.new {
  "count", by = { "from", "signal", "to" }, name = "signals", titles = { count = "signals" },
  max = 10000,
}
local sent, first_ts = 0, nil
-- Metrics and pictures are of how often.
local is_of_sums = trace.format == "prometheus" or trace.format == "svg"

local function show(signal)
  if trace.format ~= "text" then
    trace:print(signal)
    return
  end
  if not first_ts then
    first_ts = signal.time_ns
    print(("%8s %-16s %8s %-9s %-16s %8s %s"):format("time", "from", "pid", "signal", "to", "pid",
      "result"))
  end
  print(("%8.3f %-16s %8d %-9s %-16s %8d %s"):format((signal.time_ns - first_ts) / 1e9,
    escape.line(signal.from), signal.from_pid, signal.signal, escape.line(signal.to),
    signal.to_pid, signal.result))
end

local filter = {
  code = not options.kernel and BY_PROCESSES or nil,
  sig = #options.signal > 0 and options.signal or nil,
  pid = options.to,
}

trace:on("signal:signal_generate", {
  "common_timestamp", "common_comm", "common_pid", "sig", "comm", "pid", "code", "group", "result",
  filter = next(filter) and filter or nil,
}, function(ts, from, from_pid, sig, to, to_pid, code, group, result)
  sent = sent + 1
  if options.summary or is_of_sums then
    sums:count(from, name_of(sig), to)
    return
  end
  show {
    type = "signal", time_ns = ts, from = from, from_pid = from_pid, signal = name_of(sig), to = to,
    to_pid = to_pid, result = RESULTS[result] or tostring(result), code = code,
    whole_process = group ~= 0,
  }
end)

trace:at_end(function()
  if is_of_sums then
    trace:print(sums)
    return
  elseif trace.format ~= "text" then
    for _, row in ipairs(options.summary and sums:rows { sort = "count" } or {}) do
      trace:print {
        type = "signals", from = row.from or "(other)", signal = row.signal, to = row.to,
        signals = row.count,
      }
    end
    if trace.format ~= "csv" then
      trace:print { type = "total", signals = sent }
    end
    return
  end
  if options.summary and sent > 0 then
    print(sums:text { sort = "count" })
  end
  if sent > 0 then
    print()
  end
  print(("%d signals"):format(sent))
end)
