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

  -- Has a browser read it as XML, draw it, and say which texts do not lie within the picture.
  local PAGE <const> = [[<body><script type="text/plain">%s</script><script>
    const xml = document.scripts[0].textContent;
    const svg = new DOMParser().parseFromString(xml, "image/svg+xml").documentElement;
    document.body.append(svg);
    const width = svg.getAttribute("width");
    const list = [...svg.querySelectorAll("svg > text, svg > g:not(.flame) > text")];
    const beyond = list.filter(text => {
      const box = text.getBBox();
      return box.x < 0 || box.x + box.width > width;
    });
    for (const box of svg.querySelectorAll(".flame g")) {
      const text = box.querySelector("text"), rect = box.querySelector("rect").getBBox();
      if (text && text.getBBox().x + text.getBBox().width > rect.x + rect.width)
        beyond.push(text);
    }
    document.title = [svg.querySelectorAll("rect").length, list.length,
      beyond.map(text => text.textContent).join("|")].join();
  </script>]]

  it("is drawn by a browser, with room for all its text", function()
    local text = written(function(out)
      fill(out)
      local calls = aggregate.new { "sum", name = "calls", by = { "comm", "pid", "call" } }
      for _, comm in ipairs { "memfd:sealed-91", "W", "%", "\u{6f22}" } do
        for call = 257, 262, 5 do
          calls:add(1234567890123, comm:rep(15 // #comm), 4194304, call)
        end
      end
      local all = aggregate.new { "count", "sum", "average", "minimum", "maximum", "variance",
        "deviation", "p50", "p90", "p99", "p99.9", "p99.99", "histogram", unit = "ns" }
      local signed = aggregate.new { "histogram", unit = "bytes" }
      for i = 1, 62 do
        all:add(1 << i)
        signed:add(-1 << i)
      end
      local counts = tracefs.folded()
      counts:add(("n"):rep(200))
      for _, object in ipairs { calls, all, signed, counts } do
        out:show(object)
      end
    end)
    -- another call of the same task is another line
    assert.matches(">memfd:sealed-91 4194304 257<", text, 1, true)
    assert.matches(">memfd:sealed-91 4194304 262<", text, 1, true)
    if helper.short or helper.execute { "chromium", "--version" } ~= 0 then
      pending("chromium is not there (.ci/deps outputs)")
      return
    end
    local page = helper.tmpdir() .. "/page.html"
    helper.write_file(page, PAGE:format(text))
    local status, out, err = helper.execute {
      "chromium", "--headless", "--no-sandbox", "--disable-gpu",
      "--user-data-dir=" .. helper.tmpdir(), "--dump-dom", "file://" .. page, timeout = 60,
    }
    assert.equal(0, status, err)
    local rects, texts, beyond = out:match "<title>(%d+),(%d+),(.-)</title>"
    assert.equal("", beyond)
    assert.equal(select(2, text:gsub("<rect", "")), tonumber(rects))
    assert.is_true(tonumber(texts) > 200, texts)
  end)

  it("says how long the times of a map are, whatever they are", function()
    for from, case in pairs {
      [2000] = { "1.79us", "3.07us", 3000 }, [0] = { "0ns", "1ns", 0 },
      [1 << 62] = { "4611686018s", "5764607523s", 1 << 62 },
      [900] = { "1.00us", "2.00us", 3000 }, [1500] = { "100us", "10.0us", 200000 },
    } do
      local text = written(function(out)
        for i, delta in ipairs { from, case[3] } do
          out.writer:match { name = "p", start = i, stop = i, delta = delta, cpu = 0, keys = {},
            values = {}, stages = {}, in_ns = true }
        end
      end)
      local map = text:match 'class="muted">2 pairs.-(<line.-)<rect'
      for i = 1, 2 do
        assert.matches(">" .. case[i] .. "</text>", map, 1, true)
      end
    end
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
