local helper = require "spec.support.helper"
local core = require "tracefs.core"

describe("the class tracefs.instance", function()
  local dir = assert(core.tracing_dir())

  local METHODS <const> = {
    adopt = {},
    append = { "trace_marker", "text" },
    append_filter = { "sched", "sched_switch", "prev_pid == 1" },
    clear = {},
    clear_filter = { "sched", "sched_switch" },
    clear_triggers = { "sched", "sched_switch" },
    clocks = {},
    dir = {},
    disable = { "sched", "sched_switch" },
    enable = { "sched", "sched_switch" },
    error_log = {},
    get_buffer_kb = {},
    get_buffer_total_kb = {},
    get_clock = {},
    get_cpus = {},
    get_event_notrace_pids = {},
    get_event_pids = {},
    get_filter = { "sched", "sched_switch" },
    get_function_notrace_pids = {},
    get_function_pids = {},
    get_option = { "overwrite" },
    get_subbuf_kb = {},
    get_tracer = {},
    has = { "trace" },
    has_snapshot = {},
    is_kept = {},
    is_enabled = { "sched", "sched_switch" },
    keep = {},
    marker = { "text" },
    marker_raw = { "bytes" },
    name = {},
    options = {},
    read = { "trace" },
    remove_trigger = { "sched", "sched_switch", "traceoff" },
    set_buffer_kb = { 64 },
    set_clock = { "mono" },
    set_cpus = {},
    set_event_notrace_pids = { {} },
    set_event_pids = { {} },
    set_filter = { "sched", "sched_switch", "prev_pid == 1" },
    set_function_notrace_pids = { {} },
    set_function_pids = { {} },
    set_option = { "overwrite", true },
    set_subbuf_kb = { 4 },
    set_tracer = { "nop" },
    set_trigger = { "sched", "sched_switch", "traceoff" },
    snapshot_clear = {},
    snapshot_free = {},
    snapshot_take = {},
    stats = {},
    trace_is_on = {},
    trace_off = {},
    trace_on = {},
    tracers = {},
    trigger_commands = {},
    triggers = { "sched", "sched_switch" },
    write = { "tracing_on", "0" },
  }

  local function left()
    local found = {}
    for _, name in ipairs(core.instances(dir)) do
      if name:find(("%%-%d%%-"):format(helper.pid)) then
        table.insert(found, name)
      end
    end
    return #found
  end

  it("is there without touching globals", function()
    local before = {}
    for name in pairs(_G) do
      before[name] = true
    end
    package.loaded["tracefs.core"] = nil
    local again = require "tracefs.core"
    package.loaded["tracefs.core"] = core
    assert.is_function(again.instance_create)
    for name in pairs(_G) do
      assert.is_true(before[name], name)
    end
  end)

  it("has the methods that this file knows, and no more", function()
    local instance <close> = assert(core.instance_create(dir))
    local class = getmetatable(instance)
    assert.equal("tracefs.instance", class.__name)
    for name in pairs(class.__index) do
      assert.truthy(METHODS[name] or name == "destroy" or name == "close", name)
    end
    for name in pairs(METHODS) do
      assert.is_function(class.__index[name], name)
    end
  end)

  it("raises when it is used after it was closed", function()
    local instance = assert(core.instance_create(dir))
    assert.is_true(instance:close())
    for name, arguments in pairs(METHODS) do
      assert.has_error(function()
        instance[name](instance, table.unpack(arguments))
      end, "the instance is closed")
    end
  end)

  it("raises when it is called with something else", function()
    local instance <close> = assert(core.instance_create(dir))
    for name, arguments in pairs(METHODS) do
      for _, self in ipairs { 1, "x", {}, io.stdout } do
        assert.error_matches(function()
          instance[name](self, table.unpack(arguments))
        end, "bad argument #1 to .*tracefs%.instance expected")
      end
    end
  end)

  it("raises when an argument is missing or of the wrong type", function()
    local instance <close> = assert(core.instance_create(dir))
    for name, arguments in pairs(METHODS) do
      for i = 1, #arguments do
        for _, wrong in ipairs { false, print } do
          if type(arguments[i]) ~= "boolean" or wrong then
            local changed = { table.unpack(arguments) }
            changed[i] = wrong
            assert.error_matches(function()
              instance[name](instance, table.unpack(changed))
            end, ("bad argument #%d to"):format(i + 1))
          end
        end
        assert.error_matches(function()
          instance[name](instance, table.unpack(arguments, 1, i - 1))
        end, ("bad argument #%d to"):format(i + 1))
      end
    end
  end)

  it("raises for names with a zero byte, which the kernel would not see whole", function()
    local instance <close> = assert(core.instance_create(dir))
    for name, arguments in pairs(METHODS) do
      for i = 1, #arguments do
        local is_data = name:find("^marker") or i == 2 and (name == "write" or name == "append")
        if type(arguments[i]) == "string" and not is_data then
          local changed = { table.unpack(arguments) }
          changed[i] = changed[i] .. "\0"
          assert.error_matches(function()
            instance[name](instance, table.unpack(changed))
          end, "text without zero bytes expected")
        end
      end
    end
    for _, call in ipairs { "instance_create", "instance_open" } do
      assert.error_matches(function()
        core[call](dir, "a\0b")
      end, "text without zero bytes expected")
      assert.error_matches(function()
        core[call](dir .. "\0", "a")
      end, "text without zero bytes expected")
    end
  end)

  it("raises for sizes below 1", function()
    local instance <close> = assert(core.instance_create(dir))
    for _, name in ipairs { "set_buffer_kb", "set_subbuf_kb" } do
      for _, size in ipairs { 0, -1, math.mininteger } do
        assert.error_matches(function()
          instance[name](instance, size)
        end, "expected, 1 or more")
      end
      assert.error_matches(function()
        instance[name](instance, 1.5)
      end, "number has no integer representation")
    end
  end)

  it("raises for what is no pid, and says which", function()
    local instance <close> = assert(core.instance_create(dir))
    for _, wrong in ipairs { 0, -1, 1.5, "x", {}, 1 << 31 } do
      assert.error_matches(function()
        instance:set_event_pids { 1, wrong }
      end, "bad pid at 2 of the list: an integer from 1 on expected")
    end
    assert.equal("", instance:read("set_event_pid"):gsub("%D", ""))
  end)

  for _, call in ipairs { "instance_create", "instance_open", "instances", "remove_stale" } do
    it(("core.%s raises without a directory"):format(call), function()
      assert.error_matches(core[call], "bad argument #1 to")
      assert.error_matches(function()
        core[call]({})
      end, "bad argument #1 to")
    end)
  end

  it("returns true, or nil, a message and the error's number", function()
    local instance <close> = assert(core.instance_create(dir))
    assert.same({ true, n = 1 }, table.pack(instance:set_clock("mono")))
    local refused = table.pack(instance:set_clock("nosuch"))
    assert.equal(3, refused.n)
    assert.is_nil(refused[1])
    assert.is_string(refused[2])
    assert.equal(22, refused[3])
    assert.same({ n = 1 }, table.pack(instance:get_filter("sched", "sched_switch")))
  end)

  it("tells its name and state as text", function()
    local instance = assert(core.instance_create(dir))
    assert.equal(("tracefs.instance (%s)"):format(instance:name()), tostring(instance))
    instance:close()
    assert.equal("tracefs.instance (closed)", tostring(instance))
  end)

  it("is removed by <close>, also when an error passes", function()
    local before = left()
    local ok, message = pcall(function()
      local instance <close> = assert(core.instance_create(dir))
      assert.equal(before + 1, left())
      error("on the way " .. instance:name())
    end)
    assert.is_false(ok)
    assert.truthy(message:find("on the way luatrace-", 1, true))
    assert.equal(before, left())
  end)

  it("is removed by the collector", function()
    local before = left()
    for _ = 1, 3 do
      assert(core.instance_create(dir))
    end
    collectgarbage()
    collectgarbage()
    assert.equal(before, left())
  end)

  it("is removed when its Lua state ends, by return or by an error", function()
    for _, last in ipairs { "", "error('the end')", "os.exit(true, true)" } do
      local status, out = helper.run_lua(([[
        local core = require "tracefs.core"
        instance = assert(core.instance_create(%q))
        print(instance:name())
        io.stdout:flush()
        %s
      ]]):format(dir, last))
      assert.equal(last:find("^error") and 1 or 0, status)
      assert.truthy(out:find("^luatrace%-%d+%-%d+%-1\n$"), out)
      assert.is_nil(helper.read_file(("%s/instances/%s/tracing_on"):format(dir, out:sub(1, -2))))
    end
  end)

  it("does not stay when it cannot be made whole", function()
    local before = left()
    for _, name in ipairs { "a/b", "", ".." } do
      assert.is_nil((core.instance_create(dir, name)))
    end
    collectgarbage()
    assert.equal(before, left())
  end)

  it("comes and goes fifty times, and eight at once", function()
    local before = left()
    for _ = 1, 50 do
      local instance <close> = assert(core.instance_create(dir))
      assert.truthy(instance:name():find("-1$"))
    end
    local instances = {}
    for i = 1, 8 do
      instances[i] = assert(core.instance_create(dir))
    end
    assert.equal(before + 8, left())
    for i = 1, 8 do
      assert(instances[i]:destroy())
    end
    assert.equal(before, left())
  end)
end)
