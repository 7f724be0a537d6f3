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

  it("writes lists as lists, empty ones too", function()
    local output_events = require "tracefs.output.events"
    local rows = require "tracefs.output.rows"
    local event = made_up("four", 60004, [[
	field:__data_loc cpumask_t cpus;	offset:8;	size:4;	signed:0;
	field:__data_loc int[] numbers;	offset:12;	size:4;	signed:1;
]])
    finally(output_events.describe_with)
    output_events.describe_with(function()
      return event
    end)
    local function check(expected, cpus, numbers)
      local at = 16
      local function place(bytes)
        at = at + #bytes
        return at - #bytes | #bytes << 16
      end
      local record = event:record(("<I2I1I1i4I4I4"):pack(60004, 0, 0, 1, place(cpus),
        place(numbers)) .. cpus .. numbers)
      assert.truthy(record_json.record(record):find('"fields":' .. expected, 1, true),
        record_json.record(record))
      local names, parts = output_events.unsigned("made_up:four"), {}
      for i, name in ipairs { "cpus", "numbers" } do
        parts[i] = ('"%s":%s'):format(name, rows.json(record[name], names, name)
          or record_json.encode(record[name]))
      end
      assert.equal(expected, "{" .. table.concat(parts, ",") .. "}")
    end
    check('{"cpus":[],"numbers":[]}', ("\0"):rep(8), "")
    check('{"cpus":[0,2],"numbers":[-1,7]}', "\5" .. ("\0"):rep(7), ("<i4i4"):pack(-1, 7))
  end)
end)
