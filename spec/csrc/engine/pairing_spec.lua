-- What pairs say when events are lost, against somebody who knows what was lost. The streams are
-- made up, in the order and with the losses that merge.c makes of the buffers of several CPUs.
local helper = require "spec.support.helper"
local made_events = require "spec.support.made_events"
local new_pair = require("tracefs.pair").new

helper.usual_collector()

-- A case is a start of something under one of few keys, and what becomes of it.
local LONG <const> = (os.getenv("LUATRACE_LONG") or "") ~= ""
local CASES <const> = LONG and 1000000 or 10000
local CPUS <const>, KEYS <const> = 4, 23

local set = made_events.new()
local FIELDS <const> = { { "address", "u64" }, { "number", "u64" } }
local make = {
  start = set.add("made:start", FIELDS),
  middle = set.add("made:middle", FIELDS),
  stop = set.add("made:stop", FIELDS),
  free = set.add("made:free", FIELDS),
}

-- What really happened, in the order of time: things begin under a free key on any CPU and are
-- stopped or freed later on any CPU; some stops have no start (of things older than the trace).
-- Chains have an event in between; what repeats, starts again and again until its stop.
local function reality(cases, shape)
  local events, open, free, ts = {}, {}, {}, 1000
  for key = 1, KEYS do
    free[key] = key
  end
  local number = 0
  while number < cases do
    ts = ts + math.random(1, 20)
    local cpu = math.random(0, CPUS - 1)
    local dice = math.random()
    if shape.repeats and #open > 0 and math.random() < 0.3 then
      local thing = open[math.random(#open)]
      events[#events + 1] = {
        kind = "start", ts = ts, cpu = shape.same_cpu and thing.cpu or cpu, key = thing.key,
        number = thing.number,
      }
    elseif #free > 0 and (dice < 0.45 or #open == 0) then
      number = number + 1
      local key = table.remove(free, math.random(#free))
      open[#open + 1] = { key = key, ts = ts, number = number, cpu = cpu }
      events[#events + 1] = { kind = "start", ts = ts, cpu = cpu, key = key, number = number }
    elseif dice < 0.96 and #open > 0 then
      local at = math.random(#open)
      local thing = open[at]
      local is_middle = shape.chain and not thing.middle
      events[#events + 1] = {
        kind = is_middle and "middle" or math.random() < 0.8 and "stop" or "free", ts = ts,
        cpu = shape.same_cpu and thing.cpu or cpu, key = thing.key, number = thing.number,
        began = thing.ts, middle = thing.middle,
      }
      if is_middle then
        thing.middle = ts
      else
        table.remove(open, at)
        free[#free + 1] = thing.key
      end
    elseif #free > 0 then
      -- nobody has seen its start: it was going on before the trace, and goes on without it
      events[#events + 1] = {
        kind = "stop", ts = ts, cpu = cpu, key = free[math.random(#free)], number = 0,
      }
    end
  end
  return events
end

-- Takes runs of events of one CPU out; what is left comes with losses at the place where merge.c
-- puts them: right behind the CPU's event before the gap. The kernel overwrites what is old, so
-- that behind each gap there is something.
local function with_losses(events, share)
  local last, gap, lost_count = {}, {}, 0
  local result = {}
  for i, event in ipairs(events) do
    local cpu = event.cpu
    if not gap[cpu] and i < #events - 1000 and math.random() < share then
      gap[cpu] = { left = math.random(1, 30), after = last[cpu] }
    end
    if gap[cpu] and gap[cpu].left > 0 then
      gap[cpu].left = gap[cpu].left - 1
      lost_count = lost_count + 1
    else
      if gap[cpu] then
        local loss = {
          cpu = cpu, why = "overrun", before_ts = event.ts,
          after_ts = gap[cpu].after and gap[cpu].after.ts,
        }
        if gap[cpu].after then
          gap[cpu].after.losses = loss
        else
          table.insert(result, 1, { kind = "lost", loss = loss })
        end
        gap[cpu] = nil
      end
      last[cpu] = event
      result[#result + 1] = event
    end
  end
  return result, lost_count
end

-- Runs a stream through a pair. Returns how many of its latencies are true and false.
local function play(stream, options)
  local right, wrong, current = 0, 0, nil
  local pair = new_pair({
    start = "made:start", stop = "made:stop", cancel = "made:free", key = "address",
    carry = "number", same_cpu = options.same_cpu, again = options.repeats and "first" or nil,
    through = options.chain and "made:middle" or nil,
    on_match = function(delta, _, started, _, legs)
      if started.number == current.number and delta == current.ts - current.began
        and (not options.chain or legs[1] == current.middle - current.began) then
        right = right + 1
      else
        wrong = wrong + 1
      end
    end,
  }, set.find)
  for _, event in ipairs(stream) do
    current = event
    if event.kind ~= "lost" then
      pair:feed(make[event.kind]({ address = event.key, number = event.number },
        { common_timestamp = event.ts, common_cpu = event.cpu }))
    end
    local loss = event.loss or event.losses
    if loss and not options.deaf then
      pair:lost(loss)
    end
  end
  return right, wrong, pair:counts()
end

local function accounted(counts)
  return counts.matched + counts.replaced + counts.cancelled + counts.expired + counts.evicted
    + counts.voided + counts.incomplete + counts.repeated + counts.open
end

for name, shape in pairs {
  ["pairs of made-up streams"] = {},
  ["pairs of made-up streams on one CPU each"] = { same_cpu = true },
  ["chains of made-up streams"] = { chain = true },
  ["repeated starts of made-up streams"] = { repeats = true },
  ["repeated starts of made-up streams on one CPU each"] = { repeats = true, same_cpu = true },
} do
  describe(name, function()
    -- in parts: a million events need not be there at once
    local function totals(share, options, cases)
      options.same_cpu, options.chain = shape.same_cpu, shape.chain
      options.repeats = shape.repeats
      local sums = { right = 0, wrong = 0, cases = 0, lost = 0, voided = 0 }
      math.randomseed(7919)
      for _ = 1, (cases or CASES) // 10000 do
        local stream, lost = with_losses(reality(10000, shape), share)
        local right, wrong, counts = play(stream, options)
        assert.equal(right + wrong, counts.matched)
        assert.equal(counts.starts, accounted(counts))
        assert.equal(0, counts.doubtful)
        sums.right, sums.wrong = sums.right + right, sums.wrong + wrong
        sums.lost, sums.voided = sums.lost + lost, sums.voided + counts.voided
        sums.cases = sums.cases + 10000
      end
      return sums
    end

    it("are all found when nothing is lost", function()
      local sums = totals(0, {}, 10000)
      assert.equal(0, sums.wrong)
      assert.is_true(sums.right > 0.7 * sums.cases)
      assert.equal(0, sums.voided)
    end)

    it("have no false latency when events are lost and keys are used again", function()
      local sums = totals(0.003, {})
      assert.is_true(sums.lost > 0.02 * sums.cases)
      assert.is_true(sums.voided > 0)
      assert.equal(0, sums.wrong)
      assert.is_true(sums.right > (shape.repeats and 0.2 or 0.3) * sums.cases,
        sums.right .. " of " .. sums.cases)
    end)

    it("would have false ones if they did not hear of losses", function()
      local sums = totals(0.003, { deaf = true }, 10000)
      assert.is_true(sums.wrong > 0)
    end)
  end)
end

-- Beyond some thousands of open starts, those that are to end next are fetched ahead.
describe("pairs of which many are open", function()
  local MANY <const> = 12007

  -- Opens so many, then ends and starts as take(order) says, a list of the open in the order of
  -- their starts, until none is left; against what a table says.
  local function play_many(take)
    local said = {}
    local pair = new_pair({
      start = "made:start", stop = "made:stop", key = "address", carry = "number",
      on_match = function(delta, key, started)
        said[#said + 1] = ("%d %d %d"):format(key, started.number, delta)
      end,
    }, set.find)
    local ts, number, began = 1000, 0, {}
    local function feed(kind, key)
      ts = ts + 1
      pair:feed(make[kind]({ address = key, number = number }, { common_timestamp = ts }))
    end
    local function start(key)
      number = number + 1
      feed("start", key)
      began[key] = { number = number, ts = ts }
    end

    local order, first = {}, 1
    for i = 1, MANY do
      order[i] = i * 256
      start(order[i])
    end
    local more, expected = 2 * MANY, {}
    while first <= #order do
      local at = take(order, first)
      local key = order[at]
      if at == first then
        first = first + 1
      else
        order[at] = order[#order]
        order[#order] = nil
      end
      feed("stop", key)
      expected[#expected + 1] = ("%d %d %d"):format(key, began[key].number, ts - began[key].ts)
      if more > 0 then
        more = more - 1
        order[#order + 1] = more % 3 == 0 and key or (3 * MANY + more) * 256
        start(order[#order])
      end
    end
    assert.equal(3 * MANY, #expected)
    assert.same(expected, said)
    local counts = pair:counts()
    assert.equal(0, counts.open)
    assert.equal(3 * MANY, counts.matched)
    assert.equal(0, counts.unmatched)
  end

  it("are right when the oldest ends first", function()
    play_many(function(_, first) return first end)
  end)

  it("are right when the newest ends first", function()
    play_many(function(order) return #order end)
  end)

  it("are right when they end in any order, or nearly in that of their starts", function()
    math.randomseed(7919)
    play_many(function(order, first) return math.random(first, #order) end)
    play_many(function(order, first) return math.min(#order, first + math.random(0, 10)) end)
  end)
end)
