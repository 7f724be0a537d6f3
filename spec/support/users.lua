-- Runs luatrace with --user for the specs.
local helper = require "spec.support.helper"

local users = {}

users.NOBODY = "nobody"

-- A process that has changed its user cannot be looked into by the leak checker, which is one of
-- that user's then; what it allocates is checked in all other specs.
users.asan_options = (os.getenv "ASAN_OPTIONS" or "") .. ":detect_leaks=0"

local function arguments(words)
  local argv = { "--user", users.NOBODY }
  table.move(words, 1, #words, 3, argv)
  for name, value in pairs(words) do
    if type(name) == "string" then
      argv[name] = value
    end
  end
  local env = { ASAN_OPTIONS = users.asan_options }
  for name, value in pairs(words.env or {}) do
    env[name] = value
  end
  argv.env = env
  return argv
end

--- As helper.run.
function users.run(words)
  return helper.run(arguments(words))
end

--- As helper.start_luatrace.
function users.start(words)
  return helper.start_luatrace(arguments(words))
end

--- The process that keeps the rights of a run.
---@return integer pid
function users.keeper(run)
  local children = helper.read_file(("/proc/%d/task/%d/children"):format(run.pid, run.pid))
  for pid in (children or ""):gmatch("%d+") do
    if helper.read_file(("/proc/%s/comm"):format(pid)) == "luatrace-keeper\n" then
      return math.tointeger(pid)
    end
  end
  error "there is no keeper"
end

--- The names of the instances that a process has made.
---@param pid integer
---@return string[]
function users.instances(pid)
  local names = {}
  local listing <close> = assert(io.popen("ls " .. helper.tracing_dir .. "/instances"))
  for name in listing:lines() do
    if name:find(("^luatrace%%-%d%%-"):format(pid)) then
      names[#names + 1] = name
    end
  end
  return names
end

--- Waits until a process has made its instance disappear, and fails when it does not.
function users.assert_gone(pid)
  assert(helper.wait_until(function()
    return #users.instances(pid) == 0
  end, 20), "the instance is still there")
end

return users
