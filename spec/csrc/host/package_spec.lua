local helper = require "spec.support.helper"

local function has(program)
  return os.execute(("command -v %s >/dev/null 2>&1"):format(program)) == true
end

describe("cpack", function()
  it("makes a Debian package with what luatrace needs", function()
    if not (has "cpack" and has "dpkg-deb" and has "dpkg-shlibdeps") then
      pending("no cpack or dpkg here")
    elseif helper.short then
      pending("takes long, and is the same for every build")
    end
    local dir = helper.tmpdir()
    local status, out, err = helper.execute {
      "cpack", "--config", helper.build .. "/CPackConfig.cmake", "-B", dir, timeout = 120,
    }
    assert.equal(0, status, out .. err)
    local package = dir .. "/lua.deb"
    assert(os.execute(("mv %s/lua-tracefs_*.deb %s"):format(dir, package)))

    local version = require("tracefs").version
    status, out = helper.execute { "dpkg-deb", "--info", package }
    assert.equal(0, status)
    local depends = out:match("\n Depends: ([^\n]+)")
    for _, name in ipairs { "lua5.%d", "lua%-argparse", "lua%-dkjson", "libc6" } do
      assert.is_truthy(depends:find(name), depends)
    end
    assert.is_truthy(out:find("\n Version: " .. version .. "\n", 1, true), out)

    status, out = helper.execute { "dpkg-deb", "--contents", package }
    assert.equal(0, status)
    for _, file in ipairs {
      "/usr/bin/luatrace", "tracefs/core.so", "tracefs/session.lua", "examples/netlat.lua",
      "luatrace.1",
    } do
      assert.is_truthy(out:find(file, 1, true), file)
    end
    -- The launcher names the folders where the package's files come to lie.
    status, out = helper.execute { "sh", "-c",
      'dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/bin/luatrace', package }
    assert.equal(0, status)
    assert.is_truthy(out:find('"/usr/share/lua/5.%d/%?.lua;'), out)
    assert.is_nil(out:find(dir, 1, true), out)
  end)
end)
