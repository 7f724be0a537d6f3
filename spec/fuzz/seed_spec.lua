-- What the fuzzers start from are right files of machines that are not this one: both readers say
-- the same of them.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local tracecmd = require "spec.support.tracecmd"

local CASES <const> = { "little", "big", "little_32", "big_32" }

describe("files of other byte orders and long sizes", function()
  local folder

  setup(function()
    folder = helper.tmpdir()
    local status, _, err = helper.execute {
      helper.interpreter, "spec/fuzz/seed.lua", folder, collector = "usual",
    }
    assert.equal(0, status, err)
  end)

  local function each(check)
    for _, case in ipairs(CASES) do
      for version = 6, 7 do
        check(("%s/datafile/%s_%d"):format(folder, case, version), case, version)
      end
    end
  end

  it("are read by the engine", function()
    each(function(path, case, version)
      local file <close> = assert(core.datafile(path))
      local info = file:info()
      assert.equal(version, info.version)
      assert.equal(case:find("big") ~= nil, info.big_endian)
      assert.equal(4096, info.page_size)
      local catalog = assert(file:catalog())
      local event = assert(file:describe(catalog, "net", "sent"))
      assert.equal(77, event:id())
      local stream <close> = assert(file:stream(catalog, {}))
      local seen = {}
      stream:select(77, true)
      stream:callbacks(function()
        return event
      end, function()
        return true
      end)
      stream:handle(77, function(skbaddr, len, name, ts, pid)
        seen[#seen + 1] = ("%x %d %s %d %d"):format(skbaddr, len, name, ts, pid)
      end, event, { "skbaddr", "len", "name", "common_timestamp", "common_pid" })
      local _, why
      repeat
        _, why = stream:step(100)
      until why == "end"
      assert.same({
        "ffff888012345678 1500 lo 1000000 4711",
        ("ffff888012345678 1500 lo %d 4711"):format(1000000 + (1 << 27) + 5 + 700),
      }, table.move(seen, 1, 2, 1, {}), path)
      assert.is_nil(file:damage())
    end)
  end)

  it("are read by trace-cmd", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    each(function(path)
      local lines, status = tracecmd.report(path, "-R")
      assert.equal(0, status)
      assert.matches("sender%-4711.* 0%.001000: sent: .*len=1500", lines[1], path)
      assert.matches("sender%-4711.* 0%.135218: sent: .*len=1500", lines[2], path)
    end)
  end)
end)
