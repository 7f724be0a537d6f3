local pages = require "spec.support.pages"

local LITTLE, BIG = pages.layout(), pages.layout({ endian = "big" })
local LONG4 = pages.layout({ long_size = 4, data_size = 4084 })
local BIG4 = pages.layout({ endian = "big", long_size = 4, data_size = 4084 })

-- Sixteen bytes that are different everywhere, so that a shifted record shows.
local DATA = "0123456789abcdef"

local function hex(bytes)
  return pages.hex(bytes)
end

local function record(ts, data)
  return ("record %d %d %s"):format(ts, #data, hex(data))
end

local function head(ts, lost)
  return ("page %d lost %s"):format(ts, lost or 0)
end

local function done(layout, ...)
  return ("end %d"):format(8 + layout.long_size + #table.concat({ ... }))
end

local LAYOUTS = { LITTLE, BIG, LONG4, BIG4 }

local function each_layout(name, test)
  it(name, function()
    for _, layout in ipairs(LAYOUTS) do
      local ok, message = pcall(test, layout)
      if not ok then
        error(("%s endian, longs of %d bytes: %s"):format(layout.endian, layout.long_size,
          tostring(message)), 0)
      end
    end
  end)
end

describe("the layout in header_page", function()
  local function layout_of(text, endian)
    return pages.run({ ("header %s %s"):format(endian or "little", hex(text)) })[1]
  end

  it("is read", function()
    assert.equal("layout 8 8 16 4096", layout_of(pages.header(LITTLE)))
    assert.equal("layout 8 4 12 4096", layout_of(pages.header(LONG4), "big"))
    assert.equal("layout 8 8 16 65536",
      layout_of(pages.header({ long_size = 8, data_size = 65520 })))
  end)

  it("is refused when a field is missing", function()
    for _, field in ipairs({ "timestamp", "commit", "data" }) do
      local text = pages.header(LITTLE):gsub(field, "other")
      assert.matches("^error 22 header_page: no timestamp, commit and data fields", layout_of(text))
    end
    assert.matches("^error 22 header_page: no timestamp", layout_of(""))
  end)

  it("is refused when a number makes no sense", function()
    local text = pages.header(LITTLE)
    for _, change in ipairs({
      { "offset:0;", "offset:4;" },
      { "offset:8;\tsize:8", "offset:8;\tsize:2" },
      { "offset:8;\tsize:8", "offset:9;\tsize:8" },
      { "offset:16", "offset:15" },
      { "offset:16", "offset:4000000000" },
      { "size:4080", "size:0" },
      { "size:4080", "size:63" },
      { "size:4080", "size:4294967295" },
      { "size:4080", "size:-1" },
    }) do
      local damaged, count = text:gsub(change[1], change[2], 1)
      assert.equal(1, count)
      assert.matches("^error 22 header_page: unknown layout", layout_of(damaged))
    end
    assert.matches("^error 22 header_page: no timestamp",
      layout_of((text:gsub("size:4080", "size:x"))))
  end)

  it("is refused when it is no text", function()
    assert.matches("^error 22 header_page: %d+ bytes that are no format file",
      layout_of("\0" .. pages.header(LITTLE)))
    assert.matches("^error 22 header_page: 5000 bytes", layout_of(("x"):rep(5000)))
  end)
end)

describe("a page's records", function()
  each_layout("are short ones with the length in the header", function(layout)
    local one, two = layout:short(7, DATA), layout:short(100, DATA:sub(1, 4))
    assert.same({
      head(1000),
      record(1007, DATA),
      record(1107, DATA:sub(1, 4)),
      done(layout, one, two),
    }, layout:walk(layout:page({ ts = 1000, one, two })))
  end)

  each_layout("are long ones with the length in a word", function(layout)
    local long = ("abcd"):rep(300)
    local one, two = layout:long(7, long), layout:short(1, DATA)
    assert.same({
      head(0),
      record(7, long),
      record(8, DATA),
      done(layout, one, two),
    }, layout:walk(layout:page({ one, two })))
  end)

  it("may be long ones of any length, rounded up to four", function()
    for length = 4, 12 do
      local bytes = (length + 3) // 4 * 4 - 4
      local one = LITTLE:long(1, DATA:sub(1, bytes), length)
      assert.same({
        head(0),
        ("record 1 %d %s"):format(bytes, hex(DATA:sub(1, bytes))):gsub("%s+$", " "),
        record(3, DATA),
        done(LITTLE, one, LITTLE:short(2, DATA)),
      }, LITTLE:walk(LITTLE:page({ one, LITTLE:short(2, DATA) })), "length " .. length)
    end
  end)

  it("have a length that counts its own word", function()
    for length = 0, 3 do
      local one = LITTLE:short(1, DATA)
      assert.same({
        head(0),
        record(1, DATA),
        ("damage %d a record's length is not possible"):format(16 + #one),
      }, LITTLE:walk(LITTLE:page({ one, LITTLE:long(1, DATA, length), one })), "length " .. length)
    end
  end)

  it("can be the longest that a header holds", function()
    local data = ("0123"):rep(28)
    assert.same({ head(0), record(5, data), "end 132" },
      LITTLE:walk(LITTLE:page({ LITTLE:short(5, data) })))
  end)

  it("fill a page to the last byte", function()
    local data = ("wxyz"):rep((4080 - 8) // 4)
    assert.same({ head(9), record(10, data), "end 4096" },
      LITTLE:walk(LITTLE:page({ ts = 9, LITTLE:long(1, data) })))
  end)

  it("fill a page of 64 KiB", function()
    local layout = pages.layout({ data_size = 65520 })
    local list, expected, size = { ts = 5 }, { head(5) }, 0
    while size + 116 <= 65520 do
      local data = (("%08x"):format(size)):rep(14)
      list[#list + 1] = layout:short(3, data)
      expected[#expected + 1] = record(5 + 3 * #list, data)
      size = size + 116
    end
    expected[#expected + 1] = "end " .. 16 + size
    assert.same(expected, layout:walk(layout:page(list)))
  end)

  it("may be none", function()
    assert.same({ head(77), "end 16" }, LITTLE:walk(LITTLE:page({ ts = 77 })))
  end)

  each_layout("end at the padding of the page's end", function(layout)
    local one = layout:short(7, DATA)
    assert.same({
      head(0),
      record(7, DATA),
      done(layout, one, layout:padding(), one),
    }, layout:walk(layout:page({ one, layout:padding(), one })))
  end)

  each_layout("come behind one that was discarded, whose time counts", function(layout)
    local gone, one = layout:discarded(20, 12), layout:short(3, DATA)
    assert.same({
      head(100),
      record(123, DATA),
      done(layout, gone, one),
    }, layout:walk(layout:page({ ts = 100, gone, one })))
  end)

  -- A discarded record must not have the delta 0, which is the end's: the kernel writes 1 then.
  it("come behind one that was discarded and had no time of its own", function()
    assert.same({ head(100), record(103, DATA), "end 48" },
      LITTLE:walk(LITTLE:page({ ts = 100, LITTLE:discarded(1, 8), LITTLE:short(3, DATA) })))
  end)

  it("come behind a discarded one only when its length is possible", function()
    for length = 0, 3 do
      assert.same({ head(0), "damage 16 a record's length is not possible" },
        LITTLE:walk(LITTLE:page({ LITTLE:discarded(5, 12, length), LITTLE:short(3, DATA) })))
    end
    assert.same({ head(0), "damage 16 a record's length is not possible" },
      LITTLE:walk(LITTLE:page({ LITTLE:discarded(5, 12, 5000), LITTLE:short(3, DATA) })))
  end)
end)

describe("a record's time", function()
  each_layout("is extended by more than 27 bits", function(layout)
    local extend = layout:extend((5 << 27) + 1234)
    local one = layout:short(1, DATA)
    assert.same({
      head(1000),
      record(1000 + (5 << 27) + 1234 + 1, DATA),
      done(layout, extend, one),
    }, layout:walk(layout:page({ ts = 1000, extend, one })))
  end)

  it("is extended by as much as fits", function()
    local most = (1 << 59) - 1
    assert.same({ head(0), record(most, DATA), "end 44" },
      LITTLE:walk(LITTLE:page({ LITTLE:extend(most), LITTLE:short(0, DATA) })))
  end)

  each_layout("is set by an absolute stamp", function(layout)
    local stamp, one = layout:stamp(987654321012345), layout:short(0, DATA)
    assert.same({
      head(1000),
      record(987654321012345, DATA),
      record(987654321012349, DATA),
      done(layout, stamp, one, layout:short(4, DATA)),
    }, layout:walk(layout:page({ ts = 1000, stamp, one, layout:short(4, DATA) })))
  end)

  it("keeps its top five bits over an absolute stamp, which has 59", function()
    local top = 0x5 << 59
    assert.same({ head(top + 100), record(top + 777, DATA), "end 44" },
      LITTLE:walk(LITTLE:page({ ts = top + 100, LITTLE:stamp(777), LITTLE:short(0, DATA) })))
  end)

  it("goes on when the 59 bits of a stamp have wrapped", function()
    local before = (0x5 << 59) + (1 << 59) - 10
    assert.same({ head(before), record((0x6 << 59) + 3, DATA), "end 44" },
      LITTLE:walk(LITTLE:page({ ts = before, LITTLE:stamp(3), LITTLE:short(0, DATA) })))
  end)

  it("may go back in a stamp when the top bits are not in use", function()
    assert.same({ head(5000), record(40, DATA), "end 44" },
      LITTLE:walk(LITTLE:page({ ts = 5000, LITTLE:stamp(40), LITTLE:short(0, DATA) })))
  end)

  it("has all 64 bits", function()
    local lines = LITTLE:walk(LITTLE:page({ ts = -2, LITTLE:short(1, DATA) }))
    assert.equal("page 18446744073709551614 lost 0", lines[1])
    assert.matches("^record 18446744073709551615 16 ", lines[2])
  end)
end)

describe("lost events in the commit word", function()
  local firsts = {
    ["a record"] = function()
      return "", 0
    end,
    ["a time extend"] = function(layout)
      return layout:extend(1 << 30), 1 << 30
    end,
    ["an absolute stamp"] = function(layout)
      return layout:stamp(5000), 4000
    end,
    ["a discarded record"] = function(layout)
      return layout:discarded(50, 8), 50
    end,
  }
  for what, first in pairs(firsts) do
    each_layout("are seen before " .. what, function(layout)
      local bytes, delta = first(layout)
      local one = layout:short(2, DATA)
      for _, lost in ipairs({ 77, "unknown" }) do
        assert.same({
          head(1000, lost),
          record(1000 + delta + 2, DATA),
          done(layout, bytes, one),
        }, layout:walk(layout:page({ ts = 1000, lost = lost, bytes, one })))
      end
    end)
  end

  it("are seen when the kernel's flags come sign-extended", function()
    for _, layout in ipairs({ LITTLE, BIG }) do
      assert.same({ head(0, 49), record(1, DATA), "end 36" },
        layout:walk(layout:page({ lost = 49, sign_extended = true, layout:short(1, DATA) })))
      assert.same({ head(0, "unknown"), record(1, DATA), "end 36" },
        layout:walk(layout:page({ lost = "unknown", sign_extended = true, layout:short(1, DATA) })))
    end
  end)

  it("are as many as a long holds", function()
    assert.equal(head(0, (1 << 62) + 1), LITTLE:walk(LITTLE:page({ lost = (1 << 62) + 1 }))[1])
    assert.equal(head(0, 0xfffffffe), LONG4:walk(LONG4:page({ lost = 0xfffffffe }))[1])
  end)

  it("are unknown when the page has no room for the count that it claims", function()
    local data = ("wxyz"):rep((4080 - 8) // 4)
    assert.same({ head(0, "unknown"), record(1, data), "end 4096" },
      LITTLE:walk(LITTLE:page({ lost = 5, count_room = false, LITTLE:long(1, data) })))
    data = ("wxyz"):rep((4080 - 12) // 4)
    assert.equal(head(0, "unknown"),
      LITTLE:walk(LITTLE:page({ lost = 5, count_room = false, LITTLE:long(1, data) }))[1])
    data = ("wxyz"):rep((4080 - 16) // 4)
    assert.equal(head(0, 5), LITTLE:walk(LITTLE:page({ lost = 5, LITTLE:long(1, data) }))[1])
  end)

  it("are unknown when the count was cut off", function()
    assert.equal(head(0, "unknown"),
      LITTLE:walk(LITTLE:page({ lost = 5, length = 16 + 20 + 7, LITTLE:short(1, DATA) }))[1])
  end)

  it("are at least one when they are flagged", function()
    assert.equal(head(0, "unknown"),
      LITTLE:walk(LITTLE:page({ lost = 0, LITTLE:short(1, DATA) }))[1])
  end)

  it("are seen on a page without records", function()
    assert.same({ head(3, 12), "end 16" }, LITTLE:walk(LITTLE:page({ ts = 3, lost = 12 })))
  end)

  it("are not seen where there are none", function()
    -- The count's flag without the other one means nothing.
    assert.equal(head(0, 0),
      LITTLE:walk(LITTLE:page({ commit = 20 | 1 << 30, LITTLE:short(1, DATA) }))[1])
  end)
end)

describe("a damaged page", function()
  it("may be shorter than its header", function()
    for length = 0, 15 do
      assert.same({ "page 0 lost 0", "damage 0 shorter than a page header" },
        LITTLE:walk(LITTLE:page({ ts = -1, length = length })))
    end
    for length = 0, 11 do
      assert.same({ "page 0 lost 0", "damage 0 shorter than a page header" },
        LONG4:walk(LONG4:page({ ts = -1, length = length })))
    end
  end)

  it("may commit more bytes than it has", function()
    for _, commit in ipairs({ 4081, 4084, 1 << 20, 1 << 26, (1 << 27) - 1 }) do
      assert.same({ head(6), "damage 16 commits more bytes than the page has" },
        LITTLE:walk(LITTLE:page({ ts = 6, commit = commit, LITTLE:short(1, DATA) })))
    end
    assert.same({ head(6), "damage 16 commits more bytes than the page has" },
      LITTLE:walk(LITTLE:page({ ts = 6, length = 35, LITTLE:short(1, DATA) })))
  end)

  it("has the records before the damage", function()
    local one = LITTLE:short(1, DATA)
    assert.same({ head(0), record(1, DATA), "damage 36 a record reaches behind the page's data" },
      LITTLE:walk(LITTLE:page({ commit = 36, one, one })))
    assert.same({ head(0), record(1, DATA), "damage 36 a record's length is not possible" },
      LITTLE:walk(LITTLE:page({ one, LITTLE:long(1, DATA, 24) })))
    assert.same({ head(0), record(1, DATA), "damage 36 a record's length is not possible" },
      LITTLE:walk(LITTLE:page({ one, LITTLE:long(1, DATA, 0xffffffff) })))
  end)

  it("may end inside a record's header", function()
    local one = LITTLE:short(1, DATA)
    for _, second in ipairs({ LITTLE:long(1, DATA), LITTLE:discarded(1, 8), LITTLE:extend(5),
      LITTLE:stamp(5) }) do
      assert.same({ head(0), record(1, DATA), "damage 36 a record header is cut" },
        LITTLE:walk(LITTLE:page({ commit = 24, one, second })))
    end
    for extra = 1, 3 do
      assert.same({ head(0), record(1, DATA), "damage 36 bytes left over behind the last record" },
        LITTLE:walk(LITTLE:page({ commit = 20 + extra, one, one })))
    end
  end)

  it("keeps what it says of lost events", function()
    assert.same({ head(0, 8), record(1, DATA), "damage 36 a record's length is not possible" },
      LITTLE:walk(LITTLE:page({ lost = 8, LITTLE:short(1, DATA), LITTLE:long(1, DATA, 2) })))
  end)

  -- Any bytes at all: no crash, nothing read outside the page (a sanitizer sees it), records that
  -- lie inside the page one behind the other.
  it("never leads out of itself, whatever its bytes are", function()
    local seed = os.time()
    math.randomseed(seed)
    local layouts = {
      pages.layout({ data_size = 240 }),
      pages.layout({ endian = "big", data_size = 240 }),
      pages.layout({ long_size = 4, data_size = 244 }),
    }
    local commands, sizes = {}, {}
    local per_layout = 20000 // #layouts + 1
    for _, layout in ipairs(layouts) do
      commands[#commands + 1] = layout:command()
      for _ = 1, per_layout do
        local list = { ts = math.random(1 << 40), lost = ({ 5, "unknown" })[math.random(4)] }
        local size = 0
        while size < 180 do
          local kind, data = math.random(6), ("abcd"):rep(math.random(10))
          list[#list + 1] = kind == 1 and layout:long(math.random(99), data)
            or kind == 2 and layout:discarded(math.random(99), #data)
            or kind == 3 and layout:extend(math.random(1 << 40))
            or kind == 4 and layout:stamp(math.random(1 << 50))
            or layout:short(math.random(99), data)
          size = size + #list[#list]
        end
        list.commit = math.random(3) == 1 and math.random(0, 300) or nil
        local page = layout:page(list)
        for _ = 1, math.random(0, 6) do
          local at = math.random(#page)
          page = page:sub(1, at - 1) .. string.char(math.random(0, 255)) .. page:sub(at + 1)
        end
        page = page:sub(1, math.random(5) == 1 and math.random(0, #page) or #page)
        commands[#commands + 1] = "walk " .. pages.hex(page)
        sizes[#sizes + 1] = #page
      end
    end
    local walks, size, records = 0, 0, 0
    for _, line in ipairs(pages.run(commands)) do
      if line:find("^page") then
        walks, size = walks + 1, 0
      elseif line:find("^record") then
        records = records + 1
        local length, data = line:match("^record %d+ (%d+) (%x*)$")
        assert.equal(2 * length, #data)
        size = size + 4 + length
      elseif not line:find("^layout") then
        local offset = math.tointeger(line:match("^end (%d+)$") or line:match("^damage (%d+) %l"))
        assert.is_true(offset <= sizes[walks] and size <= offset,
          ("seed %d: %s"):format(seed, line))
      end
    end
    assert.equal(3 * per_layout, walks)
    assert.is_true(records > walks)
  end)
end)
