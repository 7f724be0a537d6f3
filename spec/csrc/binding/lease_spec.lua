local core = require "tracefs.core"
local helper = require "spec.support.helper"

local function folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -m 700 " .. path))
  finally(function() os.execute("rm -r " .. path) end)
  return path
end

describe("core.lease", function()
  it("wants a path without zero bytes", function()
    for _, bad in ipairs { {}, print, "a\0b" } do
      assert.has_error(function() core.lease(bad) end)
    end
    assert.has_error(function() core.lease() end)
  end)

  it("gives a closed object after close(), by <close> and collected", function()
    local path = folder() .. "/note"
    local lease = assert(core.lease(path))
    assert.equal("tracefs.lease", tostring(lease))
    assert.is_true(lease:is_ours())
    lease:close()
    lease:close()
    assert.equal("tracefs.lease (closed)", tostring(lease))
    assert.is_true(lease:is_ours())
    for _, method in ipairs { "read", "write" } do
      assert.error_matches(function() lease[method](lease, "") end, "the lease is closed")
    end
    do
      local other <close> = assert(core.lease(path))
      assert.is_true(other:write("x"))
    end
    local third = assert(core.lease(path))
    assert.equal("x", third:read())
    third = nil -- luacheck: ignore 311
    collectgarbage()
    assert(core.lease(path)):close()
  end)

  it("says which file could not be had, and why", function()
    local lease, message, errno = core.lease("/nosuch/folder/note")
    assert.is_nil(lease)
    assert.equal("cannot open /nosuch/folder/note: No such file or directory", message)
    assert.equal(2, errno)
  end)
end)

describe("a lease", function()
  it("is one process's at a time, and free when that is killed", function()
    local path = folder() .. "/note"
    local status, out = helper.run_lua(([[
      local core = require "tracefs.core"
      local lease = assert(core.lease(%q))
      assert(lease:write "what there is to undo")
      local process = assert(core.spawn("kill -9 " .. assert(io.open "/proc/self/stat"):read "n"))
      process:release()
      core.poll({}, 60)
    ]]):format(path))
    assert.equal("", out)
    assert.not_equal(0, status)
    local lease = assert(core.lease(path))
    assert.equal("what there is to undo", lease:read())
    local other, message, errno = core.lease(path)
    assert.is_nil(other)
    assert.matches("^cannot lock " .. path:gsub("%p", "%%%0") .. ": ", message)
    assert.equal(11, errno)
    lease:close()
    assert(core.lease(path)):close()
  end)
end)
