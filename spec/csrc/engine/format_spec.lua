local decode = require "spec.support.decode"
local core = require "tracefs.core"

-- The first field of its own that an event with this declaration gets.
local function field_of(declaration, size, options)
  options = options or {}
  local catalog = core.catalog(options.big_endian or false, options.long_size or 8)
  local text = decode.format({
    print = options.print,
    fields = { { declaration, "I4", size = size, signed = options.signed } },
  })
  local event = assert(catalog:parse("made", text))
  return event:fields()[5]
end

describe("a format", function()
  it("gives the event's name, id, system and print format", function()
    local event = assert(core.catalog():parse("sched", decode.format {
      name = "sched_thing",
      id = 372,
      print = '"pid=%d", REC->pid',
      fields = { { "pid_t pid", "i4" } },
    }))
    assert.equal("sched_thing", event:name())
    assert.equal("sched", event:system())
    assert.equal("sched:sched_thing", event:label())
    assert.equal(372, event:id())
    assert.equal('"pid=%d", REC->pid', event:print_fmt())
    assert.is_nil(event:no_text())
    assert.equal("tracefs.event: sched:sched_thing", tostring(event))
  end)

  it("gives the fields in its order, the common ones first", function()
    local event = assert(core.catalog():parse("made", decode.format {
      fields = { { "char comm[16]", "c16" }, { "pid_t pid", "i4" } },
    }))
    local names = {}
    for i, field in ipairs(event:fields()) do
      names[i] = field.name
    end
    assert.same({
      "common_type", "common_flags", "common_preempt_count", "common_pid", "comm", "pid",
    }, names)
    assert.same({
      name = "comm", type = "char[16]", offset = 8, size = 16,
      kind = "string", place = "fixed", signed = false, common = false,
    }, event:fields()[5])
    assert.is_true(event:fields()[4].common)
    assert.is_true(event:fields()[4].signed)
  end)

  it("may have a print format of several lines, and none at all", function()
    local text = decode.format { print = '"a",\n 1\n' }
    assert.equal('"a",\n 1', core.catalog():parse("made", text):print_fmt())
    local event = assert(core.catalog():parse("made", (text:gsub("\nprint fmt.*", ""))))
    assert.equal("", event:print_fmt())
    assert.matches("no format string", event:no_text(), 1, true)
  end)

  it("is the same event when it is given again, another one when it says something else", function()
    local catalog = core.catalog()
    local old = decode.format { id = 1500, fields = { { "int x", "i4" } } }
    local new = decode.format { id = 1500, fields = { { "u64 x", "I8" } } }
    local first = assert(catalog:parse("uprobes", old))
    assert.equal(first, catalog:parse("uprobes", old))
    assert.equal(first, catalog:by_id(1500))
    local second = assert(catalog:parse("uprobes", new))
    assert.not_equal(first, second)
    assert.equal(second, catalog:by_id(1500))
    -- records of the first one are still read as they were written
    assert.equal("int", first:fields()[5].type)
    assert.equal(-2, first:record(("<I2BBi4i4"):pack(1500, 0, 0, 1, -2)).x)
    assert.is_nil(catalog:by_id(1501))
    assert.is_nil(catalog:by_id(-1))
    assert.is_nil(catalog:by_id(1 << 40))
  end)
end)

describe("the kind of a field", function()
  local function check(kind, place, declaration, size, options)
    local field = field_of(declaration, size, options)
    assert.equal(kind .. " " .. place, field.kind .. " " .. field.place, declaration)
    return field
  end

  it("is a number for what has the size of one", function()
    for _, declaration in ipairs {
      "int x", "unsigned long x", "const char * x", "void * x", "gfp_t x", "struct page * x",
      "enum hrtimer_mode x", "union bpf_attr * x", "const struct iovec * x", "char x",
    } do
      check("int", "fixed", declaration, 8)
    end
    assert.equal("const char *", check("int", "fixed", "const char * x", 8).type)
  end)

  it("is text for char and nothing else of one byte", function()
    check("string", "fixed", "char x[16]", 16)
    check("string", "fixed", "const char x[16]", 16)
    check("string", "data_loc", "__data_loc char[] x", 4)
    check("string", "rel_loc", "__rel_loc char[] x", 4)
    for _, of in ipairs {
      "u8", "s8", "__u8", "__s8", "unsigned char", "signed char", "uint8_t", "bool",
    } do
      check("bytes", "fixed", of .. " x[6]", 6)
      check("bytes", "data_loc", ("__data_loc %s[] x"):format(of), 4)
    end
  end)

  it("is an array for wider elements, by the type's name", function()
    check("array", "fixed", "unsigned long x[8]", 64)
    check("array", "fixed", "u32 x[4]", 16)
    check("array", "data_loc", "__data_loc u64[] x", 4)
    check("array", "data_loc", "__data_loc unsigned int[] x", 4)
    check("array", "rel_loc", "__rel_loc u16[] x", 4)
    -- a type that says nothing, but a count that does
    check("array", "fixed", "xfs_agnumber_t x[4]", 16)
    check("bytes", "data_loc", "__data_loc xfs_agnumber_t[] x", 4)
    check("bytes", "data_loc", "__data_loc struct thing[] x", 4)
  end)

  it("knows the arrays of probes, which have a size and no count", function()
    check("array", "fixed", "s32 x[]", 16)
    check("bytes", "fixed", "u8 x[]", 4)
    check("string", "fixed", "char x[]", 4)
  end)

  it("is a bitmask for cpumasks, and for what is printed as one", function()
    check("bitmask", "data_loc", "__data_loc cpumask_t x", 4)
    check(
      "bitmask", "data_loc", "__data_loc cpumask_t *[] x", 4, { print = '"%s", __get_bitmask(x)' }
    )
    check(
      "bitmask", "data_loc", "__data_loc unsigned long[] x", 4,
      { print = '"%s", __get_bitmask(x)' }
    )
    check(
      "bitmask", "rel_loc", "__rel_loc unsigned long[] x", 4,
      { print = '"%s", __get_rel_bitmask( x )' }
    )
    check(
      "array", "data_loc", "__data_loc unsigned long[] x", 4, { print = '"%s", __get_bitmask(xy)' }
    )
  end)

  it("is the rest of the record for what has no size", function()
    check("string", "tail", "char x[]", 0)
    check("string", "tail", "char x", 0)
    check("array", "tail", "u32 x[]", 0)
  end)

  it("is bytes for structures and odd sizes", function()
    check("bytes", "fixed", "struct timespec x", 16)
    check("bytes", "fixed", "struct timespec x", 8)
    check("bytes", "fixed", "int x", 3)
  end)

  it("has the sign of its type where the format file says nothing true", function()
    -- every argument of a system call is declared size:8 signed:0
    for _, of in ipairs { "int", "pid_t", "long", "off_t", "loff_t", "ssize_t", "clockid_t" } do
      assert.is_true(field_of(of .. " x", 8, { signed = 0 }).signed, of)
    end
    for _, of in ipairs { "unsigned int", "umode_t", "size_t", "u32", "uid_t", "unsigned long" } do
      assert.is_false(field_of(of .. " x", 8, { signed = 0 }).signed, of)
    end
  end)

  it("has the size of a long of the traced machine", function()
    check("array", "fixed", "unsigned long x[2]", 8, { long_size = 4 })
    assert.is_false(field_of("void * x", 4, { long_size = 4 }).signed)
  end)

  it("does not fail over attributes of newer compilers", function()
    local field = check("int", "fixed", 'const char __attribute__((btf_type_tag("user"))) * x', 8)
    assert.equal("x", field.name)
  end)
end)

describe("hostile format text", function()
  local good = decode.format { fields = { { "int x", "i4" } } }

  local function refused(text, why)
    local event, message, code = core.catalog():parse("made", text)
    assert.is_nil(event)
    assert.matches(why, message, 1, true)
    assert.equal("number", type(code))
  end

  it("is refused with the reason", function()
    refused("", 'no "name: " line')
    refused((good:gsub("name: thing\n", "")), 'no "name: " line')
    refused((good:gsub("ID: 500\n", "")), 'no "ID: " line')
    refused((good:gsub("thing", "two words")), "not the name of an event")
    refused((good:gsub("500", "65536")), "line 2: not an event id")
    refused((good:gsub("500", "99999999999999999999")), "line 2: not an event id")
    refused((good:gsub("500", "-1")), "line 2: not an event id")
    refused((good:gsub("500", "")), "line 2: not an event id")
    refused(good .. "\0", "NUL")
    refused(("x"):rep(2 << 20), "too many")
    refused((good:gsub("format:", "formless:")), 'line 3: "formless:" is not understood')
    refused((good:gsub("int x", "x")), 'line 9: not a field')
    refused((good:gsub("int x", "int x[4")), "line 9: not a field")
    refused((good:gsub("int x", "int x]4[")), "line 9: not a field")
    refused((good:gsub("int x", "int x()")), "line 9: not a field")
    refused((good:gsub("int x", 'int "x"')), "line 9: not a field")
    refused((good:gsub("int x", "int " .. ("x"):rep(2000))), "line 9: not a field")
    refused((good:gsub("offset:8", "offset:99999999999")), "line 9: not a field")
    refused((good:gsub("offset:8", "offset:-8")), "line 9: not a field")
    refused((good:gsub("offset:8;", "offset:8")), "line 9: not a field")
    refused((good:gsub("offset:8", "offset:4294967292")), "line 9: not a field")
    refused(
      (good:gsub("size:4;\tsigned:1;\n\nprint", "size:1048570;\tsigned:1;\n\nprint")),
      "line 9: not a field"
    )
    local dynamic = good:gsub("int x", "__data_loc char[] x")
    refused((dynamic:gsub("offset:8;\tsize:4", "offset:8;\tsize:6")), "where data are has 4")
    refused((dynamic:gsub("char", "u64"):gsub("offset:8;\tsize:4", "offset:8;\tsize:8")),
      "where data are has 4")
    local line = "\n\tfield:int y;\toffset:8;\tsize:4;\tsigned:1;"
    refused((good:gsub("\n\nprint", line:rep(1100) .. "\n\nprint")), "more than 1024 fields")
  end)

  it("is refused by the names of systems that are none", function()
    for _, system in ipairs { "", "a/b", "a:b", "a b", "a\nb", ("x"):rep(300) } do
      local event, message = core.catalog():parse(system, good)
      assert.is_nil(event)
      assert.matches("not the name of an event system", message, 1, true)
    end
  end)

  it("may have one field twice: the first has the name", function()
    local event = assert(core.catalog():parse("made",
      (good:gsub("\n\nprint", "\n\tfield:u64 x;\toffset:16;\tsize:8;\tsigned:0;\n\nprint"))))
    assert.equal(6, #event:fields())
    assert.equal(-7, event:record(("<I8i4I4I8"):pack(0, -7, 0, 9)).x)
  end)

  it("cut off anywhere gives an event or a reason, never a crash", function()
    for length = 0, #good do
      local event, message = core.catalog():parse("made", good:sub(1, length))
      assert.is_true(event ~= nil or #message > 0)
    end
  end)

  it("does not take the fields with it when only the print format is no good", function()
    for print_fmt, why in pairs {
      ['"%d", REC->y'] = 'no field "y"',
      ['"%s", __print_symbolic(REC->y, { 1, "a" })'] = 'no field "y"',
      ['"%s", __print_flags(REC->y, "|", { 1, "a" })'] = 'no field "y"',
      ['"%d", kernel_function(REC->x)'] = "the function kernel_function() is inside of the kernel",
      ['"%d", table[REC->x]'] = "the table table is inside of the kernel",
      ['"%d", sizeof(struct page)'] = "the size of something",
      ['"%d'] = "no format string",
      ['REC->x'] = "no format string",
      ['"%d", REC->x +'] = "it ends too early",
      ['"%d", (REC->x'] = "it ends too early",
      ['"%d", REC->x)'] = '")" is not expected',
      ['"%d", REC'] = "it ends too early",
      ['"%d", 0xfffffffffffffffff'] = "is not expected",
      ['"%d", 12monkeys'] = "is not expected",
      ["\"%d\", 'ab'"] = "is not expected",
      ['"%d", ({ int i; for (;;) ; i; })'] = "statements",
      ['"%d", ' .. ("("):rep(5000)] = "nested too deeply",
      ['"%d", ' .. ("-"):rep(5000) .. "1"] = "nested too deeply",
      ['"%d", ' .. ("REC->x|"):rep(5000) .. "1"] = "nested too deeply",
      ['"%d", ({ int a = REC->x; ' .. ("int a = a + a; "):rep(60) .. "a; })"] = "nested too deeply",
    } do
      local event = assert(core.catalog():parse("made",
        decode.format { fields = { { "int x", "i4" } }, print = print_fmt }))
      assert.matches(why, event:no_text() or "", 1, true)
      assert.matches("the print format of made:thing cannot be evaluated", event:no_text(), 1, true)
      local record = event:record(("<I8i4"):pack(0, -7))
      assert.equal(-7, record.x)
      assert.matches("x=-7", tostring(record), 1, true)
      local text, message = core.text(record)
      assert.is_nil(text)
      assert.matches("its fields can be read", message, 1, true)
    end
  end)
end)

-- How many of a kernel's print formats need what is only inside of that kernel.
local kernels = {
  { name = "linux-6.18-x86_64", long_size = 8, count = 2323, without_text = 5 },
  { name = "android_hammerhead_MRA59G_3.4.0", long_size = 4, count = 444, without_text = 8 },
  { name = "android_seed_N2F62_3.10.49", long_size = 4, count = 737, without_text = 11 },
}

local lua_types = {
  int = "number", string = "string", bytes = "string", array = "table", bitmask = "table",
}

-- What is wrong with a record of these bytes; nil when nothing is.
local function complaint(event, bytes)
  local record = event:record(bytes)
  local seen = {}
  for _, field in ipairs(event:fields()) do
    local value = record[field.name]
    -- one of these events has two fields of one name: the first has it
    if seen[field.name] then
      goto continue
    end
    seen[field.name] = true
    if value ~= nil and type(value) ~= lua_types[field.kind] then
      return field.name .. " is a " .. type(value)
    end
    if field.place == "fixed" and (value == nil) ~= (field.offset + field.size > #bytes) then
      return field.name .. " is " .. tostring(value)
    end
    if (value == nil) ~= (core.text(record, field.name) == nil) then
      return field.name .. " and its text do not agree"
    end
    ::continue::
  end
  if #tostring(record) < 25 then
    return "its line is short: " .. tostring(record)
  end
end

describe("the formats of", function()
  for _, kernel in ipairs(kernels) do
    it(kernel.name .. " are all parsed, and their records read whatever the bytes", function()
      local formats = decode.archive(kernel.name)
      if not formats then
        pending("../shared/inputs/formats is not there")
        return
      end
      assert.equal(kernel.count, #formats)
      math.randomseed(kernel.count)
      local catalog = core.catalog(false, kernel.long_size)
      local without_text = 0
      for _, format in ipairs(formats) do
        local event = assert(catalog:parse(format.system, format.text))
        local announced = select(2, format.text:gsub("\n\tfield:", ""))
        if format.name ~= event:name() or announced ~= #event:fields() then
          error(event:label() .. " is not what its file says")
        end
        without_text = without_text + (event:no_text() and 1 or 0)
        for _, length in ipairs { 0, 7, 8, 64, 200 } do
          local bytes = {}
          for i = 1, length do
            bytes[i] = string.char(math.random(0, 255))
          end
          local wrong = complaint(event, table.concat(bytes))
          if wrong then
            error(("%s with %d bytes: %s"):format(event:label(), length, wrong))
          end
        end
      end
      assert.equal(kernel.without_text, without_text)
    end)
  end
end)
