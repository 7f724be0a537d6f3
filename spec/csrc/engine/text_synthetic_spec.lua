local core = require "tracefs.core"
local decode = require "spec.support.decode"

-- The kernel prints these events itself: with blanks, and not with its own format's commas.
describe("the text of a synthetic event", function()
  local function text(fields, options)
    local all = { system = "synthetic", fields = fields, print = '"a=%d, b=%d", REC->a, REC->b' }
    for key, value in pairs(options or {}) do
      all[key] = value
    end
    return core.text((decode.record(all)))
  end

  it("is names and values with blanks between", function()
    assert.equal("lat=154663 pid=-5 comm=load-ping prio=120", text {
      { "u64 lat", "I8", 154663 },
      { "pid_t pid", "i4", -5 },
      { "char comm[16]", "c16", "load-ping" .. ("\0"):rep(7) },
      { "int prio", "i4", 120, offset = 40 },
    })
    assert.equal("a=-1 b=18446744073709551615 name=/bin/sh", text {
      { "s64 a", "i8", -1 },
      { "u64 b", "I8", -1 },
      { "__data_loc char[] name", "data_loc", "/bin/sh\0", size = 8 },
    })
  end)

  it("shows small numbers as unsigned, as the kernel does", function()
    assert.equal("a=255 b=65534 c=-3 d=4294967293", text {
      { "s8 a", "i1", -1 },
      { "s16 b", "i2", -2 },
      { "s32 c", "i4", -3 },
      { "u32 d", "I4", 4294967293 },
    })
  end)

  it("shows a stack line by line", function()
    local catalog = core.catalog()
    assert(catalog:add_kallsyms("ffffffff81000000 T first\nffffffff81000100 T second\t[mod]\n"
      .. "ffffffff81000200 T third\n"))
    assert.equal("pid=7 stack=STACK:\n=> first+0x10/0x100\n=> second+0x1/0x100 [mod]\n=> 0x1234",
      text({
      { "pid_t pid", "i4", 7, offset = 8 },
      { "__data_loc long[] stack", "data_loc", ("<I8I8I8I8I8"):pack(
        0xffffffff81000010, 0xffffffff81000101, 0x1234, 0, 0xffffffff81000010), offset = 16,
        size = 8 },
    }, { catalog = catalog }))
  end)

  it("leaves a stack's own count out, as a value too", function()
    local fields = {
      { "__data_loc long[] stack", "data_loc",
        ("<I8I8I8"):pack(2, 0xffffffff81000010, 0xffffffff81000101), size = 8 },
    }
    local record = decode.record { system = "synthetic", fields = fields, print = '"x"' }
    assert.same({ 0xffffffff81000010, 0xffffffff81000101 }, record.stack)
    assert.equal("stack=STACK:\n=> 0xffffffff81000010\n=> 0xffffffff81000101", core.text(record))
    fields[1][3] = ""
    record = decode.record { system = "synthetic", fields = fields, print = '"x"' }
    assert.same({}, record.stack)
  end)

  it("shows memory flags as the number and the names", function()
    assert.equal("gfp=cc0  (KERNEL)n=1", text({
      { "gfp_t gfp", "I4", 0xcc0 },
      { "u32 n", "I4", 1 },
    },
      {
      print = '"gfp=%x (%s), n=%u", REC->gfp, '
        .. '__print_flags(REC->gfp, "|", {0xcc0UL, "KERNEL"}), REC->n',
    }))
  end)

  it("says that it does not know the names of memory flags", function()
    assert.equal("gfp=cc0 (?)", text({ { "gfp_t gfp", "I4", 0xcc0 } },
      { print = '"gfp=%x", REC->gfp' }))
  end)

  it("is the line's, with the event's name", function()
    local record = decode.record {
      system = "synthetic", name = "woken", fields = { { "u64 lat", "I8", 5 } }, print = '"x"',
    }
    assert.matches(": woken: lat=5$", tostring(record))
  end)

  it("falls back to the print format for what nobody knows how to show", function()
    assert.equal("x=3", text({
      { "u64 x", "I8", 3 }, { "u8 mac[6]", "c6", "abcdef" },
    }, { print = '"x=%d", REC->x' }))
    -- a record that is too short
    local record = decode.record {
      system = "synthetic", fields = { { "u64 lat", "I8", 5 } }, print = '"short"',
    }
    assert.equal("lat=5", core.text(record))
    local catalog = core.catalog()
    local event = assert(catalog:parse("synthetic", (decode.format {
      fields = { { "u64 lat", "I8" } }, print = '"short"',
    })))
    assert.equal("short", core.text(event:record(("\0"):rep(12))))
  end)
end)
