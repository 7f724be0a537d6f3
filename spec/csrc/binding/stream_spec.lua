-- The stream's class by itself: stream.c, delivery.c and route.c. What sessions make of it is
-- spec/lua/tracefs/running/'s, what it reads spec/csrc/engine/stream_spec.lua's.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local OPTIONS = {
  clock = "local", clock_in_ns = true, margin = 0.001, interval = 0.1, memory_mb = 8,
  buffer_percent = 25, overwrite = true, own_events = false, migrate_column = false,
}

local function options_with(changes)
  local options = {}
  for name, value in pairs(OPTIONS) do
    options[name] = value
  end
  for name, value in pairs(changes or {}) do
    if value == "none" then
      value = nil
    end
    options[name] = value
  end
  return options
end

local function parts()
  local instance = assert(tracefs.instance_create())
  local catalog = core.catalog()
  catalog:set_live(helper.tracing_dir)
  return instance, catalog
end

-- A stream over an instance that records markers, and the description of a marker.
local function marker_stream(changes)
  local instance, catalog = parts()
  local stream = assert(core.stream(instance, catalog, options_with(changes)))
  local text = assert(instance:read("events/ftrace/print/format"))
  local event = assert(catalog:parse("ftrace", text))
  stream:keep(event:id())
  instance:trace_on()
  return stream, event, instance
end

local function close(stream, instance)
  stream:close()
  assert(instance:close())
end

-- Steps until there is nothing more for a while.
local function drain(stream)
  local total = 0
  local limit = core.now() + 10000000000
  repeat
    local count, why = stream:step()
    total = total + count
    if why == "idle" then
      stream:wait(0.05)
    end
  until why == "stop" or why == "end" or core.now() > limit
  return total
end

local function bad(message, fn, ...)
  local ok, got = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(got:find(message, 1, true), got)
end

describe("core.stream", function()
  it("checks its arguments", function()
    local instance <close>, catalog = parts()
    bad("tracefs.instance expected", core.stream)
    bad("tracefs.instance expected", core.stream, catalog, catalog, OPTIONS)
    bad("tracefs.catalog expected", core.stream, instance, instance, OPTIONS)
    bad("table expected", core.stream, instance, catalog)
    for _, name in ipairs({ "clock", "margin", "interval", "memory_mb", "buffer_percent" }) do
      bad("", core.stream, instance, catalog, options_with({ [name] = "none" }))
      bad("", core.stream, instance, catalog, options_with({ [name] = {} }))
    end
    for _, seconds in ipairs({ -1, 0 / 0, 1e7 }) do
      bad("no sensible number of seconds", core.stream, instance, catalog,
        options_with({ margin = seconds }))
      bad("no sensible number of seconds", core.stream, instance, catalog,
        options_with({ interval = seconds }))
    end
  end)

  it("is refused for an instance that is closed", function()
    local instance, catalog = parts()
    instance:close()
    bad("closed", core.stream, instance, catalog, OPTIONS)
  end)

  it("returns what the kernel refuses", function()
    local instance <close>, catalog = parts()
    local stream, message, errno = core.stream(instance, catalog,
      options_with({ buffer_percent = 101 }))
    assert.is_nil(stream)
    assert.matches("buffer_percent", message)
    assert.equal("integer", math.type(errno))
  end)

  it("closes the files of the buffer and opens them again, before the first record", function()
    local stream, event, instance = marker_stream()
    local function open_files()
      local pipe = assert(io.popen("ls -l /proc/$PPID/fd"))
      local count = select(2, pipe:read("a"):gsub(instance:name():gsub("%p", "%%%0")
        .. "/per_cpu/[^\n]*trace_pipe_raw", ""))
      pipe:close()
      return count
    end
    local before = open_files()
    assert.is_true(before >= 1)
    stream:close_files()
    assert.equal(0, open_files())
    assert.is_true(stream:open_files())
    assert.equal(before, open_files())
    local seen = 0
    stream:callbacks(function() return event end, function() return true end)
    stream:handle(event:id(), function() seen = seen + 1 end)
    for _ = 1, 23 do
      assert(instance:marker("x"))
    end
    assert(instance:trace_off())
    stream:finish()
    drain(stream)
    assert.equal(23, seen)
    close(stream, instance)
    bad("stream is closed", stream.close_files, stream)
    bad("stream is closed", stream.open_files, stream)
  end)

  it("keeps its instance and catalog", function()
    local stream, name
    do
      local made, _, instance = marker_stream()
      stream, name = made, instance:name()
    end
    collectgarbage()
    collectgarbage()
    assert(tracefs.instance_open(name)):close()
    assert.equal(0, (stream:step()))
    stream:close()
  end)
end)

describe("a stream's methods", function()
  it("check their arguments", function()
    local stream, event, instance = marker_stream()
    bad("function expected", stream.callbacks, stream)
    bad("function expected", stream.callbacks, stream, print)
    bad("number expected", stream.describe, stream)
    bad("tracefs.event expected", stream.describe, stream, 5, stream)
    bad("number expected", stream.handle, stream)
    bad("function expected", stream.handle, stream, 5)
    bad("table expected", stream.handle, stream, 5, print, event, "buf")
    bad("1 to 64 fields", stream.handle, stream, 5, print, event, {})
    bad("tracefs.event expected", stream.handle, stream, 5, print, nil, { "buf" })
    bad("ftrace:print has no field 'x'", stream.handle, stream, 5, print, event, { "buf", "x" })
    bad("memory", stream.handle, stream, -1, print)
    bad("memory", stream.handle, stream, 65536, print)
    bad("not an event id, or too many", stream.keep, stream, -1)
    bad("not an event id, or too many", stream.keep, stream, 65536)
    for i = 1, 7 do
      stream:keep(i)
    end
    bad("not an event id, or too many", stream.keep, stream, 8)
    bad("number expected", stream.set_tick, stream)
    bad("number expected", stream.wait, stream)
    bad("number expected", stream.watch, stream, "x")
    bad("number expected", stream.unwatch, stream)
    bad("number expected", stream.step, stream, "x")
    for _, name in ipairs({ "watch", "unwatch" }) do
      local ok, message, errno = stream[name](stream, 999999)
      assert.is_nil(ok)
      assert.matches("descriptor: Bad file descriptor$", message)
      assert.equal(9, errno)
    end
    for name, method in pairs(getmetatable(stream).__index) do
      bad("tracefs.stream expected", method, instance)
      assert.equal(method, stream[name])
    end
    assert.matches("^tracefs%.stream: 0x%x+$", tostring(stream))
    close(stream, instance)
  end)

  it("raise when it is closed, but for close() itself and failed()", function()
    local stream, event, instance = marker_stream()
    local methods = getmetatable(stream).__index
    assert.is_true(stream:close())
    assert.equal("tracefs.stream (closed)", tostring(stream))
    for name, method in pairs(methods) do
      if name == "close" then
        assert.is_true(method(stream))
      elseif name == "failed" then
        assert.is_nil(method(stream))
      else
        bad("stream is closed", method, stream, 1, event, print)
      end
    end
    assert(instance:close())
  end)

  it("let the instance go when it is closed by a to-be-closed variable or collected", function()
    local stream, _, instance = marker_stream()
    do
      local closing <close> = stream -- luacheck: ignore
    end
    assert(instance:close())
    do
      local _
      _, _, instance = marker_stream()
    end
    collectgarbage()
    collectgarbage()
    assert(instance:close())
  end)
end)

describe("a stream's handlers", function()
  it("get records and values, in the order in which they were added", function()
    local stream, event, instance = marker_stream()
    local order = {}
    stream:handle(event:id(), function(ev)
      order[#order + 1] = ev.buf
    end, event)
    stream:handle(event:id(), function(buf, cpu)
      order[#order + 1] = buf .. math.type(cpu)
    end, event, { "buf", "common_cpu" })
    stream:handle(event:id(), function(ev)
      order[#order + 1] = ev.common_event
      stream:stop()
    end)
    stream:callbacks(function(id)
      assert.equal(event:id(), id)
      return event
    end, print)
    instance:marker("a")
    assert.equal(1, drain(stream))
    assert.same({ "a\n", "a\ninteger", "ftrace:print" }, order)
    assert.equal(1, stream:delivered())
    close(stream, instance)
  end)

  it("need a description: it is asked for once, and unknown records are passed over", function()
    local stream, event, instance = marker_stream()
    local asked, handled = 0, 0
    stream:handle(event:id(), function()
      handled = handled + 1
    end)
    stream:callbacks(function()
      asked = asked + 1
      return nil
    end, print)
    for _ = 1, 5 do
      instance:marker("a")
    end
    stream:finish()
    instance:trace_off()
    assert.equal(5, drain(stream))
    assert.equal(1, asked)
    assert.equal(0, handled)
    assert.equal(5, stream:delivered())
    close(stream, instance)
  end)

  it("are asked again for an id that was unknown when another handler comes", function()
    local stream, event, instance = marker_stream()
    local known, handled = nil, 0
    stream:callbacks(function()
      return known
    end, print)
    instance:marker("a")
    assert.is_true(helper.wait_until(function()
      return stream:step() == 1
    end))
    known = event
    stream:handle(event:id(), function()
      handled = handled + 1
      stream:stop()
    end)
    instance:marker("b")
    drain(stream)
    assert.equal(1, handled)
    close(stream, instance)
  end)

  it("see an error of the description come out", function()
    local stream, event, instance = marker_stream()
    stream:handle(event:id(), print)
    stream:callbacks(function()
      error("no description")
    end, print)
    instance:marker("a")
    helper.sleep(0.02)
    local message
    helper.wait_until(function()
      local ok, err = pcall(stream.step, stream)
      message = not ok and err
      return message
    end)
    assert.matches("no description", message)
    assert.same({ nil, false }, { stream:failed() })
    close(stream, instance)
  end)

  it("leave it busy when one raises, until failed() says for which record", function()
    local stream, event, instance = marker_stream()
    local calls = {}
    stream:callbacks(function()
      return event
    end, print)
    stream:handle(event:id(), function(ev)
      calls[#calls + 1] = "first " .. ev.buf
      bad("step called from inside a handler", stream.step, stream)
      bad("called from inside a handler", stream:iterator())
      error("trouble")
    end)
    stream:handle(event:id(), function(buf)
      calls[#calls + 1] = "second " .. buf
      stream:stop()
    end, event, { "buf" })
    instance:marker("a")
    local ok, message
    helper.wait_until(function()
      ok, message = pcall(stream.step, stream)
      return not ok
    end)
    assert.matches("trouble", message)
    bad("step called from inside a handler", stream.step, stream)
    assert.equal("a\n", stream:failed().buf)
    local count, why = stream:step()
    assert.equal("stop", why)
    assert.equal(0, count)
    assert.same({ "first a\n", "second a\n" }, calls)
    assert.is_nil(stream:failed())
    close(stream, instance)
  end)

  it("may close the stream, which is done when they have returned", function()
    local stream, event, instance = marker_stream()
    stream:handle(event:id(), function()
      assert.is_false(stream:close())
      assert.matches("^tracefs%.stream: ", tostring(stream))
    end, event)
    stream:callbacks(function()
      return event
    end, print)
    instance:marker("a")
    instance:marker("b")
    drain(stream)
    assert.equal("tracefs.stream (closed)", tostring(stream))
    assert(instance:close())
  end)

  it("may close the stream and raise", function()
    local stream, event, instance = marker_stream()
    stream:handle(event:id(), function()
      stream:close()
      error("trouble")
    end)
    stream:callbacks(function()
      return event
    end, print)
    instance:marker("a")
    helper.wait_until(function()
      return not pcall(stream.step, stream)
    end)
    assert.is_nil(stream:failed())
    assert.equal("tracefs.stream (closed)", tostring(stream))
    assert(instance:close())
  end)
end)

describe("a stream's loop", function()
  it("asks its pump between records", function()
    local stream, event, instance = marker_stream()
    local whys, got = {}, {}
    stream:callbacks(function()
      return event
    end, function(why)
      whys[why] = (whys[why] or 0) + 1
      if why == "idle" then
        stream:wait(1)
      end
      return why ~= "end"
    end)
    for i = 1, 10 do
      instance:marker(tostring(i))
    end
    instance:trace_off()
    stream:finish()
    for ev in stream:iterator() do
      got[#got + 1] = tonumber(ev.buf)
    end
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, got)
    assert.equal(1, whys["end"])
    assert.is_true(whys.look >= 1 and whys.idle >= 1)
    assert.is_nil(whys.handlers)
    close(stream, instance)
  end)

  it("is told of losses and ticks", function()
    local stream, event, instance = marker_stream({ clock = "mono" })
    assert(instance:write("trace_clock", "mono"))
    assert(instance:set_buffer_kb(16))
    local tick
    local lost = 0
    stream:callbacks(function()
      return event
    end, function(why, what)
      if why == "tick" then
        tick = what
      elseif why == "lost" then
        -- One for each CPU that the load has run on.
        lost = lost + what.count
        assert.equal("overrun", what.why)
      elseif why == "idle" then
        stream:wait(1)
      end
      return why ~= "end"
    end)
    local due = core.now("mono")
    stream:set_tick(due)
    loads.run({ "markers", instance:dir(), 5003 })
    instance:trace_off()
    stream:finish()
    local count = 0
    for ev in stream:iterator() do
      count = count + 1
      assert.is_true(ev.common_timestamp > due)
    end
    assert.equal(due, tick)
    assert.is_true(lost > 0)
    assert.equal(5003, lost + count)
    close(stream, instance)
  end)

  it("does not go on when the stream was stepped by its pump", function()
    local stream, event, instance = marker_stream()
    stream:callbacks(function()
      return event
    end, function(why)
      if why == "handlers" then
        stream:step(1)
      end
      return true
    end)
    stream:handle(event:id(), function() end)
    instance:marker("a")
    instance:marker("b")
    helper.sleep(0.05)
    bad("was stepped while the loop waited", function()
      for _ in stream:iterator() do
        error("a record came")
      end
    end)
    close(stream, instance)
  end)

  it("ends when the stream is closed", function()
    local stream, event, instance = marker_stream()
    stream:callbacks(function()
      return event
    end, function()
      return true
    end)
    instance:marker("a")
    instance:marker("b")
    local count = 0
    for _ in stream:iterator() do
      count = count + 1
      stream:close()
    end
    assert.equal(1, count)
    assert(instance:close())
  end)
end)

describe("a finalizer", function()
  local function when_collected(fn)
    setmetatable({}, { __gc = fn })
  end

  -- In a process of its own, whose few objects the collector goes through with each allocation.
  local function collecting(code)
    local status, stdout, stderr = helper.run_lua([[
      local session = require("tracefs").session()
      local function when_collected(fn)
        setmetatable({}, { __gc = fn })
      end
      local function mark(count)
        for i = 1, count do
          session:marker(("x"):rep(i))
        end
      end
      ]] .. helper.collector(1, 1000, 1) .. [[
      local seen = 0
      ]] .. code)
    assert.equal("", stderr)
    assert.equal("done\n", stdout)
    assert.equal(0, status)
  end

  it("may close the session while the loop makes a record", function()
    collecting [[
      session:enable("ftrace:print")
      session:start()
      mark(900)
      for ev in session:events { duration = 2 } do
        seen = seen + 1
        assert(ev.common_event == "ftrace:print")
        if seen == 5 then
          when_collected(function() session:close() end)
        end
      end
      print(seen < 900 and "done" or "never collected")
    ]]
  end)

  it("may add handlers while values are made", function()
    collecting [[
      local fields = { "buf", "common_comm", "common_event", "buf" }
      session:on("ftrace:print", fields, function(buf, _, label, again)
        seen = seen + 1
        assert(buf == again and label == "ftrace:print")
        if seen % 10 == 1 then
          when_collected(function()
            for _ = 1, 3 do
              session:on("ftrace:print", fields, function() end)
            end
          end)
        end
      end)
      session:start()
      mark(100)
      session:finish()
      session:run()
      session:close()
      print(seen == 100 and "done" or seen)
    ]]
  end)

  it("may close the stream while a step asks what an id is", function()
    local stream, event, instance = marker_stream()
    stream:handle(event:id(), function()
      error("called after the end")
    end)
    stream:callbacks(function()
      when_collected(function()
        assert.is_false(stream:close())
      end)
      collectgarbage()
      collectgarbage()
      stream:stop()
      return event
    end, print)
    instance:marker("a")
    helper.wait_until(function()
      return not pcall(stream.step, stream) or tostring(stream):find("closed", 1, true)
    end)
    stream:failed()
    assert.equal("tracefs.stream (closed)", tostring(stream))
    assert(instance:close())
  end)

  it("finds no handlers to run where there is no record", function()
    local stream, event, instance = marker_stream()
    stream:handle(event:id(), error)
    stream:run_handlers()
    stream:set_tick(1)
    helper.wait_until(function()
      return select(2, stream:step()) == "tick"
    end)
    stream:run_handlers()
    close(stream, instance)
  end)
end)

describe("a stream's counts", function()
  it("are those of each CPU", function()
    local stream, event, instance = marker_stream()
    stream:describe(event:id(), event)
    for _ = 1, 11 do
      instance:marker("a")
    end
    local counts, late = stream:counts()
    assert.equal(0, late)
    local cpus, pending = {}, 0
    for cpu, of in pairs(counts) do
      cpus[cpu] = true
      pending = pending + of.pending
      assert.equal(of.produced, of.delivered + of.lost + of.pending)
    end
    assert.equal(11, pending)
    for cpu in pairs(assert(instance:stats())) do
      assert.is_true(cpus[cpu])
    end
    close(stream, instance)
  end)
end)
