local helper = require "spec.support.helper"
local output = require "tracefs.output"

describe("tracefs.output", function()
  local path, out

  before_each(function()
    path = helper.tmpdir() .. "/out"
  end)

  after_each(function()
    if out then
      out:close()
      out = nil
    end
  end)

  local function open(format)
    out = assert(output.open { path = path, format = format })
  end

  local function written()
    assert.is_nil(out:close())
    return helper.read_file(path)
  end

  it("says why a file cannot be made", function()
    local none, message, errno = output.open { path = path .. "/no" }
    assert.is_nil(none)
    assert.equal(("cannot write to %s/no: No such file or directory"):format(path), message)
    assert.equal(2, errno)
    helper.write_file(path, "x")
    none, message = output.open { path = path .. "/no" }
    assert.is_nil(none)
    assert.matches("Not a directory", message, 1, true)
  end)

  it("empties the file first", function()
    helper.write_file(path, "before")
    open()
    out:write("after")
    assert.equal("after", written())
  end)

  it("prints as print does", function()
    open()
    out:print()
    out:print(nil)
    out:print(1, nil, "x", nil)
    out:print(setmetatable({}, { __tostring = function() return "shown" end }))
    out:print("a\27\r\0b")
    -- A file is no terminal.
    assert.equal("\nnil\n1\tnil\tx\tnil\nshown\na\27\r\0b\n", written())
  end)

  it("wraps print in objects under json", function()
    open("json")
    out:print("a\27", 1)
    out:show("text")
    out:show { b = 1, type = "mine" }
    out:show(nil)
    assert.equal('{"type":"print","text":"a\\u001b\\t1"}\n{"type":"print","text":"text"}\n'
      .. '{"type":"mine","b":1}\n{"type":"print","text":"nil"}\n', written())
  end)

  it("shows tables as words", function()
    open()
    out:show { 1, "two words", x = 'q"', a = "", b = true, [10] = 1.5, t = { 1, { z = 2 } } }
    out:show {}
    assert.equal('1 "two words" 10=1.5 a="" b=true t=[1,{"z":2}] x="q\\""\n\n', written())
  end)

  it("shows losses as the kernel does, or as objects", function()
    open()
    out:lost { cpu = 1, count = 7, why = "overrun" }
    out:lost { cpu = 0, why = "overrun" }
    assert.equal("CPU:1 [LOST 7 EVENTS]\nCPU:0 [LOST EVENTS]\n", written())
    open("json")
    out:lost { cpu = 1, count = 7, after_ts = 10, before_ts = 20, why = "overrun" }
    out:lost { cpu = 0, why = "dropped" }
    assert.equal('{"type":"lost","cpu":1,"count":7,"after_ts":10,"before_ts":20,"why":"overrun"}\n'
      .. '{"type":"lost","cpu":0,"count":null,"after_ts":null,"before_ts":null,"why":"dropped"}\n',
      written())
  end)

  it("notices a full disk and writes nothing behind it", function()
    local full = assert(output.open { path = "/dev/full" })
    full:write("little")
    local failure = full:flush()
    assert.is_true(output.is_failure(failure))
    assert.equal("cannot write to '/dev/full': No space left on device", tostring(failure))
    assert.equal(failure, full.failure)
    -- Those that come later are no errors of their own.
    full:write("more")
    full:print("more")
    assert.equal(failure, full:flush())
    assert.equal(failure, full:close())
    assert.equal(failure, full:close())
  end)

  it("raises when a write fails at once", function()
    local full = assert(output.open { path = "/dev/full" })
    local ok, err = pcall(function()
      for _ = 1, 100 do
        full:write(("x"):rep(10000))
      end
    end)
    assert.is_false(ok)
    assert.is_true(output.is_failure(err))
    assert.equal(err, full:close())
  end)

  it("tells failures from other values", function()
    for _, value in ipairs { "cannot write", {}, 1, setmetatable({}, {}) } do
      assert.is_false(output.is_failure(value))
    end
    assert.is_false(output.is_failure(nil))
  end)

  it("stands behind print and io.write once installed", function()
    local status, stdout, err = helper.run_lua([[
      local output = require "tracefs.output"
      local out = output.open { path = arg[1] }
      out:install()
      print("printed", 1)
      assert(io.write("a", 1, 2.5, "\n") == io.output())
      io.write()
      local ok, message = pcall(io.write, "b", {})
      print(ok, message)
      io.stdout:write("raw\n")
      -- A file of the script's own is the script's.
      io.output(arg[2])
      io.write("own")
      io.close()
      out:close()
    ]], { path, path .. "2" })
    assert.same({ 0, "raw\n", "" }, { status, stdout, err })
    assert.matches("^printed\t1\na12%.5\nbfalse\t.*bad argument #2 to 'write' %(string expected,"
      .. " got table%)\n$", helper.read_file(path))
    assert.equal("own", helper.read_file(path .. "2"))
  end)
end)
