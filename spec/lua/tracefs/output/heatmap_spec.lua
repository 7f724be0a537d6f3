local heatmap = require "tracefs.output.heatmap"

describe("tracefs.output.heatmap", function()
  it("puts each value between the edges of its row", function()
    for _, value in ipairs { 0, 1, 7, 8, 9, 10, 100, 1023, 1024, 123456789, 1 << 61 } do
      local map = heatmap.new()
      map:add(0, value)
      local most, low, high = map:range()
      assert.same({ 1, low }, { most, high })
      assert.is_true(heatmap.from(low) <= value and value < heatmap.from(low + 1), value)
    end
    for row = 1, 200 do
      assert.is_true(heatmap.from(row) > heatmap.from(row - 1))
    end
  end)

  it("keeps all values in a bounded number of columns", function()
    local map, start = heatmap.new(), 1 << 60
    for i = 0, 9999 do
      map:add(start + i * 12345678, i % 7)
    end
    map:add(start - 5, 3)
    local total = 0
    for column, rows in pairs(map.cells) do
      assert.is_true(column >= 0 and column < 120)
      for _, count in pairs(rows) do
        total = total + count
      end
    end
    assert.equal(10001, total)
    assert.is_true(map:used() > 60 and map:used() <= 120)
    assert.is_true(map.width * map:used() >= 9999 * 12345678)
  end)
end)
