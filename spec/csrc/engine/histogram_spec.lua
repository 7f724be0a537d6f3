-- histogram.c, through the class that holds them.
local aggregate = require "tracefs.aggregate"
local helper = require "spec.support.helper"

helper.usual_collector()

local LONG <const> = (os.getenv("LUATRACE_LONG") or "") ~= ""
local PERCENTS <const> = { 0, 0.01, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99, 100 }

-- The value that a share of a sorted list does not exceed; whole numbers only, for what is exact.
local function exact(sorted, percent)
  local hundredths = math.tointeger(("%.0f"):format(percent * 100))
  return sorted[math.max(1, (#sorted * hundredths + 9999) // 10000)]
end

local function with(options, values)
  options[#options + 1] = "count"
  local made = aggregate.new(options)
  for _, value in ipairs(values) do
    made:add(value)
  end
  return made
end

local function check_percentiles(made, values, share)
  table.sort(values)
  for _, percent in ipairs(PERCENTS) do
    local is, should = made:percentile(percent), exact(values, percent)
    assert.is_true(is >= should and is <= should + math.abs(should) * share,
      ("p%g: %d for %d"):format(percent, is, should))
  end
end

describe("a histogram", function()
  it("keeps count, exact sum, least, greatest, average and variance", function()
    local made = aggregate.new { "sum", "variance" }
    for _, value in ipairs { 2, 4, 4, 4, 5, 5, 7, 9 } do
      made:add(value)
    end
    assert.same({
      count = 8, sum = 40, minimum = 2, maximum = 9, average = 5.0, variance = 4.0,
    }, made:get())
  end)

  it("has a sum of more than 64 bits as a float, and any smaller one exactly", function()
    local made = aggregate.new { "sum" }
    made:add(math.maxinteger)
    made:add(math.maxinteger)
    assert.equal(2.0 ^ 64, made:get().sum)
    made:add(math.mininteger)
    assert.equal(math.maxinteger - 1, made:get().sum)
    made:add(-11)
    assert.equal("integer", math.type(made:get().sum))
    assert.equal(math.maxinteger - 12, made:get().sum)
  end)

  it("adds up what is below 0: errors that calls return", function()
    local made = with({ "sum", "p50" }, { -11, -11, 100, -2 })
    assert.equal(76, made:get().sum)
    assert.equal(-11, made:get().minimum)
    assert.equal(-11, made:percentile(50))
    assert.equal(-2, made:percentile(75))
  end)

  it("reads integers as unsigned when told to", function()
    local made = with({ "sum", "p50", "histogram", unsigned = true }, { 5, -1, math.mininteger })
    assert.equal(5, made:get().minimum)
    assert.equal(-1, made:get().maximum)
    assert.is_true(math.ult(math.maxinteger, made:percentile(50)))
    assert.same({ from = math.mininteger, to = -1, count = 2 }, made:buckets()[2])
    assert.truthy(made:lines()[62]:find("9223372036854775808 .. 18446744073709551615", 1, true))
  end)

  it("loses no value, whatever its size", function()
    local made = with({ "histogram" },
      { 0, 1, 2, 4, 1 << 32, math.maxinteger, math.mininteger, -1 })
    assert.same({
      { from = math.mininteger, to = math.mininteger, count = 1 },
      { from = -1, to = -1, count = 1 },
      { from = 0, to = 1, count = 2 },
      { from = 2, to = 3, count = 1 },
      { from = 4, to = 7, count = 1 },
      { from = 1 << 32, to = (1 << 33) - 1, count = 1 },
      { from = 1 << 62, to = math.maxinteger, count = 1 },
    }, made:buckets())
  end)

  it("cuts floats and refuses what is no number in range", function()
    local made = aggregate.new { "histogram" }
    assert.is_true(made:add(1234.9))
    assert.is_true(made:add(-0.5))
    assert.is_false(made:add(0 / 0))
    assert.is_false(made:add(math.huge))
    assert.is_false(made:add(2.0 ^ 63))
    assert.equal(3, made:refused())
    assert.equal(1234, made:get().maximum)
    assert.equal(-1, made:get().minimum)
    assert.equal(2, made:get().count)
    local unsigned = aggregate.new { "histogram", unsigned = true }
    assert.is_true(unsigned:add(2.0 ^ 63))
    assert.is_false(unsigned:add(-1.0))
    assert.equal(math.mininteger, unsigned:get().maximum)
  end)

  it("has percentiles within the error, and never below", function()
    math.randomseed(7919)
    for _, share in ipairs { 1, 0.5, 0.1, 0.01, 0.001 } do
      local values = {}
      for i = 1, 5003 do
        values[i] = math.floor(math.exp(math.random() * 20))
      end
      check_percentiles(with({ "p50", error = share }, values), values, share)
      for i, value in ipairs(values) do
        values[i] = i % 3 == 0 and -value or value
      end
      check_percentiles(with({ "p50", error = share }, values), values, share)
    end
  end)

  it("counts a share of the values as decimals do", function()
    -- 99.9 * 41000 / 100 is 40959.000000000007
    for percent, case in pairs {
      [99.9] = { 41000, 40959 }, [99.99] = { 10000, 9999 }, [90] = { 10, 9 }, [90.01] = { 10, 10 },
      [0.1] = { 1000, 1 }, [0.11] = { 1000, 2 }, [100] = { 7, 7 }, [0] = { 7, 1 },
    } do
      local count, rank = table.unpack(case)
      for small = rank - 1, rank do
        local made = aggregate.new { "p50" }
        for i = 1, count do
          made:add(i <= small and 1 or 1000000)
        end
        assert.equal(small == rank and 1 or 1000000, made:percentile(percent), percent)
      end
    end
  end)

  it("has exact percentiles of small values", function()
    local values = {}
    for i = 1, 200 do
      values[i] = i
    end
    check_percentiles(with({ "p50" }, values), values, 0)
  end)

  it("has linear buckets, with what lies outside them", function()
    local made = with({ "histogram", "p50", scale = "linear", from = 10, to = 100, width = 10 },
      { -5, 9, 10, 19, 20, 55, 99, 100, 1000 })
    assert.same({
      { from = -5, to = 9, count = 2 },
      { from = 10, to = 19, count = 2 },
      { from = 20, to = 29, count = 1 },
      { from = 50, to = 59, count = 1 },
      { from = 90, to = 99, count = 1 },
      { from = 100, to = 1000, count = 2 },
    }, made:buckets())
    assert.equal(29, made:percentile(50))
    assert.equal(9, made:percentile(20))
    assert.equal(1000, made:percentile(90))
  end)

  it("merged equals added", function()
    math.randomseed(104729)
    local options = { "variance", "p50", "histogram", "sum", "minimum", "maximum" }
    local both, one, other = aggregate.new(options), aggregate.new(options), aggregate.new(options)
    for i = 1, 3001 do
      local value = math.floor(math.exp(math.random() * 30)) * (i % 5 == 0 and -1 or 1)
      both:add(value)
      if i % 3 == 0 then
        one:add(value)
      else
        other:add(value)
      end
    end
    one:merge(other)
    one:merge(aggregate.new(options))
    local a, b = both:get(), one:get()
    assert.near(1, b.variance / a.variance, 1e-9)
    a.variance, b.variance = nil, nil
    assert.same(a, b)
    assert.same(both:buckets(), one:buckets())
    for _, percent in ipairs(PERCENTS) do
      assert.equal(both:percentile(percent), one:percentile(percent))
    end
    local empty = aggregate.new(options)
    empty:merge(both)
    assert.same(both:buckets(), empty:buckets())
    local before = both:get().count
    both:merge(both)
    assert.equal(2 * before, both:get().count)
  end)

  it("keeps to its error over ten million values, in bounded memory", function()
    if not LONG then
      pending("runs with LUATRACE_LONG=1")
      return
    end
    math.randomseed(1299709)
    local made = aggregate.new { "p50", error = 0.01 }
    local values = {}
    for i = 1, 10000000 do
      local value = math.floor(math.exp(math.random() * 10 + math.random() * 10))
      values[i] = value
      made:add(value)
    end
    check_percentiles(made, values, 0.01)
  end)

  it("gives its buckets as they are counted", function()
    local values = aggregate.new { "histogram", error = 0.25 }
    for _, value in ipairs { -100, -3, 0, 1, 9, 1000, 1001, math.mininteger, math.maxinteger } do
      values:add(value)
    end
    local list = {}
    for i, step in ipairs(values:steps()) do
      list[i] = { step.from, step.to, step.count }
    end
    assert.same({
      { math.mininteger, math.mininteger, 1 }, { -111, -96, 1 }, { -3, -3, 1 }, { 0, 0, 1 },
      { 1, 1, 1 }, { 8, 9, 1 }, { 896, 1023, 2 }, { 7 << 60, math.maxinteger, 1 },
    }, list)
    assert.same({}, aggregate.new({ "histogram" }):steps())
  end)
end)
