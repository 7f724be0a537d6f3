local globals = require "spec.support.globals"
local helper = require "spec.support.helper"

describe("tracefs.core", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.core"))
  end)

  it("exports what loads it and nothing else", function()
    local status, out, err = helper.execute({
      "nm", "-D", "--defined-only", helper.core_dir .. "/tracefs/core.so",
    })
    if status == 127 then
      pending("nm is not installed")
    end
    assert.equal(0, status, err)
    local names = {}
    for name in out:gmatch("%x+ %a ([%w_]+)") do
      -- What a sanitizer's build adds is not ours.
      if not name:find("^__") then
        names[#names + 1] = name
      end
    end
    assert.same({ "luaopen_tracefs_core" }, names)
  end)

  it("can be loaded again in one Lua state, and the objects of both work together", function()
    local status, out, err = helper.run_lua([[
      local first = require "tracefs.core"
      package.loaded["tracefs.core"] = nil
      local second = require "tracefs.core"
      assert(first ~= second)
      local catalog = first.catalog()
      local event = catalog:parse("made", "name: thing\nID: 500\nformat:\n"
        .. "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        .. "\tfield:u32 x;\toffset:4;\tsize:4;\tsigned:0;\n\nprint fmt: \"%u\", REC->x\n")
      local record = event:record(("<I2I2I4"):pack(500, 0, 77))
      print(record.x, first.text(record), second.text(record), second.is_record(record))
    ]])
    assert.equal("", err)
    assert.equal("77\t77\t77\ttrue\n", out)
    assert.equal(0, status)
  end)
end)
