local core = require "tracefs.core"
local decode = require "spec.support.decode"

local KALLSYMS = [[
ffffffff81000000 T _stext
ffffffff81000040 T vfs_read
ffffffff81000100 T rw_verify_area
ffffffff82000000 T _etext
ffffffffc0000000 t brd_submit_bio	[brd]
]]

local VFS_READ, RW_VERIFY, BRD = 0xffffffff81000040, 0xffffffff81000100, 0xffffffffc0000000

local catalog = core.catalog()
assert(catalog:add_kallsyms(KALLSYMS))

local function entry(func, depth, options)
  options = options or {}
  options.catalog = options.catalog or catalog
  options.system, options.name, options.id = "ftrace", "funcgraph_entry", options.id or 11
  options.print = '"--> %ps (%d)", (void *)REC->func, REC->depth'
  options.fields = {
    { "unsigned long func", "I8", func },
    options.wide and { "unsigned long depth", "I8", depth } or { "int depth", "i4", depth },
  }
  return (decode.record(options))
end

-- As Linux 6.12 has it; 5.10 has the depth last and a wider overrun, 6.5 and later may have retval.
local function exit(func, depth, ns, options)
  options = options or {}
  options.catalog = options.catalog or catalog
  options.system, options.name, options.id = "ftrace", "funcgraph_exit", options.id or 10
  options.print = '"<-- %ps (%d)", (void *)REC->func, REC->depth'
  if options.old then
    options.fields = {
      { "unsigned long func", "I8", func }, { "unsigned long overrun", "I8", 0 },
      { "unsigned long long calltime", "I8", 1000 },
      { "unsigned long long rettime", "I8", 1000 + ns }, { "int depth", "i4", depth },
    }
  else
    options.fields = {
      { "unsigned long func", "I8", func }, { "int depth", "i4", depth },
      { "unsigned int overrun", "I4", 0 }, { "unsigned long long calltime", "I8", 1000 },
      { "unsigned long long rettime", "I8", 1000 + ns },
    }
  end
  if options.retval then
    table.insert(options.fields, 2, { "unsigned long retval", "I8", options.retval })
  end
  return (decode.record(options))
end

describe("a record of function_graph", function()
  it("is the line of the kernel's trace file, an end with its name", function()
    assert.equal(" 0)               |  vfs_read() {", tostring(entry(VFS_READ, 0)))
    assert.equal(" 3)               |      rw_verify_area() {",
      tostring(entry(RW_VERIFY, 2, { common_cpu = 3 })))
    assert.equal(" 0) + 25.308 us   |    } /* rw_verify_area */",
      tostring(exit(RW_VERIFY, 1, 25308)))
    assert.equal("vfs_read() {", core.text(entry(VFS_READ, 0)))
    assert.equal("} /* vfs_read */", core.text(exit(VFS_READ, 0, 1)))
  end)

  it("has the layout of each kernel", function()
    assert.equal(" 0) + 25.308 us   |    } /* rw_verify_area */",
      tostring(exit(RW_VERIFY, 1, 25308, { old = true, id = 12 })))
    assert.equal(" 0)               |    rw_verify_area() {",
      tostring(entry(RW_VERIFY, 1, { wide = true, id = 13 })))
  end)

  it("has a duration of seven digits and a mark for long ones", function()
    for ns, column in pairs {
      [0] = "  0.000 us    |  ", [7] = "  0.007 us    |  ", [1234] = "  1.234 us    |  ",
      [10000] = "  10.000 us   |  ", [10001] = "+ 10.001 us   |  ",
      [100001] = "! 100.001 us  |  ", [1000001] = "# 1000.001 us |  ",
      [12345678] = "* 12345.67 us |  ", [123456789] = "@ 123456.7 us |  ",
      [1234567890] = "$ 1234567 us  |  ", [12345678901] = "$ 12345678 us |  ",
    } do
      assert.equal(" 0) " .. column .. "} /* vfs_read */", tostring(exit(VFS_READ, 0, ns)))
    end
  end)

  it("names the module of a function, and gives the address of what has no name", function()
    assert.equal("brd_submit_bio [brd]() {", core.text(entry(BRD, 0)))
    assert.equal("0x1000() {", core.text(entry(0x1000, 0)))
  end)

  it("shows what a function returned: errors as numbers, all else in hex", function()
    local function text(retval)
      return core.text(exit(VFS_READ, 0, 1, { retval = retval, id = 20 }))
    end
    assert.equal("} /* vfs_read = 0x17 */", text(0x17))
    assert.equal("} /* vfs_read = 0x0 */", text(0))
    assert.equal("} /* vfs_read = -11 */", text(-11))
    -- an int in the lower half of the register
    assert.equal("} /* vfs_read = -2 */", text(0xfffffffe))
    assert.equal("} /* vfs_read = 0xffff888000000000 */", text(0xffff888000000000))
  end)

  it("takes no damaged depth for an indentation, and no short record for a number", function()
    assert.equal(" 0)               |  vfs_read() {", tostring(entry(VFS_READ, 2000000)))
    assert.equal(" 0)               |  vfs_read() {", tostring(entry(VFS_READ, -5)))
    local text = decode.format {
      name = "funcgraph_exit", id = 30, fields = {
        { "unsigned long func", "I8" }, { "int depth", "i4" },
        { "unsigned long long rettime", "I8" },
      },
    }
    local event = assert(catalog:parse("ftrace", text))
    assert.equal("} /* 0x0 */", core.text(event:record(("<I2BBi4"):pack(30, 0, 0, 1))))
  end)
end)
