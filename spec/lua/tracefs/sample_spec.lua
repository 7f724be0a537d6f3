local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local sample = require "tracefs.sample"
local tracefs = require "tracefs"

local SYSCALL <const> = loads.SYSCALL
local HERE <const> = "^spec/lua/tracefs/sample_spec%.lua:%d+: "

-- So many calls of each of these numbers, one number after the other.
local function call_each(first, last, calls)
  assert.equal(0, (helper.execute {
    "sh", "-c", 'for nr in $(seq "$2" "$3"); do "$1" --nr "$nr" syscalls "$4" || exit; done', "sh",
    helper.program("support/load"), tostring(first), tostring(last), tostring(calls),
  }))
end

describe("tracefs.sample", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.sample"))
  end)

  it("reads one in so many, by a field and without", function()
    assert.same({ text = "1/100", scale = 100, shift = 0 }, sample.parse "1/100")
    assert.same({ text = " 1 / 64  of  pid ", scale = 64, field = "pid", shift = 0 },
      sample.parse " 1 / 64  of  pid ")
    assert.same({ text = "1/64 of skbaddr>>8", scale = 64, field = "skbaddr", shift = 8 },
      sample.parse "1/64 of skbaddr>>8")
    for _, wrong in ipairs { "", "100", "2/100", "1/1", "1/0", "1/2000000000", "1/10 of",
      "1/10 pid", "1/99999999999999999999", "1/8 of pid>>64", "1/8 of pid>>x", "1/8 of 8" } do
      local ok, message = pcall(sample.parse, wrong)
      assert.is_false(ok, wrong)
      assert.matches("^sample: ", message)
    end
    assert.matches('a text such as "1/100" is needed, not number',
      select(2, pcall(sample.parse, 5)))
  end)

  it("has the kernel choose what a filter can say, and says why it does not", function()
    local event = assert(tracefs.event(SYSCALL))
    local function plan(text)
      return sample.plan(sample.parse(text), event)
    end
    local how, condition = plan "1/64 of id>>2"
    assert.equal("!(id & 0xfc)", condition)
    assert.equal("1 in 64, by id without its lowest 2 bits, by the kernel's filter",
      sample.tell(how))
    how, condition = plan "1/100 of id"
    assert.is_nil(condition)
    assert.equal("1 in 100, by id, by the reader: 100 is no power of two, and a filter can only"
      .. " look at bits", sample.tell(how))
    how, condition = plan "1/64"
    assert.is_nil(condition)
    assert.equal("1 in 64, each in its turn, by the reader: the kernel's filters do not count",
      sample.tell(how))
    assert.equal("(a == 1) && !(id & 0x3)", sample.join("a == 1", "!(id & 0x3)"))
  end)
end)

describe("an event with a sample", function()
  local function refused(...)
    local session <close> = tracefs.session()
    local arguments = table.pack(...)
    local ok, message = pcall(function()
      session:on(table.unpack(arguments))
    end)
    assert.is_false(ok)
    assert.matches(HERE, message)
    assert.equal("", session.instance:read("set_event"))
    return (message:gsub(HERE, ""))
  end

  it("is refused when it means nothing", function()
    assert.matches('^sample: "1/x" is none; the forms are "1/100",', refused(SYSCALL, {
      sample = "1/x" }, print))
    assert.matches("^sample: raw_syscalls:sys_enter has no field 'nosuch'; of its fields these are"
      .. " numbers: common_type, .*, id$", refused(SYSCALL, { sample = "1/4 of nosuch" }, print))
    assert.matches("^sample: args of raw_syscalls:sys_enter .* is no number",
      refused(SYSCALL, { sample = "1/4 of args" }, print))
    assert.matches("^sample: skbaddr is an address, .*1/4 of skbaddr>>8",
      refused("net:net_dev_queue", { sample = "1/4 of skbaddr" }, print))
    assert.matches("^sample: common_flags of .* has 8 bits",
      refused(SYSCALL, { sample = "1/256 of common_flags>>1" }, print))
    local session <close> = tracefs.session()
    session:on(SYSCALL, { sample = "1/4", filter = "id == -7" }, print)
    for _, other in ipairs { { filter = "id == -7" }, { sample = "1/5", filter = "id == -7" } } do
      assert.matches('raw_syscalls:sys_enter is on already with the sample "1/4"',
        select(2, pcall(session.on, session, SYSCALL, other, print)))
    end
    assert.equal(1, session:on(SYSCALL, { sample = "1/4", filter = "id == -7" }, print))
  end)

  it("is counted by the reader, exactly, for handlers and the loop", function()
    for _, is_loop in ipairs { false, true } do
      local nr, filter = loads.fresh_nr()
      local session <close> = tracefs.session()
      local numbers, scales, said = {}, {}, {}
      session.on_choice = function(message)
        said[#said + 1] = message
      end
      session:on(SYSCALL, { "args", "common_scale", filter = filter, sample = "1/100" },
        function(args, scale)
          numbers[#numbers + 1] = args[1]
          scales[scale] = true
        end)
      local stats
      local seen = 0
      if is_loop then
        loads.run { "--nr", nr, "syscalls", 3 } -- before the start: not seen
        session:start()
        loads.run { "--nr", nr, "syscalls", 10007 }
        session:finish()
        for ev in session:events() do
          seen = seen + ev.common_scale
        end
        stats = session:stats()
      else
        stats = select(2, loads.run_session(session, { "--nr", nr, "syscalls", 10007 }))
      end
      assert.equal(100, #numbers)
      assert.same({ [100] = true }, scales)
      for i, number in ipairs(numbers) do
        assert.equal(100 * i, number)
      end
      assert.equal(is_loop and 10000 or 0, seen)
      assert.same({ [SYSCALL] = { scale = 100, where = "reader", seen = 10007, taken = 100 } },
        stats.samples)
      assert.same({ 100, 9907, 100, 0 },
        { stats.delivered, stats.skipped, stats.produced, stats.pending })
      assert.same({ SYSCALL .. ": a sample of 1 in 100, each in its turn, by the reader: the"
        .. " kernel's filters do not count" }, said)
    end
  end)

  it("is chosen by a field: in the kernel for powers of two, else here", function()
    for _, case in ipairs {
      { "1/4 of id", 4, "kernel" }, { "1/4 of id>>1", 4, "kernel", 1 },
      { "1/3 of id", 3, "reader" },
    } do
      local text, scale, where, shift = table.unpack(case)
      local first = loads.fresh_nr(16)
      local session <close> = tracefs.session()
      local got, expected = {}, {}
      session:on(SYSCALL, { sample = text, filter = ("id >= %d && id < %d"):format(first,
        first + 16) }, function(ev)
        got[ev.id] = (got[ev.id] or 0) + 1
        assert.equal(scale, ev.common_scale)
      end)
      session:start()
      call_each(first, first + 15, 7)
      local count = 0
      for nr = first, first + 15 do
        if (nr >> (shift or 0)) % scale == 0 then
          expected[nr] = 7
          count = count + 7
        end
      end
      session:finish()
      local stats = session:run()
      assert.same(expected, got)
      assert.same({ scale = scale, where = where, taken = count, seen = where == "reader" and 112
        or nil }, stats.samples[SYSCALL])
      assert.same({ count, where == "reader" and 112 - count or 0 },
        { stats.delivered, stats.skipped })
      assert.equal(where == "kernel", session.instance:get_filter("raw_syscalls", "sys_enter")
        :find(") && !(id & 0x", 1, true) ~= nil)
    end
  end)

  it("chosen by the key makes whole pairs", function()
    local session <close> = tracefs.session()
    local first = loads.fresh_nr(8)
    local range = ("id >= %d && id < %d"):format(first, first + 8)
    local matched = 0
    local pair = session:pair {
      start = { event = "raw_syscalls:sys_enter", filter = range, sample = "1/4 of id" },
      stop = { event = "raw_syscalls:sys_exit", filter = range, sample = "1/4 of id" },
      key = "id",
      on_match = function(_, id)
        assert.equal(0, id % 4)
        matched = matched + 1
      end,
    }
    session:start()
    call_each(first, first + 7, 11)
    session:finish()
    session:run()
    assert.equal(22, matched)
    assert.same({ 22, 22, 0 }, { pair:counts().starts, pair:counts().matched,
      pair:counts().unmatched })
  end)

  it("is the same on a recording, which it cannot be cut by", function()
    local function ids(options)
      local session <close> = tracefs.session { file = helper.root .. "/examples/demo.dat" }
      local list = {}
      session:on("net:*", options, function(ev)
        list[#list + 1] = ("%s %d %s"):format(ev.common_event, ev.len or 0, ev.common_scale)
      end)
      return list, session:run()
    end
    local all, sampled = {}, ids { sample = "1/3" }
    for _, text in ipairs((ids {})) do
      local label = text:match "^%S+"
      all[label] = all[label] or {}
      table.insert(all[label], text)
    end
    local count = 0
    for _, list in pairs(all) do
      count = count + #list // 3
    end
    assert.is_true(count > 10)
    assert.equal(count, #sampled)
    assert.matches(" 3$", sampled[1])
    -- by a field it is the same record of the same file each time
    local by_field, stats = ids { sample = "1/2 of len" }
    local even = 0
    for _, list in pairs(all) do
      for _, text in ipairs(list) do
        even = even + (tonumber(text:match " (%d+) ") % 2 == 0 and 1 or 0)
      end
    end
    assert.equal(even, #by_field)
    assert.equal(even, stats.delivered)

    local session <close> = tracefs.session { file = helper.root .. "/examples/demo.dat" }
    session:on("net:net_dev_queue", { sample = "1/3" }, print)
    session:record(helper.tmpdir() .. "/cut.dat")
    local ok, message = session:close()
    assert.is_nil(ok)
    assert.matches('the sample "1/3" of net:net_dev_queue is chosen while it is read', message)
  end)
end)

describe("the command with a sample", function()
  it("says how it is chosen with -v, and at the end what it stands for", function()
    local nr, filter = loads.fresh_nr()
    local code = ("on(%q, { filter = %q, sample = '1/10' })"):format(SYSCALL, filter)
    local run = ("%s --nr %d syscalls 57 >/dev/null"):format(
      helper.quote(helper.program("support/load")), nr)
    local status, out, err = helper.run { "-v", "-f", "json", "-c", run, "-e", code }
    assert.equal(0, status)
    assert.equal(5, select(2, out:gsub('"common_scale":10,', "")))
    assert.matches('"samples":{"raw_syscalls:sys_enter":{', out, 1, true)
    assert.matches("raw_syscalls:sys_enter: a sample of 1 in 10, each in its turn, by the reader",
      err, 1, true)
    assert.matches("luatrace: raw_syscalls:sys_enter is a sample: 5 records, each of which stands"
      .. " for 10, of 57\n", err, 1, true)
    status, out, err = helper.run { "-q", "-c", run, "-e", code }
    assert.same({ 0, 5, "" }, { status, select(2, out:gsub("\n", "")), err })
  end)
end)
