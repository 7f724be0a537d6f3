--- Numbers that the kernel has once for everybody, at the top of tracefs. No instance has them, and
--- no session touches them.
local machine = {}

local EACCES <const>, ENOENT <const>, EPROTO <const>, EIO <const> = 13, 2, 71, 5

local function refused(what, path, why, errno)
  local hint = ""
  if errno == EACCES then
    hint = ": run as root"
  elseif errno == ENOENT then
    hint = ": this kernel has no such file"
  end
  return nil, ("cannot %s %s: %s%s"):format(what, path, why:match("[^:]*$"):gsub("^ ", ""), hint),
    errno
end

local function read(path)
  local file <close>, why, errno = io.open(path)
  if not file then
    return refused("read", path, why, errno)
  end
  local text = file:read("a") or ""
  local number = math.tointeger(tonumber(text:match("%d+")))
  if not number then
    return nil, ("%s holds no number"):format(path), EPROTO
  end
  return number
end

--- Reads a number, and sets it when there is a new one.
---@param tracefs tracefs
---@param name string
---@param value? integer
---@param least integer
---@return integer? before
---@return string? message
---@return integer? errno
function machine.number(tracefs, name, value, least)
  if value ~= nil and (math.type(value) ~= "integer" or value < least) then
    error(("%s: a whole number from %d is needed, not %s"):format(name, least, tostring(value)), 3)
  end
  local dir, message, errno = tracefs.tracing_dir()
  if not dir then
    return nil, message, errno
  end
  local path = dir .. "/" .. name
  local before
  before, message, errno = read(path)
  if not before or value == nil then
    return before, message, errno
  end
  local file <close>, why, code = io.open(path, "r+")
  if not file then
    return refused("write", path, why, code)
  end
  file:setvbuf("no")
  local done
  done, why, code = file:write(("%d\n"):format(value))
  if not done then
    return refused(("write %d to"):format(value), path, why, code or EIO)
  end
  return before
end

return machine
