-- aggregate.c and keymap.c, against what Lua's own tables say.
local aggregate = require "tracefs.aggregate"
local helper = require "spec.support.helper"

helper.usual_collector()

describe("an aggregate by key", function()
  it("keeps keys of all kinds apart", function()
    local made = aggregate.new { "sum", by = { "a", "b" } }
    local keys = {
      { "", "" }, { "", 0 }, { 0, "" }, { 0, 0 }, { "0", 0 }, { "a", "bc" }, { "ab", "c" },
      { "a\0", "b" }, { "a", "\0b" }, { -1, math.mininteger }, { ("x"):rep(1000), 1 },
      { ("x"):rep(1001), 1 },
    }
    for i, key in ipairs(keys) do
      made:add(i, key[1], key[2])
    end
    assert.equal(#keys, #made)
    for i, key in ipairs(keys) do
      assert.equal(i, made:get(key[1], key[2]).sum)
    end
    assert.same(keys[5], made:cells()[5].keys)
    assert.is_nil(made:get("a", "b"))
    made:add(1, 3.0, "x")
    assert.equal(1, made:get(3, "x").sum)
  end)

  it("agrees with a Lua table over many keys", function()
    local made, sums = aggregate.new { "sum", by = "k", max = 100000 }, {}
    math.randomseed(7919)
    for i = 1, 50000 do
      local key = math.random(1, 9973) * 4096
      if i % 2 == 0 then
        key = ("task %d"):format(key)
      end
      made:add(i, key)
      sums[key] = (sums[key] or 0) + i
    end
    local count = 0
    for _, cell in ipairs(made:cells()) do
      count = count + 1
      assert.equal(sums[cell.keys[1]], cell.sum)
      sums[cell.keys[1]] = nil
    end
    assert.is_nil(next(sums))
    assert.equal(#made, count)
  end)

  it("takes memory for the keys it has", function()
    local status, out, err = helper.run_lua([[
      local aggregate = require "tracefs.aggregate"
      local function resident_kb()
        local file <close> = assert(io.open "/proc/self/status")
        return tonumber(file:read("a"):match "VmRSS:%s+(%d+) kB")
      end
      local before, kept = resident_kb(), {}
      for i = 1, 400 do
        kept[i] = aggregate.new { "count", by = "k" }
        kept[i]:add(1, i)
      end
      print(resident_kb() - before)
    ]])
    assert.equal("", err)
    assert.equal(0, status)
    -- each of them could take a hundred
    assert.is_true(tonumber(out) < 400 * 80, out)
  end)

  it("adds up what comes beyond its greatest number of keys", function()
    local made = aggregate.new { "count", "sum", by = "k", max = 3 }
    for i = 1, 1000 do
      made:add(i, i)
    end
    made:add(10, 2)
    assert.equal(3, #made)
    local cells = made:cells()
    assert.equal(4, #cells)
    assert.is_nil(cells[4].keys)
    assert.equal(997, cells[4].count)
    assert.equal(12, cells[2].sum)
    local sum = 0
    for _, cell in ipairs(cells) do
      sum = sum + cell.sum
    end
    assert.equal(500510, sum)
  end)

  it("keeps its memory bounded, whatever the keys", function()
    if helper.short then
      pending("a sanitizer keeps what was freed")
      return
    end
    local made = aggregate.new { "p50", by = "k", max = 100 }
    local function grow(from, to)
      for i = from, to do
        made:add(i % 1000, ("key %d"):format(i))
      end
      local status = helper.read_file("/proc/self/status")
      return math.tointeger(status:match "VmData:%s*(%d+)")
    end
    local before = grow(1, 10000)
    assert.is_true(grow(10001, 200000) - before < 4096)
    assert.equal(100, #made)
  end)

  it("is empty after a reset, and as good as new", function()
    local made = aggregate.new { "count", "p50", by = "k", max = 2 }
    for i = 1, 5 do
      made:add(i, i)
    end
    made:reset()
    assert.equal(0, #made)
    assert.same({}, made:cells())
    made:add(7, 5)
    assert.equal(7, made:percentile(50, 5))
  end)

  it("is not merged with what has other keys or another unit", function()
    local function new(by, unit)
      return aggregate.new { "sum", by = by, unit = unit }
    end
    local into = new({ "comm", "pid" }, "ns")
    into:merge(new({ "comm", "pid" }, "ns"))
    for _, other in ipairs { new({ "pid", "comm" }, "ns"), new({ "comm", "tid" }, "ns") } do
      assert.has_error(function() into:merge(other) end,
        "bad argument #1 to 'merge' (its keys have other names)")
    end
    for _, other in ipairs { new({ "comm", "pid" }, "us"), new({ "comm", "pid" }) } do
      assert.has_error(function() into:merge(other) end,
        "bad argument #1 to 'merge' (it has another unit)")
    end
  end)

  it("merged equals added, key by key", function()
    local options = { "sum", "p50", by = "k", max = 50 }
    local both, one, other = aggregate.new(options), aggregate.new(options), aggregate.new(options)
    for i = 1, 1000 do
      both:add(i, i % 40);
      (i % 2 == 0 and one or other):add(i, i % 40)
    end
    one:merge(other)
    assert.equal(40, #one)
    for i = 0, 39 do
      assert.same(both:get(i), one:get(i))
      assert.equal(both:percentile(50, i), one:percentile(50, i))
    end
    local small = aggregate.new { "sum", "p50", by = "k", max = 10 }
    small:merge(both)
    assert.equal(10, #small)
    assert.equal(500500, (function()
      local sum = 0
      for _, cell in ipairs(small:cells()) do
        sum = sum + cell.sum
      end
      return sum
    end)())
  end)
end)
