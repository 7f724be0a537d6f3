local aggregate = require "tracefs.aggregate"
local helper = require "spec.support.helper"
local output = require "tracefs.output"
local tracefs = require "tracefs"

local HOSTILE <const> = '</text><script>alert(1)</script>&"\'\27]0;x\7\xff\u{ffff}\n'

describe("tracefs.output.svg", function()
  local path

  before_each(function()
    path = helper.tmpdir() .. "/out.svg"
  end)

  local function written(fill)
    local out = assert(output.open { path = path, format = "svg" })
    fill(out)
    assert.is_nil(out:close())
    return helper.read_file(path)
  end

  local function fill(out)
    for i = 1, 500 do
      out.writer:match {
        name = HOSTILE, start = i * 1000000, stop = i * 1000000 + i * i, delta = i * i, cpu = 0,
        keys = {}, values = {}, stages = {}, in_ns = true,
      }
    end
    out:lost { cpu = 1, count = 3, before_ts = 250000000, why = "overrun" }
    local sizes = aggregate.new { "count", "p50", "histogram", by = "comm", unit = "bytes",
      name = "sizes", max = 20 }
    for i = 1, 15 do
      sizes:add(1, HOSTILE .. i)
      sizes:add(1 << i + 3, HOSTILE .. i)
    end
    local calls = aggregate.new { "count", by = "call", name = "calls" }
    for i = 1, 40 do
      calls:add(i, i)
    end
    local linear = aggregate.new { "histogram", scale = "linear", to = 1000, width = 1 }
    for i = -5, 1005 do
      linear:add(i)
    end
    for _, object in ipairs { sizes, calls, linear, aggregate.new { "count" } } do
      out:show(object)
    end
    for _, title in ipairs { HOSTILE, "Another" } do
      local counts = tracefs.folded { title = title, unit = "ns" }
      counts:add("main;" .. HOSTILE, 3000)
      counts:add("main", 1000)
      out:show(counts)
      out:print(counts)
    end
    out.writer:failed("it & that")
    out.writer:stats { lost = 3, produced = 10 }
  end

  -- Tags balance and attributes are quoted; no text can become one.
  local function check_xml(text)
    local open_tags = {}
    local rest = text:gsub("<([^<>]*)>", function(tag)
      local closing = tag:match "^/(%a+)$"
      if closing then
        assert.equal(closing, table.remove(open_tags))
      else
        local name, attributes, slash = tag:match "^(%a+)(.-)(/?)$"
        assert.equal("", (attributes:gsub(' [%w-:]+="[^"<&]*"', "")), tag)
        if slash == "" then
          open_tags[#open_tags + 1] = name
        end
      end
      return ""
    end)
    assert.same({}, open_tags)
    assert.is_nil(rest:find "[<>\0-\8\11-\31]")
    assert.is_nil(rest:gsub("&%a+;", ""):gsub("&#%d+;", ""):find "&")
    assert.is_truthy(utf8.len(text))
  end

  it("draws pairs and aggregates, whatever they are called", function()
    local text = written(fill)
    check_xml(text)
    for _, tag in ipairs { "script", "image", "href", "foreignObject", "@import", "url(" } do
      assert.is_nil(text:find("<" .. tag, 1, true))
    end
    assert.is_nil(text:gsub("http://www.w3.org/2000/svg", ""):find "http")
    assert.matches("500 pairs, median", text, 1, true)
    assert.matches("&lt;script&gt;", text, 1, true)
    assert.matches("CPU 1: 3 events were lost", text, 1, true)
    assert.matches("3 of 10 events were lost", text, 1, true)
    assert.matches("the run ended with an error: it &amp; that", text, 1, true)
    assert.matches("and 3 more", text, 1, true)
    assert.matches("count by call, the first 30 of 40", text, 1, true)
    -- two flame graphs, one below the other
    assert.equal(2, select(2, text:gsub("<title>main: 4.00us, 100.00 %%</title>", "")))
    local first, second = text:match('<g class="flame" transform="translate%(0 (%d+)%)">'
      .. '.*<g class="flame" transform="translate%(0 (%d+)%)">')
    assert.is_true(tonumber(second) >= tonumber(first) + 100)
    -- all 500 are in the cells of the map
    local total = 0
    for count in text:gmatch "<title>%S+ to %S+: (%d+)</title>" do
      total = total + tonumber(count)
    end
    assert.equal(500, total)
  end)

  it("says when there is nothing", function()
    local text = written(function() end)
    check_xml(text)
    assert.matches("nothing was measured", text, 1, true)
  end)

  it("is drawn by a browser", function()
    if helper.short or helper.execute { "chromium", "--version" } ~= 0 then
      pending("chromium is not there (.ci/deps outputs)")
      return
    end
    written(fill)
    local dir = helper.tmpdir()
    local status, out, err = helper.execute {
      "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" .. dir,
      "--dump-dom", "file://" .. path, timeout = 60,
    }
    assert.equal(0, status, err)
    assert.is_nil(out:find("parsererror", 1, true))
    local rects = select(2, out:gsub("<rect", ""))
    assert.equal(select(2, helper.read_file(path):gsub("<rect", "")), rects)
  end)

  it("shows the pair of a script that does something else with it", function()
    local status, out, err = helper.run {
      "-q", "-i", "examples/demo.dat", "-f", "svg", "-o", path, "examples/netlat.lua",
    }
    assert.same({ 0, "" }, { status, out }, err)
    local text = helper.read_file(path)
    check_xml(text)
    assert.matches("net_dev_queue&gt;netif_receive_skb", text, 1, true)
    assert.matches("211 pairs, median", text, 1, true)
  end)
end)
