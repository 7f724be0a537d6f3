local helper = require "spec.support.helper"

local quote = helper.quote

-- examples/hosts/host.c, built as its head says, from an installation of its own.
local function build(dir)
  local status, out, err = helper.execute {
    "cmake", "--install", helper.build, "--prefix", dir .. "/prefix", timeout = 120,
  }
  assert.equal(0, status, out .. err)
  local cache = assert(helper.read_file(helper.build .. "/CMakeCache.txt"))
  local lua = assert(cache:match("\nLUA_MODULE_NAME:INTERNAL=(%C+)"), "no Lua by pkg-config")
  local sanitize = cache:match("\nLUATRACE_SANITIZE:STRING=([^\n]+)")
  local paths = {}
  for folder in ("lib lib64 lib/x86_64-linux-gnu lib/aarch64-linux-gnu"):gmatch("%S+") do
    paths[#paths + 1] = ("%s/prefix/%s/pkgconfig"):format(dir, folder)
  end
  status, out, err = helper.execute {
    "sh", "-c",
    ([[set -e
    cc -Wall -Wextra -Werror %s -o %s/host examples/hosts/host.c \
      $(pkg-config --cflags --libs lua-tracefs %s)]]):format(
      sanitize and "-fsanitize=" .. sanitize or "", quote(dir), quote(lua)),
    env = { PKG_CONFIG_PATH = table.concat(paths, ":") },
    timeout = 120,
  }
  assert.equal("", out .. err)
  assert.equal(0, status)
  return dir .. "/host"
end

describe("examples/hosts/host.c", function()
  local host

  setup(function()
    host = build(helper.tmpdir())
  end)

  local function run(script, ...)
    local path = helper.tmpdir() .. "/script.lua"
    helper.write_file(path, script)
    return helper.execute { host, path, ... }
  end

  it("runs a script, with luatrace inside, and gets its result", function()
    local status, out, err = run([[
      local tracefs, text = require "tracefs", ...
      local session <close> = tracefs.session { buffer_kb = 64 }
      local count = 0
      session:on("ftrace:print", { "buf" }, function(line)
        count = count + (line:find("host", 1, true) and 1 or 0)
      end)
      session:at_start(function()
        for _ = 1, 23 do
          session:marker(text)
        end
        session:finish()
      end)
      session:run()
      return count
    ]], 4096, "from the host")
    assert.equal("", err)
    assert.equal("the script returned 23\n", out)
    assert.equal(0, status)
  end)

  it("finds no module of its own in the file system", function()
    local status, out, err = run([[
      package.path, package.cpath = "", ""
      for _, name in ipairs { "session", "events", "running", "core" } do
        require("tracefs." .. name)
      end
      return #require("tracefs").tracing_dir()
    ]])
    assert.equal("", err)
    assert.equal(("the script returned %d\n"):format(#helper.tracing_dir), out)
    assert.equal(0, status)
  end)

  it("outlives a script that takes more memory than it may", function()
    local status, out, err = run([[
      local session = require("tracefs").session { buffer_kb = 64 }
      local taken = {}
      while true do
        taken[#taken + 1] = { session }
      end
    ]], 2048)
    assert.equal("", out)
    assert.equal("host: not enough memory\n", err)
    assert.equal(1, status)
    status, out, err = run("return 1", 16)
    assert.equal("", out)
    assert.equal(1, status)
    assert.is_truthy(err:find("not enough memory", 1, true), err)
  end)

  it("shows an error with its traceback, and removes the session", function()
    local status, out, err = run([[
      session = require("tracefs").session { buffer_kb = 64 }
      session:on("no:event", print)
    ]])
    assert.equal("", out)
    assert.equal(1, status)
    assert.is_truthy(err:find("script.lua:2: ", 1, true), err)
    assert.is_truthy(err:find("stack traceback", 1, true), err)
  end)
end)
