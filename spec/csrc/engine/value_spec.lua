local decode = require "spec.support.decode"

-- The value of the only field of a record made on a machine of this kind.
local function value(declaration, packing, stored, options)
  options = options or {}
  local record = decode.record {
    fields = {
      {
        declaration:gsub("^(.*%A)$", "%1x"), packing, stored, size = options.size,
        signed = options.signed,
      },
    },
    print = options.print,
    order = options.order,
    long_size = options.long_size,
  }
  return record.x
end

local machines = {
  { name = "a little-endian machine", order = "<", long_size = 8 },
  { name = "a big-endian machine", order = ">", long_size = 8 },
  { name = "a little-endian machine of 32 bits", order = "<", long_size = 4 },
  { name = "a big-endian machine of 32 bits", order = ">", long_size = 4 },
}

for _, machine in ipairs(machines) do
  local order, long = machine.order, machine.long_size
  local function read(declaration, packing, stored, options)
    options = options or {}
    options.order, options.long_size = order, long
    return value(declaration, packing, stored, options)
  end

  describe("a record of " .. machine.name, function()
    it("gives numbers with their sign", function()
      assert.equal(250, read("u8 x", "B", 250))
      assert.equal(-6, read("s8 x", "b", -6))
      assert.equal(65534, read("unsigned short x", "I2", 65534))
      assert.equal(-2, read("short x", "i2", -2))
      assert.equal(0xfffffff0, read("unsigned int x", "I4", 0xfffffff0))
      assert.equal(-16, read("int x", "i4", -16))
      assert.equal(0x123456789abcdef0, read("u64 x", "i8", 0x123456789abcdef0))
      assert.equal(-1, read("s64 x", "i8", -1))
    end)

    it("gives the exact 64 bits of what is no Lua number, wrapped", function()
      local top = read("u64 x", "i8", math.mininteger)
      assert.equal("integer", math.type(top))
      assert.equal("9223372036854775808", require("tracefs").u64(top))
      assert.equal("18446744073709551615", require("tracefs").u64(read("u64 x", "i8", -1)))
      assert.equal("ffffffff813bd8a1", ("%x"):format(read("u64 x", "i8", 0xffffffff813bd8a1)))
    end)

    it("narrows what a system call got as a long to its type", function()
      local function argument(declaration, stored)
        return read(declaration, long == 8 and "i8" or "i4", stored, { signed = 0 })
      end
      assert.equal(-100, argument("int x", -100))
      assert.equal(-1, argument("pid_t x", -1))
      assert.equal(-11, argument("long x", -11))
      assert.equal(-5, argument("ssize_t x", -5))
      if long == 8 then
        -- what a program leaves in the upper half of the register is no part of an int
        assert.equal(-100, argument("int x", 0x12345678ffffff9c))
        assert.equal(0xffffff9c, argument("unsigned int x", 0x12345678ffffff9c))
        assert.equal(0x1ed, argument("umode_t x", 0x123401ed))
        assert.equal(7, argument("char x", 7))
      end
    end)

    it("gives text up to its first NUL", function()
      assert.equal("sshd", read("char x[16]", "c16", "sshd\0garbage\0\0\0\0"))
      assert.equal("exactly 16 bytes", read("char x[16]", "c16", "exactly 16 bytes"))
      assert.equal("", read("char x[16]", "c16", ("\0"):rep(16)))
      assert.equal("lo", read("__data_loc char[] x", "data_loc", "lo\0"))
      assert.equal("lo", read("__rel_loc char[] x", "rel_loc", "lo\0"))
      assert.equal("no NUL", read("__data_loc char[] x", "data_loc", "no NUL"))
      assert.equal("", read("__data_loc char[] x", "data_loc", ""))
      assert.equal("hello\n", read("char x[]", "tail", "hello\n\0\0"))
    end)

    it("gives bytes whole", function()
      assert.equal("\0\1\255\0", read("u8 x[4]", "c4", "\0\1\255\0"))
      assert.equal("\0\1\255", read("__data_loc u8[] x", "data_loc", "\0\1\255"))
      assert.equal("/etc", read("u8 x[]", "c4", "/etc"))
    end)

    it("gives arrays as lists", function()
      local function pack(format, ...)
        return (order .. format):pack(...)
      end
      assert.same(
        { 1, 0xfffffffe, 3, 4 }, read("u32 x[4]", "c16", pack("I4I4I4I4", 1, 0xfffffffe, 3, 4))
      )
      assert.same({ 1, -2, 3, 4 }, read("s32 x[]", "c16", pack("i4i4i4i4", 1, -2, 3, 4)))
      assert.same({ 1, -1 }, read("__data_loc u64[] x", "data_loc", pack("i8i8", 1, -1)))
      assert.same({ 65535 }, read("__rel_loc u16[] x", "rel_loc", pack("I2", 65535)))
      assert.same({}, read("__data_loc u64[] x", "data_loc", ""))
      -- half an element is none
      assert.same({ 1 }, read("__data_loc u32[] x", "data_loc", pack("I4I2", 1, 2)))
      local longs = long == 8 and pack("I8I8", 5, 6) or pack("I4I4", 5, 6)
      assert.same({ 5, 6 }, read("unsigned long x[2]", "c" .. 2 * long, longs))
    end)

    it("gives bitmasks as lists of bits", function()
      local function mask(...)
        local longs = {}
        for i, word in ipairs { ... } do
          longs[i] = (order .. (long == 8 and "i8" or "I4")):pack(word)
        end
        return table.concat(longs)
      end
      assert.same({ 0, 3 }, read("__data_loc cpumask_t x", "data_loc", mask(9)))
      assert.same({}, read("__data_loc cpumask_t x", "data_loc", mask(0)))
      assert.same({}, read("__data_loc cpumask_t x", "data_loc", ""))
      assert.same({ 1, long * 8, long * 16 - 1 },
        read(
          "__rel_loc cpumask_t x", "rel_loc",
          mask(2, 1 | (long == 8 and math.mininteger or 1 << 31))
        ))
      assert.same(
        { 2 },
        read(
          "__data_loc unsigned long[] x", "data_loc", mask(4), { print = '"%s", __get_bitmask(x)' }
        )
      )
      local bits = {}
      for i = 1, 1024 do
        bits[i] = i - 1
      end
      local ones = {}
      for i = 1, 1024 // (8 * long) do
        ones[i] = long == 8 and -1 or 0xffffffff
      end
      assert.same(bits, read("__data_loc cpumask_t x", "data_loc", mask(table.unpack(ones))))
    end)
  end)
end

describe("a record that is shorter than its event", function()
  local fields = {
    { "int a", "i4", -1 },
    { "__data_loc char[] b", "data_loc", "text\0" },
    { "u32 c[2]", "c8", ("\1"):rep(8) },
    { "char d[]", "tail", "" },
  }
  local _, event = decode.record { fields = fields }
  local whole = decode.bytes(fields, 24)

  it("has nil for every field that is not all there, whatever its length", function()
    for length = 0, #whole do
      local record = event:record(whole:sub(1, length))
      assert.equal(length >= 12 and -1 or nil, record.a)
      assert.equal(length >= #whole and "text" or nil, record.b)
      assert.same(length >= 24 and { 0x01010101, 0x01010101 } or nil, record.c)
      assert.equal(length >= 24 and type(record.d) == "string" or record.d == nil, true)
      assert.equal(length >= 8 and 1 or nil, record.common_pid)
    end
  end)

  local function with_location(declaration, location, length)
    local _, of = decode.record { fields = { { declaration, "I4", 0 } } }
    return of:record(("<I2BBi4I4"):pack(500, 0, 0, 1, location) .. ("x"):rep(length)).b
  end

  it("has nil where data are said to lie outside of it", function()
    for _, case in ipairs {
      { 4 << 16 | 12, 4, "xxxx" },
      { 4 << 16 | 12, 3, nil },
      { 4 << 16 | 13, 4, nil },
      { 0xffffffff, 100, nil },
      { 0xffff << 16, 100, nil },
      { 0 << 16 | 0xffff, 100, nil },
      { 0 << 16 | 16, 4, "" },
    } do
      assert.equal(case[3], with_location("__data_loc char[] b", case[1], case[2]))
      -- the same place, counted from the end of the field
      if case[1] & 0xffff >= 12 and case[1] & 0xffff < 0xffff then
        assert.equal(case[3], with_location("__rel_loc char[] b", case[1] - 12, case[2]))
      end
    end
    assert.is_nil(with_location("__rel_loc char[] b", 0xffffffff, 100))
  end)
end)

describe("a probe's array of strings", function()
  it("is a list of strings", function()
    local record, event = decode.record {
      print = [["(%lx) s={\"%s\",\"%s\"}", REC->__probe_ip, __get_str(s[0]), __get_str(s[1])]],
      fields = {
        { "unsigned long __probe_ip", "i8", 0x401136 }, { "__data_loc char[][2] s", "c8", "" },
      },
    }
    assert.same({ "", "" }, record.s)
    assert.equal("strings", event:fields()[6].kind)
    local function of(first, second, tail)
      return event:record(("<I2BBi4i8I4I4"):pack(500, 0, 0, 1, 0x401136, first, second) .. tail)
    end
    local both = of(3 << 16 | 24, 4 << 16 | 27, "ab\0cde\0")
    assert.same({ "ab", "cde" }, both.s)
    assert.matches('thing: (0x401136) s={"ab","cde"}', tostring(both), 1, true)
    local fault = of(0, 4 << 16 | 24, "cde\0")
    assert.same({ "", "cde" }, fault.s)
    assert.matches('thing: (0x401136) s={(fault),"cde"}', tostring(fault), 1, true)
    assert.same({ "", "" }, of(3 << 16 | 0xffff, 0xffff << 16, "").s)
  end)
end)

describe("a kernel stack", function()
  local function stack(size, callers)
    local fields = {
      { "int size", "i4", size },
      {
        "unsigned long caller[8]", "c64", ("<" .. ("i8"):rep(8)):pack(table.unpack(callers, 1, 8)),
        offset = 16,
      },
    }
    local record, event = decode.record {
      system = "ftrace", name = "kernel_stack", fields = fields,
    }
    assert(record)
    local bytes = decode.bytes(fields, 80)
    for i = 9, #callers do
      bytes = bytes .. ("<i8"):pack(callers[i])
    end
    return event:record(bytes).caller
  end

  it("has as many callers as it says, more than its format or fewer", function()
    local callers = {}
    for i = 1, 12 do
      callers[i] = 0xffffffff81000000 + i
    end
    assert.same(callers, stack(12, callers))
    assert.same({ table.unpack(callers, 1, 10) }, stack(10, callers))
    assert.same({ table.unpack(callers, 1, 3) }, stack(3, callers))
    assert.same({}, stack(0, callers))
    assert.same({}, stack(-1, callers))
    -- but never more than there are
    assert.same(callers, stack(1000000, callers))
  end)
end)
