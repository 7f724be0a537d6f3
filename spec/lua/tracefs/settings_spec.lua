local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local settings = require "tracefs.settings"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/settings_spec%.lua:%d+: "

describe("tracefs.settings", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.settings"))
  end)

  it("has defaults", function()
    assert.same({
      clock = "mono", overwrite = true, interval = 0.1, memory_mb = 64, low_latency = false,
      own_events = false, on_error = "raise", margin = 0.001,
    }, settings.check())
    assert.same(settings.check(), settings.check({}))
    assert.is_true(settings.check({ low_latency = true }).margin < 0.001)
    assert.equal(0.5, settings.check({ low_latency = true, margin = 0.5 }).margin)
  end)

  it("does not change the caller's table", function()
    local options = { buffer_kb = 512 }
    settings.check(options)
    assert.same({ buffer_kb = 512 }, options)
  end)
end)

-- The session is the way in: what it raises names the script's line.
local function refused(options)
  local ok, message = pcall(function()
    local session = tracefs.session(options)
    session:close()
  end)
  assert.is_false(ok)
  assert.matches(HERE, message)
  return (message:gsub(HERE, ""))
end

describe("a session's options", function()
  it("are a table", function()
    for _, options in ipairs({ 5, "mono", true, print }) do
      assert.equal("session: the options must be a table, not " .. type(options), refused(options))
    end
  end)

  it("are refused by name when they are unknown", function()
    local known = "buffer, buffer_kb, children, clock, cpus, file, interval, low_latency, margin, "
      .. "memory_mb, name, on_error, overwrite, own_events, partial, pids, subbuf_kb, trace_options"
    assert.equal("session: unknown option 'bufer'; there are: " .. known, refused({ bufer = 4 }))
    assert.equal("session: unknown option '1'; there are: " .. known, refused({ "mono" }))
  end)

  it("are refused with what they must be", function()
    local bad = {
      clock = { "", 5, true },
      buffer_kb = { 0, -1, 4.5, "4096", 1 << 41 },
      subbuf_kb = { 0, 1.5, "64" },
      overwrite = { 1, "yes", "true" },
      cpus = { 0, {}, { -1 }, { "0" }, { 0.5 } },
      pids = { 1, {}, { 0 }, { "1" } },
      children = { 1, "yes" },
      trace_options = { true, { "irq-info" }, { ["irq-info"] = 1 }, { overwrite = false } },
      margin = { -0.001, 11, "1", 0 / 0, math.huge },
      interval = { 0, 61, "1", 0 / 0 },
      low_latency = { 1, "no" },
      memory_mb = { 0, 1.5, "64" },
      name = { "", 5, {} },
      own_events = { 1, "no" },
      on_error = { "ignore", true, 5 },
    }
    for name, values in pairs(bad) do
      for _, value in ipairs(values) do
        assert.matches(("^session: %s must be .+, not %s$"):format(name,
          tostring(value):gsub("%p", "%%%0")),
          refused({ [name] = value }))
      end
    end
  end)

  it("are refused with what the kernel says, and nothing is left behind", function()
    assert.matches("nosuchclock.*mono", refused({ clock = "nosuchclock" }))
    assert.matches("/", refused({ name = "a/b" }))
    assert.matches("%d+ KB", refused({ buffer_kb = 1 << 35 }):gsub("KiB", "KB"))
    local taken <close> = assert(tracefs.instance_create("spec-settings-" .. helper.pid))
    assert.matches("there is one of this name", refused({ name = taken:name() }))
  end)
end)

describe("a session's instance", function()
  local function with(options, look)
    local session <close> = tracefs.session(options)
    look(session.instance, session)
  end

  it("has the clock", function()
    with({}, function(instance)
      assert.equal("mono", instance:get_clock())
    end)
    with({ clock = "boot" }, function(instance)
      assert.equal("boot", instance:get_clock())
    end)
  end)

  it("has the sizes that were asked for, as far as the kernel rounds", function()
    with({ buffer_kb = 1000 }, function(instance)
      local kb = instance:get_buffer_kb()
      assert.is_true(kb >= 1000 and kb < 1300)
    end)
    with({ buffer_kb = 256, subbuf_kb = 4 }, function(instance)
      assert.is_true(instance:get_buffer_kb() >= 256)
      assert.equal(4, instance:get_subbuf_kb() or 4)
    end)
  end)

  it("has sub-buffers of 64 KiB where the kernel has them", function()
    with({}, function(instance)
      if not instance:has("buffer_subbuf_size_kb") then
        pending("this kernel has one size of sub-buffers")
      end
      assert.equal(64, instance:get_subbuf_kb())
    end)
    with({ buffer_kb = 128 }, function(instance)
      assert.equal(4, instance:get_subbuf_kb() or 4)
    end)
    with({ subbuf_kb = 16 }, function(instance)
      assert.equal(16, instance:get_subbuf_kb())
    end)
  end)

  it("takes no more than a twentieth of the memory by default", function()
    with({}, function(instance)
      local total = tonumber(helper.read_file("/proc/meminfo"):match("MemTotal:%s*(%d+)"))
      local cpus = 0
      for _ in pairs(assert(instance:stats())) do
        cpus = cpus + 1
      end
      assert.is_true(instance:get_buffer_kb() * cpus <= math.max(total / 20, 512 * cpus))
      assert.is_true(instance:get_buffer_kb() >= 256)
    end)
  end)

  it("overwrites or not", function()
    with({}, function(instance)
      assert.is_true(instance:get_option("overwrite"))
    end)
    with({ overwrite = false }, function(instance)
      assert.is_false(instance:get_option("overwrite"))
    end)
  end)

  it("records nothing before the start", function()
    with({}, function(instance, session)
      assert.is_false(instance:trace_is_on())
      session:start()
      assert.is_true(instance:trace_is_on())
    end)
  end)

  it("wakes at a quarter full, or for every event", function()
    with({}, function(instance)
      assert.equal("25\n", instance:read("buffer_percent"))
    end)
    with({ low_latency = true }, function(instance)
      assert.equal("0\n", instance:read("buffer_percent"))
    end)
  end)

  it("has a name of the process's own, or the one that was asked for", function()
    with({}, function(instance)
      assert.matches("^luatrace%-" .. helper.pid .. "%-%d+%-%d+$", instance:name())
    end)
    local name = ("luatrace-spec-%d"):format(helper.pid)
    with({ name = name }, function(instance)
      assert.equal(name, instance:name())
    end)
    assert.is_nil((tracefs.instance_open(name)))
  end)
end)
