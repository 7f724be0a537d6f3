--- luatrace record: events straight from the kernel's buffers into a trace file.
local capture = require "tracefs.command.capture"
local core = require "tracefs.core"
local report = require "tracefs.command.report"
local tracefs = require "tracefs"
local values = require "tracefs.command.values"
local words = require "tracefs.command.words"
local writing = require "tracefs.command.writing"
local must = require("tracefs.raising").must

local record = {}

local OPTIONS = table.move(capture.options, 1, #capture.options, 1, {})
for _, option in ipairs {
  { short = "-o", long = "--output", value = "FILE", help = "The file (trace.dat)." },
  { long = "--duration", value = "TIME", convert = values.seconds,
    help = "End after this time: seconds, or with ms, s, m, h." },
  { long = "--file-version", value = "6|7", convert = writing.version,
    help = "Of the file; 6 for readers from before 2022." },
  { short = "-q", long = "--quiet", help = "No notes on standard error; warnings stay." },
  { long = "--strict", help = "Exit with 3 when events were lost." },
} do
  OPTIONS[#OPTIONS + 1] = option
end

function record.help()
  return [==[
Usage: luatrace record [-e EVENT [-f FILTER] [-R TRIGGER]]... [-p TRACER] [OPTIONS] [CMD [ARG...]]

Writes events into a trace file, in full and as fast as the kernel gives them, until CMD has ended,
the processes of -P have, the time is over, or Ctrl-C. trace-cmd report, KernelShark and luatrace
read it. The capture has buffers of its own: nothing else on this machine is changed.

Options:
]==] .. words.help(OPTIONS) .. [[


Example:
   luatrace record -e sched -e 'net:*' -f 'len > 100' make
]]
end

---@class tracefs.command.recorder
local Recorder = {}
Recorder.__index = Recorder

function Recorder:open(wanted, options, command)
  local dir = must(tracefs.tracing_dir())
  tracefs.remove_stale()
  -- Before anything else is open, so that the command gets no descriptor of ours.
  if #command > 0 then
    self.child = require("tracefs.command.child").start(command)
  end
  self.instance = must(core.instance_create(dir))
  self.top = capture.take_graph(self.instance, wanted.graph)
  self.watched = capture.set_up(self.instance, wanted)
  -- Last of all: what is there under the name is gone then.
  self.recording = must(core.recording(self.instance, options.output or "trace.dat",
    writing.options(self.instance, options.file_version)))
  must(self.recording:direct())
  if options.duration then
    self.timer = must(core.timer(options.duration))
  end
end

-- What has to be looked at, and how long at most until something else has.
function Recorder:descriptors()
  local fds, patience = { self.recording:fileno(), self.signals:fileno() }, 0.5
  if self.timer then
    fds[#fds + 1] = self.timer:fileno()
  end
  local processes = table.move(self.watched, 1, #self.watched, 1, {})
  processes[#processes + 1] = self.child and self.child.process
  for _, process in ipairs(processes) do
    local fd = process:fileno()
    if not fd then
      patience = 0.05
    elseif not process:wait() then
      fds[#fds + 1] = fd
    end
  end
  return fds, patience
end

function Recorder:is_over()
  local number, origin = self.signals:received()
  if number then
    self.signal = number
    -- A key on the terminal has reached the command already.
    if self.child and origin == "process" then
      self.child:signal(number)
    end
    return true
  elseif self.child then
    return self.child:has_ended() or self.timer and self.timer:expired() > 0
  elseif self.timer and self.timer:expired() > 0 then
    return true
  end
  for _, process in ipairs(self.watched) do
    if not process:wait() then
      return false
    end
  end
  return #self.watched > 0
end

function Recorder:capture()
  must(self.instance:trace_on())
  if self.child then
    local ok, message = pcall(self.child.release, self.child)
    if not ok then
      -- nothing has run: no file of nothing, as large as the disk, stays behind
      local path = self.recording:path()
      self.recording:close()
      self.recording = nil
      os.remove(path)
      error(message, 0)
    end
  elseif #self.watched == 0 and not self.timer and core.isatty(io.stderr) then
    report.note("recording, Ctrl-C ends it")
  end
  repeat
    core.poll(self:descriptors())
    must(self.recording:pump())
  until self:is_over()
  must(self.instance:trace_off())
  writing.drain(self.instance, self.recording)
end

-- Whatever happened: the file tells of all that is in it, and the instance goes away.
function Recorder:close()
  local status
  if self.recording then
    self.recording:close()
  end
  if self.child then
    status = self.child:finish(self.signals, self.signal ~= nil)
  end
  for _, process in ipairs(self.watched or {}) do
    process:close()
  end
  if self.timer then
    self.timer:close()
  end
  if self.instance then
    local ok, message = self.instance:close()
    if not ok then
      report.warning(message)
    end
  end
  if self.top then
    local ok, message = self.top:release()
    if not ok then
      report.warning(message)
    end
  end
  return status
end

---@param list string[]
---@return integer status
function record.run(list)
  local given, command = words.split(OPTIONS, list, true)
  if not given then
    words.wrong("%s", command)
  end
  local wanted, options = capture.gather(given)
  report.quiet = options.quiet
  local signals <close> = assert(core.signals())
  local recorder = setmetatable({ signals = signals }, Recorder)
  local ok, result = pcall(function()
    recorder:open(wanted, options, command)
    recorder:capture()
    return writing.complete(recorder.instance, recorder.recording, signals)
  end)
  local status = recorder:close()
  if not ok then
    if type(result) == "table" and result.interrupted then
      report.note("interrupted; what was recorded is in the file, not compressed")
      return 128 + signals:second()
    end
    report.failure(tostring(result))
    return 1
  elseif options.strict and result > 0 then
    return 3
  end
  return status or 0
end

return record
