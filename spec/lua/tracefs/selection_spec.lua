local globals = require "spec.support.globals"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/selection_spec%.lua:%d+: "

describe("tracefs.selection", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.selection"))
  end)
end)

-- Every refusal names the script's line and leaves the session as it was.
local function refused(method, ...)
  local session <close> = tracefs.session()
  local arguments = table.pack(...)
  local ok, message = pcall(function()
    session[method](session, table.unpack(arguments, 1, arguments.n))
  end)
  assert.is_false(ok)
  assert.matches(HERE, message)
  assert.equal("", session.instance:read("set_event"))
  message = message:gsub(HERE, "")
  assert.is_nil(message:find("%.lua:%d"), message)
  return message
end

local function nothing() end

describe("session:on", function()
  it("and the other methods say so when they are called with a dot", function()
    local session <close> = tracefs.session()
    for _, name in ipairs { "on", "enable", "at_start", "at_end", "on_lost", "every" } do
      for _, first in ipairs { "sched:sched_switch", 1, nothing, {} } do
        local ok, message = pcall(function() session[name](first, nothing) end)
        assert.is_false(ok)
        assert.matches(HERE .. name .. " is a method: it is called with a colon, session:" .. name,
          message)
      end
    end
  end)

  it("wants a pattern, fields and a function", function()
    assert.matches("an event pattern is a string such as .*, not number", refused("on", 5, nothing))
    assert.matches("an event pattern is a string such as .*, not nil", refused("on", nil, nothing))
    assert.matches("^bad event pattern: it has a zero byte",
      refused("on", "sched:sched_switch\0", nothing))
    assert.matches("^bad filter: it has a zero byte",
      refused("on", "sched:sched_switch", { filter = "prev_pid == 1\0" }, nothing))
    assert.matches("the handler must be a function, not nil", refused("on", "sched:sched_switch"))
    assert.matches("the handler must be a function, not table",
      refused("on", "sched:sched_switch", {}))
    assert.matches("the handler must be a function, not string",
      refused("on", "sched:sched_switch", {}, "f"))
    assert.matches("the fields must be a table of names, not string",
      refused("on", "sched:sched_switch", "f", nothing))
    assert.matches("the fields must be a table of names, not nil",
      refused("on", "sched:sched_switch", nil, nothing))
  end)

  it("wants field names in a list, and filters that are strings", function()
    local event = "sched:sched_switch"
    assert.matches("field names are strings, not number", refused("on", event, { 5 }, nothing))
    assert.matches("number 1 of 1 is missing", refused("on", event, { [2] = "prev_pid" }, nothing))
    assert.matches("filter: a string .* is needed, not number",
      refused("on", event, { filter = 5 }, nothing))
    assert.matches("unknown option 'flter' of an event; there are: filter, sample, stack,",
      refused("on", event, { flter = "" }, nothing))
    local many = {}
    for i = 1, 65 do
      many[i] = "prev_pid"
    end
    assert.matches("65 fields: a handler gets at most 64", refused("on", event, many, nothing))
  end)

  it("names the event's fields when one is not there", function()
    local message = refused("on", "sched:sched_switch", { "prev_pid", "nosuch" }, nothing)
    assert.matches("^sched:sched_switch has no field 'nosuch'; it has: common_type, ", message)
    assert.matches(", prev_comm, .*, common_scale, common_stack, common_user_stack$", message)
    assert.matches("^raw_syscalls:sys_exit has no field 'args'",
      refused("on", "raw_syscalls:*", { "args" }, nothing))
  end)

  it("offers names that are near", function()
    assert.matches("sched:sched_switch", refused("on", "sched:sched_swich", nothing))
    assert.matches("%[", refused("on", "sched:[", nothing))
    assert.matches("empty", refused("on", "", nothing))
  end)

  it("shows what the kernel says of a filter", function()
    local message = refused("on", "sched:sched_switch", { filter = "prev_pid == " }, nothing)
    assert.matches("prev_pid ==", message)
    assert.matches("%^", message)
    assert.matches("nosuch",
      refused("on", "sched:sched_switch", { filter = "nosuch == 1" }, nothing))
  end)

  it("turns on all events of a pattern or none", function()
    local session <close> = tracefs.session()
    session:on("raw_syscalls:sys_exit", nothing)
    -- sys_enter has no field ret
    local ok = pcall(session.on, session, "raw_syscalls:*", { filter = "ret == 1" }, nothing)
    assert.is_false(ok)
    assert.equal("raw_syscalls:sys_exit\n", session.instance:read("set_event"))
    assert.is_nil(session.instance:get_filter("raw_syscalls", "sys_enter"))
    assert.is_nil(session.instance:get_filter("raw_syscalls", "sys_exit"))
    ok = pcall(session.enable, session, "sched:sched_*", { filter = "prev_pid == 1" })
    assert.is_false(ok)
    assert.equal("raw_syscalls:sys_exit\n", session.instance:read("set_event"))
    -- What was taken back can be asked for again.
    assert.equal(1, session:on("raw_syscalls:sys_enter", { filter = "id == 1" }, nothing))
    assert.equal("id == 1", session.instance:get_filter("raw_syscalls", "sys_enter"))
  end)

  it("refuses a second filter for an event", function()
    local session <close> = tracefs.session()
    session:on("raw_syscalls:sys_enter", { filter = "id == 1" }, nothing)
    session:on("raw_syscalls:sys_enter", { "id", filter = "id == 1" }, nothing)
    session:on("raw_syscalls:sys_exit", nothing)
    local function message_of(...)
      local ok, message = pcall(session.on, session, ...)
      assert.is_false(ok)
      return message
    end
    assert.matches("is on already with the filter 'id == 1'",
      message_of("raw_syscalls:sys_enter", { filter = "id == 2" }, nothing))
    assert.matches("is on already with the filter 'id == 1': ask for it with the same filter",
      message_of("raw_syscalls:sys_enter", nothing))
    assert.matches("is on already with no filter",
      message_of("raw_syscalls:sys_exit", { filter = "id == 1" }, nothing))
    assert.equal("id == 1", session.instance:get_filter("raw_syscalls", "sys_enter"))
  end)

  it("says how many events a pattern meant, and turns them on", function()
    local session <close> = tracefs.session()
    assert.equal(1, session:on("sched:sched_switch", nothing))
    assert.equal(2, session:on("raw_syscalls:*", nothing))
    assert.equal(1, session:on("sched_waking", nothing))
    local on = {}
    for label in session.instance:read("set_event"):gmatch("[^\n]+") do
      on[#on + 1] = label
    end
    table.sort(on)
    assert.same({ "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "sched:sched_switch",
      "sched:sched_waking" }, on)
  end)

  it("is refused when the session is closed", function()
    local session = tracefs.session()
    session:close()
    for _, method in ipairs({ "on", "enable" }) do
      local ok, message = pcall(function()
        session[method](session, "sched:sched_switch", method == "on" and nothing or nil)
      end)
      assert.is_false(ok)
      assert.matches(HERE .. "the session is closed$", message)
    end
  end)
end)

describe("session:enable", function()
  it("wants a pattern and options", function()
    assert.matches("an event pattern is a string", refused("enable", {}))
    assert.matches("the options must be a table, not string",
      refused("enable", "sched:sched_switch", "prev_pid == 1"))
    assert.matches("field names belong to on%(%)",
      refused("enable", "sched:sched_switch", { "prev_pid" }))
    assert.matches("unknown option 'x'", refused("enable", "sched:sched_switch", { x = 1 }))
  end)

  it("turns events on for the loop", function()
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    assert.equal(1, session:enable(loads.SYSCALL, { filter = filter }))
    session:start()
    loads.run({ "syscalls", 23, "--nr", nr })
    session:finish()
    local count = 0
    for ev in session:events() do
      count = count + 1
      assert.equal(nr, ev.id)
      assert.equal(count, ev.args[1])
      assert.equal(loads.SYSCALL, ev.common_event)
    end
    assert.equal(23, count)
  end)
end)

describe("handlers", function()
  -- A session that has seen N numbered system calls.
  local function run(count, prepare)
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    prepare(session, filter, nr)
    session:at_start(function()
      loads.run({ "syscalls", count, "--nr", nr })
      session:finish()
    end)
    local stats = session:run()
    assert.equal(0, stats.lost)
    return stats
  end

  it("get records", function()
    local seen = {}
    local stats = run(101, function(session, filter)
      session:on(loads.SYSCALL, { filter = filter }, function(ev, ...)
        assert.equal(0, select("#", ...))
        seen[#seen + 1] = ev.args[1]
      end)
    end)
    assert.equal(101, stats.delivered)
    for i = 1, 101 do
      assert.equal(i, seen[i])
    end
  end)

  it("get values in the order that was asked for, the common ones too", function()
    local count = 0
    run(23, function(session, filter, nr)
      local record
      session:on(loads.SYSCALL, { filter = filter }, function(ev)
        record = ev
      end)
      session:on(loads.SYSCALL, {
        "args", "common_timestamp", "id", "common_cpu", "common_pid", "common_comm", "common_event",
        "common_late", "common_type", "id", filter = filter,
      }, function(...)
        count = count + 1
        assert.equal(10, select("#", ...))
        local args, ts, id, cpu, pid, comm, event, late, type, again = ...
        assert.same(record.args, args)
        assert.same({ record.common_timestamp, nr, record.common_cpu, record.common_pid },
          { ts, id, cpu, pid })
        assert.same({ "load-calls", loads.SYSCALL }, { comm, event })
        assert.is_nil(late)
        assert.same({ record.common_type, nr }, { type, again })
      end)
    end)
    assert.equal(23, count)
  end)

  it("get 64 values", function()
    local got
    run(1, function(session, filter, nr)
      local fields = { filter = filter }
      for i = 1, 64 do
        fields[i] = i % 2 == 0 and "id" or "common_event"
      end
      session:on(loads.SYSCALL, fields, function(...)
        got = table.pack(...)
        assert.equal(nr, got[64])
      end)
    end)
    assert.equal(64, got.n)
    assert.equal(loads.SYSCALL, got[63])
  end)

  it("are called in the order in which they came, all with one record", function()
    local order, records = {}, {}
    run(2, function(session, filter)
      for i = 1, 7 do
        session:on(loads.SYSCALL, { i % 3 == 0 and "id" or nil, filter = filter }, function(ev)
          order[#order + 1] = i
          if i % 3 ~= 0 then
            records[#records + 1] = ev
          end
        end)
      end
    end)
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7 }, order)
    for i = 2, 5 do
      assert.equal(records[1], records[i])
    end
    assert.not_equal(records[1], records[6])
  end)

  it("may add handlers, whose turn comes with the same record", function()
    local first, second = 0, 0
    run(5, function(session, filter)
      session:on(loads.SYSCALL, { filter = filter }, function()
        first = first + 1
        if first == 3 then
          for _ = 1, 10 do
            session:on(loads.SYSCALL, { "id", filter = filter }, function()
              second = second + 1
            end)
          end
        end
      end)
    end)
    assert.equal(5, first)
    assert.equal(30, second)
  end)

  it("hear of a whole system", function()
    local counts = {}
    run(11, function(session, _, nr)
      session:on("raw_syscalls:*", { filter = "id == " .. nr }, function(ev)
        counts[ev.common_event] = (counts[ev.common_event] or 0) + 1
      end)
    end)
    assert.same({ ["raw_syscalls:sys_enter"] = 11, ["raw_syscalls:sys_exit"] = 11 }, counts)
  end)

  it("get ftrace's own events, which come without being turned on", function()
    local session <close> = tracefs.session()
    local texts = {}
    session:on("ftrace:print", function(ev)
      texts[#texts + 1] = ev.buf
    end)
    session:on("ftrace:print", { "buf" }, function(buf)
      texts[#texts + 1] = buf
    end)
    session:start()
    session:marker("one")
    session.instance:marker("two")
    session:finish()
    session:run()
    assert.same({ "one\n", "one\n", "two\n", "two\n" }, texts)
  end)

  it("and the loop get what was turned on beside the session", function()
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    assert(session.instance:set_filter("raw_syscalls", "sys_enter", filter))
    assert(session.instance:set_filter("raw_syscalls", "sys_exit", filter))
    assert(session.instance:enable("raw_syscalls", "sys_enter"))
    assert(session.instance:append("set_event", "raw_syscalls:sys_exit"))
    session:start()
    loads.run({ "syscalls", 23, "--nr", nr })
    session:finish()
    local counts = {}
    for ev in session:events() do
      counts[ev.common_event] = (counts[ev.common_event] or 0) + 1
    end
    assert.same({ ["raw_syscalls:sys_enter"] = 23, ["raw_syscalls:sys_exit"] = 23 }, counts)
  end)

  it("and the loop get ftrace's own events without asking", function()
    local session <close> = tracefs.session()
    session:start()
    session:marker("three")
    session:finish()
    local seen = {}
    for ev in session:events() do
      seen[#seen + 1] = ev.common_event .. " " .. ev.buf
    end
    assert.same({ "ftrace:print three\n" }, seen)
  end)
end)
