--- Where a program or a library is that is named without a path.
local core = require "tracefs.core"

local programs = {}

local ENOENT <const> = 2

-- Where the loader looks behind its cache; the cache has the rest.
local DEFAULT_DIRS <const> = { "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib" }
local CACHE <const> = "/etc/ld.so.cache"
local CACHE_MAGIC <const> = "glibc-ld.so.cache1.1"
local CACHE_HEAD <const> = "<c20I4I4c20"
local CACHE_ENTRY <const> = "<i4I4I4I4I8"

-- Class, byte order and machine of an ELF file: what must be equal for one process.
local function kind(path)
  local file <close> = io.open(path, "rb")
  local head = file and file:read(20)
  if head and #head == 20 and head:sub(1, 4) == "\127ELF" then
    return head:sub(5, 6) .. head:sub(19, 20)
  end
end

local function is_file(path)
  local file <close> = io.open(path, "rb")
  -- A directory opens, and cannot be read.
  return file ~= nil and file:read(0) ~= nil
end

local function zero_ended(text, at)
  local stop = text:find("\0", at, true)
  return stop and text:sub(at, stop - 1)
end

--- The libraries that the loader's cache lists, in its order.
---@param text string content of /etc/ld.so.cache
---@return { name: string, path: string }[]
function programs.cached(text)
  local found = {}
  -- Its own format is behind the one of older loaders, should that be there too.
  local base = text:find(CACHE_MAGIC, 1, true)
  if not base or #text < base - 1 + string.packsize(CACHE_HEAD) then
    return found
  end
  local _, count = string.unpack(CACHE_HEAD, text, base)
  local at = base + string.packsize(CACHE_HEAD)
  local size = string.packsize(CACHE_ENTRY)
  for _ = 1, count do
    if at + size - 1 > #text then
      break
    end
    local _, key, value, _, hwcap = string.unpack(CACHE_ENTRY, text, at)
    at = at + size
    -- Those for certain processors only are a choice that the loader makes by itself.
    if hwcap == 0 and base + key <= #text and base + value <= #text then
      local name, path = zero_ended(text, base + key), zero_ended(text, base + value)
      if name and path then
        found[#found + 1] = { name = name, path = path }
      end
    end
  end
  return found
end

local function read_cache()
  local file <close> = io.open(CACHE, "rb")
  return programs.cached(file and file:read("a") or "")
end

local function split(list, separators)
  local parts = {}
  for part in (list or ""):gmatch("[^" .. separators .. "]+") do
    parts[#parts + 1] = part
  end
  return parts
end

-- The folders of the libraries that this process has: among them those that its loader was built
-- to look into.
local function own_dirs()
  local dirs, known = {}, {}
  local file <close> = io.open("/proc/self/maps")
  for line in file and file:lines() or function() end do
    local dir = line:match(" (/%S*)/[^/]*%.so[^/]*$")
    if dir and not known[dir] then
      known[dir] = true
      dirs[#dirs + 1] = dir
    end
  end
  return dirs
end

-- As the loader does for a name without a slash: LD_LIBRARY_PATH, its cache, the usual folders.
-- Others than those for a program like this one are not taken.
local function library(name)
  local own = kind("/proc/self/exe")
  local function fits(path)
    local theirs = kind(path)
    return theirs and (not own or theirs == own)
  end
  local looked = {}
  local function look_in(dirs)
    for _, dir in ipairs(dirs) do
      local path = dir .. "/" .. name
      if fits(path) then
        return path
      end
      looked[#looked + 1] = dir
    end
  end
  local path = look_in(split(os.getenv("LD_LIBRARY_PATH"), ":;"))
  if path then
    return path
  end
  for _, entry in ipairs(read_cache()) do
    if entry.name == name and fits(entry.path) then
      return entry.path
    end
  end
  path = look_in(DEFAULT_DIRS) or look_in(own_dirs())
  if path then
    return path
  end
  return nil, ("no library '%s': it is not in %s, and not in %s"):format(name, CACHE,
    table.concat(looked, ", ")), ENOENT
end

-- The names "libNAME.so.6" that "NAME" or "libNAME" may mean.
local function likely_libraries(name)
  local found, known = {}, {}
  for _, entry in ipairs(read_cache()) do
    local stem = entry.name:match("^(.-)%.so")
    if (stem == name or stem == "lib" .. name) and not known[entry.name] then
      known[entry.name] = true
      found[#found + 1] = entry.name
    end
  end
  return found
end

--- The file of a program or a library. A path is taken as it is; a name with ".so" in it is
--- searched as the loader would, any other name as a shell would.
---@param name string
---@return string? path absolute, without links
---@return string? message
---@return integer? errno
function programs.find(name)
  if name:find("/", 1, true) then
    return core.real_path(name)
  end
  if name:find("%.so%f[%.\0]") then
    local path, message, errno = library(name)
    if not path then
      return nil, message, errno
    end
    return core.real_path(path)
  end
  for _, dir in ipairs(split(os.getenv("PATH"), ":")) do
    if is_file(dir .. "/" .. name) then
      return core.real_path(dir .. "/" .. name)
    end
  end
  local likely = likely_libraries(name)
  return nil, ("no program '%s' in PATH%s"):format(name, #likely > 0
    and (". Did you mean the library %s?"):format(table.concat(likely, ", "))
    or ("; a file of this folder is written ./%s"):format(name)), ENOENT
end

return programs
