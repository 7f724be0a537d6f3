local core = require "tracefs.core"
local helper = require "spec.support.helper"
local lfs = require "lfs"

describe("core.replace", function()
  local dir

  before_each(function()
    dir = helper.tmpdir()
  end)

  it("refuses what is no text", function()
    assert.has_error(function() core.replace() end)
    assert.has_error(function() core.replace("x", {}) end)
  end)

  it("makes a file, and gives it another content", function()
    local path = dir .. "/file"
    assert.is_true(core.replace(path, "one\0"))
    assert.equal("one\0", helper.read_file(path))
    local before <close> = assert(io.open(path))
    assert.is_true(core.replace(path, ""))
    assert.equal("", helper.read_file(path))
    assert.equal("one\0", before:read "a")
    local names = {}
    for name in lfs.dir(dir) do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.same({ ".", "..", "file" }, names)
  end)

  it("does not follow what somebody has put in its way", function()
    local path = dir .. "/file"
    helper.write_file(dir .. "/theirs", "theirs")
    assert(lfs.link(dir .. "/theirs", ("%s.%d.tmp"):format(path, helper.pid), true))
    assert.is_true(core.replace(path, "ours"))
    assert.equal("theirs", helper.read_file(dir .. "/theirs"))
    assert.equal("ours", helper.read_file(path))
  end)

  it("writes to what is no file, and says why it cannot", function()
    assert.is_true(core.replace("/dev/null", "text"))
    assert.equal("char device", lfs.attributes("/dev/null", "mode"))
    for path, message in pairs {
      ["/dev/full"] = "No space left on device", [dir] = "Is a directory",
      [dir .. "/no/file"] = "No such file or directory",
    } do
      local ok, why, errno = core.replace(path, "text")
      assert.is_nil(ok)
      assert.equal(("cannot write to '%s': %s"):format(path, message), why)
      assert.is_true(errno > 0)
    end
  end)
end)
