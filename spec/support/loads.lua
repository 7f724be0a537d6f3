-- Runs build/support/load for the live specs. Its system calls get a number that no kernel has
-- and that nobody else uses: what a filter for it lets through is the load's alone.
local helper = require "spec.support.helper"

local loads = {}

loads.SYSCALL = "raw_syscalls:sys_enter"

--- A name for `--name` that no load of another process has.
loads.NAME = ("l%x"):format(helper.pid)

--- A size of packets that no load of another process sends. The two events of a packet count 28
--- and 42 bytes more, and neither sum is one of another size's.
loads.SIZE = 300 + helper.pid % 1009 * 15

local used = 0

--- A number for system calls and the filter that lets only them through.
---@param count? integer how many numbers in a row are wanted (1)
---@return integer nr the first
---@return string filter for the first
function loads.fresh_nr(count)
  count = count or 1
  local first = used + count > 64 and 0 or used
  used = first + count
  local nr = 0x100000 + helper.pid * 64 + first
  return nr, ("id == %d"):format(nr)
end

local function argv(words)
  local all = { helper.program("support/load"), timeout = words.timeout or 120 }
  for _, word in ipairs(words) do
    table.insert(all, tostring(word))
  end
  return all
end

local function parse(status, out, err)
  assert(status == 0, ("load ended with %d: %s"):format(status, err))
  local values = {}
  for key, value in out:gmatch("(%w+)=(%S+)") do
    values[key] = math.tointeger(value) or value
  end
  return values
end

--- Runs a load to its end.
---@param words table words of the command line; `timeout` in seconds
---@return table values what it says it did
function loads.run(words)
  return parse(helper.execute(argv(words)))
end

local Load = {}
Load.__index = Load

--- Starts a load and returns at once.
---@param words table as for run()
---@return table load with ended(), wait()
function loads.start(words)
  return setmetatable({ process = helper.start(argv(words)) }, Load)
end

---@return boolean
function Load:ended()
  return helper.read_file(self.process.dir .. "/status") ~= nil
end

---@return table values what it says it did
function Load:wait()
  return parse(self.process:wait())
end

--- Runs a session until a load that starts when the session does has ended, and all that it
--- made has been delivered.
---@param session table
---@param words table as for run()
---@return table values what the load says it did
---@return table stats the session's
function loads.run_session(session, words)
  local load
  session:at_start(function()
    load = loads.start(words)
  end)
  session:every(0.05, function()
    if load:ended() then
      session:finish()
    end
  end)
  local stats = session:run({ duration = (words.timeout or 120) * helper.slowdown })
  return load:wait(), stats
end

--- Calls a function while a load runs, which is ended then.
---@param words table as for run()
---@param fn fun()
function loads.beside(words, fn)
  local load = helper.start(argv(words))
  local ok, err = pcall(fn)
  load:kill "KILL"
  load:wait()
  if not ok then
    error(err, 0)
  end
end

--- Calls a function while every CPU has something to run. Some kernels of virtual machines do not
--- record the switch from a CPU's idle task to another, on some CPUs; here no switch is from it.
---@param fn fun()
function loads.on_busy_cpus(fn)
  loads.beside({ "--cpu", "all", "hogs", 1, 100 }, fn)
end

--- The CPUs that a load with `--cpu all` runs on.
---@return integer[]
function loads.cpus()
  local list = {}
  for cpu in loads.run({ "syscalls", 1, "--cpu", "all" }).cpus:gmatch("%d+") do
    table.insert(list, math.tointeger(cpu))
  end
  return list
end

return loads
