local pages = require "spec.support.pages"

local LAYOUTS = {
  pages.layout(), pages.layout { endian = "big" },
  pages.layout { long_size = 4, data_size = 4084 },
  pages.layout { endian = "big", long_size = 4, data_size = 4084 },
}

-- What is printed of the pages put together: taken or refused, and the page without its records.
local function built(layout, ...)
  local words, said, records = { "build" }, {}, 0
  for i, page in ipairs { ... } do
    words[i + 1] = pages.hex(layout:page(page))
  end
  local lines = pages.run { layout:command(), table.concat(words, " ") }
  for i = 2, #lines do
    local is_record = lines[i]:find "^record "
    records = records + (is_record and 1 or 0)
    said[#said + 1] = not is_record and lines[i] or nil
  end
  return said, records
end

-- Records that take so many bytes together.
local function filled(layout, ts, size)
  local page = { ts = ts }
  while size > 0 do
    local part = size >= 232 and 116 or size > 116 and size // 8 * 4 or size
    page[#page + 1] = layout:short(1, ("x"):rep(part - 4))
    size = size - part
  end
  return page
end

describe("pages that are put together", function()
  it("follow each other in time, up to what a page holds", function()
    for _, layout in ipairs(LAYOUTS) do
      local first = { ts = 1000, layout:short(5, "0123"), layout:short(7, "4567") }
      local second = { ts = 1020, layout:short(1, "89ab") }
      local lines = pages.run { layout:command(), ("build %s %s"):format(
        pages.hex(layout:page(first)), pages.hex(layout:page(second))) }
      assert.same({ "taken", "taken", "page 1000 lost 0", "record 1005 4 30313233",
        "record 1012 4 34353637", "record 1021 4 38396162",
        ("end %d"):format(8 + layout.long_size + 32) }, { table.unpack(lines, 2) })
      -- 20 bytes are there, and where the next page begins takes 8
      local begun = filled(layout, 1000, 20)
      for left, expected in pairs { [0] = "taken", [-4] = "refused" } do
        local said = built(layout, begun, filled(layout, 2000, layout.data_size - 28 - left))
        assert.same({ "taken", expected, "page 1000 lost 0" }, { table.unpack(said, 1, 3) })
      end
    end
  end)

  it("keep the count of what was lost before them", function()
    for _, layout in ipairs(LAYOUTS) do
      local begun = filled(layout, 1000, 20)
      begun.lost = 5
      for left, expected in pairs {
        [layout.long_size] = "taken", [layout.long_size - 4] = "refused", [0] = "refused",
      } do
        local said = built(layout, begun, filled(layout, 2000, layout.data_size - 28 - left))
        assert.same({ "taken", expected, "page 1000 lost 5" }, { table.unpack(said, 1, 3) })
      end
      begun.lost = "unknown"
      local said = built(layout, begun, filled(layout, 2000, layout.data_size - 28))
      assert.same({ "taken", "taken", "page 1000 lost unknown" }, { table.unpack(said, 1, 3) })
    end
  end)

  it("do not hide a loss that lies between", function()
    for _, layout in ipairs(LAYOUTS) do
      local second = filled(layout, 2000, 20)
      second.lost = 3
      local said, records = built(layout, filled(layout, 1000, 40), second)
      assert.same({ "taken", "refused", "page 1000 lost 0" }, { table.unpack(said, 1, 3) })
      assert.equal(1, records)
    end
  end)
end)
