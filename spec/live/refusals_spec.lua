-- What the system refuses: each message says what was tried, why it failed, and what to do.
local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local core = require "tracefs.core"

describe("a refusal", function()
  local dir = assert(core.tracing_dir())
  local NOBODY <const> = 65534

  local function contains(text, ...)
    for _, part in ipairs { ... } do
      assert.truthy(text:find(part, 1, true), ("%q is not in: %s"):format(part, text))
    end
  end

  local function lacks(text, ...)
    for _, part in ipairs { ... } do
      assert.falsy(text:find(part, 1, true), ("%q is in: %s"):format(part, text))
    end
  end

  -- How many instances of this process there are.
  local function own_instances()
    local count = 0
    for _, name in ipairs(core.instances(dir)) do
      if name:find(("%%-%d%%-"):format(helper.pid)) then
        count = count + 1
      end
    end
    return count
  end

  -- The message with which a session's setup fails; nothing stays behind it.
  local function session_error(setup)
    local tracefs = require "tracefs"
    local before = own_instances()
    local ok, message = pcall(function()
      local session <close> = tracefs.session()
      setup(session)
    end)
    assert.is_false(ok)
    assert.equal(before, own_instances())
    return message
  end

  -- Prints the errno and the message of core.tracing_dir, or those of instance_create.
  local SETUP <const> = [[
    local core = require "tracefs.core"
    local dir, message, errno = core.tracing_dir(...)
    if dir then
      local instance
      instance, message, errno = core.instance_create(dir)
      if instance then
        print("made", instance:name())
        return
      end
    end
    print(errno, message)
  ]]

  local function setup_error(options, ...)
    local status, out, err = elsewhere.run(options, SETUP, { ... })
    assert.same({ 0, "" }, { status, err })
    local errno, message = out:match("^(%d+)\t(.*)\n$")
    assert.truthy(errno, out)
    return message, tonumber(errno)
  end

  local EPERM, ENOENT, EACCES, EROFS = 1, 2, 13, 30

  it("of the tracing directory to a user says whose it is and to run as root", function()
    local message, errno = setup_error { user = NOBODY }
    assert.equal(EACCES, errno)
    contains(message, "cannot open the tracing directory " .. dir, "permission denied",
      ("uid %d"):format(NOBODY), dir .. " belongs to uid 0, gid 0, mode 0", "Run as root (sudo)")
    lacks(message, "not mounted", "No such file")
  end)

  it("of a session to a user is the same", function()
    local status, _, err = elsewhere.run({ user = NOBODY }, 'require("tracefs").session()')
    assert.equal(1, status)
    contains(err, "cannot open the tracing directory " .. dir, "permission denied", "Run as root")
  end)

  it("tells what is not permitted from what is not there", function()
    -- The same user: one directory is there, the other is not.
    local denied, denied_errno = setup_error({ user = NOBODY }, dir)
    local absent, absent_errno = setup_error({ user = NOBODY }, "/sys/kernel/nosuch")
    assert.same({ EACCES, ENOENT }, { denied_errno, absent_errno })
    contains(denied, "permission denied")
    lacks(denied, "No such file", "not a tracing directory")
    contains(absent, "No such file or directory")
    lacks(absent, "permission")
    for _, pattern in ipairs { "sched:sched_switch", "sched:*" } do
      local status, out = elsewhere.run({ user = NOBODY }, [[
        print(require("tracefs.events").match(...))
      ]], { dir, pattern })
      assert.equal(0, status)
      contains(out, "Permission denied", "run as root")
      lacks(out, "no event")
    end
  end)

  it("where the directory is closed further up names that place", function()
    local place = helper.tmpdir()
    local message, errno = setup_error({
      user = NOBODY,
      mounts = ([[
        umount -a -l -t tracefs
        umount -a -l -t debugfs
        mkdir -p %s/closed/tracing
        chmod 755 %s
        chmod 750 %s/closed
        mount -t tracefs nodev %s/closed/tracing
      ]]):format(place, place, place, place),
    })
    assert.equal(EACCES, errno)
    contains(message, place .. "/closed/tracing", "permission denied",
      place .. "/closed belongs to uid 0, gid 0, mode 0750")
  end)

  it("when tracefs is not mounted says so, and how to mount it", function()
    local message, errno = setup_error { mounts = [[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
    ]] }
    assert.equal(ENOENT, errno)
    contains(message, "tracefs is not mounted", "/proc/self/mounts has no tracefs and no debugfs",
      "Mount it as root: mount -t tracefs nodev /sys/kernel/tracing", "in a container")
    lacks(message, "permi")
    local status, _, err = elsewhere.run({ mounts = [[
      umount -a -l -t tracefs
      umount -a -l -t debugfs
    ]] }, 'require("tracefs").session()')
    assert.equal(1, status)
    contains(err, "tracefs is not mounted", "mount -t tracefs nodev /sys/kernel/tracing")
  end)

  it("when tracefs is not mounted is the same to a user", function()
    local message, errno = setup_error {
      user = NOBODY,
      mounts = "umount -a -l -t tracefs; umount -a -l -t debugfs",
    }
    assert.equal(ENOENT, errno)
    contains(message, "tracefs is not mounted", "Mount it as root")
  end)

  it("when tracefs is mounted read-only says so, and how to get it writable", function()
    local message, errno = setup_error { mounts = "mount -o remount,bind,ro " .. dir }
    assert.equal(EROFS, errno)
    contains(message, "cannot create the instance " .. dir .. "/instances/luatrace-",
      "mounted read-only", "remount it as root: mount -o remount,rw", "Run on the host")
  end)

  -- A kernel that is locked down says so in this file; its refusals are those of nobody's
  -- rights (a tracefs without files, EPERM or EACCES).
  local function lockdown(mode)
    return ([[
      mount -t tmpfs nodev /sys/kernel/security
      echo '%s' >/sys/kernel/security/lockdown
    ]]):format(mode)
  end

  it("by a lockdown names it, and what to boot with", function()
    local empty = helper.tmpdir()
    local mounts = lockdown("none integrity [confidentiality]")
    local message, errno = setup_error({ mounts = mounts }, empty)
    assert.equal(EPERM, errno)
    contains(message, "cannot use the tracing directory " .. empty, "the kernel is locked down",
      "/sys/kernel/security/lockdown says confidentiality", "forbids tracing to root too",
      "Boot with lockdown=integrity or none")

    message, errno = setup_error { mounts = mounts, user = NOBODY }
    assert.equal(EACCES, errno)
    contains(message, "the kernel is locked down")

    message, errno = setup_error {
      mounts = mounts .. "umount -a -l -t tracefs; umount -a -l -t debugfs",
    }
    assert.equal(EPERM, errno)
    contains(message, "tracefs is not mounted", "the kernel is locked down")
  end)

  it("does not blame a lockdown that allows tracing", function()
    for _, mode in ipairs {
      "[none] integrity confidentiality", "none [integrity] confidentiality",
    } do
      local message = setup_error { mounts = lockdown(mode), user = NOBODY }
      lacks(message, "locked down", "lockdown")
      contains(message, "permission denied")
    end
  end)

  it("of an event that is not there offers the nearest names", function()
    contains(session_error(function(session)
      session:on("sched:sched_swich", function() end)
    end), 'no event "sched:sched_swich" in ' .. dir, "Did you mean sched:sched_switch",
      "tracefs.events() lists all")
    contains(session_error(function(session)
      session:enable("syscall:sys_enter_read")
    end), 'no event "syscall:sys_enter_read" in ' .. dir, "Did you mean syscalls:sys_enter_read")
  end)

  it("of a pattern says what is wrong with it", function()
    contains(session_error(function(session)
      session:on("[", function() end)
    end), 'bad event pattern "["', 'its "[" has no "]"', '"[[]" stands for a "[" itself')
    contains(session_error(function(session)
      session:enable("")
    end), 'bad event pattern ""', 'it is empty; "*" means all events')
  end)

  it("of a filter shows the kernel's line with the caret", function()
    contains(session_error(function(session)
      session:on("sched:sched_switch", { filter = 'prev_comm == "abc' }, function() end)
    end), "cannot set the filter of sched:sched_switch (" .. dir .. "/instances/luatrace-",
      "the kernel says:\n", "Missing matching quote",
      '\n  Command: prev_comm == "abc\n' .. (" "):rep(24) .. "^")
    contains(session_error(function(session)
      session:enable("sched:sched_switch", { filter = "nosuch == 1" })
    end), "Field not found", "\n  Command: nosuch == 1\n" .. (" "):rep(18) .. "^",
      "\nIts fields are: prev_comm, prev_pid,")
  end)

  it("of a clock lists those that are there", function()
    local tracefs = require "tracefs"
    local before = own_instances()
    local ok, message = pcall(tracefs.session, { clock = "nosuch" })
    assert.is_false(ok)
    contains(message, 'no trace clock "nosuch" in this kernel', "It has: local global ")
    assert.equal(before, own_instances())
  end)

  it("of an instance's name says why", function()
    local tracefs = require "tracefs"
    local name = "refusals-" .. helper.pid
    local instance <close> = assert(tracefs.instance_create(name))
    for bad, why in pairs {
      [name] = "there is one of this name (" .. instance:dir() .. ")",
      ["a/b"] = "it has a slash",
      ["."] = "it is a directory's own or parent's name",
      [".."] = "it is a directory's own or parent's name",
    } do
      local other, message = tracefs.instance_create(bad)
      assert.is_nil(other)
      contains(message, why)
      local ok, session_message = pcall(tracefs.session, { name = bad })
      assert.is_false(ok)
      contains(session_message, why)
    end
  end)

  it("of a buffer that is too large names its size, and keeps the old one", function()
    local tracefs = require "tracefs"
    local instance <close> = assert(tracefs.instance_create())
    local old = instance:get_buffer_kb()
    local cpus = 0
    for _ in pairs(instance:stats()) do
      cpus = cpus + 1
    end
    local size, message, errno = instance:set_buffer_kb(40000000000)
    assert.is_nil(size)
    assert.equal(12, errno)
    contains(message, "cannot set the buffer to 40000000000 KiB for each CPU",
      ("40000000000 KiB x %d CPUs is"):format(cpus), "GiB of memory are free",
      ("It stays at %d KiB for each CPU; ask for less"):format(old))
    assert.equal(old, instance:get_buffer_kb())
  end)
end)
