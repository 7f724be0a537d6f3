local helper = require "spec.support.helper"
local loading = require "tracefs.command.loading"

local function options(script, eval)
  return { script = script, eval = eval or {} }
end

describe("loading.read", function()
  it("joins code of -e by lines", function()
    local text, name = loading.read(options(nil, { "a = 1", "b = 2" }))
    assert.equal("a = 1\nb = 2", text)
    assert.equal("=-e", name)
  end)

  it("reads a file, bytes as they are", function()
    local path = helper.tmpdir() .. "/script.lua"
    helper.write_file(path, "x = '\0\r\n'")
    local text, name = loading.read(options(path))
    assert.equal("x = '\0\r\n'", text)
    assert.equal("@" .. path, name)
  end)

  it("says which file and why not", function()
    local dir = helper.tmpdir()
    local text, message = loading.read(options(dir .. "/missing"))
    assert.is_nil(text)
    assert.equal(("cannot read the script %s/missing: No such file or directory"):format(dir),
      message)
    text, message = loading.read(options(dir))
    assert.is_nil(text)
    assert.equal(("cannot read the script %s: Is a directory"):format(dir), message)
  end)
end)

describe("loading.compile", function()
  it("keeps line numbers behind a first line with #", function()
    local chunk = assert(loading.compile("#!/usr/bin/luatrace\nerror('x')", "=s", {
      error = error,
    }))
    local _, message = pcall(chunk)
    assert.equal("s:2: x", message)
    assert.is_truthy(loading.compile("\xEF\xBB\xBF#!x\nx = 1", "=s", {}))
    assert.is_truthy(loading.compile("#", "=s", {}))
  end)

  it("names the line of a mistake, and takes no binary code", function()
    local chunk, message = loading.compile("x = 1\ny = = 2", "@dir/s.lua", {})
    assert.is_nil(chunk)
    assert.equal("dir/s.lua:2: unexpected symbol near '='", message)
    chunk, message = loading.compile(string.dump(function() end), "=s", {})
    assert.is_nil(chunk)
    assert.equal("s is a binary chunk (luac): luatrace runs Lua source", message)
  end)

  it("gives the code its globals", function()
    local env = { a = 1 }
    assert(loading.compile("b = a + 1 return ...", "=s", env))(5)
    assert.equal(2, env.b)
    assert.is_nil(_G.b)
  end)
end)

describe("loading.set_path", function()
  local path, cpath

  before_each(function()
    path, cpath = package.path, package.cpath
  end)

  after_each(function()
    package.path, package.cpath = path, cpath
  end)

  it("puts the script's folder where the current one was", function()
    package.path = "./?.lua;/a/?.lua;lib/?.lua;./?/init.lua;/b/?.lua"
    package.cpath = "/a/?.so;./?.so"
    loading.set_path(options("/tools/x.lua"))
    assert.equal("/a/?.lua;/b/?.lua;/tools/?.lua;/tools/?/init.lua", package.path)
    assert.equal("/a/?.so", package.cpath)
  end)

  it("takes the folder as it was given", function()
    package.path = "/a/?.lua"
    loading.set_path(options("x.lua"))
    assert.equal("/a/?.lua;./?.lua;./?/init.lua", package.path)
    package.path = "/a/?.lua"
    loading.set_path(options("sub/dir/x.lua"))
    assert.equal("/a/?.lua;sub/dir/?.lua;sub/dir/?/init.lua", package.path)
  end)

  it("adds none for code that has no file", function()
    package.path = "./?.lua;/a/?.lua"
    loading.set_path(options("-"))
    assert.equal("/a/?.lua", package.path)
    package.path = "./?.lua;/a/?.lua"
    loading.set_path(options(nil, { "x = 1" }))
    assert.equal("/a/?.lua", package.path)
  end)
end)

describe("loading.message_handler", function()
  local function failing(text)
    local chunk = assert(loading.compile(text, "@s.lua", _G))
    loading.boundary = function()
      chunk()
    end
    local _, message = xpcall(loading.boundary, loading.message_handler)
    loading.boundary = nil
    return message
  end

  it("shows the frames of the script when there are several", function()
    assert.equal("s.lua:1: x\n  s.lua:1: in function 'f'\n  s.lua:3: in the main chunk",
      failing("local function f() error('x') end\n\nf()"))
    assert.equal("s.lua:1: x", failing("error('x')"))
  end)

  it("leaves out C functions", function()
    assert.equal("s.lua:1: x\n  s.lua:1: in function <line 1>\n  s.lua:2: in the main chunk",
      failing("local function f() error('x') end\nlocal _ = ('a'):gsub('a', f)"))
  end)

  it("shows values of other types", function()
    assert.equal("error object is a table value", failing("error({})"))
    assert.equal("error object is a nil value", failing("error(nil)"))
    assert.equal("12", failing("error(12)"))
    assert.equal("shown", tostring(failing(
      "error(setmetatable({}, { __tostring = function() return 'shown' end }))")))
  end)
end)

describe("loading.without_position", function()
  it("knows our own code in a folder whose path Lua shortens", function()
    local long = helper.tmpdir() .. ("/a-long-name"):rep(6)
    local status, out, err = helper.execute {
      "sh", "-c", 'mkdir -p "$1" && cp -r "$2/tracefs" "$1" && exec "$3" -e "$4"', "sh", long,
      helper.lua_dir, helper.interpreter, ([[
        package.path = %q .. package.path
        local loading = require "tracefs.command.loading"
        local own = debug.getinfo(loading.read, "S").short_src
        print(own:sub(1, 3), loading.without_position(own .. ":12: a:1: no"))
        print(loading.without_position("..." .. ("/b"):rep(28) .. ":12: no"))
      ]]):format(long .. "/?.lua;"),
    }
    assert.equal(0, status, err)
    assert.equal(("...\ta:1: no\n...%s:12: no\n"):format(("/b"):rep(28)), out)
  end)

  it("takes off positions in our own code only", function()
    local own = debug.getinfo(loading.read, "S").short_src
    assert.equal("no", loading.without_position(own .. ":12: no"))
    assert.equal("script.lua:12: no", loading.without_position("script.lua:12: no"))
    assert.equal(".../of/others/tracefs/x.lua:12: no",
      loading.without_position(".../of/others/tracefs/x.lua:12: no"))
    local value = {}
    assert.equal(value, loading.without_position(value))
  end)
end)

describe("loading.error_text", function()
  it("is safe for a terminal", function()
    assert.equal("a\\x1Bb\nc", loading.error_text("a\27b\nc"))
    assert.equal("nil", loading.error_text(nil))
  end)
end)
