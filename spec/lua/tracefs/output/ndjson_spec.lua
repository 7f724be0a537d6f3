local aggregate = require "tracefs.aggregate"
local dkjson = require "dkjson"
local written_as = require "spec.support.written"

describe("tracefs.output.ndjson", function()
  local function written(fill)
    return (written_as("json", fill))
  end

  it("has a row for each key of an aggregate, with its buckets", function()
    local sizes = aggregate.new { "count", "maximum", "histogram", by = { "comm", "pid" },
      name = "sizes", unit = "bytes", max = 2 }
    sizes:add(5, 'a"\n\27\xff', 1)
    sizes:add(9, "b", 2)
    sizes:add(7, "c", 3)
    assert.equal('{"type":"row","name":"sizes","keys":{"comm":"a\\"\\n\\u001b\\u00ff","pid":1},'
      .. '"unit":"bytes","values":{"count":1,"maximum":5},'
      .. '"buckets":[{"from":4,"to":7,"count":1}]}\n'
      .. '{"type":"row","name":"sizes","keys":{"comm":"b","pid":2},"unit":"bytes",'
      .. '"values":{"count":1,"maximum":9},"buckets":[{"from":8,"to":15,"count":1}]}\n'
      .. '{"type":"row","name":"sizes","keys":{},"other":true,"unit":"bytes",'
      .. '"values":{"count":1,"maximum":7}}\n',
      written(function(out) out:show(sizes) end))
    assert.equal(3, select(2, written(function(out) out:print(sizes) end):gsub("\n", "")))
  end)

  it("has all digits of unsigned values", function()
    local addresses = aggregate.new { "minimum", "maximum", unsigned = true }
    addresses:add(1)
    addresses:add(-1)
    assert.equal('{"type":"row","name":"values","keys":{},"unit":null,'
      .. '"values":{"minimum":1,"maximum":18446744073709551615}}\n',
      written(function(out) out:show(addresses) end))
  end)

  it("has an object for each stack", function()
    local counts = require("tracefs").folded()
    counts:add("main;work", 2, 'a"b')
    counts:add(false)
    for _, how in ipairs { "show", "print" } do
      assert.equal('{"type":"stack","count":1,"stack":"[no stack]"}\n'
        .. '{"type":"stack","count":2,"stack":"a\\"b;main;work"}\n',
        written(function(out) out[how](out, counts) end))
    end
  end)

  it("has an object for everything else", function()
    local text = written(function(out)
      out:show { type = "mine", n = math.mininteger }
      out:values({ "a", "b" }, { 1, "x\r" })
      out:lost { cpu = 1, count = 2, why = "overrun" }
      out:print("a", 1)
      out.writer:failed("no\n")
    end)
    local kinds = {}
    for line in text:gmatch("[^\n]+") do
      kinds[#kinds + 1] = assert(dkjson.decode(line)).type
    end
    assert.same({ "mine", "values", "lost", "print", "error" }, kinds)
    assert.matches('"n":-9223372036854775808', text, 1, true)
  end)
end)
