local globals = require "spec.support.globals"
local tracefs = require "tracefs"

describe("tracefs.folded", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.folded"))
  end)

  it("counts by stack, and sorts", function()
    local counts = tracefs.folded()
    counts:add("a;b;c")
    counts:add("a;b", 5)
    counts:add("a;b;c", 6)
    counts:add("", 1)
    counts:add(false, 2)
    counts:add(nil, 3)
    assert.equal("[no stack] 6\na;b 5\na;b;c 7\n", counts:text())
    assert.equal(counts:text(), tostring(counts))
    assert.equal(18, counts:total())
    assert.equal(3, #counts)
    assert.same({ { stack = "a;b;c", count = 7 } }, counts:rows { sort = "count", top = 1 })
  end)

  it("takes lists of stacks, and names before them", function()
    local counts = tracefs.folded()
    counts:add({ "main;read", "sys_read;vfs_read" }, 1, "cat", 17)
    counts:add({ "", "kthread" }, 1, "kworker")
    counts:add({ "", "" }, 1, "swapper")
    counts:add({ "main", false }, 1)
    counts:add({ "", "" }, 1)
    assert.equal("[no stack] 1\ncat;17;main;read;sys_read;vfs_read 1\nkworker;kthread 1\n"
      .. "main;[no stack] 1\nswapper 1\n", counts:text())
  end)

  it("keeps a line of its own for each stack, whatever the names are", function()
    local counts = tracefs.folded()
    counts:add("a\nb 7;c", 1, "x;y\n9", "\27[2J")
    local text = counts:text()
    assert.equal("x:y\\n9;\\x1B[2J;a?b 7;c 1\n", text)
  end)

  it("keeps so many stacks apart, and the total right", function()
    local counts = tracefs.folded { max = 2 }
    for i = 1, 10 do
      counts:add("s" .. i, i)
    end
    counts:add("s1", 1)
    assert.equal("[other stacks] 52\ns1 2\ns2 2\n", counts:text())
    assert.equal(56, counts:total())
  end)

  it("refuses what is no stack, no count and no option", function()
    local counts = tracefs.folded()
    assert.matches("spec%.lua:%d+: add%(stack, count%): a stack is a string .*, not number",
      select(2, pcall(function() counts:add(5) end)))
    assert.matches("spec%.lua:%d+: add%(stack, count%): a whole number from 0 is needed, not %-1",
      select(2, pcall(function() counts:add("a", -1) end)))
    assert.matches("not 1%.5", select(2, pcall(function() counts:add("a", 1.5) end)))
    assert.matches("spec%.lua:%d+: folded: unknown option 'size'; there are: max, title, unit, "
      .. "what", select(2, pcall(function() tracefs.folded { size = 1 } end)))
    assert.matches("max: a whole number from 1 is needed, not 0",
      select(2, pcall(tracefs.folded, { max = 0 })))
    assert.matches("folded: title: a string is needed, not table",
      select(2, pcall(tracefs.folded, { title = {} })))
    assert.matches("folded: unknown unit 'parsec'",
      select(2, pcall(tracefs.folded, { unit = "parsec" })))
    assert.matches("the options must be a table, not number", select(2, pcall(tracefs.folded, 5)))
    assert.equal(0, #counts)
  end)
end)
