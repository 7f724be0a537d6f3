-- The launcher: of the build tree, and as it is installed.
local helper = require "spec.support.helper"

describe("the launcher", function()
  local LAUNCHER <const> = helper.build .. "/luatrace"

  -- A copy of the build tree's launcher that finds the C core in another folder.
  local function launcher_with_core_in(dir)
    local text = assert(helper.read_file(LAUNCHER))
    local from, to = text:find(helper.build .. "/?.so", 1, true)
    local path = helper.tmpdir() .. "/luatrace"
    helper.write_file(path, text:sub(1, from - 1) .. dir .. "/?.so" .. text:sub(to + 1))
    assert(os.execute("chmod +x " .. helper.quote(path)))
    return path
  end

  it("is a program", function()
    local status, out, err = helper.execute { LAUNCHER, "--version" }
    assert.same({ 0, "" }, { status, err })
    assert.truthy(out:find("^luatrace %d+%.%d+%.%d+"), out)
  end)

  it("looks for modules in absolute folders only, its own first", function()
    local status, out, err = helper.execute {
      LAUNCHER, "--dry-run", "-e", "print(package.path) print(package.cpath)",
      cwd = "/",
      env = { LUA_PATH = "./?.lua;?/x.lua;/of/mine/?.lua;;", LUA_CPATH = "./?.so;/of/mine/?.so;;" },
    }
    assert.equal(0, status, err)
    local path, cpath = out:match("^([^\n]*)\n([^\n]*)\n")
    for entry in (path .. ";" .. cpath):gmatch("[^;]*") do
      assert.equal("/", entry:sub(1, 1), out)
    end
    assert.truthy(path:find(helper.root .. "/lua/?.lua;", 1, true), path)
    assert.truthy(path:find(";/of/mine/?.lua", 1, true), path)
    assert.equal(1, (cpath:find(helper.build .. "/?.so;", 1, true)), cpath)
    assert.truthy(cpath:find(";/of/mine/?.so", 1, true), cpath)
  end)

  it("loads nothing from the current directory", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/argparse.lua", "print('loaded from here') os.exit(42)")
    local status, out = helper.execute {
      LAUNCHER, "--version", cwd = dir, env = { LUA_PATH = "./?.lua;;" },
    }
    assert.equal(0, status)
    assert.falsy(out:find("loaded from here"))
  end)

  it("says that the C core is not there, where it looked, and what to do", function()
    local empty = helper.tmpdir()
    local status, out, err = helper.execute { launcher_with_core_in(empty), "--version" }
    assert.same({ 1, "" }, { status, out })
    assert.truthy(err:find("^luatrace: module tracefs%.core is not there; looked for:\n"), err)
    assert.truthy(err:find(empty .. "/tracefs/core.so", 1, true), err)
    assert.truthy(err:find("run make in the source tree", 1, true), err)
  end)

  it("says why the C core cannot be loaded", function()
    local dir = helper.tmpdir()
    assert(os.execute(("mkdir %s/tracefs"):format(dir)))
    helper.write_file(dir .. "/tracefs/core.so", "no library")
    local status, out, err = helper.execute { launcher_with_core_in(dir), "--version" }
    assert.same({ 1, "" }, { status, out })
    assert.truthy(err:find("^luatrace: module tracefs%.core cannot be loaded: "), err)
    assert.truthy(err:find("core.so: file too short", 1, true), err)
  end)

  it("names the package of a missing Lua module", function()
    local status, out, err = helper.execute {
      LAUNCHER, "--version", env = { LUA_PATH = "/nowhere/?.lua" },
    }
    assert.same({ 1, "" }, { status, out })
    assert.truthy(err:find("module argparse is not there", 1, true), err)
    assert.truthy(err:find("install lua-argparse", 1, true), err)
  end)

  it("works where it is installed, whatever the prefix", function()
    local prefix = helper.tmpdir()
    local status, out, err = helper.execute {
      "cmake", "--install", helper.build, "--prefix", prefix, timeout = 60,
    }
    assert.equal(0, status, out .. err)
    status, out, err = helper.execute { prefix .. "/bin/luatrace", "--version", cwd = "/" }
    assert.same({ 0, "" }, { status, err })
    assert.truthy(out:find("^luatrace %d+%.%d+%.%d+"), out)
    out = select(2, helper.execute { "sh", "-c", "find . -type f | sort", cwd = prefix })
    for _, file in ipairs {
      "share/lua/%d%.%d/tracefs/init%.lua", "share/luatrace/examples/netlat%.lua",
      "share/man/man1/luatrace%.1", "lib[%w_/-]*/lua/%d%.%d/tracefs/core%.so",
    } do
      assert.truthy(out:find("\n%./" .. file .. "\n"), out)
    end
    -- The rocks luatrace and uatrace own these names.
    assert.falsy(out:find("/luatrace%.lua\n"), out)
    assert.falsy(out:find("/lua/%d%.%d/luatrace"), out)
  end)
end)
