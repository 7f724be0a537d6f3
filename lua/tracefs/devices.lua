--- Block devices: their numbers, as records have them, and the names that they have here.
local devices = {}

-- The kernel's own numbers have 12 bits for the major and 20 for the minor one.
local MINOR_BITS <const> = 20
local MINOR_MASK <const> = (1 << MINOR_BITS) - 1

local function content(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a" or nil
end

local function parse(text)
  local major, minor = (text or ""):match "^(%d+):(%d+)%s*$"
  major, minor = math.tointeger(major), math.tointeger(minor)
  if major and major >> 12 == 0 and minor <= MINOR_MASK then
    return major << MINOR_BITS | minor
  end
  return nil
end

--- The number of a device as people write it: "8:1".
---@param dev integer
---@return string
function devices.text(dev)
  return ("%d:%d"):format(dev >> MINOR_BITS, dev & MINOR_MASK)
end

--- The name that this machine has for it: "sda1"; "8:1" when it has none.
---@param dev integer
---@return string
function devices.name(dev)
  local text = devices.text(dev)
  local uevent = content("/sys/dev/block/" .. text .. "/uevent")
  return uevent and ("\n" .. uevent):match "\nDEVNAME=([^\n]+)" or text
end

--- The number of a device, from "sda1", "/dev/sda1" or "8:1".
---@param word string
---@return integer? dev
---@return string? message
function devices.number(word)
  local dev = parse(word)
  if not dev then
    -- what is a slash in the name is another character in the kernel's folder
    local name = word:gsub("^/dev/", ""):gsub("/", "!")
    dev = not name:find "^%.*$" and parse(content("/sys/class/block/" .. name .. "/dev")) or nil
  end
  if not dev then
    return nil, ("there is no block device '%s'"):format(word)
  end
  return dev
end

--- The whole disk that a partition is on; of any other device the number itself.
---@param dev integer
---@return integer dev
function devices.disk(dev)
  local folder = "/sys/dev/block/" .. devices.text(dev)
  return content(folder .. "/partition") and parse(content(folder .. "/../dev")) or dev
end

return devices
