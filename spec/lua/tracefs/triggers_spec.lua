local helper = require "spec.support.helper"
local tracefs = require "tracefs"

describe("a session's triggers", function()
  it("require without touching globals", function()
    local status, _, err = helper.run_lua [[
      setmetatable(_G, { __newindex = function(_, name) error("global " .. name) end })
      require "tracefs.triggers"
    ]]
    assert.same({ 0, "" }, { status, err })
  end)

  it("are given to all events of a pattern", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    assert.equal(2, session:trigger("irq:softirq_e*", "stacktrace:3 if vec == 99"))
    for _, name in ipairs { "softirq_entry", "softirq_exit" } do
      assert.same({ "stacktrace:count=3 if vec == 99" }, session.instance:triggers("irq", name))
    end
    assert.same({}, session.instance:triggers("irq", "softirq_raise"))
  end)

  it("are given to none when one is refused", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    assert(session.instance:set_trigger("irq", "softirq_exit", "traceon"))
    local ok, message = pcall(function()
      session:trigger("irq:softirq_e*", "traceoff")
    end)
    assert.is_false(ok)
    assert.matches("triggers_spec.lua:%d+: cannot set the trigger \"traceoff\" of irq:softirq_exit",
      message)
    assert.same({}, session.instance:triggers("irq", "softirq_entry"))
    assert.same({ "traceon:unlimited" }, session.instance:triggers("irq", "softirq_exit"))
  end)

  it("show the kernel's line with its caret at the script's line", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    local _, message = pcall(function()
      session:trigger("sched:sched_waking", "traceoff if nosuch == 1")
    end)
    assert.matches("triggers_spec.lua:%d+: ", message)
    assert.matches("Field not found\n  Command: nosuch == 1\n" .. (" "):rep(18) .. "^", message, 1,
      true)
  end)

  it("turn on events whose records the session gets", function()
    local session <close> = tracefs.session { buffer_kb = 256 }
    session:trigger("sched:sched_process_fork",
      ("enable_event:sched:sched_process_exit:1 if common_pid == %d"):format(helper.pid))
    session:at_start(function()
      os.execute("true")
      session:finish()
    end)
    local count = 0
    for ev in session:events() do
      assert.equal("sched:sched_process_exit", ev.common_event)
      count = count + 1
    end
    assert.is_true(count >= 1)
  end)

  it("record stacks that the session gets", function()
    if not tracefs.features().trigger_stacktrace then
      pending(select(2, tracefs.features()).trigger_stacktrace)
      return
    end
    local session <close> = tracefs.session { buffer_kb = 256 }
    session:trigger("sched:sched_process_exec", "stacktrace:1")
    session:at_start(function()
      os.execute("true")
      session:finish()
    end)
    local stacks = {}
    for ev in session:events() do
      stacks[#stacks + 1] = ev
    end
    assert.equal(1, #stacks)
    assert.equal("ftrace:kernel_stack", stacks[1].common_event)
    assert.is_true(#stacks[1].caller > 1)
  end)

  it("stop the recording at once", function()
    local session <close> = tracefs.session { buffer_kb = 256 }
    session:trigger("sched:sched_process_exec", "traceoff:1")
    session:at_start(function()
      os.execute("true")
      session:finish()
    end)
    session:run()
    assert.same({ "traceoff:count=0" },
      session.instance:triggers("sched", "sched_process_exec"))
  end)

  it("are a pattern and a text, given by a method", function()
    local session <close> = tracefs.session { buffer_kb = 64 }
    for _, arguments in ipairs { { 5, "traceoff" }, { "a\0", "traceoff" } } do
      assert.error_matches(function()
        session:trigger(table.unpack(arguments))
      end, "trigger%(event, text%): the event is a pattern")
    end
    assert.error_matches(function()
      session:trigger("sched:sched_waking", 5)
    end, "trigger%(event, text%): the text is a string")
    assert.error_matches(function()
      session.trigger("sched:sched_waking", "traceoff")
    end, "trigger is a method: it is called with a colon")
    assert.error_matches(function()
      session:trigger("sched:sched_wakin", "traceoff")
    end, "no event \"sched:sched_wakin\"")
    session:close()
    assert.error_matches(function()
      session:trigger("sched:sched_waking", "traceoff")
    end, "the session is closed")
  end)
end)
