local aggregate = require "tracefs.aggregate"
local helper = require "spec.support.helper"
local written_as = require "spec.support.written"

describe("tracefs.output.csv", function()
  local function written(fill)
    return (written_as("csv", fill))
  end

  it("takes its columns from the first row, and loses nothing of others", function()
    assert.equal("type,a,b,more\r\nx,1,two,\r\nx,,3,\"{\"\"c\"\":true}\"\r\n",
      written(function(out)
        out:show { type = "x", a = 1, b = "two" }
        out:show { type = "x", b = 3, c = true }
      end))
  end)

  it("quotes what needs it, and writes valid UTF-8", function()
    assert.equal('type,comm,more\r\n,"a""b\n,\rc",\r\n,=1+1,\r\n,\u{ff}\27[31m,\r\n',
      written(function(out)
        out:show { comm = 'a"b\n,\rc' }
        out:show { comm = "=1+1" }
        out:show { comm = "\xff\27[31m" }
      end))
  end)

  it("says of which event values are", function()
    assert.equal("type,common_event,pid,more\r\nvalues,a:x,1,\r\nvalues,b:y,2,\r\n",
      written(function(out)
        out:values({ "pid" }, { 1 }, "a:x")
        out:values({ "pid" }, { 2 }, "b:y")
      end))
    assert.equal("type,common_event,more\r\nvalues,x,\r\n", written(function(out)
      out:values({ "common_event" }, { "x" }, "a:x")
    end))
  end)

  it("has the rows of an aggregate, whatever its keys are called", function()
    local sizes = aggregate.new { "count", "p50", by = { "type", "pid" }, name = "sizes", max = 1 }
    sizes:add(5, "x", 1)
    sizes:add(6, "y", 2)
    assert.equal("type,name,keys.type,pid,other,unit,count,p50,more\r\n"
      .. "row,sizes,x,1,,,1,5,\r\nrow,sizes,,,true,,1,6,\r\n",
      written(function(out) out:show(sizes) end))
  end)

  it("has a row for each stack", function()
    local counts = require("tracefs").folded()
    counts:add("main;work", 2, "a,b")
    counts:add(false)
    for _, how in ipairs { "show", "print" } do
      assert.equal('type,count,stack,more\r\nstack,1,[no stack],\r\nstack,2,"a,b;main;work",\r\n',
        written(function(out) out[how](out, counts) end))
    end
  end)

  it("has losses where they were, but not as the first row", function()
    local lost = { cpu = 1, count = 2, why = "overrun" }
    assert.equal("type,cpu,more\r\nlost,1,\"{\"\"count\"\":2,\"\"why\"\":\"\"overrun\"\"}\"\r\n"
      .. "x,0,\r\nlost,1,\"{\"\"count\"\":2,\"\"why\"\":\"\"overrun\"\"}\"\r\n",
      written(function(out)
        out:lost(lost)
        out:show { type = "x", cpu = 0 }
        out:lost(lost)
      end))
    assert.matches("^type,more\r\nlost,", written(function(out) out:lost(lost) end))
    assert.equal("", written(function() end))
  end)

  it("has what netlat prints as objects", function()
    local status, out, err = helper.run {
      "-q", "-i", "examples/demo.dat", "-f", "csv", "examples/netlat.lua",
    }
    assert.same({ 0, "" }, { status, err })
    assert.matches("^type,avg_ns,device,max_ns,[^\r\n]*,pairs,more\r\nlatency,%d+,lo,%d+,[^\r\n]*,"
      .. "211,\r\npackets,,lo,", out)
  end)

  it("leaves text to standard error", function()
    local path = helper.tmpdir() .. "/out"
    local status, out, err = helper.run_lua([[
      local out = require("tracefs.output").open { path = arg[1], format = "csv" }
      out:install()
      print("for", "people")
      io.write("too\n")
      out:show { a = 1 }
      out:close()
    ]], { path })
    assert.same({ 0, "", "for\tpeople\ntoo\n" }, { status, out, err })
    assert.equal("type,a,more\r\n,1,\r\n", helper.read_file(path))
  end)
end)
