local core = require "tracefs.core"
local globals = require "spec.support.globals"
local tracefile = require "tracefs.tracefile"

-- The level of its errors is the caller's caller: what a script calls.
local function check(options)
  return tracefile.check_options(options)
end

local function message_of(options)
  local ok, message = pcall(check, options)
  assert.is_false(ok)
  return message
end

describe("tracefs.tracefile", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.tracefile"))
  end)

  it("has defaults", function()
    assert.same({ version = 7, compress = core.can_compress() }, check())
    assert.same({ version = 6, compress = false }, check { version = 6 })
    assert.same({ version = 7, compress = false }, check { compress = false })
  end)

  it("refuses what makes no sense", function()
    assert.matches("unknown option 'zip'; there are: compress, version", message_of { zip = true })
    assert.matches("version must be 6 or 7, not 8", message_of { version = 8 })
    assert.matches("compress must be true or false, not yes", message_of { compress = "yes" })
    assert.matches("must be a table, not number", message_of(7))
    assert.matches("files of version 6 are not compressed",
      message_of { version = 6, compress = true })
  end)
end)
