local helper = require "spec.support.helper"
local core = require "tracefs.core"

local EINVAL, EISDIR, ENOENT, EBUSY = 22, 21, 2, 16

describe("the files of an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function refused(value, message, errno)
    assert.is_nil(value)
    assert.is_string(message)
    return message, errno
  end

  it("are read whole, however long", function()
    assert(instance:set_buffer_kb(4096))
    assert(instance:trace_on())
    for i = 1, 10007 do
      assert(instance:marker(("line %d of a trace that is longer than a chunk"):format(i)))
    end
    assert(instance:trace_off())
    local text = instance:read("trace")
    assert.is_true(#text > 1000000)
    assert.equal(helper.read_file(instance:dir() .. "/trace"), text)
    local _, count = text:gsub("of a trace that is longer", "")
    assert.equal(10007, count)
  end)

  it("are read when they are empty", function()
    assert.equal("", instance:read("set_event"))
  end)

  it("never block: trace_pipe gives what is there", function()
    assert.equal("", instance:read("trace_pipe"))
    assert(instance:trace_on())
    assert(instance:marker("twenty-three"))
    local text = instance:read("trace_pipe")
    assert.truthy(text:find("tracing_mark_write: twenty-three\n", 1, true), text)
    assert.equal("", instance:read("trace_pipe"))
  end)

  it("are written as > does, or added to as >> does", function()
    assert(instance:write("set_event", "sched:sched_switch sched:sched_waking"))
    assert.equal("sched:sched_switch\nsched:sched_waking\n", instance:read("set_event"))
    assert(instance:append("set_event", "irq:softirq_entry\n"))
    local text = instance:read("set_event")
    for _, name in ipairs { "sched:sched_switch", "sched:sched_waking", "irq:softirq_entry" } do
      assert.truthy(text:find(name, 1, true), text)
    end
    assert(instance:write("set_event", "irq:softirq_exit"))
    assert.equal("irq:softirq_exit\n", instance:read("set_event"))
    assert(instance:write("set_event", ""))
    assert.equal("", instance:read("set_event"))
  end)

  it("that are not there say so", function()
    local message, errno = refused(instance:read("nosuch"))
    assert.equal(ENOENT, errno)
    assert.equal(("cannot read %s/nosuch: this kernel has no such file here"):format(
      instance:dir()), message)
    message, errno = refused(instance:write("nosuch/file", "value"))
    assert.equal(ENOENT, errno)
    assert.equal(('cannot write "value" to %s/nosuch/file: this kernel has no such file here')
      :format(instance:dir()), message)
    message, errno = refused(instance:read("events"))
    assert.equal(EISDIR, errno)
    assert.truthy(message:find("cannot read " .. instance:dir() .. "/events: ", 1, true), message)
  end)

  it("lie below its directory", function()
    for _, file in ipairs { "", "/etc/passwd", "../../trace", "a/../../b", "..", "events/.." } do
      local message, errno = refused(instance:read(file))
      assert.equal(EINVAL, errno)
      assert.truthy(message:find(('bad file name "%s"'):format(file), 1, true), message)
      assert.equal(EINVAL, select(2, refused(instance:write(file, "1"))))
      assert.equal(EINVAL, select(2, refused(instance:append(file, "1"))))
      assert.is_false(instance:has(file))
    end
  end)

  it("are there or not", function()
    assert.is_true(instance:has("trace_marker"))
    assert.is_true(instance:has("events/sched"))
    assert.is_false(instance:has("nosuch"))
    assert.is_false(instance:has("events/sched/nosuch"))
  end)

  it("refuse a value; the message shows it safely", function()
    local message, errno = refused(instance:write("current_tracer", "no\27[2Jsuch\n"))
    assert.equal(EINVAL, errno)
    assert.truthy(message:find([[cannot write "no\x1b[2Jsuch\n" to ]] .. instance:dir(), 1, true),
      message)
    message = refused(instance:write("current_tracer", ("long"):rep(100)))
    assert.truthy(message:find(('"%s..."'):format(("long"):rep(50)), 1, true), message)
  end)

  it("that are in use say by whom", function()
    local reader = helper.start {
      "sh", "-c", [[exec 3<"$1"; echo ready; exec sleep 30]], "sh",
      instance:dir() .. "/trace_pipe",
    }
    reader:expect("ready")
    local text, message, errno = instance:read("trace_pipe")
    reader:kill("KILL")
    reader:wait()
    -- Kernels before 6.5 let several read.
    if not text then
      assert.equal(EBUSY, errno)
      assert.truthy(message:find(("pid %d (sleep): trace_pipe"):format(reader.pid), 1, true),
        message)
    end
  end)

  it("show the kernel's reason for a refused trigger, and never an old one", function()
    local message, errno = refused(
      instance:write("events/sched/sched_switch/filter", 'prev_comm == "a'))
    assert.equal(EINVAL, errno)
    assert.truthy(message:find("the kernel says:\n", 1, true), message)
    assert.truthy(message:find('\n  Command: prev_comm == "a\n' .. (" "):rep(24) .. "^", 1, true),
      message)
    message, errno = refused(instance:write("events/sched/sched_switch/trigger", "bogus"))
    assert.equal(EINVAL, errno)
    assert.falsy(message:find("the kernel says", 1, true), message)
    assert.truthy(message:find('cannot write "bogus" to ', 1, true), message)
  end)
end)
