-- The recording's class by itself; what sessions make of it is spec/lua/tracefs/recording_spec's.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
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
end)
