local core = require "tracefs.core"
local decode = require "spec.support.decode"
local helper = require "spec.support.helper"

local KALLSYMS = [[
0000000000000000 A fixed_percpu_data
0000000000001000 A cpu_debug_store
ffffffff81000000 T startup_64
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 T first
ffffffff81000100 t second
ffffffff81000100 t alias_of_second
ffffffff81000180 T third
ffffffff82000000 B _end
ffffffffc0000000 t mod_one	[mod]
ffffffffc0000010 T mod_two	[mod]
ffffffffc0400000 t other_one	[other]
]]

local function catalog_with(text)
  local catalog = core.catalog()
  assert.is_true(catalog:add_kallsyms(text))
  return catalog
end

describe("a kernel address", function()
  local catalog = catalog_with(KALLSYMS)

  it("belongs to the symbol that starts at or before it", function()
    assert.same({ "first", 0 }, { catalog:symbol(0xffffffff81000040) })
    assert.same({ "first", 0xbf }, { catalog:symbol(0xffffffff810000ff) })
    assert.same({ "third", 0x10 }, { catalog:symbol(0xffffffff81000190) })
    assert.same({ "mod_one", 8, "mod" }, { catalog:symbol(0xffffffffc0000008) })
    assert.same({ "mod_two", 0x20, "mod" }, { catalog:symbol(0xffffffffc0000030) })
    assert.same({ "other_one", 0, "other" }, { catalog:symbol(0xffffffffc0400000) })
  end)

  it("takes the first of several names, as the kernel does", function()
    assert.equal("second", (catalog:symbol(0xffffffff81000104)))
    assert.equal("startup_64", (catalog:symbol(0xffffffff81000000)))
  end)

  it("belongs to nothing outside of the kernel and its modules", function()
    assert.is_nil(catalog:symbol(0))
    assert.is_nil(catalog:symbol(0x1008))
    assert.is_nil(catalog:symbol(0x7f0000001000))
    assert.is_nil(catalog:symbol(0xffffffff80ffffff))
    assert.is_nil(catalog:symbol(0xffffffff82000010))
    assert.is_nil(catalog:symbol(0xffffffffc8000000))
    assert.is_nil(core.catalog():symbol(0xffffffff81000000))
  end)

  it("belongs to a variable only where the kernel lists variables", function()
    local functions = "ffffffff81000000 T _stext\nffffffff81000040 T first\n"
      .. "ffffffff81100000 T _etext\n"
      .. "ffffffff81200000 D __start_rodata\nffffffff81300000 T _sinittext\n"
      .. "ffffffff81300010 t init_one\nffffffff81301000 T _einittext\n"
    local few = catalog_with(functions)
    assert.equal("first", (few:symbol(0xffffffff81000050)))
    assert.equal("init_one", (few:symbol(0xffffffff81300020)))
    assert.is_nil(few:symbol(0xffffffff81200010))
    assert.is_nil(few:symbol(0xffffffff81301010))
    local list = {}
    for i = 1, 2000 do
      list[i] = ("ffffffff8121%04x d variable_%d\n"):format(i * 16, i)
    end
    local all = catalog_with(functions .. table.concat(list) .. "ffffffff81400000 B _end\n")
    assert.equal("__start_rodata", (all:symbol(0xffffffff81200010)))
    assert.equal("variable_7", (all:symbol(0xffffffff81210078)))
    assert.is_nil(all:symbol(0xffffffff81400010))
  end)

  it("is not known when all that /proc/kallsyms says is 0", function()
    local blind = catalog_with("0000000000000000 T _text\n0000000000000000 T first\n")
    assert.is_nil(blind:symbol(0xffffffff81000000))
    assert.is_nil(blind:symbol(0))
  end)

  it("is found whatever the order of the list, and lines that are no symbols do no harm", function()
    local mixed = catalog_with("ffffffff81000100 t second\nnonsense\n\n12 \nffffffff81000040 T\n"
      .. "ffffffff81000040 T first\nfffffffffffffffff T toolong\nffffffff81000200 T last")
    assert.equal("first", (mixed:symbol(0xffffffff81000050)))
    assert.equal("second", (mixed:symbol(0xffffffff81000110)))
    assert.equal("last", (mixed:symbol(0xffffffff81000200)))
  end)

  it("stands in texts with offset, size and module, or without", function()
    local function text(print_fmt, address)
      return decode.text(print_fmt, { { "void * f", "i8", address } }, { catalog = catalog })
    end
    assert.equal("first+0x4/0xc0", text('"%pS", REC->f', 0xffffffff81000044))
    assert.equal("first", text('"%ps", REC->f', 0xffffffff81000044))
    assert.equal("mod_one+0x8/0x10 [mod]", text('"%pS", REC->f', 0xffffffffc0000008))
    assert.equal("mod_one", text('"%ps", REC->f', 0xffffffffc0000008))
    assert.equal("first+0x4/0xc0", text('"%pF", REC->f', 0xffffffff81000044))
    assert.equal("first", text('"%pf", REC->f', 0xffffffff81000044))
    assert.equal("0x1234", text('"%pS", REC->f', 0x1234))
    assert.equal("[     first]", text('"[%10ps]", REC->f', 0xffffffff81000044))
  end)
end)

describe("the live kernel's symbols", function()
  it("are those of /proc/kallsyms", function()
    local address
    for line in helper.read_file("/proc/kallsyms"):gmatch("[^\n]+") do
      local digits = line:match("^(%x+) T vfs_read$")
      address = digits and tonumber(digits, 16) or address
    end
    if not address or address == 0 then
      pending("/proc/kallsyms does not tell addresses here")
      return
    end
    local catalog = core.catalog()
    catalog:set_live(assert(core.tracing_dir()))
    assert.same({ "vfs_read", 5 }, { catalog:symbol(address + 5) })
  end)
end)
