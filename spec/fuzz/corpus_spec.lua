-- The inputs that fuzzing has found so far, each of which goes another way through the engine: they
-- still end, and break nothing. spec/fuzz/run --keep makes them.
local helper = require "spec.support.helper"
local lfs = require "lfs"

describe("what the fuzzers have found", function()
  for _, target in ipairs { "page", "format", "datafile" } do
    it("does no harm: " .. target, function()
      local folder = "spec/fuzz/corpus/" .. target
      local argv = { helper.program("support/replay_" .. target), timeout = 200 }
      for name in lfs.dir(folder) do
        if name:sub(1, 1) ~= "." then
          argv[#argv + 1] = folder .. "/" .. name
        end
      end
      local count = #argv - 1
      assert.is_true(count > 10)
      local status, out, err = helper.execute(argv)
      -- the last line names the input that it ended with
      assert.equal(0, status, err:match "[^\n]*\n?[^\n]*\n?$")
      assert.equal(count .. "\n", out)
    end)
  end
end)
