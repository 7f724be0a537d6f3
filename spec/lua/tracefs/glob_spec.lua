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

  it("says what is wrong with a Lua pattern, wherever in it", function()
    for pattern, why in pairs {
      ["a["] = 'its "[" has no "]"', ["a[]"] = 'its "[" has no "]"', ["a[%"] = 'its "[" has no "]"',
      ["a[%]"] = 'its "[" has no "]"', ["[^]"] = 'its "[" has no "]"', ["a%f[b"] = 'has no "]"',
      ["a%"] = 'ends with "%"', ["ab)"] = 'a ")" has no "("', ["a(b"] = 'its "(" has no ")"',
      ["a%b("] = '"%b" takes two', ["a%fb"] = '"%f" takes a set', ["a%1"] = '"%1" means',
      ["(a%1)"] = '"%1" means', ["(a)%0"] = '"%0" means', [("()"):rep(33)] = "more than 32",
    } do
      assert.matches(why, glob.mistake(pattern) or pattern, 1, true)
    end
  end)

  -- Any mistake raises with some text; a pattern without one never does.
  it("finds the mistakes that Lua finds, and no others", function()
    local parts <const> = { "a", "b", "[", "]", "(", ")", "%", "^", "1", "f", "-", "*", "." }
    math.randomseed(7919)
    local mistakes = 0
    for _ = 1, 1000 do
      local pattern = {}
      for i = 1, math.random(6) do
        pattern[i] = parts[math.random(#parts)]
      end
      pattern = table.concat(pattern)
      if glob.mistake(pattern) then
        mistakes = mistakes + 1
      else
        for _, text in ipairs { "", "a", "ab", "ba", "aabb", "b1]-[a^f", "()" } do
          assert.is_true(pcall(string.find, text, pattern), pattern)
        end
      end
    end
    assert.is_true(mistakes > 100 and mistakes < 900)
    for _ = 1, 1000 do
      -- one item, so that it is looked at whatever the text is
      local pattern = ("[%s%s%s"):format(parts[math.random(#parts)], parts[math.random(#parts)],
        parts[math.random(4)])
      if not pcall(string.find, "a", pattern) then
        assert.truthy(glob.mistake(pattern), pattern)
      end
    end
  end)
end)
