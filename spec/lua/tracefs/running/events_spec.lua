local core = require "tracefs.core"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local markers = require "spec.support.markers"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/running/events_spec%.lua:%d+: "

describe("session:events", function()
  it("checks its options", function()
    local session <close> = tracefs.session()
    for _, case in ipairs({
      { 5, "events: the options must be a table, not number" },
      { { time = 1 }, "events: unknown option 'time'" },
      { { timeout = "1" }, "timeout: a number of seconds is needed, not 1" },
      { { duration = -1 }, "duration: a number of seconds is needed, not -1" },
    }) do
      local message = markers.message_of(function()
        session:events(case[1])
      end)
      assert.matches(HERE, message)
      assert.is_truthy(message:find(case[2], 1, true), message)
    end
  end)

  it("gives all records, behind their handlers, until finish()", function()
    local session <close>, seen = markers.marked(100)
    session:finish()
    local count = 0
    for ev in session:events() do
      count = count + 1
      assert.equal(count, markers.number(ev))
      assert.equal(count, seen[count])
      assert.equal(count, #seen)
    end
    assert.equal(100, count)
  end)

  it("ends when there was nothing for the timeout, and can be begun again", function()
    local session <close> = tracefs.session()
    session:start()
    local ended = 0
    session:at_end(function()
      ended = ended + 1
    end)
    local count = 0
    for round = 1, 2 do
      markers.mark(session, 1, 10)
      local before = core.now("mono")
      for _ in session:events({ timeout = 0.3 }) do
        count = count + 1
      end
      local seconds = (core.now("mono") - before) / 1e9
      assert.is_true(seconds >= 0.3 and seconds < 0.3 + 2 * helper.slowdown, seconds)
      assert.equal(10 * round, count)
      assert.equal(1, ended)
    end
    assert.is_true(session.instance:trace_is_on())
  end)

  it("does not end while records come more often than the timeout", function()
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    session:enable(loads.SYSCALL, { filter = filter })
    session:start()
    local load = loads.start({ "syscalls", 101, "--nr", nr, "--rate", 100 })
    local count = 0
    for _ in session:events({ timeout = 2 * helper.slowdown }) do
      count = count + 1
      if count == 101 then
        break
      end
    end
    load:wait()
    assert.equal(101, count)
  end)

  it("ends after the duration, when everything was given", function()
    local session <close>, seen = markers.marked(50)
    local count = 0
    local before = core.now("mono")
    for _ in session:events({ duration = 0.2 }) do
      count = count + 1
    end
    local seconds = (core.now("mono") - before) / 1e9
    assert.is_true(seconds >= 0.2 and seconds < 0.2 + 2 * helper.slowdown)
    assert.equal(50, count)
    assert.equal(50, #seen)
    assert.equal(0, session:stats().pending)
    assert.is_false(session.instance:trace_is_on())
  end)

  it("goes on behind a break", function()
    local session <close> = tracefs.session()
    session:start()
    markers.mark(session, 1, 100)
    session:finish()
    local got = {}
    local rounds = 0
    repeat
      local left = 7
      for ev in session:events() do
        got[#got + 1] = markers.number(ev)
        left = left - 1
        if left == 0 then
          break
        end
      end
      rounds = rounds + 1
    until left > 0
    assert.same(markers.list(1, 100), got)
    assert.equal(15, rounds)
  end)

  it("ends before the next record when its body calls stop()", function()
    local session <close> = tracefs.session()
    local ended = 0
    session:at_end(function()
      ended = ended + 1
    end)
    session:start()
    markers.mark(session, 1, 100)
    session:finish()
    local got = {}
    for ev in session:events() do
      got[#got + 1] = markers.number(ev)
      if #got == 10 then
        session:stop()
      end
    end
    assert.same(markers.list(1, 10), got)
    assert.equal(1, ended)
    for ev in session:events() do
      got[#got + 1] = markers.number(ev)
    end
    assert.same(markers.list(1, 100), got)
    assert.equal(1, ended)
  end)

  it("gives its body the record whose handler calls stop(), and then ends", function()
    local session <close>, seen = markers.marked(20)
    session:on("ftrace:print", function(ev)
      if markers.number(ev) == 5 then
        session:stop()
      end
    end)
    session:finish()
    local got = {}
    for ev in session:events() do
      got[#got + 1] = markers.number(ev)
    end
    assert.same(markers.list(1, 5), got)
    for ev in session:events() do
      got[#got + 1] = markers.number(ev)
    end
    assert.same(markers.list(1, 20), got)
    assert.same(markers.list(1, 20), seen)
  end)

  it("keeps its session alive", function()
    local function numbers()
      local session = tracefs.session()
      session:start()
      markers.mark(session, 1, 50)
      session:finish()
      return session:events()
    end
    local count = 0
    for ev in numbers() do
      count = count + 1
      assert.equal(count, markers.number(ev))
      if count % 10 == 1 then
        collectgarbage()
        collectgarbage()
      end
    end
    assert.equal(50, count)
    collectgarbage()
    collectgarbage()
  end)

  it("lets its body step the session", function()
    local session <close>, seen = markers.marked(20)
    session:finish()
    local got = {}
    for ev in session:events() do
      got[#got + 1] = markers.number(ev)
      session:step(1)
    end
    assert.same(markers.list(1, 20), seen)
    assert.is_true(#got >= 10 and #got < 20)
  end)

  it("runs in a coroutine that yields between records", function()
    local session <close> = markers.marked(30)
    session:finish()
    local give = coroutine.wrap(function()
      for ev in session:events() do
        coroutine.yield(markers.number(ev))
      end
    end)
    local got = {}
    for n in give do
      got[#got + 1] = n
    end
    assert.same(markers.list(1, 30), got)
  end)
end)
