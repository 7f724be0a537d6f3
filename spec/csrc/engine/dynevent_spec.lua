-- Dynamic events of an owner on the real tracefs: what every kernel with uprobes can do.
local helper = require "spec.support.helper"
local core = require "tracefs.core"

local dir = assert(core.tracing_dir())
local FILE <const> = dir .. "/dynamic_events"
local EINVAL <const>, ENOENT <const>, EBUSY <const> = 22, 2, 16

local function listed(name)
  for line in (helper.read_file(FILE) or ""):gmatch("[^\n]+") do
    if line:find(name, 1, true) then
      return line
    end
  end
end

-- A probe that nobody turns on: any place in any file does.
local function place()
  return helper.core_dir .. "/tracefs/core.so:0x40"
end

describe("dynamic events", function()
  local events

  local has_uprobes = helper.read_file(dir .. "/uprobe_events")

  local it = helper.it_after(it, function()
    if not has_uprobes then
      pending("this kernel has no uprobes")
    end
  end)

  before_each(function()
    events = has_uprobes and core.dynevents(dir)
  end)

  after_each(function()
    if events then
      events:close()
    end
  end)

  it("have names that say whose they are, and another one each time", function()
    local first, second = events:name(), events:name()
    assert.matches(("^luatrace_%d_%%d+_%%d+$"):format(helper.pid), first)
    assert.not_equal(first, second)
    local other <close> = core.dynevents(dir)
    assert.not_equal(second, other:name())
  end)

  it("are made with the kernel's commands, and gone when they are closed", function()
    local name = events:name()
    local command = ("p:%s/made %s value=%%di:u64"):format(name, place())
    assert.is_true(events:add(command))
    assert.is_true(events:add(("r:%s/made_too %s"):format(name, place())))
    assert.equal(command, events:commands()[1])
    assert.equal(2, #events:commands())
    assert.is_truthy(listed(name .. "/made "))
    assert.is_truthy(listed(name .. "/made_too "))
    assert.equal("tracefs.dynevents (2)", tostring(events))
    assert.is_true(events:close())
    assert.is_nil(listed(name))
    assert.is_true(events:close())
    assert.equal("tracefs.dynevents (closed)", tostring(events))
    assert.has_error(function() events:name() end, "the dynamic events are closed")
  end)

  it("are gone when they are only forgotten", function()
    local name
    do
      local forgotten = core.dynevents(dir)
      name = forgotten:name()
      assert(forgotten:add(("p:%s/made %s"):format(name, place())))
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(listed(name))
  end)

  it("of others are left alone", function()
    local other <close> = core.dynevents(dir)
    local theirs, ours = other:name(), events:name()
    assert(other:add(("p:%s/made %s"):format(theirs, place())))
    assert(events:add(("p:%s/made %s"):format(ours, place())))
    assert(events:close())
    assert.is_nil(listed(ours))
    assert.is_truthy(listed(theirs))
    assert.equal(0, core.remove_stale_dynevents(helper.tmpdir()))
    core.remove_stale_dynevents(dir)
    assert.is_truthy(listed(theirs))
  end)

  it("are refused with what the kernel says about this command, and never what it said before",
    function()
      local name = events:name()
      local function refused(text)
        local ok, message, errno = events:add(text)
        assert.is_nil(ok)
        return message, errno
      end
      local bad = ("p:%s/made %s value=%%nosuch"):format(name, place())
      local message, errno = refused(bad)
      assert.equal(EINVAL, errno)
      assert.equal(1, select(2, message:gsub("the kernel says:\n", "")))
      assert.equal(1, select(2, message:gsub("Command: ", "")))
      local caret = message:match("\n  Command: [^\n]*\n( *)%^")
      assert.equal("value=%nosuch", message:match("\n  Command: ([^\n]*)"):sub(-13))
      assert.is_truthy(caret)
      -- Nothing is logged for this one.
      message = refused(("q:%s/made %s"):format(name, place()))
      assert.is_nil(message:find("Command:", 1, true))
      assert.is_truthy(message:find('cannot write "q:' .. name, 1, true))
      assert.equal(0, #events:commands())
      assert.is_nil(listed(name))
    end)

  it("need a command of one line whose name is ours", function()
    local name = events:name()
    for text, why in pairs {
      ["p:mine/made " .. place()] = "has a name that does not say whose it is",
      ["p:luatrace_1_2/made " .. place()] = "has a name that does not say whose it is",
      ["s:latency u64 lat"] = "has a name that does not say whose it is",
      ["p " .. place()] = "does not name a group and an event",
      ["p:" .. name .. " " .. place()] = "does not name a group and an event",
      ["p:" .. name .. "/ " .. place()] = "does not name a group and an event",
      ["-:" .. name .. "/made"] = "does not name a group and an event",
      [""] = "does not name a group and an event",
      ["p:" .. name .. "/made " .. place() .. "\np:a/b " .. place()] = "has more than one line",
      ["p:" .. name .. "/made /a#b:0x0"] = "has a '#', which begins a comment",
      ["p:" .. name .. "/made " .. ("x"):rep(4090)] = "is longer than the 4094 bytes",
    } do
      local ok, message, errno = events:add(text)
      assert.is_nil(ok)
      assert.equal(EINVAL, errno)
      assert.is_truthy(message:find(why, 1, true), message)
    end
    assert.has_error(function() events:add("p:a\0b") end)
  end)

  it("that are turned on are busy: it says where", function()
    local name = events:name()
    assert(events:add(("p:%s/made %s"):format(name, "/nosuch:0x0")) == nil)
    local instance <close> = assert(core.instance_create(dir))
    -- The start of the program's own code: it is not run while this test lasts.
    local program = helper.program("support/load")
    local status, entry = helper.execute { "sh", "-c",
      "readelf -h \"$0\" | sed -n 's/.*Entry point address: *0x//p'", program }
    assert.equal(0, status)
    assert(events:add(("p:%s/made %s:0x%s"):format(name, program, (entry:gsub("%s", "")))))
    local on, why = instance:enable(name, "made")
    if not on then
      pending("uprobes cannot be turned on here: " .. why)
    end
    local ok, message, errno = events:close()
    assert.is_nil(ok)
    assert.equal(EBUSY, errno)
    assert.is_truthy(message:find(("it is in use: the instance %s."):format(instance:name()), 1,
      true), message)
    assert.is_truthy(listed(name))
    assert(instance:destroy())
    assert.is_true(events:close())
    assert.is_nil(listed(name))
  end)

  it("have no file below a directory that is no tracefs", function()
    local other = core.dynevents(helper.tmpdir())
    local ok, message, errno = other:add(("p:%s/made %s"):format(other:name(), place()))
    assert.is_nil(ok)
    assert.equal(ENOENT, errno)
    assert.is_truthy(message:find("no dynamic events in this kernel", 1, true), message)
    local absent = core.dynevents("/nosuch")
    message = select(2, absent:add(("p:%s/made %s"):format(absent:name(), place())))
    assert.is_truthy(message:find("/nosuch", 1, true), message)
  end)

  it("of a session go with it; after SIGKILL the next session removes them", function()
    local script = helper.tmpdir() .. "/hold.lua"
    local fifo = helper.tmpdir() .. "/fifo"
    assert.equal(0, (helper.execute { "mkfifo", fifo }))
    helper.write_file(script, ([[
      local core = require "tracefs.core"
      local events = core.dynevents(%q)
      local name = events:name()
      assert(events:add(("p:%%s/made %%s"):format(name, %q)))
      print(name)
      io.stdout:flush()
      io.open(...)
    ]]):format(dir, place()))
    local process = helper.start {
      helper.interpreter, script, fifo,
      env = { LUA_PATH = package.path, LUA_CPATH = package.cpath },
    }
    process:expect("\n")
    local name = process:output():match("[^\n]+")
    assert.matches(("^luatrace_%d_%%d+_1$"):format(process.pid), name)
    core.remove_stale_dynevents(dir)
    assert.is_truthy(listed(name))
    process:kill("KILL")
    process:wait()
    assert.is_truthy(listed(name))
    local status, _, err = helper.run_lua('require("tracefs").session():close()')
    assert.same({ 0, "" }, { status, err })
    assert.is_nil(listed(name))
  end)

  it("of dead processes are found in every form that the kernel lists", function()
    local place_dir = helper.tmpdir()
    local dead = "luatrace_2147483646_5_1"
    -- What removing them writes goes to the end of this file: no kernel acts on it.
    helper.write_file(place_dir .. "/dynamic_events", ([[
p:kprobes/theirs do_sys_openat2
p:DEAD/one do_sys_openat2 name="+0(%%si):ustring"
r16:DEAD/two vfs_read
s:synthetic/DEAD_latency	u64 lat; pid_t pid;
s:synthetic/latency	u64 lat
u:user_event u32 count
e:DEAD/three sched.sched_switch
p:luatrace_x/four vfs_read
p:luatrace_2147483646_5/five vfs_read
p:luatrace_%d_0_1/six vfs_read
]]):format(helper.pid):gsub("DEAD", dead))
    assert.equal(4, core.remove_stale_dynevents(place_dir))
    local written = helper.read_file(place_dir .. "/dynamic_events"):match("six vfs_read\n(.*)$")
    assert.equal(("-:DEAD/three-:synthetic/DEAD_latency-:DEAD/two-:DEAD/one"):gsub("DEAD", dead),
      written)
  end)
end)
