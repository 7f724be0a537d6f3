local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/session_spec%.lua:%d+: "

local function exists(name)
  local instance <close> = tracefs.instance_open(name)
  return instance ~= nil
end

-- Some other process's sched_switch records, so that there is something that is not our own.
local function switches(count)
  local session = tracefs.session()
  local kept = {}
  session:on("sched:sched_switch", function(ev)
    kept[#kept + 1] = ev
    if #kept == count then
      session:stop()
    end
  end)
  session:run({ duration = 20 })
  assert.equal(count, #kept)
  return session, kept
end

describe("tracefs.session", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.session"))
  end)

  it("makes an instance that close() removes, once and for all", function()
    local session = tracefs.session()
    local name = session.instance:name()
    assert.equal(("tracefs.session (%s)"):format(name), tostring(session))
    assert.is_true(exists(name))
    assert.is_true(session:close())
    assert.is_false(exists(name))
    assert.equal("tracefs.session (closed)", tostring(session))
    assert.is_true(session:close())
  end)

  it("is closed at the end of its block, also by an error", function()
    local name
    pcall(function()
      local session <close> = tracefs.session()
      name = session.instance:name()
      session:on("sched:sched_switch", print)
      session:start()
      error("out")
    end)
    assert.is_false(exists(name))
  end)

  it("is closed when it is forgotten, whatever its handlers hold", function()
    local names = {}
    local function forget()
      local session = tracefs.session()
      names[#names + 1] = session.instance:name()
      session:on("sched:sched_switch", function()
        session:stop()
      end)
      session:on("sched:sched_switch", { "prev_pid" }, function()
        session.seen = true
      end)
      session:every(0.01, function()
        session:stop()
      end)
      session:at_end(function()
        session.ended = true
      end)
      session:on_lost(function()
        session:stop()
      end)
      session:run({ duration = 20 })
      for ev in session:events({ timeout = 0.01 }) do
        session.last = ev
      end
    end
    forget()
    forget()
    collectgarbage()
    collectgarbage()
    for _, name in ipairs(names) do
      assert.is_false(exists(name), name)
    end
  end)

  it("takes its instance along when the Lua state ends, with or without a run", function()
    local status, out, err = helper.run_lua([[
      local tracefs = require "tracefs"
      local one, two = tracefs.session(), tracefs.session()
      print(one.instance:name())
      print(two.instance:name())
      two:on("sched:sched_switch", function() two:stop() end)
      two:run { duration = 20 }
      kept = { one, two }
    ]])
    assert.equal(0, status, err)
    assert.equal("", err)
    for name in out:gmatch("[^\n]+") do
      assert.is_false(exists(name))
    end
  end)

  it("leaves nothing behind when the set-up fails", function()
    local before = helper.snapshot()
    for _ = 1, 5 do
      assert.is_false((pcall(tracefs.session, { clock = "nosuch" })))
      assert.is_false((pcall(tracefs.session, { buffer_kb = 1 << 39 })))
    end
    assert.same({}, helper.leftovers(before))
  end)

  it("says what a descriptor limit means", function()
    local status, out, err = helper.execute({
      "sh", "-c", 'ulimit -n 12; exec "$@"', "sh", helper.interpreter, "-e", [[
        local tracefs = require "tracefs"
        local sessions = {}
        local ok, message
        repeat
          ok, message = pcall(tracefs.session)
          sessions[#sessions + 1] = ok and message or nil
        until not ok
        for _, session in ipairs(sessions) do
          session:close()
        end
        print(message)
      ]],
      env = {
        LUA_PATH = ("%s/?.lua;%s/?/init.lua"):format(helper.lua_dir, helper.lua_dir),
        LUA_CPATH = helper.core_dir .. "/?.so",
      },
    })
    assert.equal(0, status, err)
    assert.matches("Too many open files", out)
  end)

  it("starts when it is told to, and only then", function()
    local session <close> = tracefs.session()
    local nr, filter = loads.fresh_nr()
    session:enable(loads.SYSCALL, { filter = filter })
    loads.run({ "syscalls", 5, "--nr", nr })
    session:start()
    session:start()
    loads.run({ "syscalls", 7, "--nr", nr })
    session:finish()
    assert.equal(7, session:run().delivered)
  end)
end)

describe("a session's handlers", function()
  it("must be functions", function()
    local session <close> = tracefs.session()
    for name, what in pairs({
      at_start = "at_start(function)",
      at_end = "at_end(function)",
      on_lost = "on_lost(function)",
    }) do
      for _, value in ipairs({ 5, "f", {} }) do
        local ok, message = pcall(function()
          session[name](session, value)
        end)
        assert.is_false(ok)
        assert.matches(HERE, message)
        assert.is_truthy(message:find(what .. ": a function is needed, not " .. type(value), 1,
          true))
      end
    end
  end)
end)

describe("session:stats", function()
  it("has counters, in all and by CPU, that add up", function()
    local session <close>, kept = switches(50)
    local stats = session:stats()
    for _, name in ipairs({
      "produced", "delivered", "lost", "pending", "own", "overrun", "dropped", "commit_overrun",
    }) do
      local sum = 0
      for _, counts in pairs(stats.per_cpu) do
        sum = sum + counts[name]
        assert.equal(counts.produced, counts.delivered + counts.lost + counts.pending)
        assert.equal(counts.lost, counts.overrun + counts.dropped + counts.commit_overrun)
      end
      assert.equal(sum, stats[name])
    end
    assert.equal(50, stats.delivered)
    -- a CPU of a virtual machine may stand still
    local late = 0
    for _, ev in ipairs(kept) do
      late = late + (ev.common_late and 1 or 0)
    end
    assert.equal(late, stats.late)
    assert.equal(0, stats.errors)
    assert.is_nil(stats.first_error)
    assert.is_true(stats.elapsed > 0)
  end)

  it("have the time of the recording, not of what is handled behind it", function()
    local session <close> = tracefs.session()
    session:on(loads.SYSCALL, { filter = "id == -1" }, function() end)
    session:start()
    session:finish()
    local elapsed = session:stats().elapsed
    assert.is_true(elapsed > 0)
    session:at_end(function() os.execute "sleep 0.02" end)
    assert.equal(elapsed, session:run().elapsed)
    assert.equal(elapsed, session:stats().elapsed)
  end)

  it("are all zero before the start", function()
    local session <close> = tracefs.session()
    local stats = session:stats()
    assert.same({ 0, 0, 0, 0, 0, 0 },
      { stats.produced, stats.delivered, stats.lost, stats.pending, stats.own, stats.elapsed })
  end)

  it("stay as they were when the session was closed", function()
    local session = switches(50)
    session:finish()
    local stats = session:run()
    session:close()
    local after = session:stats()
    assert.equal(stats.delivered, after.delivered)
    assert.equal(stats.produced, after.produced)
    assert.same(stats.per_cpu, after.per_cpu)
  end)
end)

describe("session:marker", function()
  it("writes a line into the session's own buffer", function()
    local session <close> = tracefs.session()
    local other <close> = tracefs.session()
    session:start()
    other:start()
    assert.equal(5, session:marker("hello"))
    session:finish()
    other:finish()
    local lines = {}
    for ev in session:events() do
      lines[#lines + 1] = ev.buf
    end
    assert.same({ "hello\n" }, lines)
    assert.equal(0, other:run().produced)
  end)

  it("returns why it cannot", function()
    local session <close> = tracefs.session()
    local written, message, errno = session:marker("early")
    assert.is_nil(written)
    assert.is_string(message)
    assert.equal("integer", math.type(errno))
  end)
end)

describe("a record", function()
  it("can be kept and read when its session is closed and forgotten", function()
    local session, kept = switches(50)
    local texts, values = {}, {}
    for i, ev in ipairs(kept) do
      texts[i] = tostring(ev)
      values[i] = {}
      for name, value in pairs(ev) do
        values[i][name] = value
      end
    end
    session:close()
    session = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    for i, ev in ipairs(kept) do
      assert.equal(texts[i], tostring(ev))
      assert.equal("sched:sched_switch", ev.common_event)
      assert.matches("^prev_comm=", tracefs.text(ev))
      for name, value in pairs(ev) do
        assert.same(values[i][name], value)
      end
    end
  end)

  -- Finalizers run in the reverse order of their making: the first one meets records whose
  -- catalog is gone. That may be told, and must not crash.
  it("can be touched by any finalizer at the end of the Lua state", function()
    local status, out, err = helper.run_lua([[
      local tracefs = require "tracefs"
      local ev, event
      local function touch(when)
        return function()
          local words = { when }
          for _, read in ipairs {
            function() return ev.prev_pid end,
            function() return ev.nosuch end,
            function() return tostring(ev) end,
            function() return tracefs.text(ev) end,
            function() return tracefs.text(ev, "prev_state") end,
            function() for _, value in pairs(ev) do tostring(value) end return 1 end,
            function() return event:label() end,
            function() return event:record("") end,
            function() return tostring(event) end,
          } do
            local ok, value = pcall(read)
            words[#words + 1] = ok and "ok" or tostring(value):match "closed" or tostring(value)
          end
          print(table.concat(words, " "))
        end
      end
      before = setmetatable({}, { __gc = touch "before" })
      local session = tracefs.session()
      session:on("sched:sched_switch", function(record) ev = record session:stop() end)
      session:run { duration = 20 }
      session:close()
      event = session:_describe("sched", "sched_switch")
      after = setmetatable({ session }, { __gc = touch "after" })
    ]])
    assert.equal(0, status, err)
    assert.equal("", err)
    assert.equal("after ok ok ok ok ok ok ok ok ok\n"
      .. "before closed closed closed closed closed closed closed closed ok\n", out)
  end)

  it("can be touched by a finalizer of the same collection", function()
    local status, out, err = helper.run_lua([[
      local tracefs = require "tracefs"
      do
        local holder = setmetatable({}, { __gc = function(self)
          local ok, value = pcall(function() return self.ev.prev_pid end)
          print(ok and math.type(value) or value:match "closed")
        end })
        local session = tracefs.session()
        session:on("sched:sched_switch", function(record) holder.ev = record session:stop() end)
        session:run { duration = 20 }
      end
      collectgarbage()
      collectgarbage()
      print "collected"
    ]])
    assert.equal(0, status, err)
    assert.matches("^%l+\ncollected\n$", out)
  end)
end)

describe("the instance of a session", function()
  it("keeps what the stream's reading and its counts rest on", function()
    local session <close> = tracefs.session()
    local instance = session.instance
    for what, refused in pairs {
      ["set the clock"] = { instance:set_clock("boot") },
      ["set the sub-buffer size"] = { instance:set_subbuf_kb(4) },
      ["clear the buffer"] = { instance:clear() },
    } do
      assert.is_nil(refused[1])
      assert.equal(("cannot %s of instance %s: a session is reading it; choose that when the "
        .. "session is made"):format(what, instance:name()), refused[2])
    end
    assert.equal("mono", instance:get_clock())
  end)

  it("is free again when its stream is closed", function()
    local instance <close> = assert(tracefs.instance_create())
    local stream = assert(tracefs.core.stream(instance, tracefs.core.catalog(),
      require("tracefs.settings").apply(instance, require("tracefs.settings").check {})))
    assert.is_nil((instance:set_clock("boot")))
    stream:close()
    assert.is_truthy(instance:set_clock("boot"))
  end)
end)
