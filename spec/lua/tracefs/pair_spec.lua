-- What session:pair is given and what it says to it; the matching by records that are brought by
-- hand. What losses do is spec/csrc/engine/pairing_spec.lua's.
local aggregate = require "tracefs.aggregate"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local made_events = require "spec.support.made_events"
local pair = require "tracefs.pair"
local tracefs = require "tracefs"

local set = made_events.new()
local FIELDS <const> = {
  { "id", "u64" }, { "other", "int" }, { "comm", "char[16]" }, { "name", "char[16]" },
}
local make = {}
for _, name in ipairs { "a", "b", "c", "d" } do
  make[name] = set.add("made:" .. name, FIELDS)
end

-- A pair of a and b by id unless the options say otherwise; what it tells is in `told`.
local function new(options)
  local told = {}
  options.start = options.start or "made:a"
  options.stop = options.stop or "made:b"
  options.key = options.key or "id"
  local made = pair.new(options, set.find)
  local function bring(event, ts, values, common)
    common = common or {}
    common.common_timestamp = ts
    return made:feed(make[event](values, common))
  end
  return made, bring, told
end

local function bad(message, options)
  for name, value in pairs { start = "made:a", stop = "made:b", key = "id" } do
    if options[name] == nil then
      options[name] = value
    elseif options[name] == "none" then
      options[name] = nil
    end
  end
  local ok, got = pcall(pair.new, options, set.find)
  assert.is_false(ok)
  assert.truthy(got:find(message, 1, true), got)
end

local function nonzero(made)
  local counts = {}
  for name, value in pairs(made:counts()) do
    if value ~= 0 then
      counts[name] = value
    end
  end
  return counts
end

describe("tracefs.pair", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.pair"))
  end)

  it("counts the event that ends a start whose function raises", function()
    local deltas = {}
    local made, bring = new {
      timeout = 1, on_expired = function() error("what the script says", 0) end,
      on_match = function(delta) deltas[#deltas + 1] = delta end,
    }
    bring("a", 1000, { id = 1 })
    bring("a", 900000000, { id = 2 })
    local ok, message = pcall(bring, "b", 1000002000, { id = 2 })
    assert.is_false(ok)
    assert.equal("what the script says", message)
    bring("b", 1500000000, { id = 2 })
    assert.same({ 100002000 }, deltas)
    assert.same({ starts = 2, expired = 1, matched = 1, unmatched = 1 }, nonzero(made))
    ok = pcall(bring, "a", 1600000000, { id = 3 })
    assert.is_true(ok)
    ok = pcall(bring, "a", 9000000000, { id = 4 })
    assert.is_false(ok)
    assert.equal(1, made:counts().open)
  end)

  it("is brought events and listed by finalizers at any moment", function()
    local made, bring
    local wrong = 0
    local function check(_, key, values)
      wrong = wrong + (key[2] == "name" .. key[1] and values.name == key[2] and 0 or 1)
    end
    made, bring = new {
      key = { "id", "name" }, carry = "name", on_match = check, on_dropped = check,
    }
    local class = {
      __gc = function()
        made:expire()
        bring("a", 1, { id = 1000, name = "name1000" })
        bring("b", 2, { id = 1000, name = "name1000" })
      end,
    }
    assert(load(helper.collector(1, 10000, 13)))()
    for round = 1, 4 do
      for id = 1, 50 do
        bring("a", round * 100, { id = id, name = "name" .. id })
      end
      for id = 1, 50 do
        setmetatable({}, class)
        bring("b", round * 100 + 10, { id = id, name = "name" .. id })
      end
      made:open()
    end
    helper.usual_collector()
    assert.equal(0, wrong)
  end)

  it("checks its options", function()
    bad("start is missing", { start = "none" })
    bad("stop is missing", { stop = "none" })
    bad("key is missing", { key = "none" })
    bad("unknown option 'on_mach'", { on_mach = print })
    bad("on_match: a function is needed, not string", { on_match = "x" })
    bad("same_cpu: a boolean is needed", { same_cpu = 1 })
    bad("timeout:", { timeout = 0 })
    bad("timeout:", { timeout = 0 / 0 })
    bad("max:", { max = 0 })
    bad("max:", { max = 1.5 })
    bad('again: "first" or "last"', { again = "second" })
    bad('start: the sample "1/10" takes each in its turn',
      { start = { event = "made:a", sample = "1/10" } })
    bad('stop: the sample "1/64" takes each in its turn, so that a start would be matched with the '
      .. 'stop of another one: choose by a field of the key, in all events of the pair, as in '
      .. '"1/64 of FIELD"', { stop = { event = "made:b", sample = "1/64" } })
    bad("an event is a string", { start = 5 })
    bad("an event is a string", { start = { event = 5 } })
    bad("the list of events is empty", { start = {} })
    bad("unknown option 'filtre' of an event", { start = { event = "made:a", filtre = "x" } })
    bad("filter: a string", { start = { event = "made:a", filter = 5 } })
    bad("next_key is for the events of through", { start = { event = "made:a", next_key = "id" } })
    bad("at most 8 stages", { through = { "made:c", "made:c", "made:c", "made:c", "made:c",
      "made:c", "made:c", "made:c", "made:c" } })
    bad("made:b has no field 'nosuch'; it has: common_type", { key = "nosuch" })
    bad("made:a has no field 'nosuch'", { carry = "nosuch" })
    bad("key: from 1 to 7 fields", { key = {} })
    bad("key: a field's name", { key = 5 })
    bad("a list of field names", { key = { "id", 5 } })
    bad("unknown side 'stopp'", { key = { start = "id", stopp = "id" } })
    bad("stop: made:b has no key", { key = { start = "id" } })
    bad("fields on one side, ", { key = { start = "id", stop = { "id", "other" } } })
    bad("into: an aggregate", { into = 5 })
    bad("into: an aggregate", { into = { {} } })
    bad("made:a has no field 'nosuch'", { into = aggregate.new { "count", by = "nosuch" } })
    bad("no event made:x", { stop = "made:x" })
  end)

  it("says how long it took, and what the start had", function()
    local got = {}
    local made, bring = new {
      carry = { "comm", "common_timestamp", "other" },
      on_match = function(...) got[#got + 1] = { n = select("#", ...), ... } end,
    }
    assert.is_true(bring("a", 100, { id = 7, comm = "dd", other = -5 }))
    assert.is_true(bring("b", 140, { id = 7, comm = "cat" }))
    assert.is_false(bring("c", 150, { id = 7 }))
    assert.equal(1, #got)
    assert.equal(5, got[1].n)
    assert.equal(40, got[1][1])
    assert.equal(7, got[1][2])
    assert.same({ comm = "dd", common_timestamp = 100, other = -5 }, got[1][3])
    assert.equal("cat", got[1][4].comm)
    assert.same({ 40 }, got[1][5])
    assert.same({ starts = 1, matched = 1 }, nonzero(made))
  end)

  it("gives no values without carry, and no record to a function that takes none", function()
    local values, ran = {}, false
    local _, bring = new {
      on_match = function(_, _, start_values) ran, values = true, start_values end,
    }
    bring("a", 1, { id = 1 })
    bring("b", 2, { id = 1 })
    assert.is_true(ran)
    assert.is_nil(values)
  end)

  it("pairs by strings, several fields, and different ones on each side", function()
    local keys = {}
    local _, bring = new {
      key = { start = { "comm", "id" }, stop = { "name", "other" } },
      on_match = function(_, key) keys[#keys + 1] = key end,
    }
    bring("a", 1, { comm = "x", id = 5 })
    bring("a", 2, { comm = "y", id = 5 })
    bring("b", 3, { name = "y", other = 6 })
    bring("b", 4, { name = "y", other = 5 })
    bring("b", 5, { name = "x", other = 5 })
    assert.same({ { "y", 5 }, { "x", 5 } }, keys)
  end)

  it("pairs by a function", function()
    local keys = {}
    local made, bring = new {
      key = { start = function(ev) return ev.id > 2 and "k" .. ev.id or nil end,
        stop = function(ev) return ev.comm end },
      on_match = function(_, key) keys[#keys + 1] = key end,
    }
    bring("a", 1, { id = 1 })
    bring("a", 2, { id = 3 })
    bring("b", 3, { comm = "k1" })
    bring("b", 4, { comm = "k3" })
    assert.same({ "k3" }, keys)
    assert.same({ starts = 1, matched = 1, unmatched = 1 }, nonzero(made))
  end)

  it("lets a function return several values where the other side has several fields", function()
    local keys = {}
    local _, bring = new {
      key = { start = { "id", "comm" }, stop = function(ev) return ev.id, ev.name end },
      on_match = function(_, key) keys[#keys + 1] = key end,
    }
    bring("a", 1, { id = 1, comm = "x" })
    bring("b", 3, { id = 1, name = "x" })
    assert.same({ { 1, "x" } }, keys)
  end)

  it("refuses a key that is neither a string nor a whole number", function()
    local _, bring = new { key = { start = function() return {} end, stop = "id" } }
    local ok, message = pcall(bring, "a", 1, {})
    assert.is_false(ok)
    assert.truthy(message:find("returned a table", 1, true), message)
  end)

  it("takes several starts and stops", function()
    local made, bring = new { start = { "made:a", "made:c" }, stop = { "made:b", "made:d" } }
    for i, names in ipairs { "ab", "cb", "ad", "cd" } do
      bring(names:sub(1, 1), 10 * i, { id = i })
      bring(names:sub(2, 2), 10 * i + 1, { id = i })
    end
    assert.same({ starts = 4, matched = 4 }, nonzero(made))
  end)

  it("follows a chain, also under other keys", function()
    local got = {}
    local made, bring = new {
      through = { "made:c", { event = "made:d", key = "id", next_key = "other" } },
      key = { start = "id", through = "id", stop = "id" },
      on_match = function(delta, key, _, _, legs) got[#got + 1] = { delta, key, legs } end,
      on_dropped = function(how, key) got[#got + 1] = { how, key } end,
    }
    bring("a", 100, { id = 1 })
    bring("c", 110, { id = 1 })
    bring("c", 115, { id = 1 })
    bring("d", 130, { id = 1, other = 55 })
    bring("b", 140, { id = 1 })
    bring("b", 160, { id = 55 })
    bring("a", 200, { id = 2 })
    bring("d", 205, { id = 2, other = 66 })
    bring("c", 210, { id = 2 })
    bring("b", 220, { id = 2 })
    assert.same({ { 60, 55, { 10, 20, 30 } }, { "incomplete", 2 } }, got)
    assert.same({ starts = 2, matched = 1, incomplete = 1, unmatched = 2 }, nonzero(made))
  end)

  it("has one event do several things: cancel, stop, start", function()
    local got = {}
    local _, bring = new {
      start = "made:a", stop = "made:a", key = { start = "other", stop = "id", cancel = "id" },
      on_match = function(delta, key) got[#got + 1] = { delta, key } end,
    }
    bring("a", 10, { id = 0, other = 5 })
    bring("a", 25, { id = 5, other = 6 })
    bring("a", 45, { id = 6, other = 6 })
    bring("a", 75, { id = 6, other = 1 })
    assert.same({ { 15, 5 }, { 20, 6 }, { 30, 6 } }, got)
  end)

  it("counts the last of two starts, or the first", function()
    for again, delta in pairs { last = 10, first = 30 } do
      local got
      local made, bring = new { again = again, on_match = function(d) got = d end }
      bring("a", 100, { id = 1 })
      bring("a", 120, { id = 1 })
      bring("b", 130, { id = 1 })
      assert.equal(delta, got)
      assert.equal(again == "first" and 1 or 0, made:counts().repeated)
      assert.equal(again == "last" and 1 or 0, made:counts().replaced)
    end
  end)

  it("tells of every start that ends without a match, and of stops without a start", function()
    local got = {}
    local made, bring = new {
      cancel = "made:c", carry = "comm", timeout = 1e-6, max = 3,
      on_expired = function(key, values) got[#got + 1] = "expired " .. key .. values.comm end,
      on_dropped = function(how, key, values, ev)
        got[#got + 1] = ("%s %d%s %s"):format(how, key, values.comm, ev and ev.common_event)
      end,
      on_unmatched = function(key, ev) got[#got + 1] = "unmatched " .. key .. ev.comm end,
    }
    bring("a", 100, { id = 1, comm = "x" })
    bring("a", 110, { id = 1, comm = "y" })
    bring("c", 120, { id = 1 })
    bring("c", 125, { id = 1 })
    bring("b", 130, { id = 1, comm = "z" })
    bring("a", 200, { id = 2 })
    bring("a", 1201, { id = 3 })
    bring("a", 1202, { id = 4 })
    bring("a", 1203, { id = 5 })
    bring("a", 1204, { id = 6 })
    made:lost { cpu = 0, after_ts = 1204, before_ts = 1300 }
    assert.same({
      "replaced 1x made:a", "cancelled 1y made:c", "unmatched 1z", "expired 2",
      "evicted 3 made:a", "voided 4 nil", "voided 5 nil", "voided 6 nil",
    }, got)
    assert.same({ starts = 7, replaced = 1, cancelled = 1, unmatched = 1, expired = 1,
      evicted = 1, voided = 3 }, nonzero(made))
  end)

  it("lets starts expire by itself, and by the clock", function()
    local expired = 0
    local made, bring = new {
      timeout = 1, on_expired = function() expired = expired + 1 end,
    }
    bring("a", 1000, { id = 1 })
    bring("b", 1000 + 1000000000, { id = 1 })
    bring("a", 2000000000, { id = 1 })
    bring("b", 3000000001, { id = 1 })
    assert.equal(1, expired)
    bring("a", 4000000000, { id = 1 })
    made:expire(5000000000)
    assert.equal(1, expired)
    made:expire(5000000001)
    assert.equal(2, expired)
    assert.same({ starts = 3, matched = 1, expired = 2, unmatched = 1 }, nonzero(made))
  end)

  it("keeps CPUs apart when told to", function()
    local made, bring = new { same_cpu = true }
    bring("a", 10, { id = 1 }, { common_cpu = 0 })
    bring("a", 11, { id = 1 }, { common_cpu = 1 })
    bring("b", 12, { id = 1 }, { common_cpu = 2 })
    made:lost { cpu = 1, after_ts = 12 }
    bring("b", 13, { id = 1 }, { common_cpu = 1 })
    bring("b", 14, { id = 1 }, { common_cpu = 0 })
    assert.same({ starts = 2, matched = 1, voided = 1, unmatched = 2 }, nonzero(made))
  end)

  it("gives up starts of other CPUs that begin before a gap has ended", function()
    local made, bring = new {}
    bring("a", 10, { id = 1 }, { common_cpu = 0 })
    made:lost { cpu = 1, after_ts = 5, before_ts = 100 }
    bring("a", 50, { id = 2 }, { common_cpu = 0 })
    bring("b", 60, { id = 1 }, { common_cpu = 0 })
    bring("a", 101, { id = 3 }, { common_cpu = 0 })
    bring("b", 110, { id = 2 }, { common_cpu = 0 })
    bring("b", 111, { id = 3 }, { common_cpu = 0 })
    assert.same({ starts = 3, matched = 1, voided = 2, unmatched = 2 }, nonzero(made))
  end)

  it("makes no false latency of what comes late", function()
    local deltas = {}
    local made, bring = new { on_match = function(delta) deltas[#deltas + 1] = delta end }
    -- the stop of this start has gone by already, and the key has been used again
    bring("a", 100, { id = 1 })
    bring("b", 90, { id = 1 }, { common_late = true })
    bring("b", 110, { id = 1 })
    bring("a", 105, { id = 2 }, { common_late = true })
    bring("b", 200, { id = 2 })
    -- one that is late itself still ends the start before it
    bring("a", 300, { id = 3 })
    bring("d", 310, { id = 3 })
    bring("a", 305, { id = 3 }, { common_late = true })
    bring("b", 320, { id = 3 })
    -- a stop is late and its start is not: that is how long it took
    bring("a", 400, { id = 4 })
    bring("b", 410, { id = 4 }, { common_late = true })
    assert.same({ 10 }, deltas)
    assert.same({ starts = 5, matched = 1, replaced = 1, voided = 3, unmatched = 4, late = 4 },
      nonzero(made))
  end)

  it("counts matches as doubtful when a loss is told afterwards", function()
    local made, bring = new {}
    local function match(ts)
      bring("a", ts, { id = 1 })
      bring("b", ts + 10, { id = 1 })
    end
    for i = 1, 10 do
      match(i * 100000000)
    end
    made:lost { cpu = 0, after_ts = 750000000, before_ts = 1100000000, why = "dropped" }
    -- the three behind it, and the one that is not known to lie before it
    assert.equal(4, made:counts().doubtful)
    match(1050000000)
    made:lost { cpu = 1, after_ts = 750000000, before_ts = 1100000000, why = "dropped" }
    assert.equal(4, made:counts().doubtful)
    match(1200000000)
    made:lost { cpu = 1, why = "dropped" }
    assert.equal(5, made:counts().doubtful)
    -- what a page tells of stands at its place
    match(1300000000)
    made:lost { cpu = 1, why = "overrun", after_ts = 1300000010, before_ts = 1400000000 }
    made:lost { cpu = 2, why = "overrun", before_ts = 1400000000 }
    assert.equal(5, made:counts().doubtful)
  end)

  it("adds to aggregates, under what the start had", function()
    local by_comm = aggregate.new { "sum", by = { "comm", "other" } }
    local all = aggregate.new { "sum" }
    local _, bring = new { into = { by_comm, all }, carry = "id" }
    bring("a", 1, { id = 1, comm = "x", other = 3 })
    bring("b", 11, { id = 1, comm = "y" })
    bring("a", 1, { id = 1, comm = "", other = 3 })
    bring("b", 21, { id = 1 })
    assert.equal(10, by_comm:get("x", 3).sum)
    assert.equal(20, by_comm:get("", 3).sum)
    assert.equal(30, all:get().sum)
  end)

  it("lists what is open, the oldest first", function()
    local made, bring = new { carry = "comm" }
    bring("a", 1, { id = 5, comm = "x" }, { common_cpu = 1 })
    bring("a", 2, { id = 4, comm = "y" })
    bring("a", 3, { id = 3, comm = "z" })
    bring("b", 4, { id = 4 })
    assert.same({
      { key = 5, values = { comm = "x" }, since = 1, cpu = 1 },
      { key = 3, values = { comm = "z" }, since = 3, cpu = 0 },
    }, made:open())
  end)

  it("keeps its memory bounded, however many starts never stop", function()
    if helper.short then
      pending("a sanitizer keeps what was freed")
      return
    end
    local made, bring = new { max = 1000, key = "comm", carry = "name" }
    local function grow(from, to)
      for i = from, to do
        bring("a", i, { comm = "task " .. i, name = "n" .. i })
      end
      return math.tointeger(helper.read_file("/proc/self/status"):match "VmData:%s*(%d+)")
    end
    collectgarbage()
    local before = grow(1, 10000)
    assert.is_true(grow(10001, 60000) - before < 8192)
    assert.same({ starts = 60000, evicted = 59000, open = 1000 }, nonzero(made))
  end)

  it("goes on where a function has raised, and lets it call the pair", function()
    local calls = 0
    local made, bring
    made, bring = new {
      on_match = function()
        calls = calls + 1
        if calls == 1 then
          error "first"
        elseif calls == 2 then
          bring("a", 50, { id = 9 })
          bring("b", 60, { id = 9 })
        end
      end,
      on_dropped = function() error "dropped" end,
    }
    bring("a", 1, { id = 1 })
    bring("a", 2, { id = 2 })
    assert.has_error(function() bring("b", 3, { id = 1 }) end)
    bring("b", 4, { id = 2 })
    assert.equal(3, calls)
    bring("a", 70, { id = 5 })
    bring("a", 71, { id = 6 })
    assert.has_error(function() made:lost { cpu = 0, after_ts = 71 } end)
    -- both are given up, whatever the function said of the first
    assert.same({ starts = 5, matched = 3, voided = 2 }, nonzero(made))
    assert.has_error(function() bring("b", 80, { id = 6 }) end)
    assert.equal(1, made:counts().voided - 1)
    bring("b", 81, { id = 6 })
    assert.equal(3, made:counts().matched)
  end)
end)

describe("session:pair", function()
  local function refused(message, options, method)
    local session <close> = tracefs.session {}
    local ok, got = pcall(function()
      session.pair(method == "dot" and {} or session, options)
    end)
    assert.is_false(ok)
    assert.truthy(got:find(message, 1, true), got)
    assert.truthy(got:find "pair_spec.lua:%d+: ", got)
    -- nothing is left turned on
    assert.equal("", (session.instance:read "set_event"))
  end

  it("raises at the script's line, and turns nothing on then", function()
    local SWITCH <const> = "sched:sched_switch"
    refused("called with a colon", {}, "dot")
    refused("start is missing", {})
    refused("no event", { start = "sched:nosuch", stop = SWITCH, key = "next_pid" })
    refused("has no field 'pid'", { start = "sched:sched_waking", stop = SWITCH, key = "pid" })
    refused("nosuch", {
      start = "sched:sched_waking", stop = { event = SWITCH, filter = "nosuch == 1" },
      key = { start = "pid", stop = "next_pid" },
    })
    refused("is a list", { start = "raw_syscalls:sys_enter", stop = SWITCH,
      key = { start = "args", stop = "next_pid" } })
  end)

  it("says at the end why there is no match, and what it had no place for", function()
    local function said(options, lose)
      local session <close> = tracefs.session { file = helper.root .. "/examples/demo.dat" }
      local messages = {}
      session.on_notice = function(message)
        messages[#messages + 1] = message
      end
      options.start, options.stop = "net:net_dev_queue", "net:netif_receive_skb"
      local made = session:pair(options)
      if lose then
        session:every(0.001, function()
          made:lost { cpu = 0 }
        end)
      end
      session:run()
      return messages, made:counts()
    end
    assert.same({}, (said { key = "skbaddr" }))
    local NEVER <const> = "pair x: 211 starts and 211 stops, and no match: their keys are never the"
      .. " same"
    local other = { start = "skbaddr", stop = "len" }
    assert.same({ NEVER }, (said { key = other, name = "x" }))
    local messages, counts = said { key = other, name = "x", max = 5 }
    assert.is_true(counts.evicted > 0)
    assert.same({ NEVER, ("pair x: %d of 211 starts were given up, the oldest ones, as no more than"
      .. " 5 are kept open at once: give it a larger max"):format(counts.evicted) }, messages)
    assert.same({ NEVER }, (said { key = other, name = "x", max = 5, on_dropped = function() end }))
    messages, counts = said({ key = other }, true)
    assert.is_true(counts.voided > 0)
    assert.same({ ("pair net_dev_queue>netif_receive_skb: no match: %d of 211 starts were given up,"
      .. " as events were lost or came late while they were open"):format(counts.voided)
    }, messages)
  end)

  it("refuses a timeout where the clock counts no time", function()
    local session <close> = tracefs.session { clock = "counter" }
    local ok, message = pcall(session.pair, session, {
      start = "sched:sched_waking", stop = "sched:sched_switch", timeout = 1,
      key = { start = "pid", stop = "next_pid" },
    })
    assert.is_false(ok)
    assert.truthy(message:find("does not count time", 1, true), message)
  end)

  it("has no timeout that is too short to be one", function()
    local made, bring = new { timeout = 1e-10 }
    bring("a", 100, { id = 1 })
    made:expire(200)
    assert.same({ starts = 1, expired = 1 }, nonzero(made))
  end)
end)
