local core = require "tracefs.core"
local helper = require "spec.support.helper"
local markers = require "spec.support.markers"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/running/step_spec%.lua:%d+: "

describe("session:step", function()
  it("checks its argument", function()
    local session <close> = tracefs.session()
    for _, max in ipairs({ 0, -1, 1.5, "10", {} }) do
      local message = markers.message_of(function()
        session:step(max)
      end)
      assert.matches(HERE .. "step%(max%): a whole number from 1 is needed, not ", message)
    end
    assert.is_false(session.instance:trace_is_on())
  end)

  it("begins no record after so much time, and goes on with the next step", function()
    local session <close> = tracefs.session()
    local seen = 0
    session:on("ftrace:print", function()
      seen = seen + 1
      core.poll({}, 0.01)
    end)
    for _, seconds in ipairs({ 0, -1, 0 / 0, "1", true }) do
      local message = markers.message_of(function()
        session:step(1, seconds)
      end)
      assert.matches(HERE .. "step%(max, seconds%): seconds above 0 are needed, not ", message)
    end
    session:start()
    for i = 1, 7 do
      session:marker("line " .. i)
    end
    session:finish()
    local counts = {}
    local why, count
    repeat
      count, why = session:step(1000, 0.001)
      if why == "more" then
        assert.equal(1, #core.poll({ session:fileno() }, 0))
      elseif why == "idle" then
        session:wait()
      end
      counts[#counts + 1] = count
    until why == "end"
    -- each record takes longer than a step may
    for _, handled in ipairs(counts) do
      assert.is_true(handled <= 1, handled)
    end
    assert.equal(7, seen)
  end)

  it("handles at most so many records and says why it returned", function()
    local session <close>, seen = markers.marked(100)
    session:finish()
    local total = 0
    local count, why
    repeat
      count, why = session:step(30)
      total = total + count
      assert.equal(total, #seen)
      assert.is_true(count == 30 or count < 30 and why ~= "more")
      if why == "idle" then
        session:wait()
      end
    until why == "end"
    assert.same(markers.list(1, 100), seen)
  end)

  it("never blocks", function()
    local session <close> = tracefs.session()
    local before = core.now("mono")
    for _ = 1, 20 do
      local count, why = session:step()
      assert.equal(0, count)
      assert.equal("idle", why)
    end
    assert.is_true((core.now("mono") - before) / 1e9 < 1 * helper.slowdown)
  end)

  it("drives a session in a loop of one's own, beside others", function()
    local one <close>, seen_one = markers.marked(0)
    local two <close>, seen_two = markers.marked(0)
    local sessions = { one, two }
    markers.mark(one, 1, 300)
    markers.mark(two, 1, 200)
    one:finish()
    two:finish()
    local limit = core.now("mono") + 20000000000
    while #sessions > 0 do
      assert.is_true(core.now("mono") < limit)
      local fds = {}
      for i, session in ipairs(sessions) do
        fds[i] = session:fileno()
      end
      assert(core.poll(fds, 1))
      for i = #sessions, 1, -1 do
        local _, why = sessions[i]:step(64)
        if why == "end" then
          table.remove(sessions, i)
        end
      end
    end
    assert.same(markers.list(1, 300), seen_one)
    assert.same(markers.list(1, 200), seen_two)
  end)

  it("leaves the descriptor readable while there is more", function()
    local session <close>, seen = markers.marked(10)
    session:finish()
    helper.sleep(0.02)
    local _, why
    repeat
      session:wait(5)
      _, why = session:step(3)
      if why == "more" then
        assert.equal(1, #core.poll({ session:fileno() }, 0))
      end
    until why == "end"
    assert.equal(10, #seen)
  end)
end)

-- Opening a file of tracefs waits while anybody's instance is made or removed.
describe("session:step", function()
  it("opens nothing once it runs, and neither does stats", function()
    local status, out, err = helper.execute {
      "sh", "-c", 'ulimit -n 500; exec "$@"', "sh", helper.interpreter, "-e", [[
        local tracefs = require "tracefs"
        local session = tracefs.session()
        local count = 0
        session:on("ftrace:print", {}, function() count = count + 1 end)
        session:start()
        for _ = 1, 23 do
          session:marker "x"
        end
        -- the first record of an event is what its format is read for
        repeat
          assert(session:wait(5))
        until session:step(1) == 1
        local files = {}
        repeat
          local file = io.open "/dev/null"
          files[#files + 1] = file
        until not file
        -- as long as it takes to look at the counters more than once
        local looks = 0
        repeat
          assert(session:wait(5))
          session:step()
          looks = looks + 1
        until count == 23 and looks > 5
        local stats = session:stats()
        for _, file in ipairs(files) do
          file:close()
        end
        session:close()
        print(count, stats.delivered, stats.produced, stats.lost)
      ]],
      env = {
        LUA_PATH = ("%s/?.lua;%s/?/init.lua"):format(helper.lua_dir, helper.lua_dir),
        LUA_CPATH = helper.core_dir .. "/?.so",
      },
    }
    assert.equal("", err)
    assert.equal("23\t23\t23\t0\n", out)
    assert.equal(0, status)
  end)
end)

describe("session:wait", function()
  it("checks its argument", function()
    local session <close> = tracefs.session()
    for _, seconds in ipairs({ "1", {}, 0 / 0, true }) do
      local message = markers.message_of(function()
        session:wait(seconds)
      end)
      assert.matches(HERE .. "wait%(seconds%): a number is needed, not ", message)
    end
  end)

  it("waits no longer than that, and not at all for nothing", function()
    local session <close> = tracefs.session({ interval = 5 })
    session:start()
    session:step()
    for _, seconds in ipairs({ 0, -1, 0.1 }) do
      local before = core.now("mono")
      assert.is_false(session:wait(seconds))
      local waited = (core.now("mono") - before) / 1e9
      assert.is_true(waited >= seconds and waited < math.max(seconds, 0) + 1 * helper.slowdown)
    end
  end)

  it("wakes at the interval at the latest", function()
    local session <close> = tracefs.session({ interval = 0.05 })
    session:start()
    session:step()
    local before = core.now("mono")
    assert.is_true(session:wait())
    assert.is_true((core.now("mono") - before) / 1e9 < 1 * helper.slowdown)
  end)
end)

describe("session:watch", function()
  it("checks its arguments", function()
    local session <close> = tracefs.session()
    for _, fd in ipairs({ -1, 1.5, "0", {} }) do
      local message = markers.message_of(function()
        session:watch(fd, print)
      end)
      assert.matches(HERE .. "watch%(.*%): a descriptor is a number from 0, not ", message)
    end
    local message = markers.message_of(function()
      session:watch(0, 5)
    end)
    assert.matches(HERE .. "watch%(.*%): a function is needed, not number", message)
    message = markers.message_of(function()
      session:watch(999999, print)
    end)
    assert.matches(HERE .. "cannot watch this descriptor: Bad file descriptor", message)
    session:watch(999999, nil)
  end)

  it("has a function called when a descriptor is readable, until it is taken out", function()
    local session <close> = tracefs.session({ interval = 5 })
    local timer <close> = assert(core.timer(0.02, true))
    local calls = 0
    session:watch(timer:fileno(), function(...)
      assert.equal(0, select("#", ...))
      timer:expired()
      calls = calls + 1
      if calls == 3 then
        session:watch(timer:fileno(), nil)
      elseif calls > 3 then
        error("called once more")
      end
    end)
    -- A while longer than it takes to be called three times.
    local ticks = 0
    session:every(0.2, function()
      ticks = calls == 3 and ticks + 1 or 0
      if ticks == 3 then
        session:finish()
      end
    end)
    session:run({ duration = 20 })
    assert.equal(3, calls)
  end)

  it("is looked at by a loop that always has something to do", function()
    local session <close> = tracefs.session()
    local timer <close> = assert(core.timer(0.2))
    session:watch(timer:fileno(), function()
      timer:expired()
      session:finish()
    end)
    session:enable("ftrace:print")
    session:start()
    markers.mark(session, 1)
    local count = 0
    for ev in session:events({ duration = 20 }) do
      count = count + 1
      assert.equal(count, markers.number(ev))
      session:marker(tostring(count + 1))
    end
    assert.is_true(count > 1)
    local stats = session:stats()
    assert.is_true(stats.elapsed < 10)
    assert.equal(count, stats.delivered)
    assert.equal(0, stats.pending)
  end)
end)
