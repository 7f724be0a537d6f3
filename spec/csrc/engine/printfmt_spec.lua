local core = require "tracefs.core"
local decode = require "spec.support.decode"

-- Each case: print format, what the kernel prints, fields.
local function check(cases, options)
  for _, case in ipairs(cases) do
    local text, message = decode.text(case[1], case[3], options)
    assert.equal(case[2], text or message, case[1])
  end
end

describe("numbers in a print format", function()
  local x = { { "int x", "i4", -5 } }
  local u = { { "u64 u", "i8", -1 } }

  it("are printed as the kernel prints them", function()
    check {
      { '"%d", REC->x', "-5", x },
      { '"%i|%u|%x|%X|%o", 42, 42, 42, 42, 42', "42|42|2a|2A|52" },
      { '"%u", REC->x', "4294967291", x },
      {
        '"%llu|%lld|%Lu|%lx", REC->u, REC->u, REC->u, REC->u',
        "18446744073709551615|-1|18446744073709551615|ffffffffffffffff", u,
      },
      { '"%d|%hu|%hhu|%hd|%hhd", REC->u, REC->u, REC->u, REC->u, REC->u', "-1|65535|255|-1|-1", u },
      {
        '"%zu|%zd|%td|%ju", REC->u, REC->u, REC->u, REC->u',
        "18446744073709551615|-1|-1|18446744073709551615", u,
      },
      { '"%5d|%-5d|%05d|%+d|% d", 42, 42, 42, 42, 42', "   42|42   |00042|+42| 42" },
      { '"%#x|%#x|%#o|%#o|%#X", 255, 0, 8, 0, 255', "0xff|0x0|010|0|0XFF" },
      {
        '"%#010x|%#08x|%#016lx|%-#8x|", 255, 255, 255, 255',
        "0x000000ff|0x0000ff|0x000000000000ff|0xff    |",
      },
      { '"%.2x|%#.2x|%.4d|%8.4d|%08.4d", 7, 7, 7, 7, 7', "07|0x07|0007|    0007|00000007" },
      { '"%.0d|%.d|", 0, 0', "0|0|" },
      { '"%-3d|%-03d|", 7, 7', "7  |7  |" },
      { '"%*d|%-*d|%*d|%.*d", 5, 42, 5, 42, -5, 42, 4, 42', "   42|42   |42   |0042" },
      { '"100%%|%c|%3c|%-3c|", 65, 66, 67', "100%|A|  B|C  |" },
      { '"%1000000d", 1', (" "):rep(4095) .. "1" },
      { '"%*d", 2147483647, 1', (" "):rep(4095) .. "1" },
      { '"%*d|", -2147483647 - 1, 1', "1" .. (" "):rep(4095) .. "|" },
      { '"%+.*d", 2147483647, 1', "+" .. ("0"):rep(4095) .. "1" },
      { '"%.*s|", 2147483647, "text"', "text|" },
    }
  end)

  it("have the widths of the traced machine", function()
    local wide = { { "u64 u", "i8", 0x1122334455667788 } }
    check(
      { { '"%lx|%llx|%zx", REC->u, REC->u, REC->u', "55667788|1122334455667788|55667788", wide } },
      { long_size = 4 }
    )
    check(
      { { '"%lx|%llx", REC->u, REC->u', "1122334455667788|1122334455667788", wide } },
      { order = ">" }
    )
  end)

  it("are shown as a question mark when nobody knows them", function()
    check {
      { '"%d %d", 1', "1 ?" },
      { '"a %d b", nobody_knows', "a ? b" },
      { '"%5d|%-3s|", nobody_knows, nobody_knows', "    ?|?  |" },
      { '"%d", 1 / 0', "?" },
      { '"%d", 1 % 0', "?" },
      { '"%y", 1', "?" },
    }
  end)
end)

describe("expressions in a print format", function()
  it("are C's, with its operators and their order", function()
    check {
      { '"%d", 1 + 2 * 3 - 4 / 2 % 3', "5" },
      { '"%d", (1 + 2) * 3', "9" },
      { '"%d", 1 << 2 + 1', "8" },
      { '"%d", 6 & 3 == 3', "0" },
      { '"%d", 6 ^ 3 | 8 & 12', "13" },
      { '"%d %d %d %d", 1 < 2, 2 <= 1, 2 > 1, 1 >= 2', "1 0 1 0" },
      { '"%d %d %d %d", 1 == 1, 1 != 1, !5, !0', "1 0 0 1" },
      { '"%d %d %d", 1 && 0, 1 || 0, 0 || 0', "0 1 0" },
      { '"%d", 10 - 4 - 3', "3" },
      { '"%d", - - 5', "5" },
      { '"%d", ~0', "-1" },
      { '"%s", 0 ? "a" : 1 ? "b" : "c"', "b" },
      { '"%d", 1 ? 2 : nobody_knows', "2" },
      { '"%d %d", 0 && nobody_knows, 1 || nobody_knows', "0 1" },
      { '"%d %d %d", \'a\', \'\\n\', \'\\0\'', "97 10 0" },
      { '"%d %d", 010, 0x1F', "8 31" },
      { '"%d", __builtin_expect(!!(3), 0)', "1" },
      { '"%d", ({ int a = 3; u32 b = 7; ((a) < (b) ? (a) : (b)); })', "3" },
    }
  end)

  it("have C's types and conversions", function()
    local fields = {
      { "u8 b", "B", 200 }, { "s8 s", "b", -3 }, { "u32 w", "I4", 0xffffffff }, {
        "int i", "i4", -1,
      },
      { "u64 q", "i8", -1 }, { "unsigned long l", "i8", 5 },
    }
    check {
      { '"%d", REC->b + REC->b', "400", fields },
      { '"%lld", REC->w + 1', "0", fields },
      { '"%lld", REC->w + 1L', "4294967296", fields },
      { '"%d", REC->i < REC->w', "0", fields },
      { '"%d", REC->i < 0', "1", fields },
      { '"%d", REC->i < 0u', "0", fields },
      { '"%d", REC->s < REC->w', "1", fields },
      { '"%d", REC->s / 2', "-1", fields },
      { '"%d", REC->s % 2', "-1", fields },
      { '"%d", REC->s >> 1', "-2", fields },
      { '"%u", REC->w >> 31', "1", fields },
      { '"%d", REC->q == -1', "1", fields },
      { '"%d", REC->q != -1UL', "0", fields },
      { '"%llx", (u64)REC->i', "ffffffffffffffff", fields },
      { '"%llx", (u64)REC->w', "ffffffff", fields },
      { '"%d", (u8)REC->i', "255", fields },
      { '"%d", (s8)255', "-1", fields },
      { '"%d", (unsigned short)REC->i', "65535", fields },
      { '"%lld", (long)REC->l - 6', "-1", fields },
      { '"%d", (REC->l - 6) > 0', "1", fields },
      { '"%lld", 0x80000000', "2147483648" },
      { '"%lld", 2147483648 - 1', "2147483647" },
      { '"%lld", -2147483648', "-2147483648" },
      { '"%d", (int)(1UL << 31)', "-2147483648" },
      { '"%d", (signed long long)REC->l == 5', "1", fields },
      { '"%d", (ktime_t)REC->l == 5', "1", fields },
      {
        '"%lu %lu %lu %lu", sizeof(int), sizeof(u64), sizeof(void *), sizeof(REC->w)', "4 8 8 4",
        fields,
      },
      {
        '"%u:%u", ((unsigned int) ((REC->w) >> 20)), '
          .. '((unsigned int) ((REC->w) & ((1U << 20) - 1)))',
        "4095:1048575", fields,
      },
    }
  end)

  it("know the head of the record by its name in the kernel", function()
    check({ { '"%d %d", REC->ent.pid, REC->ent.flags', "7 3" } }, { pid = 7, flags = 3 })
    assert.matches("no field", (select(2, decode.text('"%d", REC->ent.nothing'))), 1, true)
  end)

  it("reach into arrays, but never out of them", function()
    local fields = {
      { "u32 a[3]", "c12", ("<I4I4I4"):pack(10, 20, 30) },
      { "u8 b[4]", "c4", "\1\2\3\4" },
      { "__data_loc u16[] d", "data_loc", ("<I2I2"):pack(7, 8) },
      { "char c[4]", "c4", "hi\0\0" },
    }
    check {
      { '"%d %d", REC->a[0], REC->a[2]', "10 30", fields },
      { '"%d", REC->a[3]', "?", fields },
      { '"%d", REC->a[-1]', "?", fields },
      { '"%d", *REC->a', "10", fields },
      { '"%d", *(REC->a + 1)', "20", fields },
      { '"%d", ((u16 *)REC->a)[2]', "20", fields },
      { '"%x", *(u32 *)REC->b', "4030201", fields },
      { '"%d", ((u16 *)__get_dynamic_array(d))[1]', "8", fields },
      { '"%d", ((u16 *)__get_dynamic_array(d))[2]', "?", fields },
      { '"%d", *(u64 *)__get_dynamic_array(d)', "?", fields },
      { '"%d", __get_dynamic_array_len(d)', "4", fields },
      { '"%d %d %d", REC->c[0], REC->c[2], REC->c[3]', "104 0 ?", fields },
      { '"%s", REC->c[0] ? "some" : "none"', "some", fields },
      { '"%s", REC->c + 1', "i", fields },
      { '"%d", REC->a', "?", fields },
    }
  end)
end)

describe("strings in a print format", function()
  local fields = {
    { "char name[8]", "c8", "eth0\0\0\0\0" },
    { "__data_loc char[] path", "data_loc", "/tmp/x\0" },
    { "__rel_loc char[] rel", "rel_loc", "rel\0" },
    { "const char * s", "i8", 0x1000 },
    { "char bad[8]", "c8", "a\27[2J\n\255\0" },
  }

  it("are printed with width and precision", function()
    check {
      {
        '"%s|%6s|%-6s|%.2s|%6.2s|", REC->name, REC->name, REC->name, REC->name, REC->name',
        "eth0|  eth0|eth0  |et|    et|", fields,
      },
      { '"%s %s", __get_str(path), __get_rel_str(rel)', "/tmp/x rel", fields },
      { '"%.*s|%*s|", 3, __get_str(path), 8, __get_str(path)', "/tm|  /tmp/x|", fields },
      {
        '"%.*s", (int)__get_dynamic_array_len(path), (char *)__get_dynamic_array(path)', "/tmp/x",
        fields,
      },
      { '"a" "b" "%s", "c" "d"', "abcd" },
      { '"tab\\tquote\\"back\\\\slash\\x41\\101"', 'tab\tquote"back\\slashAA' },
      { '"%s", __get_str(path)[0] ? "has" : ""', "has", fields },
      { '"%s", 0', "(null)" },
    }
  end)

  it("cannot act on a terminal", function()
    check {
      { '"%s", REC->bad', "a\\x1b[2J\\x0a\\xff", fields },
      { '"[%-10s]", REC->bad', "[a\\x1b[2J\\x0a\\xff   ]", fields },
      { '"%c", 27', "\\x1b" },
      { '"\\033[2J"', "\\x1b[2J" },
    }
  end)

  it("behind an address are known when the kernel lists them", function()
    local catalog = core.catalog()
    assert.is_true(
      catalog:add_printk_formats(
        '0x1000 : "Start context switch"\n0x2000 : "a\\n\\"b\\"\\\\"\nnonsense\n'
      )
    )
    check({ { '"%s|", REC->s', "Start context switch|", fields } }, { catalog = catalog })
    check({ { '"%s", 0x2000', 'a\\x0a"b"\\' } }, { catalog = catalog })
    check { { '"%s|%8s|", REC->s, REC->s', "0x1000|  0x1000|", fields } }
  end)
end)

describe("the macros of print formats", function()
  it("show flags by their names, and what is left as a number", function()
    local list = '"|", { 1, "A" }, { 2, "B" }, { 0x80000000, "TOP" }'
    check {
      { '"%s", __print_flags(REC->f, ' .. list .. ")", "A|B", { { "int f", "i4", 3 } } },
      { '"%s", __print_flags(REC->f, ' .. list .. ")", "", { { "int f", "i4", 0 } } },
      { '"%s", __print_flags(REC->f, ' .. list .. ")", "A|0x10", { { "int f", "i4", 17 } } },
      { '"%s", __print_flags(REC->f, ' .. list .. ")", "0x10", { { "int f", "i4", 16 } } },
      {
        '"%s", __print_flags(REC->f, ' .. list .. ")", "A|B|TOP|0xffffffff7ffffffc",
        { { "int f", "i4", -1 } },
      },
      {
        '"%s", __print_flags(REC->f, ' .. list .. ")", "A|B|TOP|0x7ffffffc",
        { { "u32 f", "I4", 0xffffffff } },
      },
      { '"%s", __print_flags(3, "", { 1, "A" }, { 2, "B" })', "AB" },
      { '"%s", __print_flags(3, NULL, { 1, "A" }, { 2, "B" })', "AB" },
      { '"%s", __print_flags(3, "|", { 3, "BOTH" }, { 1, "A" })', "BOTH" },
      { '"%s", __print_flags(1, "|", { 3, "BOTH" }, { 1, "A" })', "A" },
      { '"%s", __print_flags(4, "|", { 0, "ZERO" }, { 4, "FOUR" })', "ZERO|FOUR" },
      {
        '"%s", __print_flags_u64(REC->f, "|", { 0x8000000000000000ULL, "TOP" })', "TOP",
        { { "u64 f", "i8", math.mininteger } },
      },
      { '"%s", __print_flags(5, "|", { 1, "A" }, { 0, ((void *)0) }, { 4, "C" })', "A|0x4" },
      {
        '"%s", REC->f ? __print_flags(REC->f, "|", { 1, "A" }) : "none"', "none",
        { { "int f", "i4", 0 } },
      },
      {
        '"%s", __print_flags(REC->f & 0xff, ",", { 1 << 3, "three" } , { (1UL) << (4), "four" }, )',
        "three,four", { { "int f", "i4", 0x118 } },
      },
    }
  end)

  it("show values by their names, and others as numbers", function()
    check {
      {
        '"%s", __print_symbolic(REC->f, { 0, "zero" }, { -1, "minus" })', "zero",
        { { "int f", "i4", 0 } },
      },
      {
        '"%s", __print_symbolic(REC->f, { 0, "zero" }, { -1, "minus" })', "minus",
        { { "int f", "i4", -1 } },
      },
      {
        '"%s", __print_symbolic(REC->f, { 0, "zero" }, { -1, "minus" })', "0x2",
        { { "int f", "i4", 2 } },
      },
      {
        '"%s", __print_symbolic(REC->f, { 0, "zero" })', "0xfffffffffffffffe",
        { { "int f", "i4", -2 } },
      },
      { '"%s", __print_symbolic(REC->f, { })', "0x3", { { "int f", "i4", 3 } } },
      { '"%s", __print_symbolic(3, { 3, "a" "b" }, { 3, "second" })', "ab" },
      { '"%s", __print_symbolic(3, { 3, "" })', "0x3" },
      {
        '"%s", __print_symbolic(REC->f, { 5, "five" }, { -1, 0 })', "five",
        { { "int f", "i4", 5 } },
      },
      {
        '"%8s|%-8s|", __print_symbolic(1, { 1, "one" }), __print_symbolic(1, { 1, "one" })',
        "     one|one     |",
      },
    }
    check(
      { { '"%s", __print_symbolic(REC->f, { -1, "minus" })', "minus", { { "int f", "i4", -1 } } } },
      { long_size = 4 }
    )
    check(
      { { '"%s", __print_symbolic(REC->f, { 1, "x" })', "0xfffffffe", { { "int f", "i4", -2 } } } },
      { long_size = 4 }
    )
  end)

  it("show memory in hex and as arrays", function()
    local fields = {
      { "__data_loc u8[] b", "data_loc", "\0\1\254\255" },
      { "__data_loc u32[] w", "data_loc", ("<I4I4"):pack(1, 0xfffffffe) },
      { "u8 mac[6]", "c6", "\0\17\34\51\68\255" },
    }
    check {
      {
        '"%s", __print_hex(__get_dynamic_array(b), __get_dynamic_array_len(b))', "00 01 fe ff",
        fields,
      },
      { '"%s", __print_hex_str(__get_dynamic_array(b), 2)', "0001", fields },
      { '"%s", __print_hex(__get_dynamic_array(b), 100)', "00 01 fe ff", fields },
      { '"%s", __print_hex(REC->mac, 6)', "00 11 22 33 44 ff", fields },
      {
        '"%s", __print_array(__get_dynamic_array(w), '
          .. "__get_dynamic_array_len(w) / sizeof(u32), sizeof(u32))",
        "{0x1,0xfffffffe}", fields,
      },
      { '"%s", __print_array(REC->mac, 2, 1)', "{0x0,0x11}", fields },
      { '"%s", __print_array(REC->mac, 0, 1)', "{}", fields },
      { '"%s", __print_array(REC->mac, 2, 3)', "?", fields },
      { '"%s", __print_array(REC->mac, 1000, 2)', "{0x1100,0x3322,0xff44}", fields },
      { '"%s", __print_dynamic_array(w, 4)', "{0x1,0xfffffffe}", fields },
      { '"x%s", __print_hex_dump("p: ", DUMP_PREFIX_OFFSET, 16, 1, REC->mac, 6, true)',
        "x\\x0ap: 00000000: 00 11 22 33 44 ff" .. (" "):rep(32) .. '.."3D.\\x0a', fields },
    }
  end)

  it("show sets of bits", function()
    local function mask(...)
      return ("<" .. ("i8"):rep(select("#", ...))):pack(...)
    end
    check {
      {
        '"%s", __get_bitmask(m)', "00000000,00000005",
        { { "__data_loc unsigned long[] m", "data_loc", mask(5) } },
      },
      { '"%s", __get_cpumask(m)', "80000000,00000000,00000000,00000001",
        { { "__data_loc cpumask_t m", "data_loc", mask(1, math.mininteger) } } },
      {
        '"%s", __get_rel_cpumask(m)', "00000000,0000000f",
        { { "__rel_loc cpumask_t m", "rel_loc", mask(15) } },
      },
      { '"%s", __get_cpumask(m)', "", { { "__data_loc cpumask_t m", "data_loc", "" } } },
      {
        '"%*pbl|%*pb", 64, REC->m, 12, REC->m', "0-2,5,7-8|1a7",
        { { "unsigned long m[1]", "c8", mask(0x1a7) } },
      },
    }
  end)

  it("divide times and count ticks", function()
    local catalog = core.catalog()
    catalog:set_hz(250)
    check {
      {
        '"%llu.%09u", __print_ns_to_secs(REC->t), __print_ns_without_secs(REC->t)', "5.000000007",
        { { "u64 t", "i8", 5000000007 } },
      },
      { '"%u", jiffies_to_msecs(25)', "?" },
      { '"%lu", jiffies', "?" },
    }
    check(
      { { '"%u %u", jiffies_to_msecs(25), jiffies_to_usecs(25)', "100 100000" } },
      { catalog = catalog }
    )
  end)

  it("show stacks of synthetic events", function()
    check {
      { '"stack=%s", __get_stacktrace(s)', "stack=STACK:\\x0a=> 0x10\\x0a=> 0x20\\x0a",
        { { "__data_loc unsigned long[] s", "data_loc", ("<i8i8i8"):pack(16, 32, 0) } } },
    }
  end)
end)

describe("pointers in a print format", function()
  it("are printed with all their digits", function()
    local fields = { { "void * p", "i8", 0xffff888003a1c000 } }
    check {
      {
        '"%p %px %pK", REC->p, REC->p, REC->p',
        "ffff888003a1c000 ffff888003a1c000 ffff888003a1c000", fields,
      },
      { '"%p", 0', "0000000000000000" },
      { '"%20p|", REC->p', "    ffff888003a1c000|", fields },
      { '"%pe", -2', "-2" },
    }
    check(
      { { '"%p", REC->q', "c03a1c00", { { "void * q", "I4", 0xc03a1c00 } } } }, { long_size = 4 }
    )
  end)

  it("show network addresses", function()
    local fields = {
      { "__u8 a[4]", "c4", "\127\0\0\1" },
      { "__be32 w", "c4", "\192\168\1\9", size = 4 },
      { "u8 six[16]", "c16", "\32\1\r\184" .. ("\0"):rep(11) .. "\1" },
      { "u8 any[16]", "c16", ("\0"):rep(16) },
      { "u8 loop[16]", "c16", ("\0"):rep(15) .. "\1" },
      { "u8 mapped[16]", "c16", ("\0"):rep(10) .. "\255\255\10\0\0\7" },
      { "u8 gaps[16]", "c16", "\0\1\0\0\0\0\0\2\0\0\0\0\0\0\0\3" },
      { "u8 mac[6]", "c6", "\2\66\172\17\0\255" },
      { "u8 uuid[16]", "c16", "\0\1\2\3\4\5\6\7\8\9\10\11\12\13\14\15" },
    }
    check {
      { '"%pI4 %pi4", REC->a, REC->a', "127.0.0.1 127.000.000.001", fields },
      {
        '"%pI4h %pI4n %pI4b %pI4l", REC->a, REC->a, REC->a, REC->a',
        "1.0.0.127 127.0.0.1 127.0.0.1 1.0.0.127", fields,
      },
      { '"%pI4", &REC->w', "192.168.1.9", fields },
      { '"%15pI4|%-15pI4|", REC->a, REC->a', "      127.0.0.1|127.0.0.1      |", fields },
      { '"%pI6", REC->six', "2001:0db8:0000:0000:0000:0000:0000:0001", fields },
      { '"%pi6", REC->six', "20010db8000000000000000000000001", fields },
      {
        '"%pI6c %pI6c %pI6c %pI6c", REC->six, REC->any, REC->loop, REC->gaps',
        "2001:db8::1 :: ::1 1:0:0:2::3", fields,
      },
      { '"%pI6c", REC->mapped', "::ffff:10.0.0.7", fields },
      {
        '"%pM %pm %pMF %pMR", REC->mac, REC->mac, REC->mac, REC->mac',
        "02:42:ac:11:00:ff 0242ac1100ff 02-42-ac-11-00-ff ff:00:11:ac:42:02", fields,
      },
      { '"%pU", REC->uuid', "00010203-0405-0607-0809-0a0b0c0d0e0f", fields },
      {
        '"%pUb %pUB", REC->uuid, REC->uuid',
        "00010203-0405-0607-0809-0a0b0c0d0e0f 00010203-0405-0607-0809-0A0B0C0D0E0F", fields,
      },
      {
        '"%pUl %pUL", REC->uuid, REC->uuid',
        "03020100-0504-0706-0809-0a0b0c0d0e0f 03020100-0504-0706-0809-0A0B0C0D0E0F", fields,
      },
      {
        '"%*ph|%*phC|%*phD|%*phN", 3, REC->mac, 3, REC->mac, 3, REC->mac, 3, REC->mac',
        "02 42 ac|02:42:ac|02-42-ac|0242ac", fields,
      },
      { '"%6phC", REC->mac', "02:42:ac:11:00:ff", fields },
      { '"%*ph", 7, REC->mac', "?", fields },
      { '"%pI6c", REC->mac', "?", fields },
      { '"%pI4", 0x1000', "?" },
    }
  end)

  it("show socket addresses of both families", function()
    local four = ("<I2>I2"):pack(2, 8080) .. "\127\0\0\1" .. ("\0"):rep(8)
    local six = ("<I2>I2I4"):pack(10, 443, 0x12345) .. ("\0"):rep(15) .. "\1" .. ("<I4"):pack(3)
    local function fields(bytes)
      return { { "__u8 sa[28]", "c28", bytes .. ("\0"):rep(28 - #bytes) } }
    end
    check {
      { '"%pISpc", REC->sa', "127.0.0.1:8080", fields(four) },
      { '"%pIS", REC->sa', "127.0.0.1", fields(four) },
      { '"%pISpc", REC->sa', "[::1]:443", fields(six) },
      { '"%pISc", REC->sa', "::1", fields(six) },
      { '"%pISpfc", REC->sa', "[::1]:443/74565", fields(six) },
      { '"%pISpfsc", REC->sa', "[::1]:443/74565%3", fields(six) },
      { '"%pISp", REC->sa', "[0000:0000:0000:0000:0000:0000:0000:0001]:443", fields(six) },
      {
        '"%pISpc", __get_sockaddr(d)', "127.0.0.1:8080",
        { { "__data_loc __u8[] d", "data_loc", four } },
      },
      { '"%pISpc", REC->sa', "?", fields(("<I2"):pack(1)) },
    }
  end)

  it("show numbers that lie behind them", function()
    local fields = { { "phys_addr_t a", "i8", 0x1234 }, { "netdev_features_t f", "i8", 0x10 } }
    check {
      { '"%pa", &REC->a', "0x0000000000001234", fields },
      { '"%pNF", &REC->f', "0x0000000000000010", fields },
    }
  end)
end)
