local helper = require "spec.support.helper"
local output = require "tracefs.output"

-- Reads a trace by the rules of the Trace Event Format: names, phases, tracks; slices of a track
-- lie within each other or apart; times have three digits behind the point, and survive as floats.
-- Prints every slice and instant with its times in ns.
local CHECK <const> = [[
import json, sys
from decimal import Decimal
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
trace = json.loads(text, parse_float=Decimal)
assert trace["displayTimeUnit"] == "ns"
floats = json.loads(text)["traceEvents"]
base = int(trace["otherData"]["begins_at_ns"])
named, slices = set(), {}
def ns(event, other, key):
    value = event[key]
    assert isinstance(value, Decimal) and value.as_tuple().exponent == -3, event
    assert round(other[key] * 1000) == int(value * 1000), event
    return int(value * 1000)
for event, other in zip(trace["traceEvents"], floats):
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
    assert isinstance(event["name"], str) and isinstance(event["args"], dict)
    track = (event["pid"], event["tid"])
    if event["ph"] == "M":
        assert event["name"] in ("process_name", "thread_name")
        assert isinstance(event["args"]["name"], str)
        named.add(track if event["name"] == "thread_name" else event["pid"])
        continue
    assert track in named and event["pid"] in named, event
    start = ns(event, other, "ts")
    if event["ph"] == "i":
        assert event["s"] == "t"
        print("instant", event["name"], base + start, event["tid"])
    else:
        assert event["ph"] == "X", event
        length = ns(event, other, "dur")
        assert length >= 0
        slices.setdefault(track, []).append((start, start + length))
        print("slice", event["name"], base + start, length)
for track in slices.values():
    open_ends = []
    for start, end in sorted(track, key=lambda slice: (slice[0], -slice[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (start, end, open_ends)
        open_ends.append(end)
]]

describe("tracefs.output.perfetto", function()
  if helper.execute { "python3", "-c", "" } ~= 0 then
    pending("python3 is not there")
    return
  end
  local path

  before_each(function()
    path = helper.tmpdir() .. "/trace.json"
  end)

  -- What the check has read, sorted: order in the file means nothing.
  local function checked()
    local status, out, err = helper.execute { "python3", "-c", CHECK, path }
    assert.same({ 0, "" }, { status, err })
    local list = {}
    for line in out:gmatch "[^\n]+" do
      list[#list + 1] = line
    end
    table.sort(list)
    return list
  end

  local function written(fill)
    local out = assert(output.open { path = path, format = "perfetto" })
    fill(out)
    assert.is_nil(out:close())
    return checked()
  end

  local function match(name, start, stop, stages)
    return {
      name = name, start = start, stop = stop, delta = stop - start, cpu = 0, in_ns = true,
      keys = { { name = 'k"\n\27\xff', value = math.mininteger } }, values = {},
      stages = stages or {},
    }
  end

  it("is a trace without anything in it, too", function()
    assert.same({}, written(function() end))
  end)

  it("keeps slices of one pair apart, and legs within them", function()
    local list, state, expected = {}, 17, {}
    for i = 1, 500 do
      state = state * 1103515245 + 12345 & 0x7fffffff
      local start = (state >> 8) % 20000
      list[i] = { start, start + (state >> 4) % 3000 }
      expected[i] = ("slice a>b %d %d"):format(start, list[i][2] - start)
    end
    expected[501], expected[502], expected[503] = "slice chain 5 30", "slice leg 1 5 10",
      "slice leg 2 15 20"
    table.sort(list, function(a, b) return a[2] < b[2] end)
    -- one comes late
    table.insert(list, table.remove(list, 250))
    table.sort(expected)
    assert.same(expected, written(function(out)
      for _, slice in ipairs(list) do
        out.writer:match(match("a>b", slice[1], slice[2]))
      end
      out.writer:match(match("chain", 5, 35, { 10, 20 }))
    end))
  end)

  it("keeps every ns, of clocks that are far from 0 too", function()
    for _, start in ipairs { 1, 29147114605265, 1795000000123456789, math.maxinteger - 5000 } do
      assert.same({
        ("instant lost: 3 events %d 1"):format(start + 1), ("slice p %d 1001"):format(start),
      }, written(function(out)
        out.writer:match(match("p", start, start + 1001))
        out:lost { cpu = 1, count = 3, after_ts = start, before_ts = start + 1, why = "overrun" }
      end))
    end
  end)

  it("has tables that say when, and how long", function()
    assert.same({
      "instant exec 1795000000123456789 0", "instant exec 1795000000123456790 0",
      "instant table 1795000000123456799 0", "slice life 1795000000123456787 2",
      "slice life 1795000000123456788 3",
    }, written(function(out)
      local at = 1795000000123456789
      out:show { type = "exec", time_ns = at, file = "\27\xff", cpu = math.mininteger }
      out:show { type = "life", time_ns = at, duration_ns = 2 }
      out:show { type = "life", time_ns = at + 2, duration_ns = 3, list = { 1, { a = "b" } } }
      out:show { type = "exec", time_ns = at + 1, duration_ns = -1 }
      out:show { type = 7, time_ns = at + 10, [1] = "x", [true] = 2 }
    end))
    assert.truthy(helper.read_file(path):find('"args":{"list":[1,{"a":"b"}]}', 1, true))
  end)

  it("has the digits of what a viewer would round as text", function()
    written(function(out)
      out:lost { cpu = 1, count = 3, after_ts = 1795000000123456789, why = "overrun" }
    end)
    assert.truthy(helper.read_file(path):find('"args":{"cpu":1,"count":3,'
      .. '"after_ts":"1795000000123456789","before_ts":null,"why":"overrun"}', 1, true))
  end)

  local PAIR <const> = [[trace:pair { name = "p", start = "net:net_dev_queue",
    stop = "net:netif_receive_skb", key = "skbaddr", carry = "name",
    on_match = function() matched = (matched or 0) + 1 end }
    on("net:net_dev_queue") on("net:netif_receive_skb", { "name", "skbaddr" })
    at_end(function() io.stderr:write(matched, "\n") end)]]

  it("has the events and pairs of a recording, with the times of the JSON", function()
    local status, _, err = helper.run {
      "-q", "-i", "examples/demo.dat", "-f", "perfetto", "-o", path, "-e", PAIR,
    }
    assert.equal(0, status, err)
    local matched = tonumber(err:match "^%d+")
    assert.is_true(matched > 0)
    local found = checked()
    local text
    status, text, err = helper.run {
      "-q", "-i", "examples/demo.dat", "-f", "json", "-e",
      (PAIR:gsub("on_match = .- end }", "}"):gsub("at_end.*$", "")
        :gsub(', { "name", "skbaddr" }', "")),
    }
    assert.equal(0, status, err)
    local expected = {}
    for line in text:gmatch "[^\n]+" do
      local start, delta = line:match '"type":"pair".*"start":(%d+).*"delta":(%d+)'
      local name, timestamp, cpu =
        line:match '"common_event":"(.-)","common_timestamp":(%d+),"common_cpu":(%d+)'
      if start then
        expected[#expected + 1] = ("slice p %s %s"):format(start, delta)
      elseif name then
        expected[#expected + 1] = ("instant %s %s %s"):format(name, timestamp, cpu)
      end
    end
    table.sort(expected)
    assert.same(expected, found)
  end)
end)
