--- A block device that nobody else uses: a loop device on a file, with a file system if wanted.
local helper = require "spec.support.helper"
local devices = require "tracefs.devices"

local disk = {}

-- In memory, where it can be: a flush then does not wait for what others write. The file is
-- removed at once and lives as long as the device. With a folder as an argument the device is
-- mounted there, and nothing is left to be done for it in the background.
local ATTACH <const> = [[
  set -e
  folder=/dev/shm
  [ -w $folder ] || folder=${TMPDIR:-/tmp}
  image=$(mktemp -p $folder luatrace-disk.XXXXXX)
  trap 'rm -f $image' EXIT
  truncate -s 32M $image
  device=$(losetup -f --show $image)
  if [ $# -gt 0 ]; then
    trap 'losetup -d $device; rm -f $image' EXIT
    mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 $device
    mount -t ext4 $device "$1"
    trap 'rm -f $image' EXIT
  fi
  echo $device
]]

-- A device that is busy goes away with its last user.
local DETACH <const> = [[
  if [ $# -gt 1 ]; then
    umount "$2" || umount -l "$2"
  fi
  losetup -d $1
]]

local Disk = {}
Disk.__index = Disk

--- Makes one: `path` ("/dev/loop0"), `name` ("loop0"), `dev` (the number that records have) and,
--- with "ext4", `dir`, where its file system is mounted. For setup(), with close() in teardown().
---@param kind "raw"|"ext4"
---@return table? disk nil where this machine cannot have one
---@return string? reason
function disk.attach(kind)
  local dir = kind == "ext4" and helper.tmpdir() or nil
  local status, out, err = helper.execute { "sh", "-c", ATTACH, "sh", dir }
  if status ~= 0 then
    return nil, ("no loop device%s here: %s"):format(dir and " with ext4" or "", err)
  end
  local path = out:match "%S+"
  return setmetatable({
    path = path, name = path:match "[^/]+$", dev = assert(devices.number(path)), dir = dir,
  }, Disk)
end

--- Removes it.
function Disk:close()
  helper.execute { "sh", "-c", DETACH, "sh", self.path, self.dir }
end

return disk
