local core = require "tracefs.core"
local helper = require "spec.support.helper"
local pages = require "spec.support.pages"

-- Plain files stand for the kernel's buffers, as the top level's is everybody's: spec/vm reads the
-- real ones.
local FORMAT <const> = [[
name: made
ID: %d
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:u64 value;	offset:8;	size:8;	signed:0;

print fmt: "%%llu", REC->value
]]

local OPTIONS <const> = {
  clock = "mono", clock_in_ns = true, margin = 0.001, interval = 0.01, memory_mb = 8,
  buffer_percent = 25, overwrite = true, own_events = false, migrate_column = false,
}

local WANTED <const>, OTHER <const> = 77, 78

local layout = pages.layout()

-- Records { ts, id, value } as one page; `lost` before them.
local function page(records, lost)
  local made, last = { ts = records[1][1], lost = lost }, records[1][1]
  for i, record in ipairs(records) do
    made[i] = layout:short(record[1] - last, ("<I2BBi4I8"):pack(record[2], 0, 0, 1, record[3]))
    last = record[1]
  end
  return layout:page(made)
end

local function stats(entries, overrun)
  return ("entries: %d\noverrun: %d\ncommit overrun: 0\nbytes: 0\ndropped events: 0\n"
    .. "read events: 0\n"):format(entries, overrun)
end

-- A tracing directory of two CPUs, with one instance.
local function make(contents)
  local dir = helper.tmpdir()
  local mine = dir .. "/instances/mine"
  assert(os.execute(("mkdir -p %s/events %s/per_cpu/cpu0 %s/per_cpu/cpu1 %s/per_cpu/cpu0 "
    .. "%s/per_cpu/cpu1"):format(mine, mine, mine, dir, dir)))
  helper.write_file(mine .. "/events/header_page", pages.header(layout))
  for where, root in pairs { mine = mine, top = dir } do
    for cpu = 0, 1 do
      local folder = ("%s/per_cpu/cpu%d/"):format(root, cpu)
      helper.write_file(folder .. "trace_pipe_raw", contents[where .. cpu] or "")
      helper.write_file(folder .. "stats", stats(0, 0))
    end
  end
  return dir
end

local function open(dir)
  local instance = assert(core.instance_open(dir, "mine"))
  return assert(core.stream(instance, core.catalog(), OPTIONS)), instance
end

local function close(stream, instance)
  stream:close()
  assert(instance:close())
end

-- What a stream hands out, to its end.
local function values(stream)
  local catalog, got = core.catalog(), {}
  for _, id in ipairs { WANTED, OTHER } do
    local event = assert(catalog:parse("made", FORMAT:format(id)))
    stream:handle(id, function(value, cpu)
      got[#got + 1] = ("%d/%d"):format(value, cpu)
    end, event, { "value", "common_cpu" })
  end
  stream:finish()
  local _, why, what
  repeat
    _, why, what = stream:step()
    if why == "idle" then
      stream:wait(0.05)
    elseif why == "lost" then
      got[#got + 1] = ("lost %s/%d"):format(what.count, what.cpu)
    end
  until why == "end"
  return table.concat(got, " ")
end

describe("the top level in a stream", function()
  it("comes in order with the instance, and nothing of it that was not asked for", function()
    local stream, instance = open(make {
      mine0 = page { { 10, OTHER, 1 }, { 40, WANTED, 4 } },
      mine1 = page { { 30, OTHER, 3 } },
      top0 = page { { 20, WANTED, 2 }, { 25, OTHER, 0 }, { 40, WANTED, 5 } },
      top1 = page { { 60, WANTED, 6 } },
    })
    assert.is_true(stream:add_top { WANTED })
    assert.equal("1/0 2/0 3/1 4/0 5/0 6/1", values(stream))
    local counts = assert(stream:counts())
    assert.same({ 4, 1 }, { counts[0].delivered, counts[0].own })
    assert.same({ 2, 0 }, { counts[1].delivered, counts[1].own })
    close(stream, instance)
  end)

  it("has its losses at their place", function()
    local dir = make {
      mine0 = page { { 10, OTHER, 1 }, { 50, OTHER, 3 } },
      top0 = page { { 20, WANTED, 2 } } .. page({ { 60, WANTED, 4 } }, 23),
    }
    local stream, instance = open(dir)
    assert.is_true(stream:add_top { WANTED })
    helper.write_file(dir .. "/per_cpu/cpu0/stats", stats(0, 23))
    assert.equal("1/0 2/0 lost 23/0 3/0 4/0", values(stream))
    close(stream, instance)
  end)

  it("adds its counters to the instance's", function()
    local dir = make {}
    local stream, instance = open(dir)
    assert.is_true(stream:add_top { WANTED })
    helper.write_file(dir .. "/instances/mine/per_cpu/cpu1/stats", stats(2, 3))
    helper.write_file(dir .. "/per_cpu/cpu1/stats", stats(5, 7))
    local counts = assert(stream:counts())
    assert.same({ 17, 10, 7 }, { counts[1].produced, counts[1].lost, counts[1].pending })
    assert.equal(0, counts[0].produced)
    close(stream, instance)
  end)

  it("is added once, before the first record", function()
    local stream, instance = open(make { mine0 = page { { 10, OTHER, 1 } } })
    assert.has_error(function() stream:add_top {} end)
    assert.has_error(function() stream:add_top { 1, 2, 3, 4, 5 } end)
    assert.has_error(function() stream:add_top { -1 } end)
    assert.has_error(function() stream:add_top { "x" } end)
    assert.is_true(stream:add_top { WANTED })
    local ok, message = stream:add_top { WANTED }
    assert.is_nil(ok)
    assert.equal("the top level is added once, before the first record", message)
    assert.equal("1/0", values(stream))
    close(stream, instance)
  end)

  it("leaves the stream as it was when it cannot be read", function()
    local dir = make { mine0 = page { { 10, OTHER, 1 } } }
    os.remove(dir .. "/per_cpu/cpu1/trace_pipe_raw")
    local stream, instance = open(dir)
    local ok, message, errno = stream:add_top { WANTED }
    assert.is_nil(ok)
    assert.matches("cannot open per_cpu/cpu1/trace_pipe_raw: No such file", message)
    assert.equal(2, errno)
    assert.equal("1/0", values(stream))
    close(stream, instance)
  end)
end)
