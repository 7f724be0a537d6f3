local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

describe("tracefs.stacks", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.stacks"))
  end)
end)

local function nothing() end

-- The events of a load that nobody else makes, with what the choice asks for.
local function run(choice, count, handler, options)
  local session <close> = tracefs.session(options)
  local nr, filter = loads.fresh_nr()
  choice.filter = filter
  session:on(loads.SYSCALL, choice, handler)
  local _, stats = loads.run_session(session, { "--nr", nr, "syscalls", count })
  assert.equal(0, stats.lost)
  return stats
end

describe("an event with its stack", function()
  if not tracefs.features().trigger_stacktrace then
    pending "the kernel has no trigger stacktrace"
    return
  end

  it("has it in each of 997 records, and in values", function()
    local records, values = 0, 0
    run({ stack = true }, 997, function(ev)
      records = records + 1
      local stack = assert(ev.common_stack)
      assert.truthy(stack:find("syscall", 1, true), stack)
      assert.is_nil(stack:find("trace_event_raw", 1, true))
      assert.is_nil(ev.common_user_stack)
    end)
    assert.equal(997, records)
    run({ "common_stack", "id" }, 499, function(stack)
      values = values + 1
      assert.truthy(stack:find("syscall", 1, true), stack)
    end)
    assert.equal(499, values)
  end)

  it("counts the stack as a record", function()
    local stats = run({ stack = true }, 23, nothing)
    assert.equal(46, stats.delivered)
    assert.equal(46, stats.produced)
    stats = run({}, 23, nothing)
    assert.equal(23, stats.delivered)
  end)

  it("costs nothing where it was not asked for", function()
    local session <close> = tracefs.session {}
    local switches = 0
    local nr, filter = loads.fresh_nr()
    session:on(loads.SYSCALL, { stack = true, filter = filter }, nothing)
    session:on("raw_syscalls:sys_exit", { filter = filter }, function(ev)
      switches = switches + 1
      assert.is_nil(ev.common_stack)
      for name in pairs(ev) do
        assert.is_nil(name:find("stack"))
      end
    end)
    assert.same({}, session.instance:triggers("raw_syscalls", "sys_exit"))
    assert.equal(1, #session.instance:triggers("raw_syscalls", "sys_enter"))
    assert.truthy(session.instance:triggers("raw_syscalls", "sys_enter")[1]:find(filter, 1, true))
    loads.run_session(session, { "--nr", nr, "syscalls", 23 })
    assert.equal(23, switches)
  end)

  it("is the loop's, too, without records of stacks", function()
    local session <close> = tracefs.session {}
    local nr, filter = loads.fresh_nr()
    session:enable(loads.SYSCALL, { stack = true, filter = filter })
    local load, seen = nil, 0
    session:at_start(function() load = loads.start { "--nr", nr, "syscalls", 23 } end)
    session:every(0.05, function()
      if load:ended() then
        session:finish()
      end
    end)
    for ev in session:events() do
      seen = seen + 1
      assert.equal(loads.SYSCALL, ev.common_event)
      assert.truthy(ev.common_stack)
    end
    load:wait()
    assert.equal(23, seen)
  end)

  it("takes it along in a pair", function()
    local session <close> = tracefs.session {}
    local nr, filter = loads.fresh_nr()
    local matches = 0
    session:pair {
      start = { event = loads.SYSCALL, filter = filter },
      stop = { event = "raw_syscalls:sys_exit", filter = filter, stack = true },
      key = "common_pid", carry = { "common_stack" },
      on_match = function(_, _, start, stop)
        matches = matches + 1
        assert.truthy(start.common_stack:find("syscall", 1, true))
        assert.truthy(stop.common_stack:find("syscall", 1, true))
      end,
    }
    loads.run_session(session, { "--nr", nr, "syscalls", 97 })
    assert.equal(97, matches)
    local _, message = pcall(session.pair, session, {
      start = { event = loads.SYSCALL, stack = 1 }, stop = loads.SYSCALL, key = "id",
    })
    assert.matches("start: stack: true or false, not number", message)
  end)

  it("is the same in a recording", function()
    local path = helper.tmpdir() .. "/stacks.dat"
    local live, again = {}, {}
    do
      local session <close> = tracefs.session {}
      local nr, filter = loads.fresh_nr()
      session:record(path)
      session:on(loads.SYSCALL, { "common_timestamp", "common_stack", filter = filter },
        function(ts, stack) live[#live + 1] = { ts, stack } end)
      loads.run_session(session, { "--nr", nr, "syscalls", 101 })
    end
    local session <close> = tracefs.session { file = path }
    session:on(loads.SYSCALL, { "common_timestamp", "common_stack" }, function(ts, stack)
      again[#again + 1] = { ts, stack }
    end)
    session:run()
    assert.equal(101, #live)
    assert.same(live, again)
  end)

  it("lacks it only where records are lost", function()
    local session <close> = tracefs.session {
      buffer_kb = 64, subbuf_kb = tracefs.features().subbuf and 4 or nil, memory_mb = 1,
    }
    local nr, filter = loads.fresh_nr()
    local with, without, gaps = 0, 0, 0
    session:on(loads.SYSCALL, { "common_stack", filter = filter }, function(stack)
      if stack then
        with = with + 1
        assert.truthy(stack:find("syscall", 1, true), stack)
      else
        without = without + 1
      end
    end)
    session:on_lost(function() gaps = gaps + 1 end)
    local load
    session:at_start(function() load = loads.run { "--nr", nr, "syscalls", 4999 } end)
    session:every(0.05, function() session:finish() end)
    local stats = session:run()
    assert.equal(4999, load.calls)
    assert.is_true(stats.lost > 0 and gaps > 0)
    assert.equal(stats.produced, stats.delivered + stats.lost)
    assert.is_true(with > 0)
    assert.is_true(without <= gaps, ("%d without, %d gaps"):format(without, gaps))
  end)

  it("that does not fit is refused, and leaves nothing on", function()
    local session <close> = tracefs.session {}
    assert.matches("stack: true or false, not number",
      select(2, pcall(session.on, session, loads.SYSCALL, { stack = 1 }, nothing)))
    assert.matches("user_stack: true or false, not string",
      select(2, pcall(session.enable, session, loads.SYSCALL, { user_stack = "yes" })))
    local ok, message = pcall(session.on, session, "ftrace:raw_data", { stack = true }, nothing)
    assert.is_false(ok)
    assert.matches("stack: ", message)
    assert.equal("", session.instance:read("set_event"))
  end)

  it("is printed as the kernel does, and is part of JSON", function()
    local nr, filter = loads.fresh_nr()
    local code = ("on(%q, { stack = true, filter = %q })"):format(loads.SYSCALL, filter)
    local load = ("%s --nr %d syscalls 7 >&2"):format(
      helper.quote(helper.program "support/load"), nr)
    local status, out, err = helper.run { "-c", load, "-e", code, timeout = 60 }
    assert.equal(0, status, err)
    local _, stacks = out:gsub(": sys_enter: [^\n]*\n<stack trace>\n => [^\n]*syscall", "")
    assert.equal(7, stacks, out)
    status, out, err = helper.run { "-f", "json", "-c", load, "-e", code, timeout = 60 }
    assert.equal(0, status, err)
    local _, texts = out:gsub('"common_stack":"[^"]*;[^"]*"', "")
    assert.equal(7, texts, out)
  end)
end)

describe("an event with the program's stack", function()
  -- This process is there for certain when its stacks are looked at.
  it("has the names of functions", function()
    local session <close> = tracefs.session { own_events = true }
    if not session.instance:has("options/userstacktrace") then
      pending "the kernel does not record the stacks of programs"
      return
    end
    local named, seen = 0, 0
    session:on("raw_syscalls:sys_enter", {
      filter = "common_pid == " .. assert(tracefs.core.own_thread()),
      user_stack = true,
    }, function(ev)
      seen = seen + 1
      assert.is_nil(ev.common_stack)
      local last = ev.common_user_stack and ev.common_user_stack:match("[^;]*$")
      named = named + (last and last ~= "" and last:find("^[^%[]") and 1 or 0)
    end)
    session:at_start(function()
      for _ = 1, 23 do
        helper.read_file("/proc/self/stat")
      end
      session:finish()
    end)
    session:run()
    assert.is_true(seen >= 23, seen)
    assert.is_true(named >= 23, named)
  end)
end)
