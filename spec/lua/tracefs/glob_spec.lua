local glob = require "tracefs.glob"
local globals = require "spec.support.globals"

describe("tracefs.glob", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.glob"))
  end)

  it("tells a name from a pattern", function()
    for text, is_glob in pairs {
      vfs_read = false, ["vfs_*"] = true, ["vfs_rea?"] = true, ["[v]fs"] = true, [""] = false,
    } do
      assert.equal(is_glob, glob.has(text))
    end
  end)

  it("matches whole names as a shell does", function()
    for _, case in ipairs {
      { "vfs_*", "vfs_read", true }, { "vfs_*", "a_vfs_read", false }, { "*", "", true },
      { "?", "", false }, { "a?c", "abc", true }, { "[a-c]x", "bx", true },
      { "[!a-c]x", "bx", false }, { "[^a-c]x", "dx", true }, { "a.b", "axb", false },
      { "a%b", "a%b", true }, { "[]]", "]", true }, { "**a**", "bab", true },
    } do
      assert.equal(case[3], assert(glob.matcher(case[1]))(case[2]), case[1] .. " " .. case[2])
    end
    assert.is_true(glob.matcher(nil) "anything")
  end)

  it("says why one is none", function()
    local matches, why = glob.matcher "a[b"
    assert.is_nil(matches)
    assert.matches('its "[" has no "]"', why, 1, true)
  end)
end)
