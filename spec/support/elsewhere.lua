--- Lua code in a process that sees another machine than we do: other mounts, another user,
--- another pid namespace. Needs root.
local helper = require "spec.support.helper"

local elsewhere = {}

-- A copy of the modules (and the interpreter, if it is a built one) that every user can read,
-- wherever the tree and the build folder are.
local function public_copy()
  local dir = helper.tmpdir()
  local interpreter = helper.interpreter
  local script = ('chmod 755 "$1" && cp -r "$2" "$1/lua" && mkdir "$1/tracefs" && '
    .. 'cp "$3/tracefs/core.so" "$1/tracefs" && %s chmod -R go+rX "$1"'):format(
    interpreter:find("/", 1, true) and 'cp "$4" "$1/interpreter" &&' or "")
  local status, _, err = helper.execute {
    "sh", "-c", script, "sh", dir, helper.lua_dir, helper.core_dir, interpreter,
  }
  assert(status == 0, err)
  return dir, interpreter:find("/", 1, true) and dir .. "/interpreter" or interpreter
end

---@class elsewhere.options
---@field mounts? string shell commands that change the mounts, in a mount namespace of its own
---@field user? integer the uid and gid that the code runs with
---@field pids? boolean in a pid namespace of its own, with its own /proc

--- Runs Lua code to its end; its words are `...`.
---@param options elsewhere.options
---@param code string
---@param words? table as for helper.execute
---@return integer status
---@return string stdout
---@return string stderr
function elsewhere.run(options, code, words)
  local argv = elsewhere.argv(options, code, words)
  return helper.execute(argv)
end

--- The same, as the argument of helper.start.
---@param options elsewhere.options
---@param code string
---@param words? table
---@return table argv
function elsewhere.argv(options, code, words)
  local dir, interpreter = public_copy()
  local argv = { cwd = "/" }
  for key, value in pairs(words or {}) do
    if math.type(key) ~= "integer" then
      argv[key] = value
    end
  end
  argv.env = {
    LUA_PATH = ("%s/lua/?.lua;%s/lua/?/init.lua"):format(dir, dir),
    LUA_CPATH = dir .. "/?.so",
  }
  for name, value in pairs(words and words.env or {}) do
    argv.env[name] = value
  end
  helper.write_file(dir .. "/script.lua", code)
  assert(os.execute(("chmod 644 %s"):format(helper.quote(dir .. "/script.lua"))))

  local function add(...)
    for _, word in ipairs { ... } do
      argv[#argv + 1] = word
    end
  end
  if options.pids then
    add("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
  end
  if options.mounts then
    add("unshare", "--mount", "sh", "-ec", options.mounts .. '\nexec "$@"', "sh")
  end
  if options.user then
    add("setpriv", "--reuid", tostring(options.user), "--regid", tostring(options.user),
      "--clear-groups")
  end
  add(interpreter, dir .. "/script.lua", table.unpack(words or {}))
  return argv
end

return elsewhere
