local core = require "tracefs.core"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local markers = require "spec.support.markers"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/running/every_spec%.lua:%d+: "

describe("session:every", function()
  it("checks its arguments", function()
    local session <close> = tracefs.session()
    for _, seconds in ipairs({ 0, 0.0005, -1, 1e7, "1", 0 / 0, {} }) do
      local message = markers.message_of(function()
        session:every(seconds, print)
      end)
      assert.matches(HERE .. "every%(.*%): from 0%.001 to 1000000 seconds, not ", message)
    end
    local message = markers.message_of(function()
      session:every(1)
    end)
    assert.matches(HERE .. "every%(.*%): a function is needed, not nil", message)
  end)

  -- A load of known size; every tick says how many events came since the one before. Each event
  -- lies between its two ticks, and none is missing.
  local function intervals(clock)
    local session <close> = tracefs.session({ clock = clock })
    local nr, filter = loads.fresh_nr()
    local count, total, ticks, wrong = 0, 0, {}, 0
    local last_tick, last_ts = 0, 0
    session:on(loads.SYSCALL, { "common_timestamp", filter = filter }, function(ts)
      count = count + 1
      wrong = wrong + (ts <= last_tick and 1 or 0)
      last_ts = ts
    end)
    session:every(0.01, function(ts)
      ticks[#ticks + 1] = ts
      wrong = wrong + (last_ts > ts and 1 or 0)
      total, count, last_tick = total + count, 0, ts
    end)
    local result, stats = loads.run_session(session, {
      "syscalls", 3001, "--nr", nr, "--rate", 10000,
    })
    assert.equal(0, wrong)
    assert.equal(0, stats.lost)
    assert.equal(result.calls, total + count)
    assert.is_true(#ticks >= 20, #ticks .. " ticks")
    return ticks
  end

  it("comes between the records before and behind its time", function()
    local ticks = intervals("mono")
    for i = 2, #ticks do
      assert.equal(10000000, ticks[i] - ticks[i - 1])
    end
  end)

  it("does so with other clocks that can be read", function()
    for _, clock in ipairs({ "boot", "mono_raw", "tai" }) do
      local ticks = intervals(clock)
      for i = 2, #ticks do
        -- Two clocks are read one after the other to find the time of each tick.
        assert.is_true(math.abs(ticks[i] - ticks[i - 1] - 10000000) < 5000000 * helper.slowdown)
      end
    end
  end)

  it("comes with a clock that cannot be read, too", function()
    local session <close> = tracefs.session({ clock = "local" })
    local ticks = {}
    session:every(0.02, function(ts)
      ticks[#ticks + 1] = ts
      assert.is_true(ts <= core.now("mono"))
      if #ticks == 7 then
        session:finish()
      end
    end)
    local before = core.now("mono")
    session:run({ duration = 60 })
    assert.equal(7, #ticks)
    assert.is_true(core.now("mono") - before >= 7 * 20000000)
  end)

  it("comes for each of several periods", function()
    local session <close> = tracefs.session()
    local order = {}
    for _, period in ipairs({ 0.03, 0.01, 0.02 }) do
      session:every(period, function(ts)
        order[#order + 1] = { period = period, ts = ts }
      end)
    end
    session:run({ duration = 0.3 })
    local counts, last, first = {}, 0, {}
    for _, tick in ipairs(order) do
      counts[tick.period] = (counts[tick.period] or 0) + 1
      first[tick.period] = first[tick.period] or tick.ts
      assert.is_true(tick.ts >= last)
      assert.equal(0, (tick.ts - first[tick.period]) % math.floor(tick.period * 1e9))
      last = tick.ts
    end
    -- The end of the run is later than its last tick, by less than a period.
    assert.is_true(counts[0.01] >= 30)
    assert.equal(counts[0.01] // 2, counts[0.02])
    assert.equal(counts[0.01] // 3, counts[0.03])
  end)

  it("can be asked for while the session runs", function()
    local session <close> = tracefs.session()
    local ticks = 0
    session:at_start(function()
      session:every(0.01, function()
        ticks = ticks + 1
        if ticks == 5 then
          session:stop()
        end
      end)
    end)
    session:run({ duration = 20 })
    assert.equal(5, ticks)
  end)

  it("comes no more behind the time of finish()", function()
    local session <close> = tracefs.session({ margin = 0.3 })
    local finished_at
    local late = 0
    session:every(0.01, function(ts)
      if finished_at and ts > finished_at then
        late = late + 1
      end
    end)
    session:start()
    helper.sleep(0.05)
    session:finish()
    finished_at = core.now("mono")
    session:run()
    assert.equal(0, late)
  end)

  it("does not keep the run from ending when its function is slower than its period", function()
    local session <close> = tracefs.session()
    local ticks = 0
    session:every(0.01, function()
      ticks = ticks + 1
      core.poll({}, 0.03)
    end)
    local stats = session:run({ duration = 0.2 })
    assert.is_true(ticks >= 5, ticks .. " ticks")
    assert.is_true(stats.elapsed < 10 * helper.slowdown)
  end)
end)
