require "spec.support.helper"
local core = require "tracefs.core"
local dkjson = require "dkjson"
local record_json = require "tracefs.record_json"
local tracefs = require "tracefs"

local COMMON <const> = [[
name: %s
ID: %d
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

%s
print fmt: "x"
]]

local function made_up(name, id, fields)
  local text = COMMON:format(name, id, fields)
  return assert(core.catalog():parse("made_up", text))
end

describe("record_json", function()
  it("has the common fields and those of the event apart", function()
    local event = made_up("one", 60001, [[
	field:int a;	offset:8;	size:4;	signed:1;
	field:char type[4];	offset:12;	size:4;	signed:0;
]])
    local record = event:record(
      ("<I2I1I1i4i4c4"):pack(60001, 1, 2, 77, -5, "ab\0x"),
      { common_timestamp = 123456789012345678, common_cpu = 3 }
    )
    local text = record_json.record(record)
    assert.matches('^{"type":"event","common_event":"made_up:one",'
      .. '"common_timestamp":123456789012345678,', text)
    local value = assert(dkjson.decode(text))
    assert.equal(3, value.common_cpu)
    assert.equal(77, value.common_pid)
    assert.equal(1, value.common_flags)
    assert.equal(2, value.common_preempt_count)
    assert.is_string(value.common_comm)
    assert.is_nil(value.common_late)
    assert.same({ a = -5, type = "ab" }, value.fields)
  end)

  it("is found inside tables", function()
    local event = made_up("two", 60002, "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n")
    local record = event:record(("<I2I1I1i4i4"):pack(60002, 0, 0, 1, 9))
    local value = dkjson.decode(record_json.encode { list = { record }, x = 1 })
    assert.equal(9, value.list[1].fields.a)
    assert.has_error(function() record_json.encode { io.stdout } end)
    assert.has_error(function() record_json.encode { print } end)
  end)

  -- The first event of this kernel with such a field.
  local function find_field(wanted)
    for _, label in ipairs(assert(tracefs.events())) do
      local event = tracefs.event(label)
      for _, field in ipairs(event and event:fields() or {}) do
        if not field.common and wanted(field) then
          return event, field
        end
      end
    end
  end

  -- A record with all bytes of the field set to 0xff or to a text, everything else 0.
  local function record_with(event, field, bytes)
    local size = 8
    for _, other in ipairs(event:fields()) do
      size = math.max(size, other.offset + other.size)
    end
    local data = ("\0"):rep(size)
    data = ("<I2"):pack(event:id()) .. data:sub(3)
    return event:record(data:sub(1, field.offset) .. bytes .. data:sub(field.offset + #bytes + 1))
  end

  it("writes unsigned integers of 64 bits as what they are, and signed ones too", function()
    local event, field = find_field(function(f)
      return f.kind == "int" and f.size == 8 and not f.signed and f.type:find("u64")
    end)
    local text = record_json.record(record_with(event, field, ("\xff"):rep(8)))
    assert.matches(('"%s":18446744073709551615'):format(field.name), text, 1, true)
    event, field = find_field(function(f)
      return f.kind == "int" and f.size == 8 and f.signed
    end)
    text = record_json.record(record_with(event, field, ("\xff"):rep(8)))
    assert.matches(('"%s":-1'):format(field.name), text, 1, true)
  end)

  it("writes arrays of bytes as numbers", function()
    local event, field = find_field(function(f)
      return f.kind == "bytes" and f.place == "fixed" and f.size >= 4
    end)
    local record = record_with(event, field, "\127\0\0\1" .. ("\0"):rep(field.size - 4))
    local value = dkjson.decode(record_json.record(record)).fields[field.name]
    assert.equal(field.size, #value)
    assert.same({ 127, 0, 0, 1 }, { value[1], value[2], value[3], value[4] })
  end)

  it("writes null for what lies outside of the record", function()
    local event = made_up("three", 60003, [[
	field:int a;	offset:8;	size:4;	signed:1;
	field:int b;	offset:12;	size:4;	signed:1;
]])
    local record = event:record(("<I2I1I1i4i4"):pack(60003, 0, 0, 1, 9))
    local text = record_json.record(record)
    assert.is_table(dkjson.decode(text))
    assert.equal(9, dkjson.decode(text).fields.a)
    assert.is_nil(dkjson.decode(text).fields.b)
  end)

  it("lists CPUs in order", function()
    local value = dkjson.decode(record_json.stats {
      produced = 3, per_cpu = { [1] = { lost = 1 }, [0] = { lost = 2 } },
    })
    assert.same({ type = "stats", produced = 3, per_cpu = { { cpu = 0, lost = 2 },
      { cpu = 1, lost = 1 } } }, value)
  end)
end)
