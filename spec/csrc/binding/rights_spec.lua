local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT <const>, EINVAL <const> = 2, 22

-- Runs code in a process of its own, which may give up its rights.
local function run(code)
  local status, out, err = helper.run_lua([[
    local core, tracefs = require "tracefs.core", require "tracefs"
  ]] .. code, {
    env = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":detect_leaks=0" },
  })
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("core.user", function()
  it("knows a user by name, by number, and any by both numbers", function()
    for asked, shown in pairs { nobody = "nobody", ["65534"] = "nobody", daemon = "daemon",
      ["54321:12345"] = "54321:12345", ["4294967294:1"] = "4294967294:1" } do
      assert.equal(("tracefs.user (%s)"):format(shown), tostring(assert(core.user(asked))))
    end
  end)

  it("refuses root, root's group, and whom nobody knows, with what to do", function()
    for asked, expected in pairs {
      root = { "uid 0", EINVAL }, ["0"] = { "uid 0", EINVAL }, ["0:5"] = { "uid 0", EINVAL },
      ["5:0"] = { "root's group", EINVAL }, ["54321"] = { "as 54321:GID", ENOENT },
      nosuchuser = { "UID:GID", ENOENT }, [""] = { "UID:GID", ENOENT },
      ["1:"] = { "UID:GID", ENOENT }, [":1"] = { "UID:GID", ENOENT },
      ["-1:1"] = { "UID:GID", ENOENT }, ["4294967295:1"] = { "UID:GID", ENOENT },
      ["1:4294967296"] = { "UID:GID", ENOENT }, ["1:1x"] = { "UID:GID", ENOENT },
      ["nobody\n"] = { "nobody\\n", ENOENT },
    } do
      local user, message, errno = core.user(asked)
      assert.is_nil(user)
      assert.is_truthy(message:find(expected[1], 1, true), message)
      assert.equal(expected[2], errno)
    end
    assert.has_error(function() core.user "a\0b" end)
  end)
end)

describe("core.drop_rights", function()
  it("is for good, once, and needs an instance of this process", function()
    local out = run [[
      print(core.dropped_rights())
      local user = core.user "nobody"
      assert(core.drop_rights(user))
      print(core.dropped_rights())
      print((pcall(io.lines, "/etc/shadow")))
      print(core.drop_rights(user))
    ]]
    assert.equal("nil\nnobody\nfalse\n"
      .. "nil\trights have been dropped already, for nobody\t114\n", out)
    local instance <close> = assert(core.instance_create(assert(core.tracing_dir())))
    local opened <close> = assert(core.instance_open(assert(core.tracing_dir()), instance:name()))
    assert.has_error(function() core.drop_rights(assert(core.user "nobody"), opened) end)
    assert.has_error(function() core.drop_rights("nobody", instance) end)
  end)

  it("lets a session of a program go on, and end by itself", function()
    assert.equal("7\t0\nnobody\ttrue\n", run [[
      local session = tracefs.session()
      assert(core.drop_rights(core.user "nobody", session.instance))
      local count, dir = 0, session.instance:dir()
      session:on("ftrace:print", function() count = count + 1 end)
      session:at_start(function()
        for _ = 1, 7 do session:marker "x" end
        session:finish()
      end)
      local stats = session:run()
      print(count, stats.lost)
      print(core.dropped_rights(), (session:close()))
    ]])
  end)

  it("refuses what a user cannot become, and leaves nothing", function()
    local status, out = helper.execute { "setpriv", "--reuid", "65534", "--regid", "65534",
      "--clear-groups", "--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override",
      helper.command, "--user", "daemon", "-e", "print 'ran'",
      env = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":detect_leaks=0" } }
    assert.equal("", out)
    assert.equal(1, status)
  end)
end)

describe("core.read_file", function()
  it("reads all of a file, or says why not", function()
    assert.equal(helper.read_file "/proc/version", core.read_file "/proc/version")
    assert.same({ nil, "/nowhere/at/all: No such file or directory", ENOENT },
      { core.read_file "/nowhere/at/all" })
  end)
end)
