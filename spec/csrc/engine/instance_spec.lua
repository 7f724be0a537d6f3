local helper = require "spec.support.helper"
local core = require "tracefs.core"

local EEXIST, EBUSY, EINVAL, ENOENT = 17, 16, 22, 2

describe("an instance", function()
  local dir = assert(core.tracing_dir())

  local function exists(name)
    return helper.read_file(("%s/instances/%s/tracing_on"):format(dir, name)) ~= nil
  end

  it("records nothing before it is told to", function()
    local instance <close> = assert(core.instance_create(dir))
    assert.equal(dir .. "/instances/" .. instance:name(), instance:dir())
    assert.equal("0\n", helper.read_file(instance:dir() .. "/tracing_on"))
    assert.is_false(instance:trace_is_on())
  end)

  it("has a name that says whose it is", function()
    local stat = helper.read_file("/proc/self/stat")
    local fields = {}
    for field in stat:match("^.*%)(.*)$"):gmatch("%S+") do
      table.insert(fields, field)
    end
    -- The state behind the command's name is field 3, so the start time, 22, is the 20th here.
    local _, ns = helper.execute { "readlink", "/proc/self/ns/pid" }
    ns = ns:match("%d+")
    -- In the first pid namespace, whose inode is always this, the pid says enough.
    local prefix = ("luatrace-%s%d-%s-"):format(
      ns == "4026531836" and "" or "ns" .. ns .. "-", helper.pid, fields[20])
    local first <close> = assert(core.instance_create(dir))
    local second <close> = assert(core.instance_create(dir))
    assert.equal(prefix .. "1", first:name())
    assert.equal(prefix .. "2", second:name())
    first:close()
    local third <close> = assert(core.instance_create(dir))
    assert.equal(prefix .. "1", third:name())
  end)

  it("is named in the list as long as it is there", function()
    local name
    do
      local instance <close> = assert(core.instance_create(dir, "a b-" .. helper.pid))
      name = instance:name()
      assert.equal("a b-" .. helper.pid, name)
      assert.truthy((" %s,"):format(table.concat(core.instances(dir), ", ")):find(name, 1, true))
    end
    assert.falsy(table.concat(core.instances(dir), ", "):find(name, 1, true))
  end)

  it("cannot be removed by anyone else while it lives", function()
    local instance <close> = assert(core.instance_create(dir))
    local status, _, err = helper.execute { "rmdir", instance:dir() }
    assert.equal(1, status)
    assert.truthy(err:find("busy", 1, true))
    assert.is_true(exists(instance:name()))
  end)

  it("is removed once, and destroying it again is fine", function()
    local instance = assert(core.instance_create(dir))
    local name = instance:name()
    assert.is_true(exists(name))
    assert.is_true(instance:destroy())
    assert.is_false(exists(name))
    assert.is_true(instance:destroy())
    assert.is_true(instance:close())
  end)

  it("is removed with its events on, its filters set and its buffer full", function()
    local instance = assert(core.instance_create(dir))
    local name = instance:name()
    assert(instance:set_buffer_kb(64))
    assert(instance:enable("raw_syscalls", "sys_enter"))
    assert(instance:set_filter("raw_syscalls", "sys_enter", "id >= 0"))
    assert(instance:write("events/sched/sched_switch/trigger", "traceoff if prev_pid == 999999"))
    assert(instance:trace_on())
    for _ = 1, 1009 do
      io.open("/nowhere/at/all")
    end
    assert.is_true(instance:destroy())
    assert.is_false(exists(name))
  end)

  it("waits when somebody only looks into it", function()
    local instance = assert(core.instance_create(dir))
    local looker = helper.start {
      "sh", "-c", 'exec 3<"$1"; echo ready; sleep 0.1', "sh", instance:dir() .. "/trace",
    }
    looker:expect("ready")
    assert.is_true(instance:destroy())
    looker:wait()
  end)

  it("says who keeps it busy, and can be destroyed afterwards", function()
    local instance = assert(core.instance_create(dir))
    local name = instance:name()
    local holder = helper.start {
      "sh", "-c", [[exec 3<"$1"; echo ready; exec sleep 30]], "sh",
      instance:dir() .. "/trace_pipe",
    }
    holder:expect("ready")
    local done, message, errno = instance:destroy()
    assert.is_nil(done)
    assert.equal(EBUSY, errno)
    assert.truthy(message:find(("pid %d (sleep): trace_pipe"):format(holder.pid), 1, true), message)
    assert.truthy(message:find(("rmdir '%s/instances/%s'"):format(dir, name), 1, true), message)
    holder:kill("KILL")
    holder:wait()
    assert.is_true(instance:destroy())
    assert.is_false(exists(name))
  end)

  it("is not left open in programs that are started", function()
    local instance <close> = assert(core.instance_create(dir))
    local _, out = helper.execute { "ls", "-l", "/proc/self/fd" }
    assert.falsy(out:find(instance:name(), 1, true))
  end)

  it("is left alone by a child of its process", function()
    local script = helper.tmpdir() .. "/fork.lua"
    helper.write_file(script, ([[
      package.cpath = %q
      local core = require "tracefs.core"
      local instance = assert(core.instance_create(%q))
      local child = fork()
      if child == 0 then
        -- Only what the child has of it; and so does the end of the child's Lua state.
        assert(instance:destroy())
        return
      end
      assert(wait(child) == 0)
      do
        local file <close> = assert(io.open(instance:dir() .. "/tracing_on"))
        print(file:read("n"))
      end
      local dir = instance:dir()
      assert(instance:destroy())
      print(io.open(dir .. "/tracing_on"))
    ]]):format(package.cpath, dir))
    local status, out, err = helper.execute { helper.program("support/fork"), script }
    assert.same({ 0, "" }, { status, err })
    assert.truthy(out:match("^0\nnil\t"), out)
  end)

  it("of a name that is there is refused", function()
    local instance <close> = assert(core.instance_create(dir, "spec-" .. helper.pid))
    local other, message, errno = core.instance_create(dir, instance:name())
    assert.is_nil(other)
    assert.equal(EEXIST, errno)
    assert.truthy(message:find("there is one of this name (" .. instance:dir(), 1, true), message)
    assert.truthy(message:find("Choose another name, open that one with instance_open, or remove",
      1, true), message)
    assert.is_true(exists(instance:name()))
  end)

  for _, case in ipairs {
    { "a/b", "has a slash" },
    { "/a", "has a slash" },
    { ".", "own or parent's name" },
    { "..", "own or parent's name" },
    { "", "is empty" },
    { ("x"):rep(256), "longer than 255 bytes" },
    { "a\nb", "has a control byte" },
    { "a\27[2Jb", "has a control byte" },
  } do
    it(("is not called %q"):format(case[1]):sub(1, 60), function()
      for _, call in ipairs { core.instance_create, core.instance_open } do
        local instance, message, errno = call(dir, case[1])
        assert.is_nil(instance)
        assert.equal(EINVAL, errno)
        assert.truthy(message:find(case[2], 1, true), message)
        assert.truthy(message:find("use letters, digits, - and _", 1, true), message)
        assert.falsy(message:find("%c"))
      end
    end)
  end

  it("is not given a name by which it would be removed as stale", function()
    for _, name in ipairs { "luatrace-1-2-3", "luatrace-ns4026531999-1-2-3" } do
      local instance, message, errno = core.instance_create(dir, name)
      assert.is_nil(instance)
      assert.equal(EINVAL, errno)
      assert.truthy(message:find("given by luatrace itself", 1, true), message)
    end
    local instance <close> = assert(core.instance_create(dir, "luatrace-mine-" .. helper.pid))
    assert.is_true(exists(instance:name()))
  end)

  it("that was opened is left as it is", function()
    local made <close> = assert(core.instance_create(dir, "spec-" .. helper.pid))
    assert(made:set_clock("mono"))
    do
      local opened <close> = assert(core.instance_open(dir, made:name()))
      assert.equal("mono", opened:get_clock())
      assert(opened:trace_on())
    end
    collectgarbage()
    assert.is_true(made:trace_is_on())
    -- Looking at it must not keep its owner from removing it.
    local opened <close> = assert(core.instance_open(dir, made:name()))
    assert.is_true(made:destroy())
    local value, message, errno = opened:get_clock()
    assert.is_nil(value)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("is gone, someone has removed it", 1, true), message)
  end)

  it("that is not there is not opened; the message names those that are", function()
    local made <close> = assert(core.instance_create(dir))
    local instance, message, errno = core.instance_open(dir, "nosuch")
    assert.is_nil(instance)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("no instance nosuch in " .. dir .. "/instances; there are: ", 1,
      true), message)
    assert.truthy(message:find(made:name(), 1, true), message)
  end)

  it("is not made where there is no tracefs", function()
    local instance, message, errno = core.instance_create("/tmp")
    assert.is_nil(instance)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("/tmp/instances is not there", 1, true), message)
    local list
    list, message, errno = core.instances("/tmp")
    assert.is_nil(list)
    assert.equal(ENOENT, errno)
    assert.truthy(message:find("list the instances in /tmp/instances", 1, true), message)
  end)
end)
