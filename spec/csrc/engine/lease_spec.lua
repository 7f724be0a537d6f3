local core = require "tracefs.core"

local function folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -m 700 " .. path))
  finally(function() os.execute("rm -r " .. path) end)
  return path
end

describe("the file of a lease", function()
  it("holds what was written last and nothing of what was before", function()
    local lease <close> = assert(core.lease(folder() .. "/note"))
    assert.equal("", lease:read())
    local long = ("0123456789abcdef\n"):rep(1009)
    for _, text in ipairs { "first\n", long, "short", "a\0b", "" } do
      assert.is_true(lease:write(text))
      assert.equal(text, lease:read())
    end
  end)

  it("is for its user alone", function()
    local path = folder() .. "/note"
    assert(core.lease(path)):close()
    local pipe = assert(io.popen("stat -c %a " .. path))
    assert.equal("600\n", pipe:read "a")
    pipe:close()
  end)

  it("is never reached through a link, and never something else than a file", function()
    local dir = folder()
    os.execute(("cd %s && echo secret >other && ln -s other link && mkdir dir"):format(dir))
    for _, name in ipairs { "link", "dir" } do
      local lease, message = core.lease(dir .. "/" .. name)
      assert.is_nil(lease)
      assert.matches("^cannot open ", message)
    end
    os.execute(("mkfifo %s/pipe"):format(dir))
    local lease, message, errno = core.lease(dir .. "/pipe")
    assert.is_nil(lease)
    assert.matches("it is not a plain file of this user", message)
    assert.equal(1, errno)
  end)

  it("of another user is not believed", function()
    local path = folder() .. "/note"
    if not os.execute(("echo x >%s && chown 65534 %s 2>/dev/null"):format(path, path)) then
      pending("not root")
    end
    local lease, message = core.lease(path)
    assert.is_nil(lease)
    assert.matches("it is not a plain file of this user", message)
  end)
end)
