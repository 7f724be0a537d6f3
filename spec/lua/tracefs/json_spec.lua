require "spec.support.helper"
local dkjson = require "dkjson"
local json = require "tracefs.json"

describe("json.encode", function()
  it("writes values of every kind", function()
    assert.equal("null", json.encode(nil))
    assert.equal("true", json.encode(true))
    assert.equal('"x"', json.encode("x"))
    assert.equal('{"a":[1,2.5,"x",false,{"b":{}}]}', json.encode { a = { 1, 2.5, "x", false,
      { b = {} } } })
    assert.equal('{"a":[],"b":[1]}', json.encode(dkjson.decode '{"a":[],"b":[1]}'))
  end)

  it("keeps integers exact", function()
    for _, number in ipairs { 0, -1, math.maxinteger, math.mininteger, (1 << 53) + 1 } do
      assert.equal(("%d"):format(number), json.encode(number))
    end
  end)

  it("keeps floats, and has null for what JSON has not", function()
    for _, number in ipairs { 0.1, -1.5, 1e300, 5e-324, 1 / 3, 2.0 ^ 53 } do
      assert.equal(number, dkjson.decode(json.encode(number)))
    end
    assert.equal("2", json.encode(2.0))
    for _, number in ipairs { 1 / 0, -1 / 0, 0 / 0 } do
      assert.equal("null", json.encode(number))
    end
  end)

  it("sorts keys", function()
    assert.equal('{"a":1,"b":2,"c":3}', json.encode { c = 3, a = 1, b = 2 })
    assert.equal('{"type":"x","a":1,"z":2}', json.encode { z = 2, a = 1, type = "x" })
    assert.equal('{"1":"x","3":"y","true":0}', json.encode { "x", [3] = "y", [true] = 0 })
  end)

  it("refuses what has no JSON", function()
    assert.error_matches(function() json.encode(print) end, "a function has no JSON")
    assert.error_matches(function() json.encode { { print } } end, "a function has no JSON")
    assert.error_matches(function() json.encode { [{}] = 1 } end, "a table cannot be a key")
    local loop = {}
    loop.loop = { loop }
    assert.error_matches(function() json.encode(loop) end, "contains itself")
  end)

  it("takes a table twice, but not inside itself", function()
    local twice = { 1 }
    assert.equal("[[1],[1]]", json.encode { twice, twice })
  end)

  it("asks for the JSON of other types", function()
    local function other(value)
      return type(value) == "function" and '"a function"' or nil
    end
    assert.equal('["a function"]', json.encode({ print }, other))
    assert.has_error(function() json.encode({ io.stdout }, other) end)
  end)
end)

describe("json.string", function()
  it("is valid JSON whatever the bytes", function()
    for byte = 0, 255 do
      local text = "<" .. string.char(byte) .. ">"
      local encoded = json.string(text)
      assert.is_truthy(utf8.len(encoded), "no UTF-8: " .. encoded)
      assert.is_nil(encoded:find("%c"))
      local decoded = dkjson.decode(encoded)
      -- The byte, or the character of the same number.
      assert.equal("<" .. utf8.char(byte) .. ">", decoded)
    end
  end)

  it("keeps text that is UTF-8", function()
    for _, text in ipairs { "Grüße, 世界 🙂", 'quo"te', "back\\slash", "line\nbreak", "\\u0041" } do
      assert.equal(text, dkjson.decode(json.string(text)))
    end
    assert.equal('"Grüße"', json.string("Grüße"))
    assert.equal('"\\"\\\\\\n\\u001b"', json.string('"\\\n\27'))
  end)

  it("has no control characters of two bytes in it", function()
    assert.equal('"\\u009b31m"', json.string("\xC2\x9B31m"))
  end)

  it("mixes bytes that are no UTF-8 with characters that are", function()
    assert.equal('"ü\\u00ff\\\\ü"', json.string("ü\xFF\\ü"))
  end)
end)

