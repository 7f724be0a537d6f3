local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"
local core = require "tracefs.core"

local EACH = helper.short and 20011 or 60013

local UNKNOWN = math.huge

-- Follows the sequence numbers of each CPU beside the losses that the session tells of. With
-- overwriting, every gap must have been told just before the record behind it, with its size or
-- as unknown; a loss without a gap is an invented one.
local function follower(told_in_place)
  local lanes, complaints = {}, {}

  local function lane_of(cpu)
    lanes[cpu] = lanes[cpu] or { last = 0, delivered = 0, gaps = 0, told = 0, items = 0, now = 0 }
    return lanes[cpu]
  end

  local function complain(...)
    if #complaints < 10 then
      table.insert(complaints, string.format(...))
    end
  end

  local function record(sequence, cpu)
    local lane = lane_of(cpu)
    local gap = sequence - lane.last - 1
    if gap < 0 then
      complain("cpu %d: %d after %d", cpu, sequence, lane.last)
    elseif told_in_place and lane.now ~= gap and not (lane.now == UNKNOWN and gap > 0) then
      complain("cpu %d: %d lost before %d, told of %s", cpu, gap, sequence, lane.now)
    end
    lane.now = 0
    lane.gaps = lane.gaps + gap
    lane.delivered = lane.delivered + 1
    lane.last = sequence
  end

  local function loss(lost)
    local lane = lane_of(lost.cpu)
    lane.items = lane.items + 1
    lane.now = lane.now + (lost.count or UNKNOWN)
    lane.told = lane.told + (lost.count or UNKNOWN)
    if lost.after_ts and lost.before_ts and lost.after_ts > lost.before_ts then
      complain("cpu %d: a loss after %d and before %d", lost.cpu, lost.after_ts, lost.before_ts)
    end
  end

  return lanes, complaints, record, loss
end

-- What must be true of a CPU that made `produced` events, whatever happened.
local function check_lane(lane, counts, produced, overwrite)
  local tail = produced - lane.last
  assert.equal(produced, counts.produced)
  assert.equal(lane.delivered, counts.delivered)
  assert.equal(lane.gaps + tail, counts.lost)
  assert.equal(0, counts.pending)
  assert.equal(counts.delivered + counts.lost, counts.produced)
  assert.equal(counts.overrun + counts.dropped + counts.commit_overrun, counts.lost)
  if lane.told ~= UNKNOWN then
    assert.equal(counts.lost, lane.told)
  end
  if overwrite then
    assert.equal(0, tail, "the newest records are the ones that stay")
    assert.equal(0, counts.dropped)
  else
    assert.equal(0, counts.overrun)
  end
end

local function session_of(case)
  local session = tracefs.session({
    buffer_kb = case.buffer_kb,
    subbuf_kb = case.subbuf_kb,
    overwrite = case.overwrite,
  })
  if case.subbuf_kb ~= (session.instance:get_subbuf_kb() or 4) then
    session:close()
    pending("this kernel has no sub-buffers of " .. case.subbuf_kb .. " KiB")
  end
  return session
end

-- A handler that sleeps: far slower than the load, and the kernel's buffer is small.
local function sleepy(handler)
  local calls = 0
  return function(...)
    handler(...)
    calls = calls + 1
    if calls % 200 == 0 then
      core.poll({}, 0.004)
    end
  end
end

describe("losses", function()
  for _, overwrite in ipairs({ true, false }) do
    for _, subbuf_kb in ipairs({ 4, 64 }) do
      local case = { overwrite = overwrite, subbuf_kb = subbuf_kb, buffer_kb = 64 }
      local name = ("%s, sub-buffers of %d KiB"):format(
        overwrite and "overwriting" or "not overwriting", subbuf_kb)

      it("are told of where they are, " .. name .. ", on every CPU", function()
        local session <close> = session_of(case)
        local nr, filter = loads.fresh_nr()
        local lanes, complaints, record, loss = follower(overwrite)
        session:on(loads.SYSCALL, { "args", filter = filter }, sleepy(function(args)
          record(args[1], args[2])
        end))
        session:on_lost(loss)
        local result, stats = loads.run_session(session, {
          "syscalls", EACH, "--cpu", "all", "--nr", nr,
        })
        assert.same({}, complaints)
        local total = 0
        for digits in result.cpus:gmatch("%d+") do
          local cpu = math.tointeger(digits)
          check_lane(lanes[cpu], stats.per_cpu[cpu], EACH, overwrite)
          assert.is_true(lanes[cpu].items > 0, "CPU " .. cpu .. " lost nothing")
          total = total + lanes[cpu].delivered
        end
        assert.equal(total, stats.delivered)
        assert.equal(result.calls, stats.produced)
        assert.equal(result.calls, stats.delivered + stats.lost)
      end)

      -- A page that its records fill to the last byte has no room for the number of lost ones:
      -- system calls do that with small pages. Markers leave room, so that here every loss has
      -- its number.
      it("have their number, " .. name, function()
        local session <close> = session_of(case)
        local lanes, complaints, record, loss = follower(overwrite)
        local cpu = loads.cpus()[1]
        session:on("ftrace:print", { "buf", "common_cpu" }, sleepy(function(buf, on)
          record(math.tointeger(buf:match("^load (%d+)")), on)
        end))
        session:on_lost(loss)
        local result, stats = loads.run_session(session, {
          "markers", session.instance:dir(), EACH, "--cpu", cpu,
        })
        assert.same({}, complaints)
        check_lane(lanes[cpu], stats.per_cpu[cpu], EACH, overwrite)
        assert.is_true(lanes[cpu].items > 0)
        assert.equal(stats.lost, lanes[cpu].told)
        assert.equal(result.markers, stats.delivered + stats.lost)
        -- The writer knows what did not fit.
        assert.equal(overwrite and 0 or stats.lost, result.refused)
      end)

      it("are not invented, " .. name, function()
        local session <close> = session_of({
          overwrite = overwrite, subbuf_kb = subbuf_kb, buffer_kb = 32768,
        })
        local nr, filter = loads.fresh_nr()
        local lanes, complaints, record, loss = follower(true)
        session:on(loads.SYSCALL, { "args", filter = filter }, function(args)
          record(args[1], args[2])
        end)
        session:on_lost(loss)
        local result, stats = loads.run_session(session, {
          "syscalls", EACH, "--cpu", "all", "--nr", nr,
        })
        assert.same({}, complaints)
        for cpu, lane in pairs(lanes) do
          assert.equal(0, lane.items)
          check_lane(lane, stats.per_cpu[cpu], EACH, overwrite)
        end
        assert.equal(result.calls, stats.delivered)
        assert.equal(0, stats.lost)
      end)
    end
  end
end)
