local helper = require "spec.support.helper"

-- Every n takes a run of a tenth of a second: without LUATRACE_LONG a part of them.
local long = (os.getenv("LUATRACE_LONG") or "") ~= ""

describe("without memory there is no crash, and nothing is lost or left behind:", function()
  for kind, step in pairs { lua = 31, collect = 61, malloc = 53, load = 59 } do
    it("memory " .. kind, function()
      local status, out, err = helper.execute {
        helper.program("support/memory"), kind, long and 1 or step, "spec/support/memory.lua",
        timeout = long and 3000 or 120,
        collector = "usual",
      }
      if status == 77 then
        pending("the C library's functions cannot be replaced in this build")
      end
      assert.equal("", err)
      assert.equal(0, status)
      local runs, errors = out:match("^(%d+) runs, (%d+) with an error\n$")
      assert.is_true(tonumber(runs) > 3, out)
      -- All but the last one; what fails alone is mostly made up for by a collection.
      assert.is_true(kind == "collect" or tonumber(errors) > 0, out)
    end)
  end
end)
