local core = require "tracefs.core"
local elsewhere = require "spec.support.elsewhere"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

-- The number in a marker of the load's, "load N".
local function number(buf)
  return math.tointeger(tonumber(buf:match("%d+")))
end

local function check_identity(stats)
  assert.equal(stats.produced, stats.delivered + stats.lost + stats.pending)
  for _, counts in pairs(stats.per_cpu) do
    assert.equal(counts.produced, counts.delivered + counts.lost + counts.pending)
  end
end

describe("every trace clock", function()
  local function clocks()
    local instance <close> = assert(tracefs.instance_create())
    return assert(instance:clocks())
  end

  for _, clock in ipairs(clocks()) do
    -- True when an event came late: a CPU of a virtual machine may stand still for longer than the
    -- margin.
    local function deliver()
      local session <close> = tracefs.session({ clock = clock, buffer_kb = 8192 })
      local nr, filter = loads.fresh_nr()
      local last, last_ts, wrong, newest, back = {}, {}, 0, 0, 0
      session:on(loads.SYSCALL, { "args", "common_timestamp", filter = filter }, function(args, ts)
        local sequence, cpu = args[1], args[2]
        wrong = wrong + (sequence ~= (last[cpu] or 0) + 1 and 1 or 0)
        wrong = wrong + (ts < (last_ts[cpu] or 0) and 1 or 0)
        last[cpu], last_ts[cpu] = sequence, ts
        back = back + (ts < newest and 1 or 0)
        newest = math.max(newest, ts)
      end)
      local result, stats = loads.run_session(session, {
        "syscalls", 5003, "--cpu", "all", "--nr", nr, "--rate", 20000,
      })
      assert.equal(0, wrong)
      assert.equal(0, stats.lost)
      assert.equal(result.calls, stats.delivered)
      assert.equal(result.calls, stats.produced)
      assert.equal(0, stats.pending)
      assert.equal(stats.late, back)
      if tracefs.now(clock) then
        assert.is_true(math.abs(tracefs.now(clock) - newest) < 60000000000)
        return back > 0
      end
    end

    it("delivers everything, each CPU in its order: " .. clock, function()
      assert.is_falsy(deliver() and deliver() and deliver())
    end)
  end
end)

describe("a late event", function()
  -- A clock that is set back makes events that are late for sure.
  it("is handed out, counted and flagged", function()
    local session <close> = tracefs.session({ clock = "local" })
    local values, records = {}, {}
    session:on("ftrace:print", { "buf", "common_late" }, function(buf, late)
      values[#values + 1] = { number(buf), late }
    end)
    session:on("ftrace:print", function(ev)
      records[#records + 1] = { number(ev.buf), ev.common_late }
    end)
    session:start()
    session:marker("1")
    assert.is_true(helper.wait_until(function()
      session:step()
      return #values == 1
    end))
    assert(session.instance:write("trace_clock", "counter"))
    session:marker("2")
    session:marker("3")
    session:finish()
    local stats = session:run()
    assert.same({ { 1 }, { 2, true }, { 3, true } }, values)
    assert.same(values, records)
    assert.equal(2, stats.late)
    assert.equal(3, stats.delivered)
  end)
end)

describe("an event's way to its handler", function()
  -- How long a marker takes to its handler, in seconds: the third quickest of 15, since the others
  -- may have waited for a CPU.
  local function latency(options, pause)
    local session <close> = tracefs.session(options)
    local written, waits = nil, {}
    session:on("ftrace:print", { "common_timestamp" }, function()
      waits[#waits + 1] = (core.now("mono") - written) / 1e9
      written = nil
    end)
    session:start()
    for _ = 1, 15 do
      core.poll({}, pause)
      session:step()
      written = core.now("mono")
      session:marker("x")
      local limit = written + 20000000000
      while written do
        assert.is_true(core.now("mono") < limit, "the marker did not come")
        session:step()
        if written then
          session:wait()
        end
      end
    end
    table.sort(waits)
    return waits[3]
  end

  it("takes a few milliseconds with low_latency", function()
    local wait = latency({ low_latency = true, interval = 5 }, 0.01)
    assert.is_true(wait < 0.005 * helper.slowdown, ("%.1f ms"):format(wait * 1000))
  end)

  it("takes no longer than the interval and what is waited for late ones otherwise", function()
    local wait = latency({ interval = 0.05 }, 0.001)
    assert.is_true(wait < 0.11 * helper.slowdown, ("%.1f ms"):format(wait * 1000))
  end)

  it("costs next to nothing while there is none", function()
    for _, options in ipairs({ {}, { low_latency = true }, { clock = "local" },
      { overwrite = false } }) do
      local session <close> = tracefs.session(options)
      session:on(loads.SYSCALL, { filter = "id == 0x7ffffff0" }, print)
      local waits, wait = 0, session.wait
      function session.wait(...)
        waits = waits + 1
        return wait(...)
      end
      local before = os.clock()
      session:run({ duration = 2 })
      -- The interval is 0.1 s.
      assert.is_true(waits <= 26, waits .. " waits")
      assert.is_true(os.clock() - before < 0.05 * helper.slowdown, os.clock() - before)
    end
  end)

  it("does not keep the reader busy with what the reader itself does", function()
    for _, clock in ipairs({ "mono", "local" }) do
      local session <close> = tracefs.session({ clock = clock })
      session:on("raw_syscalls:*", { filter = "common_pid == " .. helper.pid }, function() end)
      local before = os.clock()
      local stats = session:run({ duration = 1 })
      assert.equal(0, stats.delivered)
      assert.is_true(stats.own > 0)
      assert.is_true(os.clock() - before < 0.1 * helper.slowdown, os.clock() - before)
      assert.equal(0, stats.pending)
    end
  end)
end)

describe("the tracer's own events", function()
  -- Five system calls each time.
  local function read_20_times(session)
    local ticks = 0
    session:every(0.01, function()
      helper.read_file("/proc/self/stat")
      ticks = ticks + 1
      if ticks == 20 then
        session:finish()
      end
    end)
  end

  it("are left out, and counted apart", function()
    local session <close> = tracefs.session()
    local count = 0
    session:on("raw_syscalls:*", { filter = "common_pid == " .. helper.pid }, function()
      count = count + 1
    end)
    read_20_times(session)
    local stats = session:run({ duration = 60 })
    assert.equal(0, count)
    assert.equal(0, stats.produced)
    assert.is_true(stats.own > 100)
    check_identity(stats)
  end)

  it("are handed out with own_events", function()
    local session <close> = tracefs.session({ own_events = true })
    local count = 0
    session:on("raw_syscalls:*", { filter = "common_pid == " .. helper.pid }, function(ev)
      assert.equal(helper.pid, ev.common_pid)
      count = count + 1
    end)
    read_20_times(session)
    local stats = session:run({ duration = 60 })
    assert.is_true(count > 100)
    assert.equal(count, stats.delivered)
    assert.equal(0, stats.own)
    check_identity(stats)
  end)

  it("do not hide what interrupts do on top of the tracer", function()
    local session <close> = tracefs.session()
    local HARDIRQ, SOFTIRQ, NMI = 0x08, 0x10, 0x40
    local on_top, in_task = 0, 0
    session:on("timer:*", { "common_pid", "common_flags" }, function(pid, flags)
      if pid == helper.pid then
        if flags & (HARDIRQ | SOFTIRQ | NMI) ~= 0 then
          on_top = on_top + 1
        else
          in_task = in_task + 1
        end
      end
    end)
    session:every(0.05, function()
      -- Timer interrupts come while this runs, and it is this task that they interrupt.
      local until_ns = core.now("mono") + 40000000
      repeat until core.now("mono") >= until_ns
      if on_top > 0 then
        session:finish()
      end
    end)
    session:run({ duration = 10 })
    assert.is_true(on_top > 0)
    assert.equal(0, in_task)
  end)

  it("do not hide that the tracer was switched away from and to", function()
    local session <close> = tracefs.session()
    local away, to = 0, 0
    session:on("sched:sched_switch", { "prev_pid", "next_pid" }, function(prev_pid, next_pid)
      away = away + (prev_pid == helper.pid and 1 or 0)
      to = to + (next_pid == helper.pid and 1 or 0)
    end)
    session:every(0.01, function()
      core.poll({}, 0.001)
      if away >= 5 and to >= 5 then
        session:finish()
      end
    end)
    loads.on_busy_cpus(function()
      session:run({ duration = 30 })
    end)
    assert.is_true(away >= 5 and to >= 5, ("%d away, %d to"):format(away, to))
  end)

  it("are handed out when they are markers: those are written on purpose", function()
    local session <close> = tracefs.session()
    local seen = {}
    session:on("ftrace:print", { "buf" }, function(buf)
      seen[#seen + 1] = buf
    end)
    session:on("ftrace:raw_data", { "id" }, function(id)
      seen[#seen + 1] = id
    end)
    session:start()
    session:marker("one")
    session.instance:marker_raw(("<I4"):pack(77))
    session:finish()
    local stats = session:run()
    assert.same({ "one\n", 77 }, seen)
    assert.equal(2, stats.delivered)
  end)

  -- There the kernel's number of the thread is another one than ours, and ours somebody else's.
  it("are not mistaken for others' in a pid namespace", function()
    local status, out, err = elsewhere.run({ pids = true }, [[
      local tracefs = require "tracefs"
      local session <close> = tracefs.session()
      session:on("sched:sched_process_exec", function() end)
      session:on("sched:sched_process_fork", { "child_comm" }, function() end)
      session:start()
      os.execute("true")
      session:finish()
      local stats = session:run()
      print(stats.own, stats.delivered > 0, stats.pending)
    ]])
    assert.equal(0, status, err)
    assert.equal("0\ttrue\t0\n", out)
  end)
end)

describe("losses", function()
  -- A buffer that is too small for what is written before the first look, on one CPU.
  local function overfill(options, count)
    local session = tracefs.session(options)
    local seen, lost = {}, {}
    session:on("ftrace:print", { "buf", "common_timestamp", "common_cpu" }, function(buf, ts, cpu)
      seen[#seen + 1] = { n = number(buf), ts = ts, cpu = cpu }
    end)
    session:on_lost(function(loss)
      lost[#lost + 1] = loss
      loss.behind = #seen
    end)
    session:start()
    local made = loads.run({ "markers", session.instance:dir(), count, "--cpu", loads.cpus()[1] })
    return session, seen, lost, made.markers
  end

  it("of overwriting are told of in front of the first record that is left", function()
    local session <close>, seen, lost = overfill({ buffer_kb = 16, subbuf_kb = 4 }, 2003)
    session:finish()
    local stats = session:run()
    assert.equal(1, #lost)
    assert.equal("overrun", lost[1].why)
    assert.equal(seen[1].n - 1, lost[1].count)
    assert.equal(0, lost[1].behind)
    assert.is_nil(lost[1].after_ts)
    assert.equal(seen[1].ts, lost[1].before_ts)
    assert.equal(seen[1].cpu, lost[1].cpu)
    assert.equal(2003, seen[#seen].n)
    assert.equal(2003, stats.delivered + stats.lost)
    assert.equal(2003, stats.produced)
    assert.equal(lost[1].count, stats.lost)
    assert.equal(0, stats.pending)
    check_identity(stats)
  end)

  it("between records are told of where they are", function()
    local session <close>, seen, lost = overfill({ buffer_kb = 16, subbuf_kb = 4 }, 17)
    local cpu = loads.cpus()[1]
    -- Everything that is there is read, then the buffer runs over.
    while #seen < 17 do
      session:step()
      session:wait(0.01)
    end
    loads.run({ "markers", session.instance:dir(), 2003, "--cpu", cpu })
    session:finish()
    local stats = session:run()
    assert.equal(1, #lost)
    -- The page that is being read is the reader's: it is filled up and not overwritten.
    local k = lost[1].behind
    assert.is_true(k >= 17)
    assert.equal(seen[k].ts, lost[1].after_ts)
    assert.equal(seen[k + 1].ts, lost[1].before_ts)
    assert.equal(seen[k + 1].n - (k - 17) - 1, lost[1].count)
    assert.equal(17 + 2003, stats.delivered + stats.lost)
    check_identity(stats)
  end)

  it("of a full buffer that does not overwrite are told of by the next look", function()
    local session <close>, seen, lost = overfill({ buffer_kb = 16, subbuf_kb = 4,
      overwrite = false }, 0)
    -- The load ends with an error when a marker is refused, so the first ones are ours.
    local made = 0
    local before = core.now("mono")
    for i = 1, 2003 do
      made = made + (session:marker(tostring(i)) and 1 or 0)
    end
    session:finish()
    local stats = session:run()
    assert.is_true(made < 2003)
    assert.equal(made, #seen)
    assert.equal(made, stats.delivered)
    assert.equal(2003 - made, stats.lost)
    assert.equal(2003, stats.produced)
    local told = 0
    for _, loss in ipairs(lost) do
      assert.equal("dropped", loss.why)
      assert.is_true(loss.before_ts > before and loss.before_ts <= core.now("mono"))
      assert.is_true((loss.after_ts or 0) < loss.before_ts)
      told = told + loss.count
    end
    assert.equal(2003 - made, told)
    check_identity(stats)
  end)

  it("are as many as were told when somebody clears the buffer, counters and all", function()
    for _, overwrite in ipairs { true, false } do
      local session <close>, seen, lost = overfill({ buffer_kb = 16, subbuf_kb = 4,
        overwrite = overwrite }, overwrite and 2003 or 0)
      for i = 1, overwrite and 0 or 2003 do
        session:marker(tostring(i))
      end
      assert.is_true(helper.wait_until(function()
        session:step()
        return #lost > 0 and #seen + lost[1].count == 2003
      end))
      helper.write_file(session.instance:dir() .. "/trace", "")
      assert(session:marker("4000"))
      session:finish()
      local stats = session:run()
      assert.equal(1, #lost)
      assert.equal(lost[1].count, stats.lost)
      assert.equal(4000, seen[#seen].n)
      check_identity(stats)
    end
  end)

  it("are known to stats() before they are told", function()
    local session <close>, seen = overfill({ buffer_kb = 16, subbuf_kb = 4 }, 2003)
    local stats = session:stats()
    assert.equal(0, stats.delivered)
    assert.is_true(stats.lost > 0)
    assert.equal(2003, stats.produced)
    assert.equal(2003, stats.lost + stats.pending)
    session:finish()
    local after = session:run()
    assert.equal(stats.lost, after.lost)
    assert.equal(stats.pending, #seen)
  end)
end)

describe("memory_mb", function()
  -- False when the load took so long that its first records are old enough.
  local function fill(margin)
    local session <close> = tracefs.session({
      margin = margin, memory_mb = 1, buffer_kb = 16384, interval = 1,
    })
    local nr, filter = loads.fresh_nr()
    local last, wrong = 0, 0
    session:on(loads.SYSCALL, { "args", filter = filter }, function(args)
      wrong = wrong + (args[1] ~= last + 1 and 1 or 0)
      last = args[1]
    end)
    local cpu = loads.cpus()[1]
    local started = core.now("mono")
    session:start()
    loads.run({ "syscalls", 50021, "--nr", nr, "--cpu", cpu })
    -- 3 MB wait in the kernel, and none of it is old enough: a step must not wait for that.
    local before, cpu_before = core.now("mono"), os.clock()
    local count, why = session:step()
    if core.now("mono") - started >= margin * 1e9 then
      return false
    end
    assert.equal("idle", why)
    assert.equal(0, count)
    assert.is_true((core.now("mono") - before) / 1e9 < 0.7 * helper.slowdown)
    assert.is_true(os.clock() - cpu_before < 0.5 * helper.slowdown)
    session:finish()
    local stats = session:run()
    assert.equal(50021, last)
    assert.equal(0, wrong)
    assert.equal(50021, stats.delivered)
    assert.equal(0, stats.lost)
    assert.equal(0, stats.pending)
    return true
  end

  it("bounds what is read and not handled yet, and the reader waits for the margin", function()
    assert.is_true(fill(1.5) or fill(5) or fill(10))
  end)

  it("has nobody woken for what cannot be taken in yet", function()
    local session <close> = tracefs.session({ margin = 4, memory_mb = 1, buffer_kb = 4096 })
    local nr, filter = loads.fresh_nr()
    local seen = 0
    session:on(loads.SYSCALL, { "args", filter = filter }, function()
      seen = seen + 1
    end)
    session:start()
    -- 3 MB: 1/2 MB is taken in, and what is left is more than the quarter that wakes
    loads.run({ "syscalls", 50021, "--nr", nr, "--cpu", loads.cpus()[1] })
    local steps, limit = 0, core.now("mono") + 1000000000
    while core.now("mono") < limit do
      assert.equal("idle", select(2, session:step()))
      session:wait(0.5)
      steps = steps + 1
    end
    assert.equal(0, seen)
    assert.is_true(steps < 40, steps .. " steps in a second")
    session:finish()
    assert.equal(50021, session:run().delivered)
  end)
end)

describe("a CPU that goes offline and comes back", function()
  local file = "/sys/devices/system/cpu/cpu1/online"

  it("keeps its records, and its new ones come too", function()
    if helper.read_file(file) ~= "1\n" then
      pending("there is no second CPU that can be switched off")
    end
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    local seen = {}
    session:on(loads.SYSCALL, { "args", "common_cpu", filter = filter }, function(args, cpu)
      seen[#seen + 1] = args[1]
      assert.equal(1, cpu)
    end)
    session:start()
    local words = { "syscalls", 101, "--nr", nr, "--cpu", 1 }
    loads.run(words)
    local off = io.open(file, "w")
    local switched = off:write("0") and off:close()
    local ok, message = pcall(function()
      for _ = 1, 3 do
        session:step()
        session:wait(0.02)
      end
    end)
    local on = assert(io.open(file, "w"))
    assert(on:write("1"))
    assert(on:close())
    assert.is_true(ok, message)
    if not switched then
      pending("this machine refuses to switch a CPU off")
    end
    loads.run(words)
    session:finish()
    local stats = session:run()
    assert.equal(202, #seen)
    assert.equal(202, stats.delivered)
    assert.equal(0, stats.lost)
    assert.equal(0, stats.pending)
  end)
end)
