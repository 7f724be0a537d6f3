-- Which stack belongs to which event: of recordings made here, where every stack has the number of
-- its event in it and every number of its event is known.
local helper = require "spec.support.helper"
local pages = require "spec.support.pages"
local tracedat = require "spec.support.tracedat"
local tracefs = require "tracefs"

local KERNEL <const>, USER <const>, ASKED <const>, OTHER <const> = 4, 13, 300, 301

-- Contexts that interrupt each other, as common_flags has them.
local TASK <const>, SOFTIRQ <const>, HARDIRQ <const>, NMI <const> = 0x01, 0x11, 0x09, 0x49
local GARBAGE <const> = 0xff

-- The option with a CPU's statistics.
local CPUSTAT <const> = 2

local format = tracedat.format

local FTRACE <const> = {
  format("kernel_stack", KERNEL, "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
    .. "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n"),
  format("user_stack", USER, "\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n"
    .. "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n"),
}
local NUMBER <const> = "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"

local layout = pages.layout()

local function event(number, flags, pid, id)
  return ("<I2I1I1i4i4"):pack(id or ASKED, flags or TASK, 0, pid or 7, number)
end

-- The address of a kernel's stack is the number of its event.
local function kernel(number, flags, pid)
  return ("<I2I1I1i4i4i4I8I8"):pack(KERNEL, flags or TASK, 1, pid or 7, 2, 0,
    0xffffffff81000000 + number, 0xffffffff81ffff00)
end

local function user(number, flags, pid)
  return ("<I2I1I1i4i4i4I8I8I8I8I8I8I8I8"):pack(USER, flags or TASK, 0, pid or 7, pid or 7, 0,
    0x400000 + number, 0, 0, 0, 0, 0, 0, 0)
end

-- A page of records, or of { lost = COUNT, record, ... }.
local function page(records, at)
  local words = { ts = 1000000 * at, lost = records.lost }
  for i, record in ipairs(records) do
    words[i] = layout:short(10, record)
  end
  return layout:page(words)
end

describe("stacks of events", function()
  local path

  -- cpus: by number a list of pages.
  local function recording(cpus, options)
    local bytes = {}
    for cpu, list in pairs(cpus) do
      local parts = {}
      for i, records in ipairs(list) do
        parts[i] = page(records, i)
      end
      bytes[cpu] = table.concat(parts)
    end
    path = path or helper.tmpdir() .. "/made.dat"
    helper.write_file(path, tracedat.build {
      ftrace = FTRACE, version = options and options.version or 7,
      events = { made = { format("asked", ASKED, NUMBER), format("other", OTHER, NUMBER) } },
      buffers = { { name = "", cpus = bytes } }, options = options and options.options,
    })
  end

  before_each(function()
    path = nil
  end)

  -- "NUMBER:KERNEL:USER" of each record that is handed out, "-" for a stack that it lacks.
  local function read(choice)
    local session <close> = tracefs.session { file = path }
    local list = {}
    local function number(stack)
      if stack == nil then
        return "nil"
      elseif not stack then
        return "-"
      end
      local last = math.tointeger(tonumber(stack:match("[^;]+$")))
      return ("%d"):format(last & 0xfffff)
    end
    choice = choice or { stack = true }
    session:on("made:asked", choice, function(ev)
      list[#list + 1] = ("%d:%s:%s"):format(ev.number, number(ev.common_stack),
        number(ev.common_user_stack))
    end)
    session:enable "made:other"
    for ev in session:events() do
      assert.matches("^made:", ev.common_event)
      if ev.common_event == "made:other" then
        assert.is_nil(ev.common_stack)
        assert.is_nil(ev.common_user_stack)
      end
    end
    local stats = session:stats()
    assert.equal(stats.produced, stats.delivered + stats.lost)
    return table.concat(list, " ")
  end

  local function joined(expected, pages_of_cpu, choice, options)
    recording({ [0] = pages_of_cpu }, options)
    assert.equal(expected, read(choice))
  end

  it("are those behind them", function()
    joined("1:1:nil 2:2:nil", { { event(1), kernel(1), event(2), kernel(2) } })
    joined("1:1:1", { { event(1), kernel(1), user(1) } }, { stack = true, user_stack = true })
    joined("1:1:1", { { event(1), user(1), kernel(1) } }, { stack = true, user_stack = true })
    joined("1:nil:1", { { event(1), kernel(1), user(1) } }, { user_stack = true })
    joined("1:1:nil", { { event(1), user(1), kernel(1) } })
  end)

  it("come with the values of a field, too", function()
    recording { [0] = { { event(5), user(5), kernel(5) } } }
    local session <close> = tracefs.session { file = path }
    local got
    session:on("made:asked", { "number", "common_stack", "common_user_stack" }, function(...)
      got = { ... }
    end)
    session:run()
    assert.same({ 5, "0xffffffff81ffff00;0xffffffff81000005", "0x400005" }, got)
  end)

  it("are missed where there are none", function()
    joined("1:-:nil", { { event(1) } })
    joined("1:-:nil 2:2:nil", { { event(1), event(2), kernel(2) } })
    joined("1:-:nil", { { event(1), event(9, TASK, 7, OTHER), kernel(9) } })
    joined("1:1:-", { { event(1), kernel(1) } }, { stack = true, user_stack = true })
    joined("1:-:nil", { { event(1), kernel(9, TASK, 8) } })
    joined("", { { kernel(1), user(1) } })
  end)

  it("are behind what has interrupted", function()
    joined("1:1:nil 2:2:nil 3:3:nil 4:4:nil", { {
      event(1), event(2, SOFTIRQ), event(3, HARDIRQ), event(4, NMI), kernel(4, NMI),
      kernel(3, HARDIRQ), kernel(2, SOFTIRQ), kernel(1),
    } })
    joined("1:1:nil 2:-:nil 3:3:nil", { {
      event(1), event(2, HARDIRQ), event(3, NMI), kernel(3, NMI), kernel(1),
    } })
    -- What was interrupted has gone on: the stack of the interrupt does not come any more.
    joined("1:-:nil 2:2:nil", { { event(1, HARDIRQ), event(2), kernel(1, HARDIRQ), kernel(2) } })
  end)

  it("belong to uprobes, whose flags are garbage on some kernels", function()
    joined("1:1:nil 2:2:nil", { {
      event(1, GARBAGE), kernel(1), event(2, GARBAGE), kernel(2, GARBAGE),
    } })
  end)

  it("are on the next page, or the one behind it", function()
    joined("1:1:nil 2:2:nil", { { event(1) }, { kernel(1), event(2) }, { kernel(2) } })
    joined("1:1:nil 2:2:nil", {
      { event(1) }, { event(2, HARDIRQ) }, { kernel(2, HARDIRQ) }, { kernel(1) },
    })
    for _, version in ipairs { 6, 7 } do
      joined("1:1:1", { { event(1) }, { kernel(1) }, { user(1) } },
        { stack = true, user_stack = true }, { version = version })
    end
  end)

  it("do not come from behind a loss", function()
    joined("1:-:nil 2:2:nil", { { event(1) }, { lost = 1, kernel(9), event(2), kernel(2) } })
    joined("1:-:nil", { { event(1) }, { lost = "unknown", kernel(9) } })
    joined("1:1:-", { { event(1), kernel(1) }, { lost = 3, user(9) } },
      { stack = true, user_stack = true })
  end)

  -- A full buffer that does not overwrite leaves records out where a page ends, and says so only
  -- in its statistics.
  it("do not come from another page where records were dropped", function()
    local STATS <const> = "CPU: 0\nentries: 0\noverrun: 0\ncommit overrun: 0\n"
      .. "dropped events: %d\n\0"
    for dropped, expected in pairs {
      [0] = "1:1:nil 2:2:nil 3:3:nil", [5] = "1:-:nil 2:2:nil 3:-:nil",
    } do
      recording({ [0] = {
        { event(1) }, { kernel(1), event(2), kernel(2), event(3) }, { kernel(3) },
      } }, { version = 6, options = { { id = CPUSTAT, data = STATS:format(dropped) } } })
      assert.equal(expected, read())
    end
  end)

  it("of two CPUs have nothing to do with each other", function()
    recording {
      [0] = { { event(1) }, { kernel(1) } }, [1] = { { kernel(8), event(2), kernel(2) } },
    }
    assert.equal("1:1:nil 2:2:nil", read())
  end)

  it("are part of a record that is kept", function()
    recording { [0] = { { event(1), kernel(1), user(1), event(2), kernel(2), user(2) } } }
    local session <close> = tracefs.session { file = path }
    session:enable("made:asked", { stack = true, user_stack = true })
    local kept = {}
    for ev in session:events() do
      kept[#kept + 1] = ev
    end
    collectgarbage()
    for i, ev in ipairs(kept) do
      local stack = ("0xffffffff81ffff00;0xffffffff8100000%d"):format(i)
      assert.equal(stack, ev.common_stack)
      assert.equal(("0x40000%d"):format(i), ev.common_user_stack)
      local fields = {}
      for name, value in pairs(ev) do
        fields[name] = value
      end
      assert.equal(stack, fields.common_stack)
    end
  end)

  it("that are damaged are empty", function()
    recording { [0] = { {
      event(1), ("<I2I1I1i4"):pack(KERNEL, TASK, 0, 7),
      event(2), ("<I2I1I1i4i4i4"):pack(KERNEL, TASK, 0, 7, 1 << 30, 0),
      event(3), ("<I2I1I1i4i4i4I8"):pack(KERNEL, TASK, 0, 7, 99, 0, -1),
    } } }
    local session <close> = tracefs.session { file = path }
    local list = {}
    session:on("made:asked", { "common_stack" }, function(stack) list[#list + 1] = stack end)
    session:run()
    assert.same({ "", "", "" }, list)
  end)

  -- Random histories of what the kernel does, with losses at random places. An event may lose its
  -- stack, but never gets another one's; and none is missed that stands in one piece behind it.
  it("are never another event's, whatever is lost", function()
    local random = math.random
    math.randomseed(20260101)
    local checked, found = 0, 0
    for _ = 1, 40 do
      local records, number = {}, 0
      local function put(record, owner)
        records[#records + 1] = { bytes = record, owner = owner }
      end
      local LEVELS <const> = { TASK, SOFTIRQ, HARDIRQ, NMI }
      local function happen(level)
        number = number + 1
        local mine, flags = number, LEVELS[level]
        local pid = level == 1 and random(7, 8) or 7
        local is_asked = random(4) > 1
        put(event(mine, flags, pid, is_asked and ASKED or OTHER), is_asked and mine or nil)
        if level < 4 and random(4) == 1 then
          happen(random(level + 1, 4))
        end
        if is_asked and random(10) > 1 then
          put(kernel(mine, flags, pid))
        end
      end
      while number < 300 do
        happen(random(4) == 1 and random(4) or 1)
      end
      -- In pages of random size, of which some are lost.
      local list, at, lost = {}, 1, nil
      while at <= #records do
        local count = math.min(random(1, 12), #records - at + 1)
        if random(5) == 1 then
          lost = (lost or 0) + count
        else
          local one = { lost = lost }
          for i = at, at + count - 1 do
            one[#one + 1] = records[i].bytes
          end
          list[#list + 1], lost = one, nil
        end
        at = at + count
      end
      recording { [0] = list }
      for entry in read():gmatch("%S+") do
        local own, stack = entry:match("^(%d+):([^:]+):nil$")
        checked = checked + 1
        if stack ~= "-" then
          found = found + 1
          assert.equal(own, stack)
        end
      end
    end
    assert.is_true(checked > 1000 and found > checked / 2, found .. " of " .. checked)
  end)
end)

describe("stream:stacks and stream:join", function()
  it("want their arguments, once", function()
    local session <close> = tracefs.session {}
    local stream = session._stream
    assert.has_error(function() stream:join(1, true, false) end)
    stream:stacks(nil, nil)
    assert.has_error(function() stream:stacks(nil, nil) end)
    assert.has_error(function() stream:join(-1, true, false) end)
    assert.has_error(function() stream:join(65536, true, false) end)
    stream:join(65535, true, true)
  end)
end)
