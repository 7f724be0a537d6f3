local globals = require "spec.support.globals"
local nearest = require "tracefs.nearest"

describe("tracefs.nearest", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.nearest"))
  end)

  it("counts what is missing, too much, another one or swapped", function()
    assert.equal(0, nearest.score("vfs_read", "vfs_read"))
    assert.equal(1, nearest.score("vfs_raed", "vfs_read"))
    assert.equal(1, nearest.score("vfs_rea", "vfs_read"))
    assert.equal(1, nearest.score("vfs_readd", "vfs_read"))
    assert.equal(1, nearest.score("vfs_rexd", "vfs_read"))
    assert.equal(1.5, nearest.score("read", "do_read_something"))
    assert.is_nil(nearest.score("vfs_read", "tcp_sendmsg"))
    assert.is_nil(nearest.score("", "abc"))
  end)

  it("finds the likeliest of many, in a steady order", function()
    local names = { "vfs_write", "vfs_read", "vfs_readv", "tcp_sendmsg", "vcs_read", "ksys_read" }
    assert.same({ "vfs_read", "vcs_read", "vfs_readv" }, nearest.names(names, "vfs_raed"))
    assert.same({ "vfs_read" }, nearest.names(names, "vfs_raed", 1))
    assert.same({ "tcp_sendmsg" }, nearest.names(names, "tcp_sendmsgg"))
    assert.same({ "tcp_sendmsg" }, nearest.names(names, "cptsendmsg"))
    assert.same({}, nearest.names(names, "nothing_like_it"))
    assert.same({}, nearest.names(names, ""))
  end)
end)
