local helper = require "spec.support.helper"
local http = require "tracefs.output.http"

local ASK <const> = [[exec 3<>/dev/tcp/127.0.0.1/$0 && printf "$1" >&3 && cat <&3]]
local SCRIPT <const> = [[
calls = require("tracefs.aggregate").new { "count", "p50", "p90", "p99", "histogram",
  name = "calls", unit = "ns" }
for i = 1, 100 do calls:add(i * 1000) end
at_start(function() trace:print(calls) end)
]]

describe("tracefs.output.http", function()
  it("reads addresses", function()
    assert.same({ "127.0.0.1", 9464 }, { http.parse "9464" })
    assert.same({ "0.0.0.0", 1 }, { http.parse "0.0.0.0:1" })
    assert.same({ "::1", 1 }, { http.parse "[::1]:1" })
    for _, text in ipairs { "", "x", "65536", "host:1", "::1", ":1", "1:2:3", "-1", "1.5" } do
      assert.is_nil((http.parse(text)), text)
    end
  end)

  local function has_luv()
    return helper.execute { helper.interpreter, "-e", "require 'luv'" } == 0
  end

  local function start()
    local run = helper.start_luatrace { "--listen", "0", "-e", SCRIPT, timeout = 60 }
    run:expect("metrics are at http://127.0.0.1:", 20)
    local _, err = run:output()
    return run, err:match "127.0.0.1:(%d+)/metrics"
  end

  local function ask(port, request)
    local _, out = helper.execute { "bash", "-c", ASK, port, request }
    return out
  end

  it("answers who asks for the metrics, and nothing else", function()
    if not has_luv() then
      pending("no luv for this Lua here")
      return
    end
    local run, port = start()
    local text = ask(port, "GET /metrics?x=1 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert.matches("^HTTP/1.1 200 OK\r\n.*\nluatrace_calls_seconds_count 100\n", text)
    local length = tonumber(text:match "Content%-Length: (%d+)")
    assert.equal(length, #text:match "\r\n\r\n(.*)$")
    assert.matches("^HTTP/1.1 200 OK\r\n.*\r\n\r\n$", ask(port, "HEAD /metrics HTTP/1.0\\n\\n"))
    assert.matches("^HTTP/1.1 404 ", ask(port, "GET /../etc/passwd HTTP/1.1\\r\\n\\r\\n"))
    assert.matches("^HTTP/1.1 405 ", ask(port, "POST /metrics HTTP/1.1\\r\\n\\r\\n"))
    assert.matches("^HTTP/1.1 400 ", ask(port, "\\001\\002\\n\\n"))
    assert.matches("^HTTP/1.1 431 ", ask(port, ("a"):rep(9000)))
    -- a second listener on the port
    local status, _, err = helper.run { "--listen", port, "-e", "at_end(print)" }
    assert.equal(1, status)
    assert.matches("cannot listen on " .. port .. ": EADDRINUSE", err, 1, true)
    run:kill "INT"
    local ended, out = run:wait()
    assert.same({ 0, "" }, { ended, out })
  end)

  it("is there for programs, too", function()
    if not has_luv() then
      pending("no luv for this Lua here")
      return
    end
    local dir = helper.tmpdir()
    local status, out, err = helper.run_lua([[
      local tracefs = require "tracefs"
      local out = assert(require("tracefs.output").open { format = "prometheus",
        path = arg[1] .. "/x.prom" })
      local calls = require("tracefs.aggregate").new { "count", name = "calls" }
      calls:count()
      out:show(calls)
      local session <close> = tracefs.session {}
      session:on("sched:sched_process_fork", function() end)
      local port = out:listen(session, "0"):match "^http://127.0.0.1:(%d+)/metrics$"
      session:at_start(function()
        os.execute(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s && printf \"%s\" >&3 && cat <&3 >%s' "
          .. "&& mv %s %s &"):format(port, "GET /metrics HTTP/1.0\\n\\n", arg[1] .. "/new",
          arg[1] .. "/new", arg[1] .. "/page"))
      end)
      session:every(0.02, function()
        local page = io.open(arg[1] .. "/page")
        if page then
          page:close()
          session:finish()
        end
      end)
      out:stats(session:run { duration = 20 })
      assert(out:close() == nil)
    ]], { dir })
    assert.same({ 0, "", "" }, { status, out, err })
    for _, name in ipairs { "page", "x.prom" } do
      local page = helper.read_file(dir .. "/" .. name)
      assert.matches("\nluatrace_calls_total 1\n", "\n" .. page, 1, true)
      assert.matches('\nluatrace_events_lost_total{run="x",cpu="0"} 0\n', page, 1, true)
    end
    local json = assert(require("tracefs.output").open { format = "json", path = dir .. "/x" })
    assert.has_error(function() json:listen({}, "0") end,
      "listen: there are metrics with the format prometheus, not json")
    json:stats { lost = 0, per_cpu = { [0] = { lost = 0 } } }
    assert.is_nil(json:close())
    assert.equal('{"type":"stats","lost":0,"per_cpu":[{"cpu":0,"lost":0}]}\n',
      helper.read_file(dir .. "/x"))
  end)

  it("is what Prometheus scrapes: its quantiles are those of the script", function()
    if not has_luv() then
      pending("no luv for this Lua here")
      return
    elseif helper.execute { "prometheus", "--version" } ~= 0
      or helper.execute { "python3", "-c", "" } ~= 0 then
      pending("prometheus or python3 is not there (.ci/deps outputs specs)")
      return
    elseif helper.short then
      pending("a server of its own: not with LUATRACE_SHORT")
      return
    end
    local run, port = start()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/prometheus.yml", ([[
scrape_configs:
  - job_name: luatrace
    scrape_interval: 1s
    static_configs: [{ targets: ["127.0.0.1:%s"] }]
]]):format(port))
    -- a port that is free now
    local _, free = helper.execute { "python3", "-c",
      "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])" }
    free = free:match "%d+"
    local server = helper.start {
      "prometheus", "--config.file=" .. dir .. "/prometheus.yml",
      "--storage.tsdb.path=" .. dir .. "/data", "--web.listen-address=127.0.0.1:" .. free,
      timeout = 60,
    }
    local function query(expression)
      local _, answer = helper.execute { "promtool", "query", "instant",
        "http://127.0.0.1:" .. free, expression }
      return tonumber(answer:match "=> (%S+)")
    end
    local count = helper.wait_until(function()
      return query "luatrace_calls_seconds_count"
    end, 40)
    assert.equal(100, count, (select(2, server:output())))
    for _, quantile in ipairs { 50, 90, 99 } do
      local script = query(("luatrace_calls_p%d_seconds"):format(quantile))
      local found = query(("histogram_quantile(%g, luatrace_calls_seconds_bucket)"):format(
        quantile / 100))
      assert.is_true(math.abs(found - script) <= script * 1e-12, found .. " " .. script)
      assert.is_true(script >= quantile * 1e-6 and script <= quantile * 1.01e-6)
    end
    server:kill "TERM"
    server:wait()
    run:kill "INT"
    assert.equal(0, (run:wait()))
  end)

  it("does not go with what has no metrics, or no time", function()
    for _, argv in ipairs {
      { "-f", "json", "--listen", "1", "-e", "x()" }, { "-i", "x", "--listen", "1", "-e", "x()" },
      { "--listen", "x", "-e", "x()" },
    } do
      local status, _, err = helper.run(argv)
      assert.equal(2, status)
      assert.matches("listen", err, 1, true)
    end
  end)
end)
