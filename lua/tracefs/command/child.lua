--- The command of -c: held until everything is on, seen to its end, never left behind.
local core = require "tracefs.core"
local report = require "tracefs.command.report"

local SIGKILL <const>, SIGTERM <const> = 9, 15
local ENOENT <const>, ENOTDIR <const> = 2, 20
-- How long a command that was asked to end may take before it is killed.
local PATIENCE <const> = 5

---@class tracefs.command.child
---@field process tracefs.process
---@field released boolean
---@field asked boolean it was told to end because the run had ended
local Child = {}
Child.__index = Child

local child = {}

-- Nothing that a shell would read as more than a word.
local PLAIN <const> = "^[%w%s_./:,@+-]+$"

local function is_program(name)
  if name:find("/", 1, true) then
    return true
  end
  for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
    local file <close> = io.open(folder .. "/" .. name)
    if file then
      return true
    end
  end
  return false
end

-- Is there no file at all that could be run? Anything else is for exec to say.
local function is_missing(name)
  local path = os.getenv("PATH")
  if name:find("/", 1, true) then
    path = nil
  elseif not path then
    return false
  end
  for folder in ((path or "") .. ":"):gmatch("([^:]*):") do
    local place = not path and name or (folder == "" and "." or folder) .. "/" .. name
    local file, _, code = io.open(place)
    if file then
      file:close()
    end
    if file or (code ~= ENOENT and code ~= ENOTDIR) then
      return false
    end
  end
  return true
end

--- The words of a command that needs no shell, else the line for one. Without a shell between
--- us there is nobody whom the command can outlive us behind when we are killed.
---@param line string
---@return string|string[] command for core.spawn
function child.words(line)
  if not line:find(PLAIN) then
    return line
  end
  local words = {}
  for word in line:gmatch("%S+") do
    words[#words + 1] = word
  end
  return words[1] and is_program(words[1]) and words or line
end

--- Starts the command behind its gate. Raises when it cannot be started.
---@param line string|string[] run by the shell where it needs one; words need none
---@param user? tracefs.user who runs it
---@return tracefs.command.child
function child.start(line, user)
  if type(line) == "table" and is_missing(line[1]) then
    error(("cannot run '%s': No such file or directory"):format(line[1]), 0)
  end
  local process, message = core.spawn(type(line) == "table" and line or child.words(line), true,
    user)
  if not process then
    error(message, 0)
  end
  return setmetatable({ process = process, released = false, asked = false }, Child)
end

--- Lets it go. Raises when it cannot be run.
function Child:release()
  self.released = true
  local ok, message = self.process:release()
  if not ok then
    error(message, 0)
  end
end

---@return boolean
function Child:has_ended()
  return self.process:wait() ~= nil
end

--- Sends a signal to it and to what it has started.
---@param signal integer
function Child:signal(signal)
  if self.released then
    self.process:kill(signal, "tree")
  end
end

--- Its exit status as a shell gives it.
local function status_of(process)
  local how, code = process:wait()
  if how == "exit" then
    return code
  end
  return 128 + (how == "signal" and code or SIGKILL)
end

--- Waits for its end, for a while. A second signal ends the wait.
local function wait_for_end(process, signals)
  local timer <close> = core.timer(PATIENCE)
  local fds = { signals:fileno(), timer and timer:fileno() }
  fds[#fds + 1] = process:fileno()
  while not process:wait() and not signals:second() do
    signals:received()
    -- Without a descriptor for the process it is asked now and then.
    local ready = core.poll(fds, process:fileno() and PATIENCE or 0.05)
    if not ready or not timer or timer:expired() > 0 then
      return
    end
  end
end

--- The run is over: so is the command, at the latest now.
---@param signals tracefs.signals
---@param was_signalled boolean a signal has reached the command already
---@return integer? status its exit status; nil when it did not run, or was ended by us
function Child:finish(signals, was_signalled)
  local process = self.process
  if not self.released then
    process:close()
    return nil
  end
  if not process:wait() then
    if not was_signalled then
      self.asked = true
      report.note("the command is still running: ending it")
      process:kill(SIGTERM, "tree")
    end
    wait_for_end(process, signals)
    if not process:wait() then
      report.note("the command does not end: killing it")
      process:kill(SIGKILL, "tree")
      wait_for_end(process, signals)
    end
  end
  local status = not self.asked and status_of(process) or nil
  process:close()
  return status
end

return child
