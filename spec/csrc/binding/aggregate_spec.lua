local core = require "tracefs.core"

local function options_with(changes)
  local options = { parts = 0, max = 10, scale = "log", bits = 7 }
  for name, value in pairs(changes or {}) do
    options[name] = value
  end
  return options
end

local function bad(message, fn, ...)
  local ok, got = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(got:find(message, 1, true), got)
end

describe("core.aggregate", function()
  it("checks its options", function()
    bad("table expected", core.aggregate)
    bad("parts:", core.aggregate, options_with { parts = 9 })
    bad("parts:", core.aggregate, options_with { parts = "x" })
    bad("max:", core.aggregate, options_with { max = 0 })
    bad("bits:", core.aggregate, options_with { bits = 12 })
    bad("invalid option 'log10'", core.aggregate, options_with { scale = "log10" })
    local linear = { scale = "linear", from = 0, count = 10, width = 10 }
    core.aggregate(options_with(linear))
    for name, value in pairs { count = 0, width = 0, from = "x" } do
      local changed = options_with(linear)
      changed[name] = value
      bad(name .. ":", core.aggregate, changed)
    end
    linear.width = math.maxinteger
    bad("beyond 2^63", core.aggregate, options_with(linear))
    linear.width, linear.from = 1, math.maxinteger - 5
    bad("beyond 2^63", core.aggregate, options_with(linear))
  end)

  it("checks the arguments of its methods", function()
    local plain, keyed = core.aggregate(options_with()), core.aggregate(options_with { parts = 2 })
    for name, method in pairs(getmetatable(plain).__index) do
      if name ~= "rows" and name ~= "text" and name ~= "lines" then
        bad("tracefs.aggregate expected", method)
        bad("tracefs.aggregate expected", method, io.stdout)
        bad("tracefs.aggregate expected", method, {})
      end
    end
    bad("number expected", plain.add, plain, "x")
    bad("1 keys were given; this aggregate has 0", plain.add, plain, 1, "x")
    bad("1 keys were given; this aggregate has 2", keyed.add, keyed, 1, "x")
    bad("strings and whole numbers", keyed.add, keyed, 1, "x", nil)
    bad("strings and whole numbers", keyed.add, keyed, 1, "x", 1.5)
    bad("strings and whole numbers", keyed.count, keyed, {}, "x")
    bad("percent", plain.percentile, plain, 101)
    bad("percent", plain.percentile, plain, 0 / 0)
    plain:add(1)
    bad("percent", plain.cells, plain, { 50, -1 })
    plain:reset()
    bad("no histogram", function()
      return core.aggregate(options_with { scale = "none" }):percentile(50)
    end)
    bad("no histogram", function()
      return core.aggregate(options_with { scale = "none" }):buckets()
    end)
    bad("other keys, columns or buckets", plain.merge, plain, keyed)
    bad("other keys, columns or buckets", plain.merge, plain,
      core.aggregate(options_with { bits = 6 }))
    assert.equal(0, #plain)
    assert.equal(0, #keyed)
  end)

  it("knows nothing when it is empty", function()
    local plain = core.aggregate(options_with())
    assert.is_nil(plain:get())
    assert.is_nil(plain:percentile(50))
    assert.same({}, plain:buckets())
    assert.same({ { count = 0, sum = 0, keys = {} } }, plain:cells { 50 })
    assert.equal(10, plain:options().max)
  end)
end)
