local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local core = require "tracefs.core"

local ENOENT = 2

describe("the tracing directory", function()
  local FIND <const> = 'print(require("tracefs.core").tracing_dir(...))'

  local function find(mounts)
    local status, out, err = elsewhere.run({ mounts = mounts }, FIND)
    assert.same({ 0, "" }, { status, err })
    return out
  end

  it("is where tracefs is mounted", function()
    assert.equal(helper.tracing_dir, core.tracing_dir())
    assert.equal(helper.tracing_dir, core.tracing_dir(nil))
  end)

  it("is what we are told, if it is one", function()
    assert.equal(helper.tracing_dir, core.tracing_dir(helper.tracing_dir))
    local dir, message, errno = core.tracing_dir("/tmp")
    assert.is_nil(dir)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("/tmp is not a tracing directory: it has no events and instances",
      1, true), message)
    dir, message, errno = core.tracing_dir("/no/such/place")
    assert.is_nil(dir)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("cannot open the tracing directory /no/such/place: No such file",
      1, true), message)
  end)

  it("may be anywhere, with blanks and backslashes in its path", function()
    local place = helper.tmpdir()
    assert.equal(place .. "/with a blank \\ and\ttab\n", find(([[
      umount -a -l -t tracefs
      place="$(printf '%s/with a blank \\ and\ttab')"
      mkdir "$place"
      mount -t tracefs nodev "$place"
    ]]):format(place)))
  end)

  it("is the first tracefs that can be used", function()
    local place = helper.tmpdir()
    -- The first one is hidden below an empty file system.
    assert.equal(place .. "\n", find(([[
      mount -t tracefs nodev %s
      mount -t tmpfs nodev %s
    ]]):format(place, helper.tracing_dir)))
  end)

  it("that is hidden below another mount is named", function()
    local place = helper.tmpdir()
    local out = find(([[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
      mount -t tracefs nodev %s
      mount -t tmpfs nodev %s
    ]]):format(place, place))
    assert.truthy(out:find(("nil\t%s is not a tracing directory: it has no events and instances")
      :format(place), 1, true), out)
  end)

  it("is in debugfs when there is only that", function()
    local place = helper.tmpdir()
    assert.equal(place .. "/tracing\n", find(([[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
      mount -t debugfs nodev %s
    ]]):format(place)))
  end)

  it("is a tracefs before it is in a debugfs", function()
    local debug, trace = helper.tmpdir(), helper.tmpdir()
    assert.equal(trace .. "\n", find(([[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
      mount -t debugfs nodev %s
      mount -t tracefs nodev %s
    ]]):format(debug, trace)))
  end)

  it("is found without /proc", function()
    if helper.tracing_dir ~= "/sys/kernel/tracing" then
      pending("tracefs is not at its usual place here")
      return
    end
    -- A sanitizer's look for leaks needs /proc, and says so.
    local _, out = elsewhere.run({ mounts = "mount -t tmpfs nodev /proc" }, FIND, {
      env = { ASAN_OPTIONS = (os.getenv("ASAN_OPTIONS") or "") .. ":detect_leaks=0" },
    })
    assert.equal("/sys/kernel/tracing\n", out)
  end)

  it("is not mounted by us", function()
    local out = find(([[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
    ]]))
    assert.truthy(out:find("^nil\ttracefs is not mounted: "), out)
    local status, mounts = elsewhere.run({
      mounts = "umount -a -l -t tracefs; umount -a -l -t debugfs",
    }, [[
      require("tracefs.core").tracing_dir()
      local file <close> = io.open("/proc/self/mounts")
      io.write(file:read("a"))
    ]])
    assert.equal(0, status)
    assert.falsy(mounts:find("tracefs", 1, true), mounts)
  end)
end)
