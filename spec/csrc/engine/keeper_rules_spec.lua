-- What a process without rights may have its keeper do: asked for as a script can, below the
-- session's methods.
local users = require "spec.support.users"

-- Gives the lines that code prints, one for each of its calls.
local function run(code)
  local status, out, err = users.run { "-e", code }
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

local function call_all(method, list)
  local words = {}
  for i, item in ipairs(list) do
    words[i] = item[2] and ("{ %q, %q }"):format(item[1], item[2]) or ("{ %q }"):format(item[1])
  end
  return run(([[
    for _, item in ipairs { %s } do
      local result, message = trace.instance:%s(table.unpack(item))
      if result then
        print "done"
      else
        print((message:find("--user", 1, true) or message:find("bad file name", 1, true))
          and "refused" or message)
      end
    end
  ]]):format(table.concat(words, ", "), method))
end

describe("the keeper", function()
  it("writes what belongs to the instance", function()
    local list = {
      { "tracing_on", "1" }, { "set_event", "sched:sched_switch" }, { "set_event_pid", "1" },
      { "events/sched/sched_switch/filter", "prev_pid == 1" },
      { "events/sched/filter", "common_pid == 1" }, { "events/sched/enable", "1" },
      { "events/enable", "0" }, { "events/sched/sched_switch/trigger", "traceoff:1" },
      { "events/sched/sched_switch/trigger", "!traceoff:1" },
      { "events/sched/sched_switch/trigger", "" }, { "options/stacktrace", "0" },
      { "trace_marker", "text" }, { "trace", "" }, { "error_log", "" },
    }
    assert.equal(("done\n"):rep(#list), call_all("write", list))
  end)

  it("refuses to write anything else", function()
    local list = {
      { "buffer_size_kb", "1" }, { "trace_clock", "local" }, { "current_tracer", "nop" },
      { "tracing_cpumask", "1" }, { "set_ftrace_filter", "*" }, { "free_buffer", "" },
      { "per_cpu/cpu0/trace", "" }, { "snapshot", "1" }, { "trace_options", "nostacktrace" },
      { "options/copy_trace_marker", "1" }, { "options/trace_printk_dest", "1" },
      { "options/../tracing_on", "0" }, { "events/../../../tracing_on", "0" },
      { "events/sched/sched_switch/../enable", "1" }, { "./tracing_on", "0" },
      { "events//enable", "1" }, { "events/sched/sched_switch/id", "1" },
      { "trace", "text" }, { "/etc/passwd", "x" }, { "../../trace_marker", "x" },
      { "events/sched/sched_switch/trigger", "dump" },
      { "events/sched/sched_switch/trigger", "hist:keys=prev_pid:onmatch(a.b).trace(c,d)" },
      { "events/sched/sched_switch/trigger", "hist:keys=prev_pid:onmax(x).snapshot()" },
      { "events/sched/sched_switch/trigger", "hist:name=shared:keys=prev_pid" },
      { "events/sched/sched_switch/trigger", "traceoff\nhist:keys=prev_pid" },
    }
    assert.equal(("refused\n"):rep(#list), call_all("write", list))
  end)

  it("reads the instance, but for what would take records from the stream", function()
    local list = {
      { "tracing_on" }, { "events/sched/sched_switch/format" }, { "per_cpu/cpu0/stats" },
      { "trace" }, { "trace_clock" },
    }
    assert.equal(("done\n"):rep(#list), call_all("read", list))
    list = {
      { "trace_pipe" }, { "per_cpu/cpu0/trace_pipe_raw" }, { "per_cpu/cpu0/trace_pipe" },
      { "free_buffer" }, { "../../trace" }, { "events/../tracing_on" },
    }
    assert.equal(("refused\n"):rep(#list), call_all("read", list))
  end)

  it("reads of other places what names need, and nothing else", function()
    local out = run [[
      local core, top = require "tracefs.core", require "tracefs".tracing_dir()
      for _, file in ipairs { "available_events", "README", "printk_formats", "saved_cmdlines",
        "events/header_page", "events/sched/sched_switch/format" } do
        print(file, (core.read_file(top .. "/" .. file)) ~= nil)
      end
      print("kallsyms", core.read_file "/proc/kallsyms":find("^%x+ ") ~= nil)
      for _, file in ipairs { "trace", "dynamic_events", "tracing_on", "trace_pipe",
        "events/sched/sched_switch/enable", "events/../trace", "instances/x/trace" } do
        print(file, core.read_file(top .. "/" .. file))
      end
      print("shadow", core.read_file "/etc/shadow")
    ]]
    local allowed, refused = 0, 0
    for name, rest in out:gmatch("([^\t\n]+)\t([^\n]+)") do
      if rest == "true" then
        allowed = allowed + 1
      else
        refused = refused + 1
        assert.is_truthy(rest:find("^nil\t.*Permission denied\t13$"), name .. ": " .. rest)
      end
    end
    assert.same({ 7, 8 }, { allowed, refused })
  end)
end)
