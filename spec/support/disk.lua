--- A block device that nobody else uses: a loop device on a file, with a file system if wanted.
local helper = require "spec.support.helper"
local devices = require "tracefs.devices"

local disk = {}

local function run(...)
  local status, out, err = helper.execute { ... }
  return status == 0 and out, err
end

local function attach(dir)
  local image = dir .. "/image"
  assert(run("truncate", "-s", "32M", image))
  local path, err = run("losetup", "-f", "--show", image)
  if not path then
    return nil, "no loop device here: " .. err
  end
  path = path:gsub("%s", "")
  return { path = path, name = path:match "[^/]+$", dev = assert(devices.number(path)) }
end

-- The clean-up that every way out has. A device that is busy goes away with its last user.
local function detach(device)
  if device.dir and not run("umount", device.dir) then
    run("umount", "-l", device.dir)
  end
  run("losetup", "-d", device.path)
end

local function mount_ext4(device, dir)
  -- nothing is left to be done in the background
  local made, err = run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E",
    "lazy_itable_init=0,lazy_journal_init=0", device.path)
  if not made then
    return "no ext4 here: " .. err
  end
  assert(run("mkdir", dir))
  local mounted
  mounted, err = run("mount", "-t", "ext4", device.path, dir)
  if not mounted then
    return "no ext4 here: " .. err
  end
  device.dir = dir
end

--- Calls fn(device) with `path` ("/dev/loop0"), `name` ("loop0"), `dev` (the number that records
--- have) and, with "ext4", `dir`, where its file system is mounted. All of it goes away, also when
--- fn raises.
---@param kind "raw"|"ext4"
---@param fn fun(device: table)
---@return string? reason why there is none, and fn was not called
function disk.use(kind, fn)
  local dir = helper.tmpdir()
  local device, why = attach(dir)
  if not device then
    return why
  end
  local ok, err = pcall(function()
    why = kind == "ext4" and mount_ext4(device, dir .. "/mnt") or nil
    if not why then
      fn(device)
    end
  end)
  detach(device)
  if not ok then
    error(err, 0)
  end
  return why
end

return disk
