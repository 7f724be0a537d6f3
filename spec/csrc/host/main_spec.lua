local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

local STATIC <const> = helper.build .. "/static/luatrace"

-- In a folder that is all there is: the file alone, and what a test adds.
local function make_root(files)
  local root = helper.tmpdir()
  assert(os.execute(("cp %s %s/luatrace"):format(helper.quote(STATIC), root)))
  for name, text in pairs(files or {}) do
    local folder = name:match("^(.*)/")
    if folder then
      assert(os.execute(("mkdir -p %s/%s"):format(root, folder)))
    end
    helper.write_file(root .. "/" .. name, text)
  end
  return root
end

describe("the static luatrace", function()
  -- A build with sanitizers has none, and neither has a machine without the static libraries.
  local function a_test(name, fn)
    it(name, function()
      if not helper.read_file(STATIC) then
        pending("build/static/luatrace is not built: make static")
      end
      fn()
    end)
  end

  a_test("is one executable below 4 MB that needs no library", function()
    assert.is_true(#helper.read_file(STATIC) < 4 << 20)
    local _, out, err = helper.execute { "ldd", STATIC }
    assert.is_truthy((out .. err):find("not a dynamic executable", 1, true), out .. err)
  end)

  a_test("says its version and its help like the other one", function()
    for _, option in ipairs { "--version", "--help" } do
      local status, out = helper.execute { STATIC, option }
      assert.equal(0, status)
      assert.equal(select(2, helper.run { option }), out)
    end
    local status, _, err = helper.execute { STATIC, "--no-such-option" }
    assert.equal(2, status)
    assert.is_truthy(err:find("--no-such-option", 1, true), err)
  end)

  a_test("gives up root's rights with --user", function()
    local status, out, err = helper.execute { STATIC, "--user", "daemon", "-d", "0.2", "-c",
      "id -u", "-e", [[
        print((io.open "/etc/shadow"))
        n = 0
        on("ftrace:print", function() n = n + 1 end)
        at_start(function() for _ = 1, 7 do trace:marker "x" end end)
        at_end(function() print(n) end)
      ]] }
    assert.equal("", err)
    assert.equal(0, status)
    assert.same({ "1", "7", "nil" }, (function(words)
      for word in out:gmatch "%S+" do
        words[#words + 1] = word
      end
      table.sort(words)
      return words
    end){})
  end)

  a_test("runs where there is nothing else, with its own modules and the script's", function()
    local root = make_root {
      ["script.lua"] = [[
        local near, deep = require "near", require "pack.deep"
        for _, name in ipairs { "argparse", "dkjson", "tracefs.core", "tracefs.aggregate" } do
          assert(require(name))
        end
        print(near, deep, arg[1])
        error "with its place"
      ]],
      ["near.lua"] = 'return "near"',
      ["pack/deep.lua"] = 'return "deep"',
    }
    local status, _, err = helper.execute {
      "chroot", root, "/luatrace", "--dry-run", "/script.lua", "word",
    }
    -- tracefs is not mounted in there
    assert.equal(1, status)
    assert.is_truthy(err:find("tracefs is not mounted", 1, true), err)

    local out
    status, out, err = helper.execute { STATIC, "--dry-run", root .. "/script.lua", "word" }
    assert.equal(1, status)
    assert.equal("near\tdeep\tword\n", out)
    assert.is_truthy(err:find("script.lua:6: with its place", 1, true), err)
    assert.is_nil(err:find("(luatrace)", 1, true), err)
  end)

  a_test("takes no module from the current directory", function()
    local root = make_root { ["argparse.lua"] = "os.exit(77)", ["stray.lua"] = "os.exit(77)" }
    local status, _, err = helper.execute {
      STATIC, "--dry-run", "-e", 'require "stray"', cwd = root,
      env = { LUA_PATH = "./?.lua", LUA_CPATH = "./?.so", LUA_INIT = "os.exit(77)" },
    }
    assert.equal(1, status)
    assert.is_truthy(err:find("module 'stray' not found", 1, true), err)
  end)

  a_test("says that it loads no C modules", function()
    local lfs = assert(package.searchpath("lfs", package.cpath))
    local status, _, err = helper.execute {
      STATIC, "--dry-run", "-e", 'require "lfs"',
      env = { LUA_CPATH = lfs, LUA_PATH = "/nowhere/?.lua" },
    }
    assert.equal(1, status)
    assert.is_truthy(err:find("C modules cannot be loaded", 1, true), err)
  end)

  a_test("traces, with exact counts, and cleans up", function()
    local load = helper.quote(helper.program("support/load"))
    local status, out, err = helper.execute {
      STATIC, "-c", ("%s udp 23 %d >&2"):format(load, loads.SIZE), "examples/netlat.lua",
      "--device", "lo",
      "--filter", ("len == %d || len == %d"):format(loads.SIZE + 28, loads.SIZE + 42),
    }
    assert.equal(0, status, err)
    assert.is_truthy(out:find("\nlo +23 +23 +0 +0 +0 +0 +23 +0\n"), out)
  end)

  a_test("removes its instance when a signal ends it", function()
    local process = helper.start {
      STATIC, "-e", 'io.stdout:setvbuf("no") on("sched:sched_switch", function() end)'
        .. ' at_start(function() print "on" end)',
    }
    process:expect "on"
    process:kill "TERM"
    assert.equal(0, (process:wait()))
  end)

  a_test("is an ordinary program as the first process of a container", function()
    local status, out = helper.execute {
      "unshare", "--pid", "--fork", "--mount-proc", STATIC, "--version",
    }
    assert.equal(0, status)
    assert.is_truthy(out:find("^luatrace "), out)
  end)
end)
