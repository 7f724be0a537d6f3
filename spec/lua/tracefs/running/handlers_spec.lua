local core = require "tracefs.core"
local helper = require "spec.support.helper"
local markers = require "spec.support.markers"
local tracefs = require "tracefs"

describe("inside a handler", function()
  -- Calls act() inside a handler of the kind; returns what run() returned or raised.
  local kinds = {
    record = function(session, act)
      session:on("ftrace:print", function()
        act()
      end)
    end,
    value = function(session, act)
      session:on("ftrace:print", { "buf" }, function()
        act()
      end)
    end,
    every = function(session, act)
      session:every(0.01, act)
    end,
    on_lost = function(session, act)
      session:on_lost(act)
    end,
    at_start = function(session, act)
      session:at_start(act)
    end,
    at_end = function(session, act)
      session:at_end(act)
    end,
    watch = function(session, act)
      session.timer = assert(core.timer(0.001, true))
      session:watch(session.timer:fileno(), act)
    end,
  }

  local function run_with(kind, act, how, options)
    options = options or {}
    options.buffer_kb, options.subbuf_kb = 16, 4
    local session = tracefs.session(options)
    local calls = 0
    session.later = 0
    kinds[kind](session, function()
      calls = calls + 1
      act(session)
    end)
    session:on("ftrace:print", function()
      session.later = session.later + 1
    end)
    session:at_start(function()
      -- More than the buffer takes: the oldest are lost.
      markers.mark(session, 1, 3000)
    end)
    local ok, result
    if how == "loop" then
      ok, result = pcall(function()
        for _ in session:events({ duration = 0.05 }) do
          session.body = (session.body or 0) + 1
        end
      end)
    else
      ok, result = pcall(session.run, session, { duration = 0.05 })
    end
    assert.is_true(calls > 0, kind .. " was not called")
    return session, ok, result, calls
  end

  for kind in pairs(kinds) do
    for _, how in ipairs({ "run", "loop" }) do
      it(("%s (%s), step and its like are refused"):format(kind, how), function()
        local messages = {}
        local session <close>, ok, result = run_with(kind, function(session)
          for _, name in ipairs({ "step", "run", "events" }) do
            messages[name] = markers.message_of(session[name], session)
          end
        end, how)
        assert.is_true(ok, result)
        for name, message in pairs(messages) do
          assert.matches(name .. "%(%) was called from inside a handler", message)
        end
        markers.check_identity(session:stats())
        assert.equal(0, session:stats().pending)
      end)

      it(("%s (%s), the session can be closed"):format(kind, how), function()
        local name
        local session, ok, result, calls = run_with(kind, function(session)
          name = session.instance:name()
          session:close()
        end, how)
        assert.is_true(ok, result)
        assert.equal(1, calls)
        assert.equal("tracefs.session (closed)", tostring(session))
        assert.is_nil((tracefs.instance_open(name)))
        local stats = session:stats()
        markers.check_identity(stats)
        if how == "run" then
          assert.same(stats, result)
        end
        if kind == "record" or kind == "value" then
          assert.equal(1, stats.delivered)
        end
        assert.is_true(session:close())
      end)
    end
  end

  describe("an error", function()
    for kind in pairs(kinds) do
      for _, how in ipairs({ "run", "loop" }) do
        it(("of %s (%s) ends the run, behind the at_end handlers"):format(kind, how), function()
          local ended = 0
          local session <close>, ok, message = run_with(kind, function(session)
            if not session.counted then
              session:at_end(function()
                ended = ended + 1
              end)
              session.counted = true
            end
            error("trouble in " .. kind)
          end, how)
          assert.is_false(ok)
          assert.matches("handlers_spec%.lua:%d+: trouble in " .. kind, message)
          assert.matches("stack traceback:.*handlers_spec%.lua:%d+", message)
          if kind == "record" or kind == "value" then
            assert.matches("\nwhile handling: .*%-" .. helper.pid .. " .*: %d+$", message)
          else
            assert.is_nil(message:find("while handling", 1, true))
          end
          assert.equal(1, ended)
          markers.check_identity(session:stats())
        end)

        it(("of %s (%s) is counted with on_error = \"warn\""):format(kind, how), function()
          local warned = {}
          local session <close>, ok, result, calls = run_with(kind, function(session)
            function session.on_warn(message)
              warned[#warned + 1] = message
            end
            error("trouble in " .. kind)
          end, how, { on_error = "warn" })
          assert.is_true(ok, result)
          local stats = session:stats()
          assert.equal(calls, stats.errors)
          assert.equal(calls, #warned)
          assert.matches("trouble in " .. kind, stats.first_error)
          assert.equal(stats.first_error, warned[1])
          assert.equal(stats.delivered, session.later)
          assert.equal(how == "loop" and stats.delivered or nil, session.body)
          assert.equal(0, stats.pending)
          assert.is_true(stats.lost > 0)
        end)

        it(("of %s (%s) that is no string is never swallowed"):format(kind, how), function()
          local value = {}
          local session <close>, ok, result = run_with(kind, function()
            error(value)
          end, how, { on_error = "warn" })
          assert.is_false(ok)
          assert.equal(value, result)
          assert.equal(0, session:stats().errors)
        end)
      end
    end

    it("of one function does not keep the others of its kind from being called", function()
      for _, kind in ipairs({ "at_start", "at_end", "every", "on_lost" }) do
        local session <close> = tracefs.session({ buffer_kb = 16, subbuf_kb = 4 })
        local called = {}
        for i = 1, 3 do
          kinds[kind](session, function()
            if not called[i] then
              called[i] = true
              error("trouble " .. i)
            end
          end)
        end
        session:at_start(function()
          markers.mark(session, 1, 3000)
        end)
        local message = markers.message_of(session.run, session, { duration = 0.05 })
        assert.matches("trouble 1", message)
        assert.same({ true, true, true }, called)
      end
    end)

    it("leaves the rest to the next run: the handlers behind, the records, the ticks", function()
      local session <close> = tracefs.session()
      local first, second, third, ticks = {}, {}, {}, 0
      session:on("ftrace:print", function(ev)
        first[#first + 1] = markers.number(ev)
      end)
      session:on("ftrace:print", function(ev)
        second[#second + 1] = markers.number(ev)
        if markers.number(ev) == 2 then
          error("trouble")
        end
      end)
      session:on("ftrace:print", { "buf" }, function(buf)
        third[#third + 1] = math.tointeger(tonumber(buf))
      end)
      session:every(0.01, function()
        ticks = ticks + 1
        if ticks == 2 then
          error("tick trouble")
        end
      end)
      session:start()
      markers.mark(session, 1, 4)
      assert.matches("trouble", markers.message_of(session.run, session, { duration = 20 }))
      assert.same({ { 1, 2 }, { 1, 2 }, { 1 } }, { first, second, third })
      assert.matches("tick trouble", markers.message_of(session.run, session, { duration = 20 }))
      session:run({ duration = 0.2 })
      local all = markers.list(1, 4)
      assert.same({ all, all, all }, { first, second, third })
      assert.is_true(ticks > 5)
      assert.equal(4, session:stats().delivered)
    end)

    it("in a handler of the loop leaves the rest to the next loop", function()
      local session <close> = tracefs.session()
      local first, second, body = {}, {}, {}
      session:on("ftrace:print", function(ev)
        first[#first + 1] = markers.number(ev)
        if markers.number(ev) == 2 then
          error("trouble")
        end
      end)
      session:on("ftrace:print", function(ev)
        second[#second + 1] = markers.number(ev)
      end)
      session:start()
      markers.mark(session, 1, 4)
      session:finish()
      local function loop()
        for ev in session:events() do
          body[#body + 1] = markers.number(ev)
        end
      end
      assert.matches("trouble", markers.message_of(loop))
      assert.same({ { 1, 2 }, { 1 }, { 1 } }, { first, second, body })
      loop()
      local all = markers.list(1, 4)
      assert.same({ all, all, all }, { first, second, body })
      assert.equal(4, session:stats().delivered)
    end)

    it("has the traceback that session.message_handler makes", function()
      local session <close> = markers.marked(1)
      session.message_handler = function(err)
        return "mine: " .. err:gsub("^.-:%d+: ", "")
      end
      session:on("ftrace:print", function()
        error("trouble")
      end)
      assert.matches("^mine: trouble\nwhile handling: ",
        markers.message_of(session.run, session, { duration = 20 }))
    end)

    it("of a handler that yields says so", function()
      local session <close> = markers.marked(1)
      session:on("ftrace:print", function()
        coroutine.yield()
      end)
      local co = coroutine.create(function()
        session:run({ duration = 20 })
      end)
      local ok, message = coroutine.resume(co)
      assert.is_false(ok)
      assert.matches("attempt to yield across a C%-call boundary", message)
      coroutine.close(co)
    end)

    it("in on_warn comes out", function()
      local session <close> = markers.marked(1, { on_error = "warn" })
      session:on("ftrace:print", function()
        error("trouble")
      end)
      function session.on_warn()
        error("trouble in on_warn")
      end
      assert.matches("trouble in on_warn",
        markers.message_of(session.run, session, { duration = 20 }))
    end)

    it("is not what a failure to read is: that comes out at once", function()
      local session <close> = markers.marked(1, { on_error = "warn" })
      session:enable("sched:sched_switch")
      function session._describe()
        error("no format to be read")
      end
      local function run()
        session:run({ duration = 20 })
      end
      assert.matches("no format to be read", markers.message_of(run))
      assert.equal(0, session:stats().errors)
    end)
  end)
end)
