local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

-- A size that nobody else's packets have while this runs, as the two events count it.
local SIZE <const> = loads.SIZE
local FILTER <const> = ("len == %d || len == %d"):format(SIZE + 28, SIZE + 42)

local MODULE <const> = "/usr/lib/lighttpd/mod_magnet.so"

-- What stands in the way of running the module inside lighttpd, which has a Lua of its own.
local function obstacle()
  local found = helper.execute { "sh", "-c",
    "PATH=$PATH:/usr/sbin; command -v lighttpd && command -v ab" }
  if found ~= 0 or not helper.read_file(MODULE) then
    return "lighttpd with mod_magnet, or ab, is not here"
  end
  local cache = assert(helper.read_file(helper.build .. "/CMakeCache.txt"))
  if cache:match("\nLUATRACE_SANITIZE:STRING=([^\n]+)") then
    return "a sanitizer's library cannot be loaded into lighttpd"
  end
  local _, libraries = helper.execute { "ldd", MODULE }
  local _, version = helper.execute { helper.interpreter, "-e", "io.write(_VERSION:sub(5))" }
  if not libraries:find("liblua" .. version, 1, true) then
    return "lighttpd has another Lua than " .. version
  end
end

describe("examples/hosts/magnet.lua", function()
  local why = obstacle()
  local server, port, dir

  -- On a port that is free.
  local function start(filter)
    dir = helper.tmpdir()
    assert(os.execute("chmod 755 " .. dir))
    helper.write_file(dir .. "/page.txt", "a page\n")
    helper.write_file(dir .. "/magnet.lua", helper.read_file("examples/hosts/magnet.lua"))
    for try = 0, 9 do
      port = 20000 + (helper.pid * 10 + try) % 10000
      helper.write_file(dir .. "/conf", ([[
        server.document-root = "%s"
        server.bind = "127.0.0.1"
        server.port = %d
        server.modules = ("mod_magnet")
        magnet.attract-raw-url-to = ("%s/magnet.lua")
      ]]):format(dir, port, dir))
      server = helper.start { "lighttpd", "-D", "-f", dir .. "/conf", timeout = 300, env = {
        PATH = os.getenv "PATH" .. ":/usr/sbin",
        LUA_PATH = ("%s/?.lua;%s/?/init.lua;;"):format(helper.lua_dir, helper.lua_dir),
        LUA_CPATH = helper.core_dir .. "/?.so;;",
        LUATRACE_FILTER = filter,
      } }
      local state = helper.wait_until(function()
        local _, err = server:output()
        return helper.read_file(server.dir .. "/status") and "ended"
          or err:find("server started", 1, true) and "started"
      end, 30)
      if state == "started" then
        return
      end
    end
    error("lighttpd does not start: " .. select(2, server:output()))
  end

  local function get(path)
    local status, out, err = helper.execute { "ab", "-q", "-v", "4", "-n", "1",
      ("http://127.0.0.1:%d%s"):format(port, path) }
    assert.equal(0, status, err)
    return out
  end

  local function instances()
    local names = {}
    for name in io.popen("ls " .. helper.tracing_dir .. "/instances"):lines() do
      if name:find(("^luatrace%%-%d%%-"):format(server.pid)) then
        names[#names + 1] = name
      end
    end
    return #names
  end

  it("has in its answers what was there before the question: 10,007 packets", function()
    if why then
      pending(why)
    end
    start(FILTER)
    assert.is_truthy(get "/metrics":find('{how="matched"} 0\n', 1, true))
    for _, total in ipairs { 10007, 20014 } do
      loads.run { "udp", 10007, SIZE }
      local text = get "/metrics"
      assert.is_truthy(text:find(('{how="matched"} %d\n'):format(total), 1, true), text)
      assert.is_truthy(text:find(("seconds_count %d\n"):format(total), 1, true), text)
      assert.is_truthy(text:find("luatrace_lost_total 0\n", 1, true), text)
    end
    local text = get "/latency.json"
    assert.is_truthy(text:find('{"packets":20014,"p50_ns":%d+,"p90_ns":%d+,'), text)
    server:kill "INT"
    server:wait()
    assert.equal(0, instances())
  end)

  it("does not fail one of 10,000 requests while it traces", function()
    if why then
      pending(why)
    end
    start()
    get "/metrics"
    local count = os.getenv "LUATRACE_SHORT" and 2000 or 10000
    local status, out, err = helper.execute { "ab", "-q", "-n", tostring(count), "-c", "10",
      ("http://127.0.0.1:%d/page.txt"):format(port), timeout = 200 }
    assert.equal(0, status, err)
    assert.is_truthy(out:find("Complete requests: +" .. count .. "\n"), out)
    assert.is_truthy(out:find("Failed requests: +0\n"), out)
    assert.is_nil(out:find("Non-2xx", 1, true), out)
    assert.equal(1, instances())
    server:kill "INT"
    server:wait()
  end)

  it("leaves no instance behind a graceful restart, nor behind a new script", function()
    if why then
      pending(why)
    end
    start()
    assert.is_truthy(get "/metrics":find("luatrace_packets_total", 1, true))
    assert.equal(1, instances())
    server:kill "USR1"
    assert(helper.wait_until(function()
      local _, started = select(2, server:output()):gsub("server started", "")
      return started == 2
    end, 30))
    assert.equal(0, instances())
    assert.is_truthy(get "/metrics":find('{how="matched"} 0\n', 1, true))
    assert.equal(1, instances())
    helper.write_file(dir .. "/magnet.lua", helper.read_file(dir .. "/magnet.lua") .. "\n-- new\n")
    assert.is_truthy(get "/metrics":find("luatrace_packets_total", 1, true))
    assert.equal(1, instances())
    server:kill "INT"
    server:wait()
    assert.equal(0, instances())
  end)
end)
