local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local HERE <const> = "^spec/lua/tracefs/aggregation_spec%.lua:%d+: "

-- Every refusal names the script's line.
local function refused(session, method, ...)
  local arguments = table.pack(...)
  local ok, message = pcall(function()
    session[method](session, table.unpack(arguments, 1, arguments.n))
  end)
  assert.is_false(ok)
  assert.matches(HERE, message)
  message = message:gsub(HERE, "")
  assert.is_nil(message:find("%.lua:%d"), message)
  return message
end

local function has_synthetic()
  return helper.read_file(helper.tracing_dir .. "/synthetic_events") ~= nil
end

describe("tracefs.aggregation", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.aggregation"))
  end)

  it("has methods that say so when they are called with a dot", function()
    local session <close> = tracefs.session()
    for _, name in ipairs { "hist", "synthetic", "kernel_latency" } do
      local ok, message = pcall(function() session[name]("sched:sched_switch", {}) end)
      assert.is_false(ok)
      assert.matches(HERE .. name .. " is a method: it is called with a colon, session:" .. name,
        message)
    end
  end)

  it("refuses a session that is closed", function()
    local session = tracefs.session()
    session:close()
    assert.equal("the session is closed", refused(session, "hist", "sched:sched_switch", {}))
    assert.equal("the session is closed", refused(session, "synthetic", "x", "u64 x"))
    assert.equal("the session is closed", refused(session, "kernel_latency", {}))
  end)
end)

describe("session:hist", function()
  it("refuses what is no event, or more than one", function()
    local session <close> = tracefs.session()
    assert.matches('an event is a string such as "sched:sched_switch", not nil', refused(session,
      "hist"))
    assert.matches("Did you mean sched:sched_switch", refused(session, "hist", "sched:sched_swich",
      {}))
    assert.matches("'sched:%*' means %d+ events, and a histogram is of one", refused(session,
      "hist", "sched:*", {}))
  end)

  it("refuses a session that only looks at some processes", function()
    local session <close> = tracefs.session()
    assert(session.instance:set_event_pids { helper.pid })
    assert.matches("do not look at set_event_pid %(luatrace %-p%)",
      refused(session, "hist", "sched:sched_switch", { keys = "prev_pid" }))
  end)

  it("says that the kernel has none", function()
    local session <close> = tracefs.session()
    if hist.supported(session.instance) then
      pending("this kernel has hist triggers")
      return
    end
    assert.matches("^hist: this kernel has no histograms for sched:sched_switch",
      refused(session, "hist", "sched:sched_switch", { keys = "prev_pid" }))
  end)
end)

describe("session:synthetic", function()
  it("refuses fields before it asks the kernel", function()
    local session <close> = tracefs.session()
    assert.matches("^synthetic: the field 'x' is there twice", refused(session, "synthetic", "e",
      "u64 x; u64 x"))
    assert.matches("^synthetic: the fields are a list of strings, not nil", refused(session,
      "synthetic", "e"))
  end)

  it("makes an event that goes away with the session, or says that the kernel cannot", function()
    local session <close> = tracefs.session()
    if not has_synthetic() then
      assert.matches("^synthetic: this kernel has no synthetic events: .*CONFIG_SYNTH_EVENTS",
        refused(session, "synthetic", "e", "u64 x"))
      return
    end
    assert.equal("synthetic:e", session:synthetic("e", "u64 x"))
    assert.equal(1, session:on("synthetic:e", { "x" }, function() end))
    assert.matches("this session has an event 'e' already", refused(session, "synthetic", "e",
      "u64 x"))
    assert.is_truthy(helper.read_file(helper.tracing_dir .. "/dynamic_events"):find("_e\t", 1,
      true))
  end)
end)

describe("session:kernel_latency", function()
  local GOOD <const> = { start = "sched:sched_waking", stop = "sched:sched_switch", key = "pid" }

  local function with(changes)
    local options = {}
    for key, value in pairs(GOOD) do
      options[key] = value
    end
    for key, value in pairs(changes) do
      options[key] = value
    end
    return options
  end

  it("refuses options that are wrong, by their names", function()
    local session <close> = tracefs.session()
    local function no(options)
      return refused(session, "kernel_latency", options)
    end
    assert.matches("^kernel_latency: the options must be a table, not nil", no(nil))
    assert.matches("unknown option 'begin'; there are: buckets, by, key, rows, size, start, "
      .. "start_filter, stop, stop_filter", no(with { begin = "x" }))
    assert.matches("^kernel_latency: start is missing", no {})
    assert.matches("key is missing", no { start = "a:b", stop = "a:b" })
    assert.matches("start: a string is needed, not number", no(with { start = 1 }))
    assert.matches("key: a name or a list is needed, not boolean", no(with { key = true }))
    assert.matches("key: start has 2 fields, and stop 1", no(with { key = { start = { "a", "b" },
      stop = "c" } }))
    assert.matches("key: a field, a list of fields, or { start", no(with { key = { start = "a" } }))
    assert.matches('buckets: "log2" or a width in ns is needed, not lin',
      no(with { buckets = "lin" }))
    assert.matches('buckets: "log2" or a width in ns is needed, not 0', no(with { buckets = 0 }))
    assert.matches("by: sched:sched_switch has no field 'nosuch'; it has: common_type",
      no(with { by = "nosuch" }))
    assert.matches("Did you mean sched:sched_switch", no(with { stop = "sched:sched_swich" }))
  end)

  it("refuses a session that has started", function()
    local session <close> = tracefs.session()
    session:start()
    assert.matches("make it before the session starts", refused(session, "kernel_latency", GOOD))
  end)

  it("says what the kernel lacks", function()
    local session <close> = tracefs.session()
    if has_synthetic() then
      pending("this kernel has synthetic events")
      return
    end
    assert.matches("this kernel has no synthetic events", refused(session, "kernel_latency", GOOD))
  end)
end)
