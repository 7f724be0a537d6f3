local core = require "tracefs.core"

describe("a function of the kernel", function()
  it("is known by its name, as far as the kernel says", function()
    local is_there, hint = core.kernel_function("vfs_read")
    if is_there == nil then
      pending("no symbols here: " .. hint)
    end
    assert.is_true(is_there)
    assert.equal("", hint)
    is_there, hint = core.kernel_function("vfs_reda")
    assert.is_false(is_there)
    assert.matches("^ Did you mean .*vfs_read", hint)
    assert.same({ false, "" }, { core.kernel_function(("no_such_name_"):rep(5)) })
    assert.is_false((core.kernel_function("")))
    assert.has_error(function() core.kernel_function("a\0") end)
  end)
end)

describe("core.nearest", function()
  it("offers each name once", function()
    assert.equal(" Did you mean vfs_read or vfs_real?",
      core.nearest("vfs_reed", "vfs_read vfs_read other vfs_real vfs_read"))
    assert.equal("", core.nearest("abc", "something else"))
    assert.equal("", core.nearest("abc", ""))
    assert.has_error(function() core.nearest("abc") end)
  end)
end)
