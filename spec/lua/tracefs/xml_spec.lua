local globals = require "spec.support.globals"
local xml = require "tracefs.xml"

describe("tracefs.xml", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.xml"))
  end)

  it("makes text of any bytes", function()
    assert.equal("a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;", xml.text([[a <b> & "c" 'd']]))
    assert.equal("\\x00\\x1B\\n\\xFF\\xEF\\xBF\\xBFé", xml.text("\0\27\n\xff\u{ffff}é"))
  end)

  it("cuts by characters", function()
    assert.equal("äöü", xml.cut("äöü", 3))
    assert.equal("äö…", xml.cut("äöüß", 3))
  end)
end)
