local aggregate = require "tracefs.aggregate"
local helper = require "spec.support.helper"
local output = require "tracefs.output"

describe("tracefs.output.prometheus", function()
  local path

  before_each(function()
    path = helper.tmpdir() .. "/luatrace.prom"
  end)

  local function written(fill)
    local out = assert(output.open { path = path, format = "prometheus" })
    fill(out)
    assert.is_nil(out:close())
    return helper.read_file(path)
  end

  -- A page with everything that there can be.
  local function fill(out)
    local latency = aggregate.new {
      "count", "p50", "p99.9", "minimum", "maximum", "deviation", "histogram",
      by = { "comm", "le" }, name = "latency", unit = "ns", max = 4,
    }
    latency:add(1500, 'a"\\\n\27', 1)
    latency:add(700, "\xe9", 2)
    latency:add(800, "\u{e9}", 2)
    latency:add(-5, "x", 1)
    latency:add(2000000000, "beyond", 1)
    local sizes = aggregate.new { "sum", "p50", by = "dev", name = "sizes", unit = "bytes" }
    sizes:add(4096, "sda")
    local count = aggregate.new { "count", by = "call", name = "calls" }
    count:count "openat"
    for _, object in ipairs { latency, sizes, count, count } do
      out:show(object)
    end
    out:show(aggregate.new { "count" })
    out:show { type = "packets", device = "lo", pairs = 7, min_ns = 401, ["p99.9_ns"] = 1.5 }
    out:show { type = "packets", device = "lo", pairs = 8 }
    out:values({ "a" }, { 1 }, "sched:sched_switch")
    out:values({ "a" }, { 1 }, "sched:sched_switch")
  end

  it("writes what was printed", function()
    local text = written(fill)
    for _, line in ipairs {
      "# TYPE luatrace_latency_seconds histogram",
      'luatrace_latency_seconds_bucket{comm="a\\"\\\\\\n\27",key_le="1",le="+Inf"} 1',
      'luatrace_latency_seconds_sum{comm="x",key_le="1"} -0.000000005',
      'luatrace_latency_seconds_count{comm="\u{e9}",key_le="2"} 1',
      -- another key that looks the same
      'luatrace_latency_seconds_count{comm="\u{e9}",key_le="2",same="2"} 1',
      'luatrace_latency_seconds_sum{comm="(other)",key_le="(other)"} 2',
      'luatrace_latency_p99_9_seconds{comm="x",key_le="1"} -0.000000005',
      "# TYPE luatrace_sizes_bytes summary",
      'luatrace_sizes_bytes{dev="sda",quantile="0.5"} 4096',
      'luatrace_sizes_bytes_sum{dev="sda"} 4096',
      "# TYPE luatrace_calls_total counter",
      'luatrace_calls_total{call="openat"} 1',
      'luatrace_packets_pairs{device="lo"} 8',
      'luatrace_packets_min_seconds{device="lo"} 0.000000401',
      'luatrace_events_total{run="luatrace",event="sched:sched_switch"} 2',
      'luatrace_failed{run="luatrace"} 0',
    } do
      assert.matches("\n" .. line .. "\n", "\n" .. text, 1, true)
    end
    assert.is_nil(text:find("values", 1, true))
  end)

  it("has what promtool asks for", function()
    if helper.execute { "promtool", "--version" } ~= 0 then
      pending("promtool is not there (.ci/deps outputs)")
      return
    end
    local text = written(fill)
    local status, out, err = helper.execute { "promtool", "check", "metrics", stdin = text }
    assert.same({ 0, "", "" }, { status, out, err })
  end)

  it("has both edges of each bucket", function()
    local values = aggregate.new { "histogram", scale = "linear", to = 50, width = 10 }
    for _, value in ipairs { 3, 12, 44 } do
      values:add(value)
    end
    local found = {}
    for le, count in written(function(out) out:show(values) end):gmatch 'le="(.-)"} (%d+)' do
      found[#found + 1] = le .. "=" .. count
    end
    assert.same({ "-1=0", "9=1", "19=2", "39=2", "49=3", "+Inf=3" }, found)
  end)

  it("changes the file as a whole, with the values of that time", function()
    local out = assert(output.open { path = path, format = "prometheus" })
    local calls = aggregate.new { "count", name = "calls" }
    calls:count()
    out:show(calls)
    assert.is_nil(out:flush())
    local reader <close> = assert(io.open(path))
    assert.matches("luatrace_calls_total 1\n", helper.read_file(path), 1, true)
    calls:count()
    assert.is_nil(out:close())
    assert.matches("luatrace_calls_total 2\n", helper.read_file(path), 1, true)
    -- who had it open before has the old one
    assert.matches("luatrace_calls_total 1\n", reader:read "a", 1, true)
  end)

  it("has what a script measures that knows nothing of metrics", function()
    local status, _, err = helper.run {
      "-q", "-i", "examples/demo.dat", "-f", "prometheus", "-o", path, "examples/netlat.lua",
    }
    assert.equal(0, status, err)
    local text = helper.read_file(path)
    assert.matches('\nluatrace_latency_seconds_count{device="lo"} 211\n', text, 1, true)
    -- a named aggregate that is never printed, too; one without a name is the script's own
    status, _, err = helper.run { "-q", "-i", "examples/demo.dat", "-f", "prometheus", "-o", path,
      "-e", [[
        new = require("tracefs.aggregate").new
        a = new { "count", name = "packets" } b = new { "count" }
        on("net:net_dev_queue", function() a:count() b:count() end)
      ]] }
    assert.same({ 0, "" }, { status, err })
    text = helper.read_file(path)
    assert.matches("\nluatrace_packets_total 211\n", text, 1, true)
    assert.is_nil(text:find("luatrace_values", 1, true))
  end)

  it("has no series that another file of the folder has, too", function()
    local seen, count = {}, 0
    for _, name in ipairs { "one.prom", 'a "b".prom', "none" } do
      local file = helper.tmpdir() .. "/" .. name
      local status, _, err = helper.run {
        "-q", "-i", "examples/demo.dat", "-f", "prometheus", "-o", file, "-e",
        'on("net:net_dev_queue") print(require("tracefs.aggregate").new { "count" })',
      }
      assert.same({ 0, "" }, { status, err })
      for series in helper.read_file(file):gmatch "\n(luatrace_.-) %d+%f[\n]" do
        assert.is_nil(seen[series])
        seen[series], count = true, count + 1
      end
    end
    assert.is_true(count > 3 * 5, count .. " series")
    assert.is_true(seen['luatrace_failed{run="a \\"b\\""}'])
    assert.is_true(seen['luatrace_events_total{run="none",event="net:net_dev_queue"}'])
  end)

  it("says of how many records each one of a sample is", function()
    local status, _, err = helper.run { "-q", "-i", "examples/demo.dat", "-f", "prometheus", "-o",
      path, "-e", [[
        packets = require("tracefs.aggregate").new { "count", name = "packets" }
        on("net:net_dev_queue", { sample = "1/10" }, function() packets:count() end)
        on("net:netif_receive_skb", function() end)
      ]] }
    assert.same({ 0, "" }, { status, err })
    local text = helper.read_file(path)
    assert.matches("\nluatrace_packets_total 21\n", text, 1, true)
    assert.matches('\nluatrace_sample_scale{run="luatrace",event="net:net_dev_queue"} 10\n', text,
      1, true)
    assert.equal(1, select(2, text:gsub("luatrace_sample_scale{", "")))
  end)

  it("counts what is beyond the series that it keeps", function()
    local text = written(function(out)
      for i = 1, 10007 do
        out:show { type = "task", runs = i, comm = "c" .. i % 10003 }
      end
    end)
    assert.equal(10000, select(2, text:gsub("\nluatrace_task_runs{", "")))
    assert.matches("\nluatrace_task_runs{comm=\"c4\"} 10007\n", text, 1, true)
    assert.matches("\n# TYPE luatrace_values_dropped_total counter\n"
      .. "luatrace_values_dropped_total{run=\"luatrace\"} 3\n", text, 1, true)
  end)

  it("says when it cannot be written", function()
    local none, message = output.open { path = path .. "/no", format = "prometheus" }
    assert.is_nil(none)
    assert.equal(("cannot write to '%s/no': No such file or directory"):format(path), message)
    local out = assert(output.open { path = "/dev/full", format = "prometheus" })
    assert.equal("cannot write to '/dev/full': No space left on device", tostring(out:close()))
  end)
end)
