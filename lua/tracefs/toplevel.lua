--- Settings that the kernel has once for everybody, at the top of tracefs. A session that needs
--- one takes it only when nobody uses it, and puts it back. Who is killed meanwhile leaves a note
--- in a locked file, and the next session puts it back.
local core = require "tracefs.core"

local toplevel = {}

local EWOULDBLOCK <const> = 11

--- Where it is noted; /run is empty after a boot, as are the settings.
toplevel.note = "/run/luatrace-top-level"

-- "changes": the kernel or the session writes it too, so that it cannot be told who has set it.
local KNOWN <const> = {
  set_graph_function = true, set_graph_notrace = true, max_graph_depth = true,
  current_tracer = true, set_ftrace_filter = true, set_ftrace_notrace = true,
  set_ftrace_pid = "changes", set_ftrace_notrace_pid = "changes", tracing_on = "changes",
  trace = "changes", trace_clock = true, tracing_cpumask = true, buffer_size_kb = true,
  buffer_subbuf_size_kb = true, buffer_percent = true, ["options/overwrite"] = true,
  ["options/function-fork"] = true, ["options/funcgraph-args"] = true,
  ["options/funcgraph-irqs"] = true, ["options/sleep-time"] = true,
  ["options/funcgraph-retval"] = true, ["options/funcgraph-retaddr"] = true,
}

local HEAD <const> = "luatrace top level 1"

---@class tracefs.toplevel
---@field dir string
---@field is_traced? boolean function_graph runs there: see tracefs.topgraph
---@field private lease tracefs.lease
---@field private changed table[]
local Top = {}
Top.__index = Top

local function read(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

-- One open, one write, one close. Nothing written clears.
local function write(path, text, mode)
  local file, why, errno = io.open(path, mode)
  if not file then
    return nil, ("cannot open %s: %s"):format(path, why:match "[^:]*$":gsub("^ ", "")), errno
  end
  file:setvbuf "no"
  local ok
  ok, why, errno = file:write(text)
  file:close()
  if not ok then
    return nil, ("cannot write %q to %s: %s"):format(text, path, why), errno
  end
  return true
end

-- FNV-1a, to know again what a file held.
local function sum_of(text)
  local hash = 0xcbf29ce484222325
  for i = 1, #text do
    hash = (hash ~ text:byte(i)) * 0x100000001b3
  end
  return ("%d-%016x"):format(#text, hash)
end

-- ---------------------------------------------------------------------------
-- The note
-- ---------------------------------------------------------------------------

-- A line for each file: its name, what it is put back to, and a sum of what it has got. Without a
-- sum the writing was not over.
local function note_of(pid, changed)
  local lines = { HEAD, "pid " .. pid }
  for _, one in ipairs(changed) do
    local back = one.back == "" and "-" or one.back:match "%S+"
    lines[#lines + 1] = ("%s %s %s"):format(one.file, back, one.sum or "?")
  end
  lines[#lines + 1] = "end\n"
  return table.concat(lines, "\n")
end

-- nil when there is nothing to put back: no note of ours, or one that says nothing.
local function parse_note(text)
  local pid, body = text:match("^" .. HEAD .. "\npid (%d+)\n(.-)end\n")
  if not pid then
    return nil
  end
  local changed = {}
  for line in body:gmatch "([^\n]*)\n" do
    local file, back, sum = line:match "^([%l_/-]+) (%S+) (%S+)$"
    if not (file and KNOWN[file]) then
      return nil
    end
    changed[#changed + 1] = {
      file = file, back = back == "-" and "" or back .. "\n", sum = sum ~= "?" and sum or nil,
    }
  end
  return { pid = math.tointeger(pid), changed = changed }
end

-- What is changed when the top level's tracer is used, before the tracer itself.
local OF_TRACER <const> = { tracing_on = true, trace = true, current_tracer = true }

-- Who takes the top level's tracer for something else has its buffer, its clock and its filters.
local function is_taken_over(dir, changed)
  for _, one in ipairs(changed) do
    if OF_TRACER[one.file] then
      local tracer = (read(dir .. "/current_tracer") or ""):match "%S+"
      return tracer ~= "nop" and tracer ~= "function_graph"
        or (read(dir .. "/set_event") or ""):find "%S" ~= nil
    end
  end
  return false
end

local function lines_in(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[line] = not line:find "^#" or nil
  end
  return lines
end

-- As it was left, but for functions of a module that has been unloaded since.
local function is_as_left(one, text)
  if not one.sum or sum_of(text) == one.sum then
    return true
  elseif not one.names then
    return false
  end
  for name in pairs(lines_in(text)) do
    if not one.names[name] then
      return false
    end
  end
  return true
end

-- Only what still is as it was left: what somebody has set since is theirs. False, and why, when
-- the rest has to wait until somebody has ended; true, and what the kernel said, when it does not
-- take something back.
local function put_back(dir, changed)
  if is_taken_over(dir, changed) then
    return false, ("somebody else uses the tracer or the events of %s since. What is changed there "
      .. "is put back by the next session after that"):format(dir)
  end
  local problem
  for i = #changed, 1, -1 do
    local one = changed[i]
    local path = dir .. "/" .. one.file
    -- the text of the trace is not looked at, it may be long
    local text = one.file == "trace" and "" or read(path)
    if text and is_as_left(one, text) then
      local ok, message = write(path, one.back, "w")
      if not ok and one.file == "current_tracer" then
        -- it goes on: without its filters it would trace the whole kernel
        write(dir .. "/tracing_on", "0", "w")
        return false, ("function_graph cannot be ended there: %s. Somebody has %s/trace_pipe open, "
          .. "or the raw file of a CPU: nothing is recorded any more, and the next session after "
          .. "that puts the rest back"):format(message, dir)
      end
      problem = problem or not ok and message or nil
    end
  end
  return true, problem
end

--- Puts back what a process has left that was killed.
---@param dir string tracing directory
function toplevel.undo_stale(dir)
  if (read(toplevel.note) or "") == "" then
    return
  end
  -- refused while its process lives
  local lease = core.lease(toplevel.note)
  if lease then
    local note = parse_note(lease:read() or "")
    if not note or put_back(dir, note.changed) then
      lease:write ""
    end
    lease:close()
  end
end

-- ---------------------------------------------------------------------------
-- Who uses it
-- ---------------------------------------------------------------------------

local function names_in(text)
  local names = {}
  for line in (text or ""):gmatch "[^\n]+" do
    if not line:find "^#" then
      names[#names + 1] = line
    end
  end
  return names
end

--- The session that has taken the top level, for messages; empty when none has.
---@return string
function toplevel.holder()
  local note = parse_note(read(toplevel.note) or "")
  return note and (" (luatrace, process %d)"):format(note.pid) or ""
end

local function graph_settings(dir)
  local depth = (read(dir .. "/max_graph_depth") or "0"):match "%d+"
  if depth and depth ~= "0" then
    return "max_graph_depth", depth
  end
  for _, file in ipairs { "set_graph_function", "set_graph_notrace" } do
    local names = names_in(read(dir .. "/" .. file))
    if #names > 0 then
      local rest = #names - 1
      return file, names[1] .. (rest > 0 and (" and %d more"):format(rest) or "")
    end
  end
end

-- Where function_graph runs, but for one instance.
local function graph_user(dir, except)
  if (read(dir .. "/current_tracer") or ""):find "^function_graph" then
    return "the top level"
  end
  for _, name in ipairs(core.instances(dir) or {}) do
    local tracer = name ~= except and read(("%s/instances/%s/current_tracer"):format(dir, name))
    if tracer and tracer:find "^function_graph" then
      return "the instance " .. name
    end
  end
end

--- Does somebody trace with function_graph, who would be restricted by what a session sets?
---@param dir string tracing directory
---@param instance string the session's
---@param who string what the message begins with
---@return true?
---@return string? message
function toplevel.check_graph_user(dir, instance, who)
  local user = graph_user(dir, instance)
  if user then
    return nil, ("%s%s traces with function_graph, and graph, graph_notrace and depth hold for the "
      .. "whole kernel: they would restrict it. End that first, or choose the functions by their "
      .. "names alone"):format(who, user)
  end
  return true
end

--- May a session use function_graph?
---@param dir string tracing directory
---@param instance? string the session's, when it is going to change the settings
---@param who string what the message begins with
---@return true?
---@return string? message
function toplevel.check_graph(dir, instance, who)
  local file, value = graph_settings(dir)
  if file then
    return nil, ("%s%s/%s is set to %s by somebody else%s, which restricts function_graph for "
      .. "everybody: end that first, or clear it: echo %s> %s/%s"):format(who, dir, file, value,
      toplevel.holder(), file == "max_graph_depth" and "0 " or "", dir, file)
  end
  if instance then
    return toplevel.check_graph_user(dir, instance, who)
  end
  return true
end

-- ---------------------------------------------------------------------------
-- Using it
-- ---------------------------------------------------------------------------

--- Takes the right to change settings of the top level; one process has it at a time.
---@param dir string tracing directory
---@param who string what the message begins with
---@return tracefs.toplevel?
---@return string? message
---@return integer? errno
function toplevel.take(dir, who)
  local lease, message, errno = core.lease(toplevel.note)
  if not lease then
    if errno == EWOULDBLOCK then
      return nil, ("%sanother session%s has changed settings that the kernel has once for "
        .. "everybody: wait for its end"):format(who, toplevel.holder()), errno
    end
    return nil, ("%swhat is changed for everybody is noted in %s, so that it can be put back: %s")
      :format(who, toplevel.note, message), errno
  end
  local note = parse_note(lease:read() or "")
  local done, why = true, nil
  if note then
    done, why = put_back(dir, note.changed)
  end
  if not done then
    lease:close()
    return nil, ("%sthe session of process %d has left the top level changed, and %s"):format(who,
      note.pid, why)
  end
  return setmetatable({ dir = dir, lease = lease, changed = {} }, Top)
end

local function own_pid()
  return tonumber((read "/proc/self/stat" or "0"):match "^%d+")
end

--- Sets a file; it is put back by release(), or by the next session when this process is killed.
---@param file string
---@param texts string[] written one behind the other
---@param back? string what it is put back to; default: empty
---@return true?
---@return string? message
---@return integer? errno
---@return integer? index of the text that was refused
function Top:set(file, texts, back)
  local path = self.dir .. "/" .. file
  local one = { file = file, back = back or "" }
  table.insert(self.changed, one)
  local ok, message, errno = self.lease:write(note_of(own_pid(), self.changed))
  if not ok then
    table.remove(self.changed)
    return nil, message, errno
  end
  for i, text in ipairs(texts) do
    ok, message, errno = write(path, text, i == 1 and "w" or "a")
    if not ok then
      return nil, message, errno, i
    end
  end
  if KNOWN[file] ~= "changes" then
    local text = read(path) or ""
    one.sum = sum_of(text)
    one.names = file:find "^set_" and lines_in(text)
  end
  return self.lease:write(note_of(own_pid(), self.changed))
end

--- Writes a file that has been set, which is put back all the same. Not when somebody else has
--- begun to use the tracer.
---@param file string
---@param text string
---@return true?
---@return string? message
---@return integer? errno
function Top:write(file, text)
  if is_taken_over(self.dir, self.changed) then
    return nil, ("somebody else has begun to use the tracer or the events of %s"):format(self.dir)
  end
  return write(self.dir .. "/" .. file, text, "w")
end

--- Puts everything back. In a child of the process that took it, nothing.
---@return true?
---@return string? message what has to wait, and for what
function Top:release()
  local lease = self.lease
  self.lease = nil
  if not lease then
    return true
  end
  local problem
  if lease:is_ours() then
    local done
    done, problem = put_back(self.dir, self.changed)
    if done then
      -- one that was collected before us leaves its note, and there is nothing to be put back then
      pcall(lease.write, lease, "")
    end
  end
  lease:close()
  if problem then
    return nil, "the top level is not as it was: " .. problem
  end
  return true
end

return toplevel
