local core = require "tracefs.core"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local markers = require "spec.support.markers"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/running/run_spec%.lua:%d+: "

describe("tracefs.running", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.running"))
  end)
end)

describe("session:run", function()
  it("checks its options", function()
    local session <close> = tracefs.session()
    for _, case in ipairs({
      { 5, "run: the options must be a table, not number" },
      { { durtion = 1 }, "run: unknown option 'durtion'" },
      { { 1 }, "run: unknown option '1'" },
      { { duration = "1" }, "duration: a number of seconds is needed, not 1" },
      { { duration = -1 }, "duration: a number of seconds is needed, not -1" },
      { { duration = 0 / 0 }, "duration: a number of seconds is needed, not " },
      { { duration = math.huge }, "duration: a number of seconds is needed, not inf" },
    }) do
      local message = markers.message_of(function()
        session:run(case[1])
      end)
      assert.matches(HERE, message)
      assert.is_truthy(message:find(case[2], 1, true), message)
    end
    assert.is_false(session.instance:trace_is_on())
  end)

  it("runs for a duration", function()
    local session <close> = tracefs.session()
    local before = core.now("mono")
    local stats = session:run({ duration = 0.25 })
    local seconds = (core.now("mono") - before) / 1e9
    assert.is_true(seconds >= 0.25 and seconds < 0.25 + 1 * helper.slowdown, seconds)
    assert.is_true(stats.elapsed >= 0.25)
    assert.is_false(session.instance:trace_is_on())
  end)

  it("runs until finish() has delivered everything", function()
    local session <close>, seen = markers.marked(0)
    session:at_start(function() end)
    markers.mark(session, 1, 500)
    session:finish()
    assert.is_nil(session:marker("501"))
    local stats = session:run()
    assert.same(markers.list(1, 500), seen)
    assert.equal(500, stats.delivered)
    assert.equal(0, stats.pending)
    markers.check_identity(stats)
    -- At the end it stays ended.
    local again = session:run()
    assert.equal(500, again.delivered)
    assert.equal(500, #seen)
  end)

  it("ends at once when nothing was ever on", function()
    local session <close> = tracefs.session()
    session:finish()
    local stats = session:run()
    assert.equal(0, stats.produced)
    assert.is_false(session.instance:trace_is_on())
  end)

  it("calls at_start before the first record and at_end behind the last, once", function()
    local session <close> = tracefs.session()
    local order = {}
    local function note(what)
      return function(...)
        assert.equal(0, select("#", ...))
        order[#order + 1] = what
      end
    end
    session:at_start(note "start 1")
    session:at_start(function()
      order[#order + 1] = "start 2"
      assert.is_true(session.instance:trace_is_on())
      markers.mark(session, 1, 2)
    end)
    session:at_end(note "end 1")
    session:at_end(note "end 2")
    session:on("ftrace:print", function(ev)
      order[#order + 1] = markers.number(ev)
      if markers.number(ev) == 2 then
        session:stop()
      end
    end)
    session:run()
    markers.mark(session, 3)
    session:finish()
    session:run()
    assert.same({ "start 1", "start 2", 1, 2, "end 1", "end 2", 3 }, order)
  end)
end)

describe("session:stop", function()
  it("ends the run within one event; running again goes on, and nothing is lost", function()
    local session <close>, seen = markers.marked(1000)
    session:on("ftrace:print", { "buf" }, function(buf)
      if tonumber(buf) % 50 == 0 then
        session:stop()
      end
    end)
    for round = 1, 20 do
      local stats = session:run()
      assert.equal(50 * round, #seen)
      assert.equal(50 * round, stats.delivered)
      assert.equal(1000 - 50 * round, stats.pending)
      assert.equal(1000, stats.produced)
    end
    session:finish()
    session:run()
    assert.same(markers.list(1, 1000), seen)
  end)

  it("counts inside every kind of handler", function()
    for _, kind in ipairs({ "at_start", "every", "watch" }) do
      local session <close> = tracefs.session()
      local count = 0
      session:on("ftrace:print", function()
        count = count + 1
      end)
      local function stop()
        session:stop()
      end
      local timer
      if kind == "at_start" then
        session:at_start(stop)
      elseif kind == "every" then
        session:every(0.01, stop)
      else
        timer = assert(core.timer(0.01))
        session:watch(timer:fileno(), stop)
      end
      session:at_start(function()
        markers.mark(session, 1, 5)
      end)
      local stats = session:run({ duration = 20 })
      assert.is_true(stats.elapsed < 10, kind .. " did not stop the run")
      markers.check_identity(stats)
      if timer then
        session:watch(timer:fileno(), nil)
        timer:close()
      end
      session:finish()
      session:run()
      session:run()
      assert.equal(5, count)
    end
  end)

  it("is forgotten when the next run begins", function()
    local session <close>, seen = markers.marked(3)
    session:stop()
    session:finish()
    session:run()
    assert.same({ 1, 2, 3 }, seen)
  end)

  it("before a step ends that step", function()
    local session <close>, seen = markers.marked(3)
    session:stop()
    assert.same({ 0, "stop" }, { session:step() })
    session:finish()
    session:run()
    assert.same({ 1, 2, 3 }, seen)
  end)

  it("is refused on a closed session, as everything that needs an open one", function()
    local session = tracefs.session()
    session:close()
    for _, name in ipairs({ "stop", "finish", "start", "run", "step", "events", "fileno",
      "wait" }) do
      assert.matches(HERE .. "the session is closed$", markers.message_of(function()
        session[name](session)
      end), name)
    end
    assert.matches(HERE .. "the session is closed$", markers.message_of(function()
      session:watch(0, print)
    end))
    for _, name in ipairs({ "at_start", "at_end", "on_lost" }) do
      assert.matches(HERE .. "the session is closed$", markers.message_of(function()
        session[name](session, print)
      end), name)
    end
    assert.matches(HERE .. "the session is closed$", markers.message_of(function()
      session:every(1, print)
    end))
    assert.matches(HERE .. "the session is closed$", markers.message_of(function()
      session:marker("x")
    end))
  end)
end)
