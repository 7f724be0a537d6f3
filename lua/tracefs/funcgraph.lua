--- Records of the function_graph tracer in the layout of the kernel's trace file, where a line
--- depends on what came before it and on what comes next.
local core = require "tracefs.core"

local funcgraph = {}

---@class tracefs.funcgraph
---@field private write fun(line: string)
---@field private width integer of a CPU's number
---@field private cpus table<integer, table>
---@field private queue table[]
local Graph = {}
Graph.__index = Graph

-- How many lines may wait for the record that says what the first of them is.
local PATIENCE <const> = 4096

-- The kernel remembers as many levels of calls.
local LEVELS <const> = 50

local NO_DURATION <const> = "              |  "

-- As many digits as the highest CPU has that the machine can have.
local function cpu_width()
  local file <close> = io.open "/sys/devices/system/cpu/possible"
  local highest = file and file:read("a"):match "(%d+)%s*$"
  return highest and #highest or 1
end

--- Makes the lines of a trace file from records.
---@param write fun(line: string) called with each line, without a newline
---@return tracefs.funcgraph
function funcgraph.new(write)
  if type(write) ~= "function" then
    error("funcgraph.new(function): a function is needed that takes the lines, not " .. type(write),
      2)
  end
  return setmetatable({
    write = write, width = cpu_width(), cpus = {}, queue = {}, first = 1, last = 0,
  }, Graph)
end

local function cpu_state(self, cpu)
  local state = self.cpus[cpu]
  if not state then
    state = { depth = 0, entered = {} }
    self.cpus[cpu] = state
  end
  return state
end

-- "comm-pid", in the middle of 14 columns.
local function task(comm, pid)
  local text = ("%s-%d"):format(comm:sub(1, 7), pid)
  local spaces = math.max(0, 14 - #text)
  return (" "):rep(spaces // 2) .. text .. (" "):rep(spaces - spaces // 2)
end

local function head(self, cpu)
  return (" %" .. self.width .. "d) "):format(cpu)
end

-- The lines that part the records of two tasks on one CPU.
local function print_switch(self, state, record)
  local before = state.record
  state.record = record
  if not before or before.common_pid == record.common_pid then
    return
  end
  local line = " " .. ("-"):rep(42)
  self.write(line)
  self.write(head(self, record.common_cpu) .. task(before.common_comm, before.common_pid)
    .. " => " .. task(record.common_comm, record.common_pid))
  self.write(line)
  self.write ""
end

local function indent(depth)
  return ("  "):rep(math.min(math.max(depth, 0), 1024))
end

local function duration(exit)
  return tostring(exit):match "^ *%d+%) (.-|  )"
end

local function print_entry(self, state, record, exit)
  local text = core.text(record)
  local depth = record.depth
  local column = NO_DURATION
  if exit then
    column = duration(exit)
    text = text:gsub(" {$", ";")
    -- the value that a function returned stands behind it
    local retval = exit.retval and core.text(exit):match " = %S+ %*/$"
    text = retval and text .. " /*" .. retval or text
    state.depth = depth - 1
    state.entered[depth] = nil
  else
    state.depth = depth
    state.entered[depth] = record.func
  end
  self.write(head(self, record.common_cpu) .. column .. indent(depth) .. text)
end

local function print_exit(self, state, record)
  local depth = record.depth
  -- An end whose beginning was not here, on this CPU, says whose it is.
  local is_known = depth >= LEVELS or state.entered[depth] == record.func
  state.entered[depth] = nil
  state.depth = depth - 1
  local text = core.text(record)
  self.write(head(self, record.common_cpu) .. duration(record) .. indent(depth)
    .. (is_known and not record.retval and "}" or text))
end

-- Other events, as comments.
local function print_comment(self, state, record)
  local name = record.common_event:match ":(.*)$"
  local text = name == "print" and record.buf or name .. ": " .. core.text(record)
  self.write(head(self, record.common_cpu) .. NO_DURATION
    .. (state.depth > 0 and indent(state.depth + 1) or "") .. "/* " .. text:gsub("\n$", "")
    .. " */")
end

local function print_item(self, item)
  if item.lost then
    local count = item.lost.count
    self.write(count and ("CPU:%d [LOST %d EVENTS]"):format(item.lost.cpu, count)
      or ("CPU:%d [LOST EVENTS]"):format(item.lost.cpu))
    return
  end
  local record = item.record
  local state = cpu_state(self, record.common_cpu)
  print_switch(self, state, record)
  if item.kind == "entry" then
    print_entry(self, state, record, item.exit)
  elseif item.kind == "exit" then
    print_exit(self, state, record)
  else
    print_comment(self, state, record)
  end
end

local function flush(self, patience)
  while self.first <= self.last do
    local item = self.queue[self.first]
    if item.waits and self.last - self.first < patience then
      return
    end
    -- what comes later is not what it waited for
    if item.waits then
      self.cpus[item.record.common_cpu].waiting = nil
    end
    self.queue[self.first] = nil
    self.first = self.first + 1
    print_item(self, item)
  end
end

local function push(self, item)
  self.last = self.last + 1
  self.queue[self.last] = item
  return item
end

local KINDS <const> = {
  ["ftrace:funcgraph_entry"] = "entry",
  ["ftrace:fgraph_retaddr_entry"] = "entry",
  ["ftrace:funcgraph_exit"] = "exit",
}

--- Takes the next record of the stream, of any event. A call waits for its CPU's next record, as
--- one that calls nothing is one line with its end.
---@param record tracefs.record
function Graph:add(record)
  local kind = KINDS[record.common_event]
  local state = cpu_state(self, record.common_cpu)
  local waiting = state.waiting
  state.waiting = nil
  if waiting then
    waiting.waits = false
  end
  if waiting and kind == "exit" and waiting.record.func == record.func
    and waiting.record.common_pid == record.common_pid then
    waiting.exit = record
  else
    local item = push(self, { kind = kind, record = record, waits = kind == "entry" })
    state.waiting = item.waits and item or nil
  end
  flush(self, PATIENCE)
end

--- Takes a gap, as on_lost() gives it.
---@param lost tracefs.loss
function Graph:lost(lost)
  local state = cpu_state(self, lost.cpu)
  if state.waiting then
    state.waiting.waits = false
    state.waiting = nil
  end
  push(self, { lost = { cpu = lost.cpu, count = lost.count } })
  flush(self, PATIENCE)
end

--- Writes the lines that still wait.
function Graph:finish()
  flush(self, 0)
end

return funcgraph
