-- What pairs tell and count in random streams without losses, against a matcher that looks at every
-- open start. What losses do is pairing_spec.lua's.
local helper = require "spec.support.helper"
local made_events = require "spec.support.made_events"
local new_pair = require("tracefs.pair").new

helper.usual_collector()

local random = math.random
local ROUNDS <const> = helper.short and 100 or 500

local set = made_events.new()
local FIELDS <const> = { { "id", "u64" }, { "number", "u64" }, { "comm", "char[16]" } }
local make = {}
for _, name in ipairs { "s1", "s2", "p1", "p2", "t1", "t2", "c" } do
  make[name] = set.add("made:" .. name, FIELDS)
end
local ROLES <const> = { "s1", "s1", "s2", "p1", "p2", "t1", "t2", "c" }

local function key_text(key)
  return type(key) == "table" and table.concat(key, ",") or tostring(key)
end

-- The options of a round, and the pair that they make, which writes what it tells into a list.
local function new_round()
  local round = {
    again = random() < 0.5 and "first" or "last", max = random() < 0.5 and random(1, 6) or 1000,
    timeout = random() < 0.5 and random(5, 60) or nil, same_cpu = random() < 0.4,
    stages = random(0, 2), parts = random(1, 2), by_function = random() < 0.3, told = {},
  }
  round.rekeys = round.stages > 0 and random() < 0.3
  local function tell(...)
    round.told[#round.told + 1] = string.format(...)
  end
  local names = round.parts == 1 and { "id" } or { "id", "comm" }
  local key = names
  if round.by_function then
    key = {
      start = names, cancel = names, through = names,
      stop = function(ev) return ev.id, ev.comm end,
    }
  end
  local through = {}
  for stage = 1, round.stages do
    through[stage] = { event = "made:p" .. stage }
  end
  if round.rekeys then
    through[1].next_key = round.parts == 1 and { "number" } or { "number", "comm" }
  end
  round.pair = new_pair({
    start = { "made:s1", "made:s2" }, stop = { "made:t1", "made:t2" }, cancel = "made:c",
    through = through, key = key, again = round.again, max = round.max, same_cpu = round.same_cpu,
    timeout = round.timeout and (round.timeout - 0.5) * 1e-9, carry = { "number", "comm" },
    on_match = function(delta, of, values, stop, legs)
      tell("matched %s %d %s by %d in %d: %s", key_text(of), values.number, values.comm,
        stop.number, delta, table.concat(legs, " "))
    end,
    on_expired = function(of, values) tell("expired %s %d", key_text(of), values.number) end,
    on_dropped = function(how, of, values, ev)
      tell("%s %s %d by %d", how, key_text(of), values.number, ev.number)
    end,
    on_unmatched = function(of, stop) tell("unmatched %s by %d", key_text(of), stop.number) end,
  }, set.find)
  return round
end

-- The same by the book: `open` is a list of the open starts, the oldest first.
local Model = {}
Model.__index = Model

local function new_model(round)
  local counts = {}
  for name in pairs(round.pair:counts()) do
    counts[name] = 0
  end
  return setmetatable({ round = round, open = {}, told = {}, counts = counts }, Model)
end

function Model:tell(how, ...)
  self.counts[how] = self.counts[how] + 1
  self.told[#self.told + 1] = how .. string.format(...)
end

function Model:find(key, cpu)
  for at, start in ipairs(self.open) do
    if start.key == key and (not self.round.same_cpu or start.cpu == cpu) then
      return at, start
    end
  end
end

function Model:drop(at, how, event)
  local start = table.remove(self.open, at)
  self:tell(how, " %s %d by %d", start.key, start.number, event.number)
end

function Model:expire(now)
  local timeout = self.round.timeout
  while timeout and self.open[1] and now - self.open[1].ts > timeout do
    local start = table.remove(self.open, 1)
    self:tell("expired", " %s %d", start.key, start.number)
  end
end

function Model:start(event, at)
  self.counts.starts = self.counts.starts + 1
  if at and self.round.again == "first" then
    self.counts.repeated = self.counts.repeated + 1
    return
  elseif at then
    self:drop(at, "replaced", event)
  end
  if #self.open >= self.round.max then
    self:drop(1, "evicted", event)
  end
  self.open[#self.open + 1] = {
    key = event.key, ts = event.ts, number = event.number, comm = event.comm, cpu = event.cpu,
    reached = { event.ts },
  }
end

function Model:pass(event, start, stage)
  if not start or #start.reached ~= stage then
    return
  end
  start.reached[stage + 1] = event.ts
  if self.round.rekeys and stage == 1 then
    local key = self.round.parts == 1 and tostring(event.number)
      or event.number .. "," .. event.comm
    local at, other = self:find(key, event.cpu)
    if at and other ~= start then
      self:drop(at, "replaced", event)
    end
    start.key, start.cpu = key, event.cpu
  end
end

function Model:stop(event, at, start)
  if not start or #start.reached <= self.round.stages then
    self:tell("unmatched", " %s by %d", event.key, event.number)
    if start then
      self:drop(at, "incomplete", event)
    end
    return
  end
  table.remove(self.open, at)
  local legs = {}
  start.reached[#start.reached + 1] = event.ts
  for i = 2, #start.reached do
    legs[i - 1] = start.reached[i] - start.reached[i - 1]
  end
  self:tell("matched", " %s %d %s by %d in %d: %s", event.key, start.number, start.comm,
    event.number, event.ts - start.ts, table.concat(legs, " "))
end

function Model:feed(event)
  local role, stage = event.name:sub(1, 1), tonumber(event.name:match "p(%d)")
  if stage and stage > self.round.stages then
    return
  end
  self:expire(event.ts)
  local at, start = self:find(event.key, event.cpu)
  if role == "c" and at then
    self:drop(at, "cancelled", event)
  elseif role == "t" then
    self:stop(event, at, start)
  elseif role == "p" then
    self:pass(event, start, stage)
  elseif role == "s" then
    self:start(event, at)
  end
  self.counts.open = #self.open
end

local function play(seed)
  math.randomseed(seed)
  local round = new_round()
  local model = new_model(round)
  local ts = 100
  for number = 1, random(5, 80) do
    ts = ts + random(0, 12)
    local event = {
      name = ROLES[random(#ROLES)], id = random(0, 3), comm = "k" .. random(1, 2), ts = ts,
      cpu = random(0, 1), number = round.rekeys and random(0, 5) or number,
    }
    event.key = round.parts == 1 and tostring(event.id) or event.id .. "," .. event.comm
    round.pair:feed(make[event.name]({ id = event.id, number = event.number, comm = event.comm },
      { common_timestamp = ts, common_cpu = event.cpu }))
    model:feed(event)
  end
  return round, model
end

describe("pairs of random streams", function()
  it("tell and count what a matcher does that looks at every open start", function()
    local sums = {}
    for seed = 1, ROUNDS do
      local round, model = play(seed)
      assert.equal(table.concat(model.told, "\n"), table.concat(round.told, "\n"), "seed " .. seed)
      assert.same(model.counts, round.pair:counts(), "seed " .. seed)
      for name, count in pairs(model.counts) do
        sums[name] = (sums[name] or 0) + count
      end
    end
    for name, sum in pairs(sums) do
      local of_losses = name == "voided" or name == "late" or name == "doubtful"
      assert.equal(not of_losses, sum > 0, name)
    end
  end)
end)
