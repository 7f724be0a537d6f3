-- The recording's class by itself; what sessions make of it is spec/lua/tracefs/recording_spec's.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracecmd = require "spec.support.tracecmd"
local tracefs = require "tracefs"

local OPTIONS = { version = 7, compress = false, own_events = true, kept = {} }

local function message_of(...)
  local ok, message = pcall(...)
  assert.is_false(ok)
  return message
end

describe("tracefs.recording (C)", function()
  local instance, path

  before_each(function()
    instance = assert(tracefs.instance_create())
    path = helper.tmpdir() .. "/trace.dat"
  end)

  after_each(function()
    assert(instance:close())
  end)

  it("checks its arguments", function()
    assert.matches("instance expected", message_of(core.recording))
    assert.matches("string expected", message_of(core.recording, instance))
    assert.matches("table expected", message_of(core.recording, instance, path))
    assert.matches("version 6 or 7", message_of(core.recording, instance, path,
      { version = 5, compress = false, kept = {} }))
    assert.matches("not an event id", message_of(core.recording, instance, path,
      { version = 7, compress = false, kept = { -1 } }))
    assert.is_nil(helper.read_file(path))
  end)

  it("is used in its order", function()
    local recording <close> = assert(core.recording(instance, path, OPTIONS))
    assert.equal(path, recording:path())
    assert.matches(path, tostring(recording), 1, true)
    assert.matches("direct%(%) was not called", message_of(recording.pump, recording))
    assert.matches("finish%(%) was not called", message_of(recording.step, recording))
    assert.is_true(recording:checkpoint())
    recording:close()
    recording:close()
    assert.equal("tracefs.recording (closed)", tostring(recording))
    assert.matches("recording is closed", message_of(recording.pump, recording))
  end)

  it("moves whole sub-buffers and parts of them by itself", function()
    local recording <close> = assert(core.recording(instance, path, OPTIONS))
    assert(recording:direct())
    assert.is_true(recording:fileno() >= 0)
    assert.equal(0, recording:pump())
    instance:trace_on()
    for i = 1, 2003 do
      assert(instance:marker(tostring(i)))
    end
    assert.is_true(recording:pump() > 0)
    assert(instance:trace_off())
    assert.is_true(recording:drain() > 0)
    assert.equal(0, recording:drain())
    assert(recording:finish { { "sched", "sched_switch" }, { "no", "such" } })
    local more
    repeat
      more = recording:step()
    until not more
    assert.is_false(more)
    local all, done = recording:bytes()
    assert.equal(all, done)
    recording:close()
    assert.truthy(helper.read_file(path):find("name: sched_switch", 1, true))
    if tracecmd.is_there() then
      local lines = tracecmd.report(path)
      assert.equal(2003, #lines)
      assert.matches(": 2003$", lines[2003])
    end
  end)

  -- The child has pages in memory that the parent goes on with meanwhile.
  describe("is left alone by a child of its process", function()
    local function check(in_child, said)
      local dir = path:match "^(.*)/"
      helper.write_file(dir .. "/fork.lua", ([[
        package.path, package.cpath = %q, %q
        local tracefs = require "tracefs"
        local session = tracefs.session { subbuf_kb = 4 }
        local seen = 0
        session:on("ftrace:print", function() seen = seen + 1 end)
        session:record(%q, { compress = false })
        session:start()
        local function mark(from, to)
          for i = from, to do
            assert(session:marker(tostring(i)))
          end
          while seen < to do
            session:step()
            session:wait(0.1)
          end
        end
        mark(1, 7)
        local child = fork()
        if child == 0 then
          while not io.open(%q) do
            tracefs.core.poll({}, 0.01)
          end
          %s
          return
        end
        -- into the page that the child has, too; then no more fit into it
        mark(8, 29)
        mark(30, 1009)
        io.open(%q, "w"):close()
        assert(wait(child) == 0)
        session:finish()
        session:run()
        assert(session:close())
      ]]):format(package.path, package.cpath, path, dir .. "/go", in_child, dir .. "/go"))
      local status, out, err = helper.execute {
        "taskset", "-c", tostring(loads.cpus()[1]), helper.program "support/fork",
        dir .. "/fork.lua",
      }
      assert.same({ 0, "" }, { status, err })
      assert.equal(said, out)
      local session <close> = tracefs.session { file = path }
      local last = 0
      session:on("ftrace:print", { "buf" }, function(buf)
        assert.equal(last + 1, math.tointeger(tonumber(buf)))
        last = last + 1
      end)
      session:run()
      assert.equal(1009, last)
      local pipe <close> = assert(io.popen("ls " .. dir))
      assert.equal("fork.lua\ngo\ntrace.dat\n", pipe:read "a")
    end

    it("that closes the session", function()
      check("print((select(2, session:close())))",
        "cannot write " .. path .. ": this process is a child of the one that records into it\n")
    end)

    it("that ends", function()
      check("", "")
    end)
  end)
end)
