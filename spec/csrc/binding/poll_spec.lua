local helper = require "spec.support.helper"
local core = require "tracefs.core"

describe("core.poll", function()
  it("is there without a global more", function()
    local status, out = helper.run_lua([[
      local before = {}
      for name in pairs(_G) do before[name] = true end
      require "tracefs.core"
      for name in pairs(_G) do
        if not before[name] then print(name) end
      end
    ]])
    assert.equal(0, status)
    assert.equal("", out)
  end)

  it("refuses what is no list of descriptors", function()
    assert.has_error(function() core.poll() end)
    assert.has_error(function() core.poll(3) end)
    assert.error_matches(function() core.poll { "x" } end, "list of descriptors")
    assert.error_matches(function() core.poll { -1 } end, "list of descriptors")
    assert.error_matches(function() core.poll { 1.5 } end, "list of descriptors")
    assert.error_matches(function() core.poll({}, -1) end, "time in seconds")
    assert.error_matches(function() core.poll({}, 0 / 0) end, "time in seconds")
    assert.error_matches(function() core.poll({}, "x") end, "number expected")
  end)

  it("returns the descriptors that can be read, in the order asked for", function()
    local soon <close> = assert(core.timer(0))
    local later <close> = assert(core.timer(1000))
    local too <close> = assert(core.timer(0))
    helper.sleep(0.01)
    assert.same({ too:fileno(), soon:fileno() },
      core.poll({ too:fileno(), later:fileno(), soon:fileno() }, 5))
  end)

  it("returns an empty list when the time is over", function()
    local timer <close> = assert(core.timer(1000))
    local start = core.now "mono"
    assert.same({}, core.poll({ timer:fileno() }, 0.05))
    local elapsed = core.now "mono" - start
    assert.is_true(elapsed >= 50000000, "returned after " .. elapsed .. " ns")
    assert.same({}, core.poll({}, 0))
  end)

  it("waits without a limit until something comes", function()
    local timer <close> = assert(core.timer(0.05))
    assert.same({ timer:fileno() }, core.poll { timer:fileno() })
    assert.same({ timer:fileno() }, core.poll({ timer:fileno() }, math.huge))
  end)

  it("names a descriptor that is not open", function()
    local timer = assert(core.timer(1))
    local fd = timer:fileno()
    timer:close()
    local ready, message, errno = core.poll({ fd }, 0)
    assert.is_nil(ready)
    assert.equal(("cannot wait for descriptor %d: Bad file descriptor"):format(fd), message)
    assert.equal(9, errno)
  end)
end)

describe("core.timer", function()
  it("refuses what is no time", function()
    assert.error_matches(function() core.timer() end, "number expected")
    assert.error_matches(function() core.timer(-0.1) end, "time in seconds")
    assert.error_matches(function() core.timer(0 / 0) end, "time in seconds")
  end)

  it("passes once", function()
    local timer <close> = assert(core.timer(0.02))
    assert.equal(0, timer:expired())
    core.poll({ timer:fileno() }, 5)
    assert.equal(1, timer:expired())
    assert.same({}, core.poll({ timer:fileno() }, 0.05))
    assert.equal(0, timer:expired())
  end)

  it("passes again and again", function()
    local timer <close> = assert(core.timer(0.01, true))
    helper.sleep(0.1)
    local count = timer:expired()
    assert.is_true(count >= 9, count .. " times")
    assert.same({ timer:fileno() }, core.poll({ timer:fileno() }, 5))
  end)

  it("may be very long, and may be closed twice", function()
    local timer = assert(core.timer(math.huge))
    assert.equal(0, timer:expired())
    timer:close()
    timer:close()
    assert.error_matches(function() timer:fileno() end, "timer is closed")
    assert.error_matches(function() timer:expired() end, "timer is closed")
  end)
end)

describe("core.hold_standard_fds", function()
  it("does nothing when all are open", function()
    assert.equal(0, core.hold_standard_fds())
  end)

  it("keeps files from getting the numbers of those that are closed", function()
    local path = helper.tmpdir() .. "/result"
    local status = helper.execute {
      "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", helper.interpreter, "-e",
      ("package.cpath = %q"):format(helper.core_dir .. "/?.so"), "-e", ([[
        local core = require "tracefs.core"
        local held = core.hold_standard_fds()
        local file = io.open(%q, "w")
        io.stdout:write "lost"
        local ok, message = io.stdout:flush()
        file:write(held, " ", tostring(ok), " ", tostring(message), " ", tostring(io.read()))
        file:close()
      ]]):format(path),
    }
    assert.equal(0, status)
    assert.equal("3 nil Bad file descriptor nil", helper.read_file(path))
  end)
end)

describe("core.isatty", function()
  it("says no to files and pipes, and refuses other values", function()
    local null <close> = assert(io.open("/dev/null"))
    assert.is_false(core.isatty(null))
    assert.is_false(core.isatty(1000000))
    assert.has_error(function() core.isatty("x") end)
    local closed = assert(io.open("/dev/null"))
    closed:close()
    assert.error_matches(function() core.isatty(closed) end, "file is closed")
  end)

  it("says yes to a terminal", function()
    local terminal <close> = io.open("/dev/ptmx", "r+")
    if not terminal then
      pending("no pseudo-terminals here")
      return
    end
    assert.is_true(core.isatty(terminal))
  end)
end)
