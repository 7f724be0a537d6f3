-- Files made byte by byte: of machines that are not at hand, and hostile ones.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local pages = require "spec.support.pages"
local tracedat = require "spec.support.tracedat"
local tracefs = require "tracefs"

local FORMAT <const> = [[
name: made
ID: 77
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:u32 number;	offset:8;	size:4;	signed:0;
	field:unsigned long long_one;	offset:%d;	size:%d;	signed:0;

print fmt: "number=%%u long=%%lx by %%ps", REC->number, REC->long_one, (void *)REC->long_one
]]

local KINDS <const> = {
  { endian = "little", long_size = 8, page_size = 4096 },
  { endian = "little", long_size = 4, page_size = 4096 },
  { endian = "big", long_size = 8, page_size = 4096 },
  { endian = "big", long_size = 4, page_size = 65536 },
  { endian = "little", long_size = 8, page_size = 65536 },
}

-- A record of the event; `number` is also its distance to the one before.
local function record(layout, number)
  local at = layout.long_size == 8 and 16 or 12
  local data = (layout.order .. "I2BBi4I4"):pack(77, 0, 0, 5, number)
  data = data .. ("\0"):rep(at - #data)
    .. (layout.order .. "I" .. layout.long_size):pack(0xc0001000 + number % 16)
  return layout:short(number, data)
end

-- `count` records on as many pages as they need, the first at `start`.
local function records(layout, start, count, step)
  local list, all, ts, used = nil, {}, start, 0
  for _ = 1, count do
    local bytes = record(layout, step)
    if not list or used + #bytes > layout.data_size then
      all[#all + 1] = list and layout:page(list)
      list, used = { ts = ts }, 0
    end
    ts, used = ts + step, used + #bytes
    list[#list + 1] = bytes
  end
  all[#all + 1] = list and layout:page(list)
  for i, page in ipairs(all) do
    all[i] = page .. ("\0"):rep(layout.data_size + 8 + layout.long_size - #page)
  end
  return table.concat(all)
end

local function write(file)
  local path = helper.tmpdir() .. "/made.dat"
  helper.write_file(path, tracedat.build(file))
  return path
end

local function made(kind, version, buffers, compression)
  local layout = pages.layout {
    endian = kind.endian, long_size = kind.long_size,
    data_size = kind.page_size - 8 - kind.long_size,
  }
  local at = kind.long_size == 8 and 16 or 12
  return write {
    version = version, endian = kind.endian, long_size = kind.long_size,
    page_size = kind.page_size, clock = "mono", compression = compression,
    events = { mine = { FORMAT:format(at, kind.long_size) } },
    cmdlines = "5 maker of things\n",
    kallsyms = "c0001000 T first_one\nc0001008 T second_one\nc0002000 T _etext\n",
    buffers = buffers and buffers(layout)
      or { { name = "", cpus = { [0] = records(layout, 1000, 3000, 7),
        [2] = records(layout, 1003, 2000, 11) } } },
  }, layout
end

local function latency_text(version, compression)
  return write {
    version = version, compression = compression,
    buffers = { { name = "", text = ("# tracer: wakeup\nsome text of it\n"):rep(500) } },
  }
end

describe("a file of any machine", function()
  it("is read, with its numbers, names and symbols", function()
    for _, kind in ipairs(KINDS) do
      for version = 6, 7 do
        local path = made(kind, version)
        local what = ("%s %d %d v%d"):format(kind.endian, kind.long_size, kind.page_size, version)
        local session <close> = tracefs.session { file = path }
        local last, counts, text = 0, { [7] = 0, [11] = 0 }, nil
        session:on("mine:made", function(ev)
          assert.is_true(ev.common_timestamp >= last, what)
          last = ev.common_timestamp
          counts[ev.number] = counts[ev.number] + 1
          assert.equal(0xc0001000 + ev.number % 16, ev.long_one, what)
          assert.equal(ev.number == 7 and 0 or 2, ev.common_cpu)
          text = text or tostring(ev)
        end)
        local stats = session:run()
        assert.same({ [7] = 3000, [11] = 2000 }, counts, what)
        assert.same({ 5000, 0 }, { stats.produced, stats.late })
        assert.equal(1003 + 11 * 2000, last, what)
        assert.matches("maker of things%-5 +%[000%].* made: number=7 long=c0001007 by first_one$",
          text, what)
        local file <close> = assert(core.datafile(path))
        assert.equal(kind.long_size, file:info().long_size)
        assert.equal("mono", file:buffers()[1].clock)
      end
    end
  end)

  it("is read like trace-cmd reads it", function()
    if not os.execute "command -v trace-cmd >/dev/null" then
      pending("trace-cmd is not installed")
      return
    end
    for i, kind in ipairs(KINDS) do
      for version = 6 + i % 2, 6 + i % 2 do
        local path = made(kind, version)
        local status, theirs = helper.execute { "trace-cmd", "report", "-N", "-t", path }
        assert.equal(0, status)
        local _, ours = helper.run { "report", "-t", path }
        local function tails(text)
          local list = {}
          for ts, number in text:gmatch("(%d+%.%d+): made: +number=(%d+) ") do
            list[#list + 1] = ts .. " " .. number
          end
          return list
        end
        local list = tails(ours)
        assert.equal(5000, #list)
        local expected = tails(theirs)
        assert.equal(5000, #expected, theirs:sub(1, 1000))
        for j, line in ipairs(expected) do
          assert.equal(line, list[j])
        end
      end
    end
  end)

  it("may hold several buffers and have an offset of time", function()
    for version = 6, 7 do
      local path = made(KINDS[1], version, function(layout)
        return {
          { name = "", cpus = { [0] = records(layout, 1000, 10, 7) } },
          { name = "second", cpus = { [0] = records(layout, 1000, 20, 7),
            [1] = records(layout, 1000, 30, 7) } },
        }
      end)
      for name, count in pairs { [""] = 10, second = 50 } do
        local session <close> = tracefs.session { file = path, buffer = name }
        session:on("mine:made", function() end)
        assert.equal(count, session:run().delivered)
      end
      local order = {}
      local session <close> = tracefs.session { file = path }
      session:on("mine:made", { "common_cpu", "common_timestamp" }, function(cpu, ts)
        order[#order + 1] = cpu .. " " .. ts
      end)
      local stats = session:run()
      assert.same({ 30, 30 }, { stats.per_cpu[0].delivered, stats.per_cpu[1].delivered })
      -- equal times: the file's first buffer, then the second one's CPUs
      assert.same({ "0 1007", "0 1007", "1 1007", "0 1014" }, { table.unpack(order, 1, 4) })
    end
  end)

  it("tells of the losses in the range of time and of the CPUs that are read", function()
    local layout = pages.layout { data_size = 4080 }
    -- CPU 0 has records from 1007 on, 5 lost, from 2007 on, 6 lost, from 3007 on.
    local function lossy(first)
      local all = {}
      for i, lost in ipairs { 0, 5, 6 } do
        local start = 1000 * i + first
        local page = { ts = start, lost = lost > 0 and lost or nil }
        for k = 1, 10 do
          page[k] = record(layout, 7)
        end
        all[i] = layout:page(page)
      end
      return table.concat(all)
    end
    local path = write {
      version = 7, clock = "mono", events = { mine = { FORMAT:format(16, 8) } },
      options = { { id = 2, data = "CPU: 0\noverrun: 14\n\0" },
        { id = 2, data = "CPU: 1\noverrun: 11\ndropped events: 2\n\0" } },
      buffers = { { name = "", cpus = { [0] = lossy(0), [1] = lossy(0) } } },
    }
    local function losses(prepare)
      local session <close> = tracefs.session { file = path }
      local told = {}
      session:on("mine:made", function() end)
      session:on_lost(function(lost)
        told[#told + 1] = ("%d:%d %s"):format(lost.cpu, lost.count, lost.why)
      end)
      prepare(session._stream)
      local stats = session:run()
      assert.equal(stats.produced, stats.delivered + stats.lost)
      return told, stats.lost, stats.delivered
    end
    assert.same({ { "0:5 overrun", "1:5 overrun", "0:6 overrun", "1:6 overrun", "0:3 overrun",
      "1:2 dropped" }, 27, 60 }, { losses(function() end) })
    assert.same({ { "0:5 overrun", "0:6 overrun", "0:3 overrun" }, 14, 30 },
      { losses(function(stream) stream:set_cpus { [0] = true } end) })
    -- what only the statistics tell of has no time
    for range, expected in pairs {
      [{ 1000, 1069 }] = { { "0:3 overrun", "1:2 dropped" }, 5, 18 },
      [{ 1000, 1070 }] = { { "0:5 overrun", "1:5 overrun", "0:3 overrun", "1:2 dropped" }, 15, 20 },
      [{ 2007, 2069 }] = { { "0:5 overrun", "1:5 overrun", "0:3 overrun", "1:2 dropped" }, 15, 18 },
      [{ 2008, 3000 }] = { { "0:6 overrun", "1:6 overrun", "0:3 overrun", "1:2 dropped" }, 17, 18 },
      [{ 3008, -1 }] = { { "0:3 overrun", "1:2 dropped" }, 5, 18 },
    } do
      assert.same(expected, { losses(function(stream)
        stream:set_range(range[1], range[2])
      end) })
    end
  end)

  it("has its times shifted and converted as its options say", function()
    local layout = pages.layout { data_size = 4080 }
    local function first(options)
      local path = write {
        version = 7, clock = "x86-tsc", options = options,
        events = { mine = { FORMAT:format(16, 8) } },
        buffers = { { name = "", cpus = { [0] = records(layout, 1000, 3, 100) } } },
      }
      local session <close> = tracefs.session { file = path }
      local ts
      session:on("mine:made", { "common_timestamp" }, function(value) ts = ts or value end)
      session:run()
      return ts, session.instance.file:buffers()[1].clock_in_ns
    end
    assert.same({ 1100, false }, { first {} })
    assert.same({ 1100 + 5000 + 70, false },
      { first { { id = 1, data = "0x5\0" }, { id = 7, data = "70\0" } } })
    -- 1100 cycles * 3 / 2, then the offset
    assert.same({ 1650 - 50, true }, { first {
      { id = 14, data = ("<I4I4I8"):pack(3, 1, 0) }, { id = 7, data = "-50\0" },
    } })
    -- a guest's clock, 400 ns behind at 0 and 600 at 2000, between them in proportion
    assert.same({ 1100 + 510, false }, { first { { id = 12, data = ("<I8I4I4"):pack(1, 1, 1)
      .. ("<I4I8I8i8i8I8I8"):pack(2, 0, 2000, 400, 600, 1, 1) } } })
  end)

  it("may be a latency tracer's text", function()
    local text = ("# tracer: wakeup\nsome text of it\n"):rep(500)
    for version = 6, 7 do
      local path = latency_text(version)
      local status, out, err = helper.run { "report", path }
      assert.same({ 0, "" }, { status, err })
      assert.is_true(out == text)
      local file <close> = assert(core.datafile(path))
      assert.is_true(file:buffers()[1].is_text)
      assert.is_true(file:text "" == text)
      local ok, message = pcall(tracefs.session, { file = path })
      assert.is_false(ok)
      assert.matches("holds the text of a latency tracer, and no records", message, 1, true)
    end
  end)
end)

-- nil where this build cannot read it.
local function zlib_file(kind)
  local path = made(kind, 7, nil, "zlib")
  local file <close>, message = core.datafile(path)
  if not file then
    assert.matches("compressed with zlib, and this luatrace was built without", message, 1, true)
  end
  return file and path
end

describe("a file with zlib", function()
  it("says the same as without", function()
    for _, kind in ipairs { KINDS[1], KINDS[4] } do
      local path = zlib_file(kind)
      if not path then
        return pending("this build has no zlib")
      end
      local status, packed, err = helper.run { "report", "-t", path }
      assert.same({ 0, "" }, { status, err })
      local _, plain = helper.run { "report", "-t", (made(kind, 7)) }
      assert.equal(5000, select(2, packed:gsub(": made: ", "")))
      assert.is_true(packed == plain)
    end
    local _, text = helper.run { "report", latency_text(7, "zlib") }
    assert.equal(500, select(2, text:gsub("# tracer: wakeup\nsome text of it\n", "")))
  end)
end)

describe("a damaged file", function()
  -- make damages: the long run.
  local COUNT <const> = tonumber(os.getenv "LUATRACE_DAMAGES" or "40")

  local function try(path, step, count)
    local seed = tostring(os.time())
    local status, out, err = helper.execute {
      helper.program "support/damage", path, tostring(step), tostring(count), seed,
      timeout = 60 + count,
    }
    assert.equal(0, status, ("seed %s: %s"):format(seed, err))
    local opened, failed, text, rss = out:match(
      "^opened (%d+) failed (%d+) text (%d+) rss_kb (%d+)\n$")
    assert.truthy(opened, out)
    assert.is_true(tonumber(rss) < 2000000, out)
    return tonumber(opened), tonumber(failed), tonumber(text)
  end

  it("cut at any place is read as far as it goes, and ends with an error", function()
    for version = 6, 7 do
      local path, layout = made(KINDS[1], version, function(layout)
        return { { name = "", cpus = { [0] = records(layout, 1000, 400, 7) } } }
      end)
      local size = #helper.read_file(path)
      local opened, failed, text = try(path, 97, 0)
      -- none of them is whole
      assert.equal((size + 96) // 97, failed, layout.endian)
      if version == 6 then
        assert.is_true(opened > 50 and text > 1000)
      end
    end
  end)

  it("with wrong bytes anywhere does no harm", function()
    for _, kind in ipairs { KINDS[1], KINDS[4] } do
      for version = 6, 7 do
        local path = made(kind, version)
        local _, _, text = try(path, 0, COUNT)
        assert.is_true(text > 0)
      end
    end
  end)

  it("with wrong bytes in what is compressed does no harm", function()
    -- as luatrace cut writes it: with zstd, where the build has it
    local packed = helper.tmpdir() .. "/packed.dat"
    assert.equal(0, (helper.run { "cut", "-q", "-o", packed, (made(KINDS[1], 6)) }))
    for _, path in ipairs { packed, zlib_file(KINDS[1]) } do
      local _, _, text = try(path, 0, COUNT)
      assert.is_true(text > 0)
    end
  end)

  it("with wrong bytes in or before a latency tracer's text does no harm", function()
    -- The whole text is one chunk of zlib's: of a compressed file it may be that none is read.
    local read = 0
    for _, path in ipairs {
      latency_text(6), latency_text(7), zlib_file(KINDS[1]) and latency_text(7, "zlib"),
    } do
      local _, _, text = try(path, 0, COUNT)
      read = read + text
    end
    assert.is_true(read > 0)
  end)

  it("of other machines does no harm either", function()
    if not inputs.are_there then
      pending("../shared/inputs is not there")
      return
    end
    for _, name in ipairs {
      "kernel-6.18/net_lo_zstd.dat", "kernel-6.18/net_lo_v6.dat", "kernel-6.12/rec_multibuf.dat",
      "s390x/be_v7_none.dat",
    } do
      local opened = try(inputs.path(name), 0, COUNT)
      assert.is_true(opened > 0)
    end
  end)
end)
