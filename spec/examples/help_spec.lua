local helper = require "spec.support.helper"
local lfs = require "lfs"

describe("--help of an example", function()
  for name in lfs.dir "examples" do
    local path = "examples/" .. name
    if (helper.read_file(path) or ""):find('require "argparse"', 1, true) then
      it("fits a terminal: " .. name, function()
        local status, out = helper.run { path, "--help" }
        assert.equal(0, status)
        assert.matches("^Usage: " .. name:gsub("%.lua$", ""), out)
        for line in out:gmatch "[^\n]+" do
          assert.is_true(#line < 80, "80 columns or more: " .. line)
        end
      end)
    end
  end
end)
