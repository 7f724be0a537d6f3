require "spec.support.helper"
local escape = require "tracefs.escape"

describe("escape.text", function()
  it("leaves text, newlines and tabs alone", function()
    local texts = { "", "plain", "two\nlines\tand a tab\n", "Grüße, 世界 🙂", "back\\slash" }
    for _, text in ipairs(texts) do
      assert.equal(text, escape.text(text))
    end
  end)

  it("shows control bytes", function()
    assert.equal("\\x1B[31mred\\x1B[0m", escape.text("\27[31mred\27[0m"))
    assert.equal("over\\x0Dwritten\\x08\\x7F\\x00", escape.text("over\rwritten\b\127\0"))
  end)

  it("leaves no control byte of any kind", function()
    for byte = 0, 255 do
      local shown = escape.text("<" .. string.char(byte) .. ">")
      if byte == 9 or byte == 10 or byte >= 32 and byte < 127 then
        assert.equal("<" .. string.char(byte) .. ">", shown)
      else
        assert.equal(("<\\x%02X>"):format(byte), shown)
      end
    end
  end)

  it("shows control characters of two bytes, and only those", function()
    assert.equal("\\xC2\\x9B31m", escape.text("\xC2\x9B31m"))
    assert.equal("\\xC2\\x80\\xC2\\x9F\xC2\xA0", escape.text("\xC2\x80\xC2\x9F\xC2\xA0"))
  end)

  it("shows bytes that are no UTF-8 between ones that are", function()
    assert.equal("ü\\xFFü\\xC3", escape.text("ü\xFFü\xC3"))
    -- An overlong slash, half of a surrogate pair, more than U+10FFFF.
    assert.equal("\\xC0\\xAF", escape.text("\xC0\xAF"))
    assert.equal("\\xED\\xA0\\x80", escape.text("\xED\xA0\x80"))
    assert.equal("\\xF4\\x90\\x80\\x80", escape.text("\xF4\x90\x80\x80"))
  end)

  it("does not take long for long text", function()
    local start = os.clock()
    assert.equal(4 * 100000, #escape.text(("\xFF"):rep(100000)))
    assert.is_true(os.clock() - start < 5)
  end)
end)

describe("escape.line", function()
  it("is one line", function()
    assert.equal("a\\nb\\tc\\x1B", escape.line("a\nb\tc\27"))
  end)
end)
