local lfs = require "lfs"
local helper = require "spec.support.helper"

-- Configures as on a machine without some files of /usr/include: in a mount namespace where that
-- is a folder of links to all the others. The build's folder stays from test to test, so that the
-- compiler is looked at once; what was found in it does not.
local WITHOUT <const> = [[
set -e
sources=$1 build=$2 options=$3
shift 3
mkdir real include
mount --bind /usr/include real
ln -s "$PWD"/real/* include
for file in "$@"; do
  rm "include/$file"
done
mount --bind include /usr/include
exec cmake -S "$sources" -B "$build" -U "*_HEADER" -U "*_LIBRARY" -U "LUA*" \
  -U "PKG_CONFIG*" $options
]]

-- Lua's header is in a folder of a version's name, or lies there itself.
local function headers_of_lua()
  local names = {}
  for name in lfs.dir "/usr/include" do
    if name:find "^lua" then
      names[#names + 1] = name
    end
  end
  return names
end

local THIS_LUA <const> = "-DLUATRACE_LUA=" .. _VERSION:match "%d.%d" .. " "

describe("the configuration", function()
  local build

  setup(function()
    build = helper.tmpdir()
  end)

  ---@param files string[] what is not there in /usr/include
  ---@param options string of cmake
  ---@return boolean ok
  ---@return string said on one line
  local function configure(files, options)
    if helper.short then
      pending("takes long, and is the same for every build")
    elseif not helper.is_root then
      pending("only root can hide a header")
    end
    for _, name in ipairs(files) do
      if not lfs.attributes("/usr/include/" .. name) then
        pending("no /usr/include/" .. name .. " here")
      end
    end
    local status, out, err = helper.execute {
      "unshare", "--mount", "--propagation", "private",
      "sh", "-c", WITHOUT, "sh", helper.root, build, THIS_LUA .. options, cwd = helper.tmpdir(),
      timeout = 120, table.unpack(files),
    }
    return status == 0, ((out .. err):gsub("%s+", " "))
  end

  local function says(text, ...)
    for _, words in ipairs { ... } do
      assert.is_truthy(text:find(words, 1, true), text)
    end
  end

  -- What it does not go without: it ends, with what to install.
  for _, case in ipairs {
    { "Lua's header", headers_of_lua(), "", "Lua 5.4 or later with its header lua.h not found",
      "apt-get install lua5.4 liblua5.4-dev", "dnf install lua lua-devel" },
    { "the kernel's headers", { "linux" }, "", "header linux/capability.h not found",
      "apt-get install linux-libc-dev", "apk add linux-headers" },
    { "libelf's header, when that is asked for", { "gelf.h" }, "-DLUATRACE_LIBELF=ON",
      "libelf with its header gelf.h not found", "apt-get install libelf-dev",
      "pacman -S libelf" },
    { "pkg-config", {}, "-DPKG_CONFIG_EXECUTABLE=/nowhere/pkg-config",
      "pkg-config not found", "apt-get install pkg-config" },
    { "an interpreter", {}, "-DLUA=/nowhere/lua", "An interpreter for Lua 5.",
      "apt-get install lua5." },
  } do
    local name, files, options = table.unpack(case, 1, 3)
    it("names the packages when it ends without " .. name, function()
      local ok, said = configure(files, options)
      assert.is_false(ok, said)
      says(said, table.unpack(case, 4))
    end)
  end

  it("goes on without the libraries' headers, and says what there will not be", function()
    local ok, said = configure({ "zstd.h", "zlib.h", "gelf.h" }, "-DLUATRACE_LIBELF=AUTO")
    assert.is_true(ok, said)
    says(said, "no libzstd with its header zstd.h: trace files", "apt-get install libzstd-dev",
      "no zlib with its header zlib.h: trace files", "apt-get install zlib1g-dev",
      "no libelf with its header gelf.h: uprobes by offset only", "apt-get install libelf-dev")
  end)
end)
