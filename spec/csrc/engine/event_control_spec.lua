local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT, EINVAL = 2, 22

describe("one event of an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function contains(text, part)
    assert.truthy(text:find(part, 1, true), ("%q is not in %q"):format(part, text))
  end

  it("is enabled and disabled alone", function()
    assert.is_false(instance:is_enabled("sched", "sched_switch"))
    assert(instance:enable("sched", "sched_switch"))
    assert.is_true(instance:is_enabled("sched", "sched_switch"))
    assert.is_false(instance:is_enabled("sched", "sched_waking"))
    assert.equal("sched:sched_switch\n", instance:read("set_event"))
    assert(instance:disable("sched", "sched_switch"))
    assert.is_false(instance:is_enabled("sched", "sched_switch"))
    assert.equal("", instance:read("set_event"))
  end)

  it("is not enabled while a trigger only waits to do so", function()
    assert(instance:write("events/sched/sched_waking/trigger",
      "enable_event:sched:sched_switch if pid == 999999"))
    assert.equal("0*\n", instance:read("events/sched/sched_switch/enable"))
    assert.is_false(instance:is_enabled("sched", "sched_switch"))
    assert(instance:enable("sched", "sched_switch"))
    assert.is_true(instance:is_enabled("sched", "sched_switch"))
    assert(instance:write("events/sched/sched_waking/trigger", "!enable_event:sched:sched_switch"))
  end)

  it("is not there: the system or the event", function()
    for _, call in ipairs { "enable", "disable", "is_enabled", "get_filter", "clear_filter" } do
      local value, message, errno = instance[call](instance, "sched", "nosuch")
      assert.is_nil(value)
      assert.equal(ENOENT, errno)
      contains(message, ("no event sched:nosuch: the event system sched has no such event "
        .. "(%s/events/sched)"):format(instance:dir()))
      value, message, errno = instance[call](instance, "nosuch", "event")
      assert.is_nil(value)
      assert.equal(ENOENT, errno)
      contains(message, ("no event nosuch:event: there is no event system nosuch in %s/events "
        .. "(a module"):format(instance:dir()))
    end
  end)

  it("has a name, not a path or a pattern", function()
    for _, case in ipairs {
      { "..", "sched" }, { "sched", ".." }, { "sched", "" }, { "", "" }, { "sched", "." },
      { "sched/sched_switch", "." }, { "sched", "../irq/softirq_entry" }, { "sched", "*" },
      { "s*", "sched_switch" }, { "[", "[" },
    } do
      local done, message, errno = instance:enable(case[1], case[2])
      assert.is_nil(done)
      assert.equal(ENOENT, errno)
      contains(message, ("no event %s:%s"):format(case[1], case[2]))
    end
    assert.equal("", instance:read("set_event"))
  end)

  it("may be one of the tracer's own, that cannot be enabled", function()
    local done, message, errno = instance:enable("ftrace", "print")
    assert.is_nil(done)
    assert.equal(ENOENT, errno)
    contains(message, "the event ftrace:print has no enable")
    contains(message, "one of the tracer's own")
  end)

  describe("has a filter", function()
    it("that can be set, read, replaced and cleared", function()
      assert.is_nil(instance:get_filter("sched", "sched_switch"))
      for _, filter in ipairs {
        "prev_pid == 1",
        'prev_comm == "tmux: client" || prev_comm ~ "trc*.sh"',
        "prev_pid == 0x10 && !(next_prio > 100)",
        'prev_comm == "ends in &&"',
      } do
        assert.is_true(instance:set_filter("sched", "sched_switch", filter))
        assert.equal(filter, instance:get_filter("sched", "sched_switch"))
        assert.equal(filter .. "\n", helper.read_file(
          instance:dir() .. "/events/sched/sched_switch/filter"))
      end
      assert.is_true(instance:clear_filter("sched", "sched_switch"))
      assert.is_nil(instance:get_filter("sched", "sched_switch"))
    end)

    -- What the kernel's error_log says, and the column of its caret in the filter.
    for _, case in ipairs {
      { "prev_pid > ", "Invalid value (did you forget quotes)?", 10 },
      { "nosuch == 1", "Field not found", 7 },
      { "prev_comm == 5", "Expecting string field", 14 },
      { 'prev_pid ~ "a*"', "Expecting numeric field", 12 },
      { 'prev_comm == "unterminated', "Missing matching quote", 13 },
      { "(prev_pid == 1", "Too many '('", 0 },
      { "prev_pid == 1)", "Too few '('", 13 },
      { "prev_pid == 99999999999999999999", "Illegal integer value", 13 },
      { "prev_pid", "Invalid operator", 8 },
    } do
      it(("and %s is refused with the kernel's line"):format(case[1]), function()
        assert(instance:set_filter("sched", "sched_switch", "prev_pid == 7"))
        local done, message, errno = instance:set_filter("sched", "sched_switch", case[1])
        assert.is_nil(done)
        assert.equal(EINVAL, errno)
        local file = instance:dir() .. "/events/sched/sched_switch/filter"
        contains(message, ("cannot set the filter of sched:sched_switch (%s): the kernel says:\n")
          :format(file))
        contains(message, case[2])
        contains(message, ("\n  Command: %s\n"):format(case[1]:gsub(" $", "")))
        local caret = #(message:match("\n( +)%^"))
        -- Kernels differ by one in where they point.
        assert.is_true(math.abs(caret - #"  Command: " - case[3]) <= 1, message)
        assert.falsy(message:find("%[ *%d+%.%d+%]"), "the log's timestamp")
        assert.equal("prev_pid == 7", instance:get_filter("sched", "sched_switch"))
      end)
    end

    it("and one over several lines is shown on one, above its caret", function()
      local filter = 'prev_comm != "a\tb" &&\n\tprev_pid == 1'
      assert(instance:set_filter("sched", "sched_switch", filter))
      assert.equal('prev_comm != "a\tb" &&  prev_pid == 1',
        instance:get_filter("sched", "sched_switch"))
      local _, message = instance:set_filter("sched", "sched_switch",
        "prev_pid == 1 &&\n\tnosuch == 2")
      local caret = #(message:match("\n  Command: prev_pid == 1 &&  nosuch == 2\n( +)%^"))
      assert.is_true(math.abs(caret - #"  Command: prev_pid == 1 &&  nosuch ") <= 1, message)
    end)

    it("and an unknown field is refused with the fields that there are", function()
      local done, message = instance:set_filter("sched", "sched_switch", "nosuch == 1")
      assert.is_nil(done)
      contains(message, "\nIts fields are: prev_comm, prev_pid, prev_prio, prev_state, next_comm, "
        .. "next_pid, next_prio; and common_pid, CPU, COMM")
      done, message = instance:set_filter("irq", "irq_handler_entry", "nosuch == 1")
      assert.is_nil(done)
      contains(message, "\nIts fields are: irq, name; and ")
    end)

    for _, filter in ipairs {
      "prev_pid == 1 &&", "prev_pid == 1 || ", "prev_pid == 1 && !", "prev_pid == 1 &&\n",
    } do
      it(("and %q, which the kernel may take, is refused"):format(filter), function()
        assert(instance:set_filter("sched", "sched_switch", "prev_pid == 7"))
        local done, message, errno = instance:set_filter("sched", "sched_switch", filter)
        assert.is_nil(done)
        assert.equal(EINVAL, errno)
        contains(message, "bad filter for sched:sched_switch: a condition is missing at its end")
        contains(message, ("\n  Command: %s\n%s^"):format(filter:sub(1, 16), (" "):rep(11 + 16)))
        assert.equal("prev_pid == 7", instance:get_filter("sched", "sched_switch"))
      end)
    end

    it("and a refused one leaves none where there was none", function()
      assert.is_nil((instance:set_filter("sched", "sched_switch", "nosuch == 1")))
      assert.is_nil(instance:get_filter("sched", "sched_switch"))
      assert.equal("none\n", instance:read("events/sched/sched_switch/filter"))
    end)

    it("and a stale entry of the log is not shown", function()
      assert.is_nil((instance:set_filter("sched", "sched_switch", "nosuch == 1")))
      local _, message = instance:set_filter("sched", "sched_switch", "(prev_pid == 1")
      assert.falsy(message:find("Field not found", 1, true), message)
      local _, count = message:gsub("Command:", "")
      assert.equal(1, count)
    end)

    it("and one that is too long says how long it may be", function()
      local filter = "prev_pid == 1" .. (" || prev_pid == 1"):rep(1000)
      local done, message, errno = instance:set_filter("sched", "sched_switch", filter)
      assert.is_nil(done)
      assert.equal(EINVAL, errno)
      assert.truthy(message:find(("it has %d bytes, and the kernel takes %%d+%%."):format(#filter)),
        message)
    end)

    it("left by a failure of others does not count as one", function()
      local file <close> = assert(io.open(instance:dir() .. "/events/sched/sched_switch/filter",
        "w"))
      file:setvbuf("no")
      assert.is_nil((file:write("nosuch == 1")))
      contains(instance:read("events/sched/sched_switch/filter"), "parse_error: ")
      assert.is_nil(instance:get_filter("sched", "sched_switch"))
    end)
  end)
end)
