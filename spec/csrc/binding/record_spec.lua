-- Records and the values in them as Lua sees them: record.c and value.c. What is decoded from
-- which bytes is spec/csrc/engine/value_spec.lua's.
local core = require "tracefs.core"
local decode = require "spec.support.decode"
local globals = require "spec.support.globals"
local tracefs = require "tracefs"

-- Names that records of other tools use for their own methods and fields.
local NAMES = {
  "name", "cpu", "pid", "comm", "type", "end", "function", "len", "ts", "timestamp", "event",
  "format", "get", "pairs", "tostring", "__index", "text", "fields", "label",
}

local function record_of(fields, options)
  options = options or {}
  options.fields = fields
  return decode.record(options)
end

describe("a record's fields", function()
  it("are there when the core is loaded, without touching globals", function()
    assert.same({}, globals("tracefs.core"))
  end)

  it("are reached by whatever name they have", function()
    local fields = {}
    for i, name in ipairs(NAMES) do
      fields[i] = { "u32 " .. name, "I4", 1000 + i }
    end
    local ev = record_of(fields)
    for i, name in ipairs(NAMES) do
      assert.equal(1000 + i, ev[name], name)
    end
  end)

  it("may have names of any length", function()
    local long = ("a_very_long_name_"):rep(12) -- Lua keeps short names apart from long ones
    local ev = record_of({ { "u32 " .. long, "I4", 7 }, { "u32 x", "I4", 8 } })
    assert.equal(7, ev[long])
    assert.equal(7, ev[("a_very_long_name_"):rep(11) .. "a_very_long_name_"])
    assert.equal(8, ev.x)
    assert.is_nil(ev[long .. "_"])
  end)

  it("are nil when the event has none of this name", function()
    local ev = record_of({ { "u32 x", "I4", 8 } })
    for _, key in ipairs({ "y", "", "X", "x ", 1, 0, 1.5, true, print, {} }) do
      assert.is_nil(ev[key])
    end
    assert.is_nil(ev["x\0"])
    assert.is_nil((tracefs.text(ev, "x\0")))
  end)

  it("are nil when they lie outside the record", function()
    local _, event = record_of({ { "u32 x", "I4", 8 }, { "u64 y", "I8", 9 } })
    local ev = event:record(("<I2BBi4I4I4"):pack(500, 0, 0, 1, 77, 1))
    assert.equal(77, ev.x)
    assert.is_nil(ev.y)
    ev = event:record("")
    for _, name in ipairs({ "common_type", "common_pid", "x", "y" }) do
      assert.is_nil(ev[name])
    end
    assert.equal("made:thing", ev.common_event)
    assert.is_string(tostring(ev))
  end)

  it("cannot be changed", function()
    local ev = record_of({ { "u32 x", "I4", 8 } })
    for _, key in ipairs({ "x", "y", "common_cpu", 1 }) do
      assert.error_matches(function()
        ev[key] = 1
      end, "a record is what the kernel wrote and cannot be changed")
    end
    assert.equal("tracefs.record", getmetatable(ev))
    assert.has_error(function()
      setmetatable(ev, {})
    end)
  end)

  it("have the types that the manual promises", function()
    local ev = record_of({
      { "int number", "i4", -5 },
      { "u64 big", "i8", -1 },
      { "char comm[16]", "c16", "sh\0garbage" },
      { "u8 address[6]", "c6", "\0\1\2\xff\4\5" },
      { "int numbers[3]", "c12", ("<i4i4i4"):pack(1, -2, 3) },
      { "__data_loc char[] text", "data_loc", "some text\0" },
      { "__data_loc cpumask_t mask", "data_loc", ("<I8"):pack(0x8000000000000005) },
      { "__rel_loc u16[] words", "rel_loc", ("<I2I2"):pack(1, 65535) },
    })
    assert.equal(-5, ev.number)
    assert.equal("integer", math.type(ev.big))
    assert.equal("18446744073709551615", tracefs.u64(ev.big))
    assert.equal("sh", ev.comm)
    assert.equal("\0\1\2\xff\4\5", ev.address)
    assert.same({ 1, -2, 3 }, ev.numbers)
    assert.equal("some text", ev.text)
    assert.same({ 0, 2, 63 }, ev.mask)
    assert.same({ 1, 65535 }, ev.words)
    -- A list is the caller's.
    ev.numbers[1] = 99
    assert.same({ 1, -2, 3 }, ev.numbers)
  end)
end)

describe("what every record has", function()
  it("is its time, CPU, task and event", function()
    local catalog = core.catalog()
    catalog:set_comm(4711, "some task")
    local ev = record_of({ { "u32 x", "I4", 8 } }, {
      catalog = catalog, id = 501, flags = 0x15, preempt = 3, pid = 4711,
      common_timestamp = 123456789012345678, common_cpu = 255,
    })
    assert.equal(501, ev.common_type)
    assert.equal(0x15, ev.common_flags)
    assert.equal(3, ev.common_preempt_count)
    assert.equal(4711, ev.common_pid)
    assert.equal(123456789012345678, ev.common_timestamp)
    assert.equal(255, ev.common_cpu)
    assert.equal("some task", ev.common_comm)
    assert.equal("made:thing", ev.common_event)
    assert.is_nil(ev.common_late)
  end)
end)

describe("pairs(record)", function()
  it("gives every field once: the common ones, then the event's in the format's order", function()
    local ev = record_of({
      { "u32 zebra", "I4", 1 }, { "u32 apple", "I4", 2 }, { "u32 next", "I4", 3 },
    }, { common_timestamp = 77 })
    local names, values = {}, {}
    for name, value in pairs(ev) do
      names[#names + 1] = name
      values[name] = value
    end
    assert.same({
      "common_type", "common_flags", "common_preempt_count", "common_pid", "common_timestamp",
      "common_cpu", "common_comm", "common_event", "zebra", "apple", "next",
    }, names)
    for name, value in pairs(values) do
      assert.equal(ev[name], value)
    end
  end)

  it("leaves out what is not in the record", function()
    local _, event = record_of({ { "u32 x", "I4", 8 }, { "u64 y", "I8", 9 } })
    local seen = {}
    for name in pairs(event:record(("<I2BBi4I4"):pack(500, 0, 0, 1, 77))) do
      seen[name] = true
    end
    assert.is_true(seen.x)
    assert.is_nil(seen.y)
  end)

  it("can go on several times at once", function()
    local ev = record_of({ { "u32 a", "I4", 1 }, { "u32 b", "I4", 2 } })
    local count = 0
    for _ in pairs(ev) do
      for _ in pairs(ev) do
        count = count + 1
      end
    end
    assert.equal(100, count)
  end)
end)

describe("a record's text", function()
  it("is the kernel's line", function()
    local ev = record_of({ { "u32 x", "I4", 8 } }, {
      print = '"x=%u", REC->x', common_timestamp = 1234567890123, common_cpu = 3, pid = 99999999,
    })
    assert.matches("^ *<%.%.%.>%-99999999 +%[003%] .* 1234%.567890: thing: x=8$", tostring(ev))
    assert.equal("x=8", tracefs.text(ev))
    assert.equal("8", tracefs.text(ev, "x"))
    assert.equal("3", tracefs.text(ev, "common_cpu"))
    assert.equal("1234567890123", tracefs.text(ev, "common_timestamp"))
    assert.equal("nil", tracefs.text(ev, "common_late"))
  end)

  it("is missing, with the reason, when the print format is no good", function()
    local ev = record_of({ { "u32 x", "I4", 8 } }, { print = '"x=%u", nosuch_function(REC->x)' })
    local text, message = tracefs.text(ev)
    assert.is_nil(text)
    assert.matches("^made:thing has no usable print format: .*; its fields can be read$", message)
    assert.equal(8, ev.x)
    assert.equal("8", tracefs.text(ev, "x"))
    assert.is_string(tostring(ev))
  end)

  it("of a field that is not there, or not in the record, is nil", function()
    local _, event = record_of({ { "u32 x", "I4", 8 } })
    local ev = event:record(("<I2BBi4"):pack(500, 0, 0, 1))
    assert.same({ nil, "field 'x' lies outside this made:thing record" }, { tracefs.text(ev, "x") })
    assert.same({ nil, "made:thing has no field 'y'" }, { tracefs.text(ev, "y") })
  end)
end)

describe("core.is_record", function()
  it("tells records from everything else", function()
    local ev, event = record_of({})
    assert.is_true(core.is_record(ev))
    for _, value in ipairs({ 1, "tracefs.record", {}, print, io.stdout, event, core.catalog(),
      true }) do
      assert.is_false(core.is_record(value))
    end
    assert.is_false(core.is_record(nil))
    assert.has_error(function()
      core.is_record()
    end)
  end)
end)

describe("records", function()
  it("have one metatable for each event description, and go with it", function()
    local weak = setmetatable({}, { __mode = "v" })
    do
      local ev, event = record_of({ { "u32 x", "I4", 8 } })
      local again = event:record(("<I2BBi4I4"):pack(500, 0, 0, 1, 9))
      assert.equal(debug.getmetatable(ev), debug.getmetatable(again))
      weak.record, weak.event, weak.meta = ev, event, debug.getmetatable(ev)
    end
    collectgarbage()
    collectgarbage()
    assert.same({}, weak)
  end)

  it("keep what they need when nothing else does", function()
    local ev = record_of({ { "__data_loc char[] text", "data_loc", "kept\0" } })
    for _ = 1, 3 do
      collectgarbage()
    end
    assert.equal("kept", ev.text)
    assert.equal("made:thing", ev.common_event)
  end)

  it("survive the collector at every step of being read", function()
    for i = 1, 200 do
      local ev = record_of({ { "char comm[16]", "c16", "task" }, { "u32 x", "I4", i } })
      collectgarbage("step", 0)
      local sum = 0
      for _, value in pairs(ev) do
        sum = sum + (math.type(value) and 1 or 0)
      end
      assert.equal(i, ev.x)
      assert.is_true(sum > 0 and #tostring(ev) > 0)
    end
  end)
end)
