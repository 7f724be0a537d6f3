local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local programs = require "tracefs.programs"

describe("tracefs.programs", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.programs"))
  end)
end)

describe("a program or library", function()
  it("is a path, or is found where a shell finds it", function()
    local sh = assert(programs.find("sh"))
    assert.equal(sh, programs.find("/bin/sh"))
    assert.equal("/", sh:sub(1, 1))
    local path, message, errno = programs.find("nosuch-program")
    assert.is_nil(path)
    assert.equal(2, errno)
    assert.matches("^no program 'nosuch%-program' in PATH; a file of this folder is written "
      .. "%./nosuch%-program$", message)
    assert.is_nil((programs.find("./nosuch-program")))
  end)

  it("is found as the loader finds it when its name has .so", function()
    -- What this process itself has loaded by that name.
    local loaded
    for line in (helper.read_file("/proc/self/maps")):gmatch("[^\n]+") do
      loaded = loaded or line:match(" (/%S*/libc%.so%.6)$")
    end
    if not loaded then
      pending("no libc.so.6 in this process")
    end
    assert.equal(loaded, programs.find("libc.so.6"))
    local path, message, errno = programs.find("libnosuch.so.1")
    assert.is_nil(path)
    assert.equal(2, errno)
    assert.matches("^no library 'libnosuch%.so%.1': it is not in /etc/ld%.so%.cache, and not in ",
      message)
    if (helper.read_file("/etc/ld.so.cache") or ""):find("libc.so.6", 1, true) then
      assert.matches("Did you mean the library libc%.so%.6%?", select(2, programs.find("libc")))
    end
  end)

  it("of LD_LIBRARY_PATH comes first, if it is for a program like this one", function()
    local dir = helper.tmpdir()
    local status, out, err = helper.run_lua([[
      local programs = require "tracefs.programs"
      print(programs.find("libc.so.6"))
      print(programs.find("libmine.so"))
      print((programs.find("libother.so")))
    ]], { env = { LD_LIBRARY_PATH = "/nosuch:" .. dir } })
    assert.equal("", err)
    assert.equal(0, status)
    local libc = out:match("^[^\n]+")
    assert.equal("nil", out:match("\n([^\t\n]+)"))
    assert.equal(0, (helper.execute { "cp", libc, dir .. "/libmine.so" }))
    -- Another machine's: the loader passes over it.
    local foreign = helper.read_file(libc):sub(1, 18) .. "\xff\xff" .. ("\0"):rep(64)
    helper.write_file(dir .. "/libother.so", foreign)
    status, out = helper.run_lua([[
      local programs = require "tracefs.programs"
      print(programs.find("libmine.so"))
      print((programs.find("libother.so")))
    ]], { env = { LD_LIBRARY_PATH = "/nosuch:" .. dir } })
    assert.equal(0, status)
    local _, real = helper.execute { "realpath", dir .. "/libmine.so" }
    assert.equal(real .. "nil\n", out)
  end)
end)

describe("the loader's cache", function()
  local function cache(entries, damage)
    local strings, list = "", ""
    local head = 48 + 24 * #entries
    for _, entry in ipairs(entries) do
      local key = head + #strings
      strings = strings .. entry[1] .. "\0"
      local value = head + #strings
      strings = strings .. entry[2] .. "\0"
      list = list .. ("<i4I4I4I4I8"):pack(0x303, key, damage or value, 0, entry[3] or 0)
    end
    return ("<c20I4I4c20"):pack("glibc-ld.so.cache1.1", #entries, #strings, "") .. list .. strings
  end
  local ENTRIES <const> = {
    { "liba.so.1", "/lib/liba.so.1" },
    { "libb.so", "/lib/fast/libb.so", 1 << 62 },
    { "libb.so", "/lib/libb.so" },
  }
  local EXPECTED <const> = {
    { name = "liba.so.1", path = "/lib/liba.so.1" }, { name = "libb.so", path = "/lib/libb.so" },
  }

  it("is read, also behind the one of older loaders", function()
    assert.same(EXPECTED, programs.cached(cache(ENTRIES)))
    assert.same(EXPECTED, programs.cached("ld.so-1.7.0\0\0\0\0\0" .. cache(ENTRIES)))
  end)

  it("gives what can be read of a damaged one", function()
    local whole = cache(ENTRIES)
    for length = 0, #whole do
      assert.is_true(#programs.cached(whole:sub(1, length)) <= 2)
    end
    assert.same({}, programs.cached(cache(ENTRIES, 0xffffffff)))
    assert.same({}, programs.cached(""))
  end)
end)
