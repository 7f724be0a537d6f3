--- Event descriptions and records that no kernel has written.
local core = require "tracefs.core"

local made_events = {}

local SIZES <const> = { u64 = 8, s64 = 8, int = 4, u32 = 4, ["char[16]"] = 16 }
local PACK <const> = { u64 = "i8", s64 = "i8", int = "i4", u32 = "I4", ["char[16]"] = "c16" }

local HEAD <const> = [[
name: %s
ID: %d
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

]]

--- A set of events: `local set = made_events.new()`.
function made_events.new()
  local set = { catalog = core.catalog(), events = {} }
  local next_id = 700

  --- fields: { { "skbaddr", "u64" }, ... }. Returns function(values, common) that makes a record;
  --- values may have common_pid, too.
  function set.add(label, fields)
    local system, name = label:match "^(.-):(.*)$"
    local lines, pack, offset, first = {}, "<I2 I1 I1 i4", 8, {}
    next_id = next_id + 1
    for i, field in ipairs(fields) do
      local type_name, brackets = field[2]:match "^(%w+)(.*)$"
      local size = SIZES[field[2]]
      lines[i] = ("\tfield:%s %s%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n"):format(
        type_name, field[1], brackets, offset, size, field[2]:find "^[is]" and 1 or 0)
      pack, offset = pack .. " " .. PACK[field[2]], offset + size
      first[i] = field[2] == "char[16]" and "" or 0
    end
    local event = assert(set.catalog:parse(system,
      HEAD:format(name, next_id) .. table.concat(lines) .. '\nprint fmt: "x"\n'))
    set.events[label] = event
    local id = next_id
    return function(values, common)
      local list = {}
      for i, field in ipairs(fields) do
        list[i] = values[field[1]] or first[i]
      end
      return event:record(pack:pack(id, values.common_flags or 0, 0, values.common_pid or 0,
        table.unpack(list)), common)
    end
  end

  --- What tracefs.pair.new wants to be told.
  function set.find(pattern)
    local event = set.events[pattern]
    return { { event = event or error("no event " .. pattern, 0) } }
  end

  return set
end

return made_events
