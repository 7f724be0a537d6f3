local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT, EEXIST, EINVAL = 2, 17, 22

describe("the triggers of an event", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function contains(text, ...)
    for _, part in ipairs { ... } do
      assert.truthy(text:find(part, 1, true), ("%q is not in %q"):format(part, text))
    end
  end

  local function refused(errno, ...)
    local done, message, code = instance:set_trigger("sched", "sched_waking", ...)
    assert.is_nil(done)
    assert.equal(errno, code, message)
    return message
  end

  it("are none at first", function()
    assert.same({}, instance:triggers("sched", "sched_waking"))
  end)

  it("have the commands that the kernel's file names", function()
    local text = instance:read("events/sched/sched_waking/trigger")
    assert.equal(text:match("^# Available triggers:\n# ([^\n]*)"),
      table.concat(instance:trigger_commands(), " "))
    -- also when the first events have triggers, whose files do not name them
    assert(instance:set_trigger("sched", "sched_waking", "traceoff"))
    assert.equal("traceon", instance:trigger_commands()[1])
  end)

  it("are set, listed as the kernel lists them, and removed one by one", function()
    for _, text in ipairs {
      "traceoff:3 if pid == 7", "stacktrace", "enable_event:irq:softirq_entry:2 if pid == 99",
      "enable_event:irq:softirq_exit", "disable_event:irq:softirq_raise",
    } do
      assert.is_true(instance:set_trigger("sched", "sched_waking", text))
    end
    local list = instance:triggers("sched", "sched_waking")
    table.sort(list)
    assert.same({
      "disable_event:irq:softirq_raise:unlimited",
      "enable_event:irq:softirq_entry:count=2 if pid == 99",
      "enable_event:irq:softirq_exit:unlimited",
      "stacktrace:unlimited",
      "traceoff:count=3 if pid == 7",
    }, list)
    -- as listed, as set, without count or condition, with the kernel's own "!"
    for i, text in ipairs {
      "disable_event:irq:softirq_raise:unlimited", "enable_event:irq:softirq_entry:2 if pid == 99",
      "enable_event:irq:softirq_exit", "!stacktrace", "traceoff",
    } do
      assert.is_true(instance:remove_trigger("sched", "sched_waking", text))
      assert.equal(5 - i, #instance:triggers("sched", "sched_waking"))
    end
  end)

  it("do what they say, as often as they say", function()
    assert(instance:set_trigger("sched", "sched_process_fork",
      ("enable_event:sched:sched_process_exit if common_pid == %d"):format(helper.pid)))
    assert(instance:set_trigger("sched", "sched_process_exec", "traceoff:1 if pid == 1"))
    assert.is_false(instance:is_enabled("sched", "sched_process_exit"))
    assert(instance:trace_on())
    assert(os.execute("true"))
    assert.is_true(instance:trace_is_on())
    assert.is_true(instance:is_enabled("sched", "sched_process_exit"))
    contains(instance:read("trace"), "sched_process_exit: comm=")
    assert(instance:remove_trigger("sched", "sched_process_exec", "traceoff"))
    assert(instance:set_trigger("sched", "sched_process_exec", "traceoff:1"))
    assert(os.execute("true"))
    assert.is_false(instance:trace_is_on())
    assert.same({ "traceoff:count=0" }, instance:triggers("sched", "sched_process_exec"))
    assert(instance:trace_on())
    assert(os.execute("true"))
    assert.is_true(instance:trace_is_on())
  end)

  it("that are not there cannot be removed, and nothing else goes instead of them", function()
    assert(instance:set_trigger("sched", "sched_waking", "traceoff"))
    assert(instance:set_trigger("sched", "sched_waking", "enable_event:irq:softirq_entry"))
    for _, text in ipairs {
      "traceon", "stacktrace", "enable_event:irq:softirq_exit", "disable_event:irq:softirq_entry",
      "bogus", "enable_event",
    } do
      local done, message, errno = instance:remove_trigger("sched", "sched_waking", text)
      assert.is_nil(done)
      assert.equal(ENOENT, errno)
      contains(message, ("sched:sched_waking has no trigger %q"):format(text), "It has:\n",
        "traceoff:unlimited", "enable_event:irq:softirq_entry:unlimited")
    end
    assert.equal(2, #instance:triggers("sched", "sched_waking"))
    assert(instance:clear_triggers("sched", "sched_waking"))
    assert.same({}, instance:triggers("sched", "sched_waking"))
    local _, message = instance:remove_trigger("sched", "sched_waking", "traceoff")
    contains(message, "It has none")
    assert(instance:clear_triggers("sched", "sched_waking"))
  end)

  it("with an unknown command are refused with those that there are", function()
    local message = refused(EINVAL, "tracoff:3")
    contains(message, 'cannot set the trigger "tracoff:3" of sched:sched_waking ('
      .. instance:dir() .. "/events/sched/sched_waking/trigger)",
      'this kernel has no trigger command "tracoff". Did you mean traceoff', "It has: "
      .. table.concat(instance:trigger_commands(), " "))
  end)

  it("of an event that is not there, or on one, say which", function()
    contains(refused(EINVAL, "enable_event:nosuch:event"), "there is no event nosuch:event")
    contains(refused(EINVAL, "enable_event:sched:nosuch:3"), "there is no event sched:nosuch")
    contains(refused(EINVAL, "disable_event"),
      "disable_event wants an event: disable_event:SYSTEM:EVENT[:COUNT]")
    contains(refused(EINVAL, "traceoff:x"), "the form is COMMAND[:ARGUMENTS][:COUNT] [if FILTER]")
    local done, message, errno = instance:set_trigger("sched", "nosuch", "traceoff")
    assert.is_nil(done)
    assert.equal(ENOENT, errno)
    contains(message, "no event sched:nosuch: the event system sched has no such event")
    for _, call in ipairs { "remove_trigger", "clear_triggers", "triggers" } do
      done, message, errno = instance[call](instance, "nosuch", "event", "traceoff")
      assert.same({ nil, ENOENT }, { done, errno })
      contains(message, "no event nosuch:event")
    end
  end)

  it("that are a second one of their kind show the first", function()
    assert(instance:set_trigger("sched", "sched_waking", "traceoff:3"))
    contains(refused(EEXIST, "traceon"), "the event has one of this kind; remove it first",
      "It has:\ntraceoff:count=3")
    contains(refused(EEXIST, "traceoff"), "It has:\ntraceoff:count=3")
  end)

  it("with a bad condition show the kernel's line with its caret, and never a stale one", function()
    local message = refused(EINVAL, "traceoff if nosuch == 1")
    contains(message, "the kernel says:\n", "Field not found", "  Command: nosuch == 1\n"
      .. (" "):rep(18) .. "^", "\nIts fields are: comm, pid, prio,")
    message = refused(EINVAL, "traceoff if pid == ")
    assert.falsy(message:find("Field not found", 1, true), message)
    contains(message, "  Command: pid ==")
    message = refused(EINVAL, "bogus")
    assert.falsy(message:find("Command:", 1, true), message)
    assert.same({}, instance:triggers("sched", "sched_waking"))
  end)

  it("may be written over several lines", function()
    assert(instance:set_trigger("sched", "sched_waking",
      " traceoff:2\n  if pid == 7 &&\n prio > 3"))
    contains(instance:triggers("sched", "sched_waking")[1], "traceoff:count=2 if pid == 7")
  end)

  it("are no empty text, no removal, and not too long", function()
    contains(refused(EINVAL, " "), "bad trigger for sched:sched_waking: it is empty")
    contains(refused(EINVAL, "!traceoff"), "remove_trigger does that")
    contains(refused(EINVAL, "traceoff if pid == 1" .. (" || pid == 1"):rep(1000)),
      "bytes, and the kernel takes ")
  end)

  it("that take snapshots are refused while a session reads the instance", function()
    local tracefs = require "tracefs"
    local session <close> = tracefs.session { buffer_kb = 64 }
    for _, text in ipairs { "snapshot:1", "hist:keys=pid:onmax($x).snapshot()" } do
      local done, message = session.instance:set_trigger("sched", "sched_waking", text)
      assert.is_nil(done)
      contains(message, "cannot have a trigger take snapshots", "a session is reading it")
    end
  end)

  it("go away with the instance, and hold nothing", function()
    local other = assert(core.instance_create(dir))
    local gone = other:dir()
    assert(other:set_trigger("sched", "sched_waking", "enable_event:irq:softirq_entry"))
    assert(other:set_trigger("irq", "softirq_exit", "traceoff:5"))
    -- behind the instance's back, as a shell would
    assert(other:append("events/sched/sched_switch/trigger", "stacktrace"))
    assert(other:destroy())
    assert.falsy(helper.read_file(gone .. "/tracing_on"))
  end)
end)
