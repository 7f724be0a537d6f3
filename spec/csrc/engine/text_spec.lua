local core = require "tracefs.core"
local decode = require "spec.support.decode"

describe("a line", function()
  local catalog = core.catalog()
  catalog:set_comm(7, "cat")
  catalog:set_comm(8, "a name of 16 byte")

  local function line(options)
    options.catalog = catalog
    options.print = options.print or '"x=%d", REC->x'
    options.fields = options.fields or { { "int x", "i4", 3 } }
    return tostring((decode.record(options)))
  end

  it("is what the kernel's trace file shows", function()
    assert.equal("             cat-7       [001] .....  1234.567890: thing: x=3",
      line { pid = 7, common_cpu = 1, common_timestamp = 1234567890123 })
    assert.equal("a name of 16 byte-8       [012] .....     0.000001: thing: x=3",
      line { pid = 8, common_cpu = 12, common_timestamp = 1000 })
    assert.equal("          <idle>-0       [000] ..... 123456.000000: thing: x=3",
      line { pid = 0, common_timestamp = 123456000000000 })
    assert.equal("           <...>-4194303 [1234] .....     0.000000: thing: x=3",
      line { pid = 4194303, common_cpu = 1234 })
  end)

  it("rounds nanoseconds to the nearest microsecond", function()
    for ns, text in pairs {
      [499] = "0.000000", [500] = "0.000001", [1499] = "0.000001", [1500] = "0.000002",
      [999999499] = "0.999999", [999999500] = "1.000000",
    } do
      assert.matches("     " .. text .. ": ", line { pid = 7, common_timestamp = ns }, 1, true)
    end
  end)

  it("has a letter for each state of interrupts, scheduling, context and preemption", function()
    local function letters(flags, preempt)
      return line({ pid = 7, flags = flags, preempt = preempt }):match("%[000%] (.....) ")
    end
    for flags, text in pairs {
      [0x00] = "....", [0x01] = "d...", [0x80] = "b...", [0x81] = "D...",
      [0x02] = ".l..", [0x04] = ".n..", [0x20] = ".p..", [0x06] = ".b..",
      [0x22] = ".L..", [0x24] = ".N..", [0x26] = ".B..",
      [0x08] = "..h.", [0x10] = "..s.", [0x18] = "..H.",
      [0x40] = "..z.", [0x48] = "..Z.", [0x50] = "..z.",
      [0xff] = "DBZ.", [0x0d] = "dnh.",
    } do
      assert.equal(text .. ".", letters(flags, 0), ("%#x"):format(flags))
    end
    assert.equal("...1.", letters(0, 0x01))
    assert.equal("...f.", letters(0, 0x0f))
    assert.equal("....2", letters(0, 0x20))
    assert.equal("...ba", letters(0, 0xab))
  end)

  it("ends without the print format's last newline, and keeps the others", function()
    assert.matches("thing: a\nb$", line { print = '"a\\nb\\n"' })
    assert.equal("a\nb", decode.text('"a\\nb\\n"'))
  end)

  it("names the fields of an event without a usable print format", function()
    local record = decode.record {
      print = '"%s", kernel_function(REC->x)',
      fields = {
        { "int x", "i4", -3 }, { "u64 big", "i8", -1 }, { "char name[4]", "c4", "lo\0\0" },
        { "void * p", "i8", 0xffff888000000000 }, { "u8 mac[3]", "c3", "\1\2\255" },
        { "u32 list[2]", "c8", ("<I4I4"):pack(1, 2) },
        { "__data_loc cpumask_t cpus", "data_loc", ("<i8"):pack(0xb) },
      },
    }
    assert.matches("thing: x=-3 big=18446744073709551615 name=lo p=0xffff888000000000 mac=01 02 ff "
      .. "list={1,2} cpus=0-1,3", tostring(record), 1, true)
  end)
end)

describe("the text of one field", function()
  local function text_of(name, print_fmt, fields)
    return core.text((decode.record { print = print_fmt, fields = fields }), name)
  end

  it("has the names that the print format has for its values", function()
    local switch = '"state=%s%s next=%s", (REC->prev_state & 0xff) ? '
      .. '__print_flags(REC->prev_state & 0xff, "|", { 1, "S" }, { 2, "D" }) : "R", '
      .. 'REC->prev_state & 0x100 ? "+" : "", REC->next'
    for state, text in pairs {
      [0] = "R", [1] = "S", [3] = "S|D", [0x100] = "R+", [0x101] = "S+",
    } do
      assert.equal(
        text,
        text_of(
          "prev_state", switch,
          { { "long prev_state", "i8", state }, { "char next[4]", "c4", "cat\0" } }
        )
      )
    end
    assert.equal("IPv4", text_of("f", '"%d %s", REC->g, __print_symbolic(REC->f, { 2, "IPv4" })',
      { { "u16 f", "I2", 2 }, { "int g", "i4", 9 } }))
  end)

  it("is an address as the print format shows it", function()
    assert.equal(
      "127.0.0.1", text_of("a", '"a=%pI4", REC->a', { { "u8 a[4]", "c4", "\127\0\0\1" } })
    )
    assert.equal("0x1000", text_of("f", '"f=%ps", REC->f', { { "void * f", "i8", 0x1000 } }))
  end)

  it("is the plain value else", function()
    assert.equal("-3", text_of("x", '"0x%x", REC->x', { { "int x", "i4", -3 } }))
    assert.equal(
      "3",
      text_of(
        "x", '"%s", REC->x & REC->y ? "a" : "b"', { { "int x", "i4", 3 }, { "int y", "i4", 1 } }
      )
    )
    assert.equal(
      "0xffff888000000000",
      text_of("p", '"%p", REC->p', { { "void * p", "i8", 0xffff888000000000 } })
    )
    assert.equal("a\\x1b", text_of("s", '"%d", 1', { { "char s[4]", "c4", "a\27\0\0" } }))
    assert.equal("18446744073709551615", text_of("u", '"%d", 1', { { "u64 u", "i8", -1 } }))
    assert.equal("1", text_of("common_pid", '"%d", 1', {}))
  end)
end)

describe("what cannot be shown as it is", function()
  it("comes as its bytes in hex", function()
    local cases = {
      ["plain text"] = "plain text",
      ["tab\tstays"] = "tab\tstays",
      ["\27[31m"] = "\\x1b[31m",
      ["a\nb\rc"] = "a\\x0ab\\x0dc",
      ["\127"] = "\\x7f",
      ["\xc3\xbc \xe2\x82\xac \xf0\x9f\x90\xa7"] = "\xc3\xbc \xe2\x82\xac \xf0\x9f\x90\xa7",
      ["\xc2\x9b31m"] = "\\xc2\\x9b31m",
      ["\xe2\x80\xae"] = "\\xe2\\x80\\xae",
      ["\xe2\x81\xa6"] = "\\xe2\\x81\\xa6",
      ["\xff\xfe"] = "\\xff\\xfe",
      ["\xc3"] = "\\xc3",
      ["\xc0\xaf"] = "\\xc0\\xaf",
      ["\xed\xa0\x80"] = "\\xed\\xa0\\x80",
      ["\xf4\x90\x80\x80"] = "\\xf4\\x90\\x80\\x80",
      ["\xe2\x82"] = "\\xe2\\x82",
    }
    for bytes, text in pairs(cases) do
      assert.equal(
        text,
        decode.text('"%s", __get_str(s)', { { "__data_loc char[] s", "data_loc", bytes .. "\0" } })
      )
    end
  end)
end)

describe("the tracer's own event", function()
  local catalog = core.catalog()
  catalog:add_kallsyms("ffffffff81000000 T caller\nffffffff81001000 T parent\n")
  catalog:add_printk_formats('0x1000 : "n=%d c=%c %s %lld|%5.2x|%%\\n"\n0x2000 : "put\\n"\n'
    .. '0x3000 : "%hhd %hd %*d %ps %pI4 %p %.*s"\n0x4000 : "%d %d"\n')
  catalog:set_comm(42, "next")
  local IP, PARENT = 0xffffffff81000000, 0xffffffff81001000

  -- What stands behind the time.
  local function body(name, fields, options)
    local all = {
      system = "ftrace", name = name, print = '""', catalog = catalog, fields = fields,
      id = options and options.id,
    }
    for key, value in pairs(options or {}) do
      all[key] = value
    end
    return tostring((decode.record(all))):match("%d%.%d+: (.*)$")
  end

  it("print shows where it was written and its text", function()
    local function print(text)
      return body(
        "print", { { "unsigned long ip", "i8", IP }, { "char buf[]", "tail", text } }, { id = 5 }
      )
    end
    assert.equal("caller: hello", print "hello\n\0")
    assert.equal("caller: hello", print "hello\0\0\0")
    assert.equal("caller: two\nlines", print "two\nlines\n\0")
    assert.equal("caller: \\x1b[2J", print "\27[2J\n\0")
  end)

  it("bputs and bprint find their text by its address", function()
    assert.equal("caller: put", body("bputs",
      { { "unsigned long ip", "i8", IP }, { "const char * str", "i8", 0x2000 } }, { id = 14 }))
    local function bprint(fmt, args)
      return body("bprint", { { "unsigned long ip", "i8", IP }, { "const char * fmt", "i8", fmt },
        { "u32 buf[]", "tail", args } }, { id = 6, print = '"%ps: %s", (void *)REC->ip, REC->fmt' })
    end
    assert.equal("caller: n=-5 c=A text 1099511627776|   0f|%", bprint(0x1000,
      ("<i4"):pack(-5) .. "A" .. "text\0" .. "\0\0" .. ("<i8"):pack(1 << 40) .. ("<i4"):pack(15)))
    assert.equal("caller: -1 -2     7 parent 10.0.0.1 0000000000001234 ab", bprint(0x3000,
      ("<b"):pack(-1) .. "\0" .. ("<h"):pack(-2) .. ("<i4i4i8"):pack(
        5, 7, PARENT
      ) .. "10.0.0.1\0" .. "\0\0\0"
      .. ("<i8"):pack(0x1234) .. ("<i4"):pack(2) .. "abc\0"))
    -- what is missing is not made up
    assert.equal("caller: 1 ?", bprint(0x4000, ("<i4"):pack(1)))
    assert.equal("bprint: caller: 0x9000", bprint(0x9000, ""))
  end)

  it("raw_data shows its bytes", function()
    assert.equal("# 4d2 buf: 61 00 ff 0a", body("raw_data",
      { { "unsigned int id", "I4", 1234 }, { "char buf[]", "tail", "a\0\255\n" } }, { id = 16 }))
  end)

  it("function and func_repeats show who called", function()
    assert.equal("caller <-parent", body("function",
      { { "unsigned long ip", "i8", IP }, { "unsigned long parent_ip", "i8", PARENT } }, {
        id = 1,
      }))
    assert.equal("0x00001234", body("function",
      { { "unsigned long ip", "i8", 0x1234 }, { "unsigned long parent_ip", "i8", 0 } }, { id = 1 }))
    assert.equal("caller <-parent (repeats: 3, last_ts:     1.999999)", body("func_repeats", {
      { "unsigned long ip", "i8", IP }, { "unsigned long parent_ip", "i8", PARENT },
      { "u16 count", "I2", 3 }, { "u16 top_delta_ts", "I2", 0 }, {
        "u32 bottom_delta_ts", "I4", 1000,
      },
    }, { id = 18, common_timestamp = 2000000000 }))
  end)

  it("kernel_stack and user_stack show a line for each address", function()
    assert.equal("<stack trace>\n => caller\n => parent\n => 0x00001234", body("kernel_stack", {
      { "int size", "i4", 3 },
      {
        "unsigned long caller[8]", "c64", offset = 16,
        ("<i8i8i8i8i8i8i8i8"):pack(IP, PARENT, 0x1234, 1, 2, 3, 4, 5),
      },
    }, { id = 4 }))
    local user = "<user stack trace>\n =>  <00007f0000001000>\n =>  <0000000000401000>"
    assert.equal(user, body("user_stack", {
      { "unsigned int tgid", "I4", 3 },
      {
        "unsigned long caller[8]", "c64", offset = 16,
        ("<i8i8i8i8i8i8i8i8"):pack(0x7f0000001000, 0x401000, 0, 1, 0, 0, 0, 0),
      },
    }, { id = 12 }))
  end)

  it("context_switch and wakeup show both tasks", function()
    local fields = {
      { "unsigned int prev_pid", "I4", 7 }, { "unsigned int next_pid", "I4", 42 }, {
        "unsigned int next_cpu", "I4", 1,
      },
      { "unsigned char prev_prio", "B", 120 }, { "unsigned char prev_state", "B", 1 },
      { "unsigned char next_prio", "B", 99 }, { "unsigned char next_state", "B", 0 },
    }
    assert.equal(
      "       7:120:S ==> [001]      42: 99:R next", body("context_switch", fields, { id = 2 })
    )
    assert.equal("       7:120:S   + [001]      42: 99:R next", body("wakeup", fields, { id = 3 }))
  end)

  it("of the latency tracers shows what they measured", function()
    assert.equal("#5     context thread timer_latency      4321 ns", body("timerlat", {
      { "unsigned int seqnum", "I4", 5 }, { "int context", "i4", 1 },
      { "u64 timer_latency", "i8", 4321 } }, {
        id = 20,
      }))
    local noise = "1000000        500  99.95000     400      1      0      2      3      4"
    assert.equal(noise, body("osnoise", {
      { "u64 noise", "i8", 500 }, { "u64 runtime", "i8", 1000000 }, { "u64 max_sample", "i8", 400 },
      { "unsigned int hw_count", "I4", 1 }, { "unsigned int nmi_count", "I4", 0 }, {
        "unsigned int irq_count", "I4", 2,
      },
      { "unsigned int softirq_count", "I4", 3 }, { "unsigned int thread_count", "I4", 4 } }, {
        id = 19,
      }))
    local latency = "#3     inner/outer(us):   12/15    ts:5.000000007 count:2"
      .. " nmi-total:9 nmi-count:1"
    assert.equal(latency, body("hwlat", {
      { "u64 duration", "i8", 12 }, { "u64 outer_duration", "i8", 15 }, {
        "u64 nmi_total_ts", "i8", 9,
      },
      { "s64 tv_sec", "i8", 5 }, { "long tv_nsec", "i8", 7 }, { "unsigned int nmi_count", "I4", 1 },
      { "unsigned int seqnum", "I4", 3 }, { "unsigned int count", "I4", 2 } }, { id = 14 }))
  end)

  it("branch shows where it was taken", function()
    assert.equal("[ MISS ] main:file.c:12", body("branch", {
      { "unsigned int line", "I4", 12 }, { "char func[5]", "c5", "main\0" }, {
        "char file[7]", "c7", "file.c\0",
      },
      { "char correct", "B", 0 } }, { id = 9 }))
  end)

  it("falls back to its print format when its fields are others", function()
    assert.equal(
      "print: 5",
      body("print", { { "int other", "i4", 5 } }, { id = 5, print = '"%d", REC->other' })
    )
  end)
end)

describe("a system call", function()
  local function body(name, fields, options)
    options = options or {}
    return tostring(
      (
        decode.record {
          system = "syscalls", name = name, print = options.print or '"%lx", REC->dfd',
          fields = fields, catalog = options.catalog,
        }
      )
    )
      :match("%d%.%d+: (.*)$")
  end

  it("is shown as the kernel of the records does: before 6.18 in plain hexadecimal", function()
    local fields = {
      { "int __syscall_nr", "i4", 0 }, { "unsigned int fd", "i8", 10, signed = 0 },
      { "char * buf", "i8", 0x7f12 }, { "size_t count", "i8", 9, signed = 0 },
    }
    local plain = "sys_read(fd: a, buf: 7f12, count: 9)"
    local marked = "sys_read(fd: 0xa, buf: 0x7f12, count: 9)"
    for release, expected in pairs {
      ["5.10.0-32-cloud-amd64"] = plain, ["6.17.9"] = plain, ["6.18.0-rc1"] = marked,
      ["7.2.13"] = marked, ["unknown"] = marked,
    } do
      local catalog = core.catalog()
      assert.is_true(catalog:set_release(release))
      assert.equal(expected, body("sys_enter_read", fields, {
        print = '"fd: 0x%08lx", REC->fd', catalog = catalog,
      }), release)
    end
  end)

  local function write(memory, count)
    return body("sys_enter_write", {
      { "int __syscall_nr", "i4", 1 }, { "unsigned int fd", "i8", 1, signed = 0 },
      { "const char * buf", "i8", 0x7f12 }, { "size_t count", "i8", count, signed = 0 },
      { "__data_loc char[] __buf_val", "data_loc", memory },
    }, {
      print = '"fd: 0x%08lx, buf: 0x%08lx (%s), count: 0x%08lx", ((unsigned long)(REC->fd)), '
        .. "((unsigned long)(REC->buf)), __print_dynamic_array(__buf_val, 1), "
        .. "((unsigned long)(REC->count))",
    })
  end

  it("is shown with the bytes behind a pointer, and what can be read in them", function()
    assert.equal('sys_write(fd: 1, buf: 0x7f12 (68:69:0a) "hi.", count: 3)', write("hi\n", 3))
    assert.equal("sys_write(fd: 1, buf: 0x7f12 (00:ff), count: 2)", write("\0\xff", 2))
    assert.equal("sys_write(fd: 1, buf: 0x7f12 (), count: 0)", write("", 0))
  end)

  it("says when less was copied than the call was given", function()
    assert.equal('sys_write(fd: 1, buf: 0x7f12 (68:00, ...) "h."..., count: 0x1000)',
      write("h\0", 4096))
    assert.equal("sys_write(fd: 1, buf: 0x7f12 (01, ...), count: 9)", write("\1", 9))
  end)

  it("openat is shown with its flags where the kernel does", function()
    local function openat(flags)
      return body("sys_enter_openat", {
        { "int __syscall_nr", "i4", 257 }, { "int dfd", "i8", 0xffffff9c, signed = 0 },
        { "const char * filename", "i8", 1000 }, { "int flags", "i8", flags, signed = 0 },
        { "umode_t mode", "i8", 438, signed = 0 },
        { "__data_loc char[] __filename_val", "data_loc", "/tmp/x\0" },
      }, {
        print = [["dfd: 0x%08lx, flags: %s%s", ((unsigned long)(REC->dfd)), ]]
          .. [[(REC->flags & ~3) && !(REC->flags & 3) ? "O_RDONLY|" : "",  REC->flags ? ]]
          .. [[__print_flags(REC->flags, "|", { 0x1, "O_WRONLY" }, { 0x2, "O_RDWR" }, ]]
          .. [[{ 0x40, "O_CREAT" }, { 0x200, "O_TRUNC" }, { 0x80000, "O_CLOEXEC" }) : "O_RDONLY"]],
      })
    end
    local head = 'sys_openat(dfd: 4294967196, filename: 1000 "/tmp/x", flags: '
    assert.equal(head .. "O_RDONLY)", openat(0))
    assert.equal(head .. "O_RDONLY|O_CLOEXEC)", openat(0x80000))
    assert.equal(head .. "O_WRONLY|O_CREAT|O_TRUNC, mode: 0666)", openat(0x241))
    assert.equal(head .. "O_RDONLY|O_CREAT, mode: 0666)", openat(0x40))
  end)

  it("is shown with its arguments as they were in the registers", function()
    local call = "sys_openat(dfd: 0xffffff9c, filename: 0x7f12, flags: 9, mode: 0)"
    assert.equal(call, body("sys_enter_openat", {
      { "int __syscall_nr", "i4", 257 }, { "int dfd", "i8", 0xffffff9c, signed = 0 },
      { "const char * filename", "i8", 0x7f12 }, { "int flags", "i8", 9, signed = 0 },
      { "umode_t mode", "i8", 0, signed = 0 },
    }))
  end)

  it("is shown with the text behind a pointer where the kernel has copied it", function()
    local call = 'sys_openat(dfd: 3, filename: 0x7f12 "/etc/passwd", mode: 0xa)'
    assert.equal(call, body("sys_enter_openat", {
      { "int __syscall_nr", "i4", 257 }, { "int dfd", "i8", 3, signed = 0 },
      { "const char * filename", "i8", 0x7f12 }, { "umode_t mode", "i8", 10, signed = 0 },
      { "__data_loc char[] __filename_val", "data_loc", "/etc/passwd\0" },
    }))
  end)

  it("is shown with what it returned", function()
    local fields = {
      { "int __syscall_nr", "i4", 45 }, { "long dfd", "i8", 0 }, { "long ret", "i8", -11 },
    }
    assert.equal("sys_recvmsg -> 0xfffffffffffffff5", body("sys_exit_recvmsg", fields))
  end)
end)

describe("a probe", function()
  local catalog = core.catalog()
  catalog:add_kallsyms(
    "ffffffff81000000 T do_sys_open\nffffffff81001000 T caller\nffffffff81002000 T after\n"
  )

  local function body(fields, print_fmt)
    return tostring(
      (
        decode.record {
          system = "probes", name = "p_open", print = print_fmt, fields = fields,
          catalog = catalog,
        }
      )
    )
      :match("%d%.%d+: (.*)$")
  end

  it("of user space is shown by address, with 0x", function()
    assert.equal('p_open: (0x401136) n=-5 path="/etc"', body({
      { "unsigned long __probe_ip", "i8", 0x401136 }, { "s32 n", "i4", -5 },
      { "__data_loc char[] path", "data_loc", "/etc\0" },
    }, [["(%lx) n=%d path=\"%s\"", REC->__probe_ip, REC->n, __get_str(path)]]))
    assert.equal("p_open: (0x401140 <- 0x401136) ret=0x7", body({
      { "unsigned long __probe_func", "i8", 0x401136 }, {
        "unsigned long __probe_ret_ip", "i8", 0x401140,
      },
      { "u64 ret", "i8", 7 },
    }, [["(%lx <- %lx) ret=0x%Lx", REC->__probe_func, REC->__probe_ret_ip, REC->ret]]))
  end)

  it("of the kernel is shown by symbol", function()
    assert.equal("p_open: (do_sys_open+0x4/0x1000) dfd=3", body({
      { "unsigned long __probe_ip", "i8", 0xffffffff81000004 }, { "s32 dfd", "i4", 3 },
    }, [["(%lx) dfd=%d", REC->__probe_ip, REC->dfd]]))
    assert.equal("p_open: (caller+0x10/0x1000 <- do_sys_open) arg1=0x3", body({
      { "unsigned long __probe_func", "i8", 0xffffffff81000000 },
      { "unsigned long __probe_ret_ip", "i8", 0xffffffff81001010 }, { "u64 arg1", "i8", 3 },
    }, [["(%lx <- %lx) arg1=0x%Lx", REC->__probe_func, REC->__probe_ret_ip, REC->arg1]]))
  end)

  it("tells a string that could not be read from an empty one", function()
    local print_fmt = [["(%lx) a=\"%s\" b=\"%s\" c=%d", REC->__probe_ip, ]]
      .. "__get_str(a), __get_str(b), REC->c"
    assert.equal('p_open: (0x401136) a=(fault) b="" c=4', body({
      { "unsigned long __probe_ip", "i8", 0x401136 }, { "__data_loc char[] a", "data_loc", "" },
      { "__data_loc char[] b", "data_loc", "\0" }, { "s32 c", "i4", 4 },
    }, print_fmt))
  end)

  it("has its arrays in braces", function()
    assert.equal("p_open: (0x401136) arr={1,-2,3,4}", body({
      { "unsigned long __probe_ip", "i8", 0x401136 },
      { "s32 arr[]", "c16", ("<i4i4i4i4"):pack(1, -2, 3, 4) },
    }, '"(%lx) arr={%d,%d,%d,%d}", REC->__probe_ip, '
      .. "REC->arr[0], REC->arr[1], REC->arr[2], REC->arr[3]"))
  end)
end)
