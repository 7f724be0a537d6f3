local aggregate = require "tracefs.aggregate"
local globals = require "spec.support.globals"

local function bad(message, options)
  local ok, got = pcall(aggregate.new, options)
  assert.is_false(ok)
  assert.truthy(got:find(message, 1, true), got)
end

local function check_width(text)
  for line in text:gmatch "[^\n]+" do
    assert.is_true(#line < 80, #line .. " columns: " .. line)
  end
end

describe("tracefs.aggregate", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.aggregate"))
  end)

  it("checks its options, and says where", function()
    bad("must be a table", nil)
    bad("columns are needed", {})
    bad("unknown column 'mean'", { "mean" })
    bad("unknown column 'p101'", { "p101" })
    bad("unknown option 'colour'", { "count", colour = 1 })
    bad("unit: ns", { "count", unit = "parsec" })
    for _, name in ipairs { "p50", "count", "histogram" } do
      bad(("by: '%s'"):format(name), { "count", by = name })
    end
    bad("by: 'a'", { "count", by = { "a", "a" } })
    bad("by: names are strings", { "count", by = { 5 } })
    bad("by: from 1 to 8", { "count", by = {} })
    bad("max: a whole number from 1", { "count", max = 0 })
    bad("max: a whole number from 1", { "count", max = "x" })
    bad("there are no buckets", { "count", error = 0.1 })
    bad("error: a share", { "p50", error = 0 })
    bad("error: a share", { "p50", error = 2 })
    bad("scale:", { "p50", scale = "log10" })
    bad('only buckets of the scale "linear"', { "p50", width = 5 })
    bad('only buckets of the scale "log-linear"', { "p50", scale = "log2", error = 0.5 })
    bad("width:", { "p50", scale = "linear", to = 10 })
    bad("to: a whole number from 11", { "p50", scale = "linear", from = 10, to = 10, width = 1 })
    local _, message = pcall(function()
      return (aggregate.new { "mean" })
    end)
    assert.truthy(message:find "aggregate_spec.lua:%d+: aggregate: unknown column")
  end)

  describe("rows", function()
    local function filled()
      local made = aggregate.new {
        "count", "sum", "average", "minimum", "maximum", "deviation", "p50", "histogram",
        by = { "comm", "pid" }, max = 3,
      }
      made:add(1, "b", 7)
      made:add(3, "b", 7)
      made:add(20, "a", 8)
      made:add(5, "a", 1)
      made:add(9, "z", 9)
      return made
    end

    it("are plain tables in the order of the keys, other keys last", function()
      local rows = filled():rows()
      assert.same({ comm = "b", pid = 7, count = 2, sum = 4, average = 2.0, minimum = 1,
        maximum = 3, deviation = 1.0, p50 = 1 }, rows[3])
      assert.equal("a", rows[1].comm)
      assert.equal(1, rows[1].pid)
      assert.is_true(rows[4].other)
      assert.is_nil(rows[4].comm)
      assert.equal(9, rows[4].sum)
    end)

    it("are sorted by a column, and cut", function()
      local rows = filled():rows { sort = "maximum", top = 2 }
      assert.equal(2, #rows)
      assert.equal(20, rows[1].maximum)
      assert.equal(5, rows[2].maximum)
      assert.has_error(function() filled():rows { sort = "nosuch" } end)
    end)

    it("are none when nothing was added", function()
      assert.same({}, aggregate.new({ "count" }):rows())
      assert.same({}, aggregate.new({ "count", by = "k" }):rows())
    end)

    it("order keys of two kinds", function()
      local made = aggregate.new { "count", by = "k" }
      made:count "b"
      made:count(2)
      made:count "a"
      made:count(-1)
      local keys = {}
      for i, row in ipairs(made:rows()) do
        keys[i] = row.k
      end
      assert.same({ -1, 2, "a", "b" }, keys)
    end)
  end)

  describe("text", function()
    it("is an aligned table with units", function()
      local made = aggregate.new {
        "count", "average", "maximum", by = { "comm", "pid" }, unit = "ns",
        titles = { count = "wakeups", comm = "task" },
      }
      made:add(1500, "sh", 12)
      made:add(2500, "sh", 12)
      made:add(20000000, "a longer name", 9)
      assert.equal(table.concat({
        "task          pid wakeups     avg     max",
        "a longer name   9       1  20.0ms  20.0ms",
        "sh             12       2  2.00us  2.50us",
      }, "\n"), tostring(made))
    end)

    it("is aligned by characters, not by bytes", function()
      local made = aggregate.new { "count", by = "comm", titles = { comm = "t\u{e2}che" } }
      made:count "\u{fc}n\u{ef}cod\u{e9}"
      made:count "plain"
      assert.equal("t\u{e2}che     count\nplain         1\n\u{fc}n\u{ef}cod\u{e9}       1",
        tostring(made))
    end)

    it("has bars for a histogram", function()
      local made = aggregate.new { "histogram" }
      for _ = 1, 10 do
        made:add(5)
      end
      made:add(40)
      local lines = made:lines()
      assert.equal(4, #lines)
      assert.truthy(lines[1]:find "^  4 %.%. 7  10 |#+$")
      assert.equal(" 8 .. 15   0 |", lines[2])
      assert.equal("16 .. 31   0 |", lines[3])
      assert.truthy(lines[4]:find "^32 %.%. 63   1 |#+$")
      assert.equal(table.concat(lines, "\n"), tostring(made))
    end)

    it("stays below 80 columns, whatever it holds", function()
      local made = aggregate.new {
        "count", "sum", "average", "minimum", "maximum", "variance", "deviation", "p50", "p99",
        "p99.9", "p99.99", "histogram", by = { "comm", "file", "number" }, max = 5,
      }
      for i = 1, 7 do
        for row = 0, 62 do
          made:add(1 << row, ("c"):rep(i * 4), ("f"):rep(70), i)
          made:add(-(1 << row), ("c"):rep(i * 4), ("f"):rep(70), i)
        end
      end
      check_width(tostring(made))
      local unsigned = aggregate.new { "histogram", unsigned = true }
      for row = 0, 63 do
        unsigned:add(1 << row)
      end
      check_width(tostring(unsigned))
      assert.equal(64, #unsigned:lines())
    end)

    it("tells of the keys that have no bars", function()
      local made = aggregate.new { "histogram", by = "dev", max = 1 }
      for i = 1, 11 do
        made:add(i, "sda")
        made:add(i, "sdb")
      end
      made:add(1, "sdc")
      assert.matches("\n\n%(other%): 12 values of further keys$", tostring(made))
      assert.is_nil(made:text({ top = 1 }):find("other", 1, true))
    end)

    it("shows a value that is too rare for a bar", function()
      local made = aggregate.new { "histogram" }
      made:add(1)
      for _ = 1, 1009 do
        made:add(2)
      end
      assert.truthy(made:lines()[1]:find("1 |.", 1, true))
    end)

    it("shows a gap between linear buckets", function()
      local made = aggregate.new { "histogram", scale = "linear", to = 100, width = 10 }
      made:add(5)
      made:add(35)
      made:add(1000)
      local lines = made:lines()
      assert.truthy(lines[2]:find "^ *10 %.%. 19 +0 |$")
      assert.truthy(lines[#lines]:find "^ *100 %.%. 1000 +1 |#+$")
      check_width(tostring(made))
    end)

    it("lets no name steer the terminal or break a line", function()
      local made = aggregate.new { "count", "histogram", by = "comm" }
      made:add(1, "\27[2Jevil\n\255")
      local text = tostring(made)
      assert.falsy(text:find "[\27\255]")
      -- head, row, and the bars under an empty line and the name
      assert.equal(4, select(2, text:gsub("\n", "")))
    end)

    it("is a head alone when nothing was added", function()
      assert.equal("comm   count", tostring(aggregate.new { "count", by = "comm" }))
      assert.equal("", tostring(aggregate.new { "histogram" }))
    end)
  end)
end)
