local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local HOSTILE <const> = '</text><script>alert(1)</script>&"\'\27]0;x\7\xff\u{ffff}\n'

describe("tracefs.flame", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.flame"))
  end)

  local function boxes(svg)
    local list = {}
    for title, x, y, width in svg:gmatch(
      '<g><title>([^<]*)</title><rect x="([%d.]+)" y="(%d+)" width="([%d.]+)"') do
      local name, count, share = title:match("^(.-): (.-), ([%d.]+) %%$")
      list[name] = {
        count = count, share = tonumber(share), x = tonumber(x), y = tonumber(y),
        width = tonumber(width),
      }
    end
    return list
  end

  it("has a box for each function, as wide as its count, on top of its caller", function()
    local counts = tracefs.folded()
    counts:add("main;work", 30)
    counts:add("main;work;deep", 20)
    counts:add("main;rest", 50)
    counts:add("other", 100)
    local list = boxes(counts:flame())
    assert.equal("200 samples", list.all.count)
    assert.equal("100 samples", list.main.count)
    assert.equal(25, list.work.share)
    assert.equal("20 samples", list.deep.count)
    assert.equal("50 samples", list.rest.count)
    local function near(expected, value)
      assert.is_true(math.abs(expected - value) < 0.2, ("%s, not %s"):format(value, expected))
    end
    near(list.all.width / 2, list.main.width)
    near(list.all.width / 4, list.work.width)
    near(list.all.width / 10, list.deep.width)
    near(list.work.x, list.deep.x)
    near(list.main.x + list.rest.width, list.work.x)
    assert.is_true(list.all.y > list.main.y and list.main.y > list.work.y)
    assert.equal(list.work.y, list.rest.y)
    assert.is_true(list.work.y > list.deep.y)
  end)

  it("counts a function once for each place that it is called from", function()
    local counts = tracefs.folded()
    counts:add("a;f;f", 1)
    counts:add("b;f", 1)
    local _, count = counts:flame():gsub("<title>f: ", "")
    assert.equal(3, count)
  end)

  it("has units, a title, and what it does not show", function()
    local counts = tracefs.folded()
    counts:add("long", 10 ^ 9 // 1 | 0)
    counts:add("short", 1)
    local svg = counts:flame { title = "A <title>", unit = "ns" }
    assert.truthy(svg:find(">A &lt;title&gt;</text>", 1, true))
    assert.equal("1.00s", boxes(svg).long.count)
    assert.is_nil(boxes(svg).short)
    assert.truthy(svg:find("1 more functions are too narrow to be shown", 1, true))
    assert.truthy(counts:flame { what = "waits" }:find("1000000000 waits", 1, true))
  end)

  it("is a picture of nothing, too", function()
    local svg = tracefs.folded():flame()
    assert.truthy(svg:find("nothing was counted", 1, true))
    assert.is_nil(svg:find("<g>", 1, true))
  end)

  it("is well-formed and draws what it is told as text, whatever the names are", function()
    local counts = tracefs.folded()
    counts:add(HOSTILE, 5, HOSTILE)
    counts:add(("x;"):rep(2000) .. "end", 5)
    local svg = counts:flame { title = HOSTILE }
    assert.is_nil(svg:find("<script", 1, true))
    assert.is_nil(svg:find("[\0-\8\11-\31\127]"))
    assert.truthy(utf8.len(svg))
    assert.is_nil(svg:find("href", 1, true))
    local depth = 0
    for close, name, tail in svg:gmatch("<(/?)(%a+)[^>]-(/?)>") do
      depth = depth + (close == "/" and -1 or tail == "/" and 0 or 1)
      assert.is_true(depth >= 0, name)
    end
    assert.equal(0, depth)
    if os.execute("command -v xmllint >/dev/null") then
      local path = helper.tmpdir() .. "/flame.svg"
      helper.write_file(path, svg)
      local status, _, err = helper.execute { "xmllint", "--noout", path }
      assert.equal(0, status, err)
    end
  end)
end)
