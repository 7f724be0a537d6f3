local core = require "tracefs.core"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local markers = require "spec.support.markers"
local tracecmd = require "spec.support.tracecmd"
local tracefs = require "tracefs"

-- A session that is recorded into a file while its handler counts markers.
local function recorded(path, count, options, session_options)
  local session <close> = tracefs.session(session_options)
  local seen = {}
  session:on("ftrace:print", function(ev)
    seen[#seen + 1] = tostring(ev.common_timestamp // 1000)
  end)
  session:record(path, options)
  session:start()
  markers.mark(session, 1, count)
  session:finish()
  session:run()
  return seen
end

-- The numbers of the markers in a file, by trace-cmd.
local function numbers(path)
  local list = {}
  for i, line in ipairs((tracecmd.report(path))) do
    list[i] = tonumber(line:match(" print:.*: (%d+)$"))
  end
  return list
end

-- Its regions are far apart until it is complete.
local function has_holes(path)
  local _, out = helper.execute { "stat", "-c", "%s", path }
  return tonumber(out) > 1 << 27
end

describe("tracefs.recording", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.recording"))
  end)

  describe("writes what the handlers see", function()
    for name, options in pairs {
      ["version 7"] = {}, ["version 7, not compressed"] = { compress = false },
      ["version 6"] = { version = 6 },
    } do
      it("in " .. name, function()
        if not tracecmd.is_there() then
          return pending("trace-cmd is not installed")
        end
        local path = helper.tmpdir() .. "/trace.dat"
        local seen = recorded(path, 307, options)
        assert.equal(307, #seen)
        local lines, status = tracecmd.report(path, "-t")
        assert.equal(0, status)
        assert.equal(307, #lines)
        for i, line in ipairs(lines) do
          local s, ns = line:match(" (%d+)%.(%d%d%d%d%d%d%d%d%d):")
          assert.equal(seen[i], tostring((s * 1000000000 + ns) // 1000))
        end
        assert.same(markers.list(1, 307), numbers(path))
        assert.is_false(has_holes(path))
      end)
    end
  end)

  it("takes pages of 4 KiB, and more than one of them", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local seen = recorded(path, 1009, nil, { buffer_kb = 256, subbuf_kb = nil })
    assert.equal(1009, #seen)
    assert.same(markers.list(1, 1009), numbers(path))
  end)

  it("completes the file when the session is closed", function()
    local path = helper.tmpdir() .. "/trace.dat"
    local session = tracefs.session()
    session:enable "ftrace:print"
    session:record(path)
    session:start()
    markers.mark(session, 1, 5)
    session:step()
    assert.is_true(session:close())
    assert.is_false(has_holes(path))
  end)

  it("begins at once in a session that runs", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local session <close>, seen = markers.marked(3)
    while #seen < 3 do
      session:step()
      session:wait(0.1)
    end
    session:record(path)
    markers.mark(session, 4, 10)
    session:finish()
    session:run()
    assert.same(markers.list(4, 10), numbers(path))
  end)

  it("does not count what was lost before it began", function()
    for _, overwrite in ipairs { true, false } do
      local path = helper.tmpdir() .. "/trace.dat"
      local session <close> = tracefs.session { buffer_kb = 16, subbuf_kb = 4,
        overwrite = overwrite }
      local seen = 0
      session:on("ftrace:print", function() seen = seen + 1 end)
      session:start()
      for i = 1, 2003 do
        session:marker(tostring(i))
      end
      assert.is_true(helper.wait_until(function()
        session:step()
        return seen > 0 and seen + session:stats().lost == 2003
      end))
      session:record(path)
      markers.mark(session, 1, 11)
      session:finish()
      assert.is_true(session:run().lost > 100)
      local replayed <close> = tracefs.session { file = path }
      replayed:on("ftrace:print", function() end)
      local stats = replayed:run()
      assert.same({ 11, 0 }, { stats.delivered, stats.lost })
    end
  end)

  it("leaves the tracer's own events out, as the handlers' stream does", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local session <close> = tracefs.session()
    local own = { filter = "common_pid == " .. helper.pid }
    session:on("raw_syscalls:sys_enter", own, function() end)
    session:on("ftrace:print", function() end)
    session:record(path)
    session:start()
    markers.mark(session, 1, 7)
    session:finish()
    local stats = session:run()
    assert.is_true(stats.own > 7)
    assert.same(markers.list(1, 7), numbers(path))
  end)

  it("replaces what a link leads to, not the link", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/file", "old")
    assert(os.execute(("ln -s file '%s/link'"):format(dir)))
    recorded(dir .. "/link", 1)
    local _, out = helper.execute { "stat", "-c", "%F", dir .. "/link" }
    assert.equal("symbolic link\n", out)
    assert.equal("\x17\x08\x44tracing7\0", helper.read_file(dir .. "/file"):sub(1, 12))
  end)

  describe("says no", function()
    local function message_of(path)
      local session <close> = tracefs.session()
      session:enable "ftrace:print"
      session:record(path)
      return markers.message_of(session.start, session)
    end

    it("to arguments that make no sense", function()
      local session <close> = tracefs.session()
      assert.matches("name of a file is needed, not nil",
        markers.message_of(session.record, session))
      assert.matches("name of a file is needed, not ",
        markers.message_of(session.record, session, ""))
      assert.matches("zero byte", markers.message_of(session.record, session, "a\0b"))
      session:record(helper.tmpdir() .. "/a")
      assert.matches("recorded already, into .*/a",
        markers.message_of(session.record, session, "b"))
    end)

    it("to a folder that is not there", function()
      assert.matches("cannot create /nowhere/trace.dat: No such file or directory",
        message_of("/nowhere/trace.dat"))
    end)

    it("to what is no regular file", function()
      assert.matches("cannot record into /dev/null: .* must be a regular file",
        message_of("/dev/null"))
    end)

    it("to a file that somebody is recording into, which goes on", function()
      local path = helper.tmpdir() .. "/trace.dat"
      local first <close> = tracefs.session()
      first:enable "ftrace:print"
      first:record(path)
      first:start()
      assert.matches("another process is recording into it", message_of(path))
      markers.mark(first, 1, 1)
      first:finish()
      first:run()
      assert.equal("\x17\x08\x44tracing7\0", helper.read_file(path):sub(1, 12))
    end)

    it("to a full disk; what was written before stays readable", function()
      if not tracecmd.is_there() then
        return pending("trace-cmd is not installed")
      end
      local dir = helper.tmpdir()
      local code = [[
        local tracefs = require "tracefs"
        local markers = require "spec.support.markers"
        local session = tracefs.session { buffer_kb = 1024 }
        session:enable "ftrace:print"
        session:record(arg[1] .. "/trace.dat", { version = 6 })
        session:start()
        local ok, message = true, "no error came"
        local number = 0
        while ok and number < 200000 do
          markers.mark(session, number + 1, number + 1000)
          number = number + 1000
          ok, message = pcall(session.step, session)
        end
        io.stderr:write(message, "\n")
        session:close()
        os.execute("trace-cmd report -N " .. arg[1] .. "/trace.dat | tail -n 1")
      ]]
      helper.write_file(dir .. "/full.lua", code)
      assert(os.execute("mkdir " .. dir .. "/disk"))
      local status, out, err = helper.execute {
        "unshare", "-m", "sh", "-c",
        ('mount -t tmpfs -o size=9m none "%s/disk" && exec "$@"'):format(dir), "sh",
        helper.interpreter, dir .. "/full.lua", dir .. "/disk",
        env = {
          LUA_PATH = helper.root .. "/?.lua;" .. package.path, LUA_CPATH = package.cpath,
        },
      }
      assert.equal(0, status, err)
      assert.matches("cannot write .*/disk/trace.dat: No space left on device", err)
      local last = tonumber(out:match(": (%d+)\n$"))
      assert.is_true(last and last > 1000, out)
    end)
  end)

  it("leaves a file that can be read when it is killed", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local process = helper.start {
      helper.interpreter, "-e", [[
        local tracefs = require "tracefs"
        local markers = require "spec.support.markers"
        local session = tracefs.session()
        session:enable "ftrace:print"
        session:record "]] .. path .. [["
        session:start()
        markers.mark(session, 1, 101)
        while true do
          session:step()
          session:wait(0.1)
        end
      ]],
      env = { LUA_PATH = helper.root .. "/?.lua;" .. package.path, LUA_CPATH = package.cpath },
    }
    assert(helper.wait_until(function()
      return #numbers(path) == 101
    end, 20))
    process:kill "KILL"
    process:wait()
    assert.same(markers.list(1, 101), numbers(path))
    core.remove_stale(helper.tracing_dir)
  end)
end)
