-- That kernel and Lua match the same is spec/vm/checks/latency.lua's, on kernels that can do both.
local aggregate = require "tracefs.aggregate"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local kernel_pair = require "tracefs.kernel_pair"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local ENTER <const>, EXIT <const> = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"
local HERE <const> = "^spec/lua/tracefs/kernel_pair_spec%.lua:%d+: "

-- The options of a pair of system calls, with more.
local function options_with(more)
  local options = { start = ENTER, stop = EXIT, key = "common_pid", where = "kernel" }
  for name, value in pairs(more) do
    options[name] = value
  end
  return options
end

describe("a pair in the kernel", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.kernel_pair"))
  end)

  it("is refused by the name of what the kernel cannot do", function()
    local session <close> = tracefs.session()
    for _, case in ipairs {
      { { key = function() end }, "key: a function" },
      { { key = { "a", "b", "c", "d" } }, "key: 4 fields; there are 3 at most" },
      { { same_cpu = true }, "same_cpu: " },
      { { timeout = 1 }, "timeout: " },
      { { again = "first" }, 'again = "first": ' },
      { { cancel = "sched:sched_process_exit" }, "cancel: " },
      { { through = "sched:sched_switch" }, "through: " },
      { { max = 131073 }, "max: there is place for 131072 starts at most, not 131073" },
      { { on_expired = print }, "on_expired: " },
      { { on_dropped = print }, "on_dropped: " },
      { { on_unmatched = print }, "on_unmatched: " },
      { { start = { ENTER, "sched:sched_switch" } }, "start: .*, and these are several" },
      { { stop = "raw_syscalls:*" }, "stop: 'raw_syscalls:%*' means 2 events" },
      { { carry = "args" }, "carry: 'args' %(unsigned long%[6%]%) is neither a number nor a" },
      { { carry = "common_comm" }, "carry: 'common_comm' is no field of " .. ENTER },
      { { key = "common_cpu" }, "key: 'common_cpu' is no field of " .. ENTER },
      { { start = { event = ENTER, sample = "1/4 of id" } }, "sample: " },
    } do
      local ok, message = pcall(function()
        session:pair(options_with(case[1]))
      end)
      assert.is_false(ok)
      assert.matches(HERE .. "pair: where: the kernel cannot do this: " .. case[2], message)
      assert.equal("", session.instance:read "set_event")
    end
    assert.matches("pair: where: \"lua\", \"kernel\" or \"auto\", not \"here\"",
      select(2, pcall(session.pair, session, options_with { where = "here" })))
    assert.matches("pair: carry: raw_syscalls:sys_enter has no field 'nosuch'; it has: common_type",
      select(2, pcall(session.pair, session, options_with { carry = "nosuch" })))
    session:start()
    assert.matches("pair: where: the session has started",
      select(2, pcall(session.pair, session, options_with {})))
    local recorded <close> = tracefs.session { file = helper.root .. "/examples/demo.dat" }
    assert.matches("pair: where: .*demo%.dat is a recording",
      select(2, pcall(recorded.pair, recorded, options_with { key = "skbaddr" })))
  end)

  -- A kernel that takes everything, and notes it.
  local function set_up(options, parts, is_choice)
    local noted = { hists = {} }
    local session = { _stream = true }
    function session.on(_, label, selection, handler)
      noted.label, noted.selection, noted.handler = label, selection, handler
    end
    local made = kernel_pair.new(session, {
      match = function(pattern)
        local system, name = pattern:match "^(.*):(.*)$"
        return { { system = system, name = name } }
      end,
      describe = function(event)
        return assert(tracefs.event(event.system .. ":" .. event.name))
      end,
      synthetic = function(name, fields)
        noted.name, noted.fields = name, fields
        return "synthetic:" .. name
      end,
      hist = function(label, hist_options)
        local hist = { label = label, options = hist_options, hits = 0, dropped = 0 }
        function hist:read()
          return self
        end
        noted.hists[#noted.hists + 1] = hist
        return hist
      end,
    }, options, parts, is_choice)
    return made, noted
  end

  it("is two histograms and an event, whose records are the matches", function()
    local by_call = aggregate.new { "count", "sum", by = "id" }
    local told = {}
    local made, noted = set_up({
      max = 5000,
      on_match = function(delta, key, carried)
        told[#told + 1] = ("%d %d %d"):format(delta, key, carried.common_pid)
      end,
    }, {
      events = {
        { role = "stop", pattern = "sched:sched_switch", key = { "next_pid" } },
        { role = "start", pattern = "sched:sched_waking", key = { "pid" },
          filter = { pid = { [">"] = 1 } } },
      },
      stages = 0, carry = { "common_pid", "target_cpu" }, report = 1, into = { { by_call, { 2 } } },
    })
    local n = noted.name:match "^pair(%d+)$"
    assert.same({ "u64 delta", "pid_t key_next_pid", "int start_common_pid",
      "int start_target_cpu" }, noted.fields)
    assert.same({ "sched:sched_waking", "sched:sched_switch" },
      { noted.hists[1].label, noted.hists[2].label })
    assert.same({
      keys = { "pid" }, size = 8192, filter = "pid > 1",
      variables = {
        ["pt" .. n] = "common_timestamp", [("pc%s_1"):format(n)] = "common_pid",
        [("pc%s_2"):format(n)] = "target_cpu",
      },
    }, noted.hists[1].options)
    assert.same({
      keys = { "next_pid" }, size = 8192,
      variables = { ["pd" .. n] = "common_timestamp-$pt" .. n },
      actions = { { onmatch = "sched:sched_waking", trace = noted.name,
        with = { "$pd" .. n, "next_pid", ("$pc%s_1"):format(n), ("$pc%s_2"):format(n) } } },
    }, noted.hists[2].options)
    assert.same({ "synthetic:pair" .. n, {
      "delta", "key_next_pid", "start_common_pid", "start_target_cpu",
      filter = "delta < 0x8000000000000000",
    } }, { noted.label, noted.selection })

    -- what was there before the start is not the session's
    noted.hists[1].hits, noted.hists[2].hits = 100, 200
    made:_begin()
    noted.hists[1].hits, noted.hists[2].hits, noted.hists[1].dropped = 105, 207, 1
    noted.handler(1000, 11, 1, 3)
    noted.handler(500, 12, 2, 3)
    assert.same({ "1000 11 1", "500 12 2" }, told)
    assert.same({ { id = 3, count = 2, sum = 1500 } }, by_call:rows())
    local counts = made:counts()
    assert.same({ 5, 2, 3, 1, 0 }, { counts.starts, counts.matched, counts.open, counts.dropped,
      counts.voided })
    assert.is_nil(counts.unmatched)
    assert.equal("kernel", (made:where()))
    assert.matches("the kernel has this pair", select(2, pcall(made.open, made)))
  end)

  it("is no choice for keys that may be more than there is place for", function()
    local function parts_of(start, stop, start_key, stop_key)
      return {
        events = {
          { role = "stop", pattern = stop, key = stop_key or start_key },
          { role = "start", pattern = start, key = start_key },
        },
        stages = 0, carry = {}, report = 0, into = {},
      }
    end
    local packets = parts_of("net:net_dev_queue", "net:netif_receive_skb", { "skbaddr" })
    local wakeups = parts_of("sched:sched_waking", "sched:sched_switch", { "pid" }, { "next_pid" })
    local names = parts_of("sched:sched_waking", "sched:sched_switch", { "comm" }, { "next_comm" })
    for _, case in ipairs { { packets, "key: 'skbaddr' %(void %*%) may have more values than" },
      { names, "key: 'comm' %(char%[16%]%) may have more values than" } } do
      local ok, message = pcall(set_up, {}, case[1], true)
      assert.is_false(ok)
      assert.matches(case[2], message)
      assert.is_true((pcall(set_up, {}, case[1])))
    end
    -- `max` of a pair here says nothing of how many keys come in the whole run
    for max, size in pairs { [1] = 16384, [20000] = 32768 } do
      local _, noted = set_up({ max = max }, wakeups, true)
      assert.equal(size, noted.hists[1].options.size)
    end
    assert.equal(128, select(2, set_up({ max = 1 }, wakeups)).hists[1].options.size)
  end)

  it("gives the event's record to who wants one", function()
    local got
    local _, noted = set_up({
      on_match = function(...)
        got = table.pack(...)
      end,
    }, {
      events = {
        { role = "stop", pattern = EXIT, key = { "common_pid", "id" } },
        { role = "start", pattern = ENTER, key = { "common_pid", "id" } },
      },
      stages = 0, carry = {}, report = 0, into = {},
    })
    assert.same({ filter = "delta < 0x8000000000000000" }, noted.selection)
    local record = { delta = 9, key_common_pid = 7, key_id = 1, common_cpu = 1 }
    noted.handler(record)
    assert.same({ n = 5, 9, { 7, 1 }, nil, record, { 9 } }, got)
  end)
end)

describe("a pair with where = \"auto\"", function()
  -- What the session says, what the pair says, and what it counts of a load.
  local function choose(more)
    local nr, filter = loads.fresh_nr()
    local session <close> = tracefs.session()
    local said
    session.on_choice = function(message)
      said = message
    end
    local options = options_with {
      where = "auto", start = { event = ENTER, filter = filter },
      stop = { event = EXIT, filter = filter },
    }
    for name, value in pairs(more) do
      options[name] = value
    end
    local pair = session:pair(options)
    loads.run_session(session, { "--nr", nr, "syscalls", 101 })
    local where, why = pair:where()
    return said, where, why, pair:counts()
  end

  it("says why it is matched in Lua, and matches the same", function()
    for reason, more in pairs {
      ["again = \"first\": the last start of a key counts"] = { again = "first" },
      ["on_match, or what prints the matches, takes the record of the stop, which the kernel does "
        .. "not keep"] = {
        on_match = function(_, _, _, stop) assert(stop.id) end,
      },
    } do
      local said, where, why, counts = choose(more)
      assert.equal("lua", where)
      assert.matches(reason, why, 1, true)
      assert.equal("pair sys_enter>sys_exit: matched in Lua: " .. why, said)
      assert.same({ 101, 101 }, { counts.starts, counts.matched })
    end
  end)

  it("is matched in Lua where the kernel has no synthetic events, else there", function()
    local said, where, why, counts = choose {}
    if tracefs.features().synthetic and tracefs.features().hist then
      assert.equal("kernel", where)
    else
      assert.equal("lua", where)
      assert.matches("this kernel has no ", why)
    end
    assert.matches("^pair sys_enter>sys_exit: matched in .*: " .. why:sub(1, 20), said)
    assert.same({ 101, 101 }, { counts.starts, counts.matched })
    -- nobody has chosen
    local session <close> = tracefs.session()
    assert.same({ "lua" }, { session:pair(options_with { where = "lua" }):where() })
  end)

  it("is told of by the command with -v", function()
    local code = ("pair { start = %q, stop = %q, key = 'common_pid', where = 'auto', "
      .. "on_match = function(_, _, _, stop) end }"):format(ENTER, EXIT)
    local status, out, err = helper.run { "-v", "-d", "0.1", "-e", code }
    assert.same({ 0, "" }, { status, out })
    assert.matches("luatrace: pair sys_enter>sys_exit: matched in Lua: on_match, or what prints",
      err, 1, true)
  end)
end)
