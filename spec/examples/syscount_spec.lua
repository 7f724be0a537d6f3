local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local SYSCOUNT <const> = "examples/syscount.lua"

local function supported()
  local instance <close> = assert(tracefs.instance_create())
  return hist.supported(instance)
end

local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)

-- The load makes this many calls of a number that nobody else uses.
local function count(calls, ...)
  return helper.run {
    "-c", ("%s syscalls %d --nr 1048601 >/dev/null"):format(LOAD, calls), SYSCOUNT, "--top", "5000",
    ...,
  }
end

describe("examples/syscount.lua", function()
  it("counts every call, in the kernel or here, and says where", function()
    local status, out, err = count(1009)
    assert.equal(0, status, err)
    assert.matches("\n" .. loads.NAME .. "%-calls +%d+  1048601 +1009\n", out)
    if supported() then
      assert.matches("\n%d+ calls, counted in the kernel\n", out)
    else
      assert.matches("\n%d+ calls, counted in Lua\n", out)
      assert.matches("syscount: hist: this kernel has no histograms .*\nsyscount: counting in Lua, "
        .. "every call is copied\n", err)
    end
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("adds up by name and by call, and looks at one name only", function()
    for _, by in ipairs { "comm", "call" } do
      local status, out, err = count(101, "--in-lua", "--by", by, "--comm", loads.NAME .. "-c*")
      assert.equal(0, status, err)
      assert.equal("", err)
      local name = by == "comm" and loads.NAME .. "%-calls" or ""
      assert.matches(("\n%s +1048601 +101\n"):format(name), out)
      assert.is_nil(out:find("\nsh ", 1, true), out)
    end
  end)

  it("has names for the calls that it counts here", function()
    local status, out, err = helper.run {
      "-c", ("%s sockets 23 0 >/dev/null"):format(LOAD), SYSCOUNT, "--in-lua",
      "--comm", loads.NAME .. "*",
      "--by", "call", "--top", "100",
    }
    assert.equal(0, status, err)
    assert.matches("\n +sys_socket +23\n", out)
  end)

  it("prints objects under -f json", function()
    local status, out, err = helper.run {
      "-f", "json", "-c", ("%s syscalls 7 --nr 1048601 >/dev/null"):format(LOAD), SYSCOUNT,
        "--in-lua",
      "--comm", loads.NAME .. "-calls",
    }
    assert.equal(0, status, err)
    assert.matches('{"type":"calls","call":"1048601","calls":7,"comm":"' .. loads.NAME
      .. '%-calls","pid":%d+}', out)
    assert.matches('{"type":"total","calls":%d+,"counted_in":"lua","dropped":0}', out)
  end)

  it("is rows, metrics and bars, too", function()
    local function in_format(format)
      local status, out, err = helper.run {
        "-f", format, "-c", ("%s syscalls 7 --nr 1048601 >/dev/null"):format(LOAD), SYSCOUNT,
        "--in-lua", "--comm", loads.NAME .. "-calls", "--by", "comm",
      }
      assert.equal(0, status, err)
      assert.equal("", err)
      return out
    end
    local out = in_format "csv"
    assert.matches("^type,call,calls,comm,more\r\n", out)
    assert.matches("\ncalls,1048601,7," .. loads.NAME .. "%-calls,\r\n", out)
    assert.matches("\ntotal,,%d+,,", out)
    out = in_format "prometheus"
    assert.matches('\nluatrace_syscall_calls{call="1048601",comm="' .. loads.NAME
      .. '%-calls"} 7\n', out)
    assert.matches("\nluatrace_syscalls_calls %d+\n", out)
    assert.matches(">" .. loads.NAME .. "%-calls 1048601<", in_format "svg")
  end)

  it("counts here what the kernel's histograms cannot: some processes", function()
    local status, out, err = helper.run { "-d", "0.2", "-p", helper.pid, SYSCOUNT }
    assert.equal(0, status, err)
    assert.matches("calls, counted in Lua", out)
    assert.matches("syscount: hist: ", err)
  end)

  it("keeps a name on its line", function()
    local status, out, err = helper.run {
      "-c", ("%s --name %s syscalls 7 --nr 1048601 >/dev/null"):format(
        helper.quote(helper.program "support/load"), helper.quote "x\ny"),
      SYSCOUNT, "--in-lua", "--comm", "x?y-calls", "--top", "100",
    }
    assert.equal(0, status, err)
    assert.matches("\nx\\ny%-calls +%d+  1048601 +7\n", out)
  end)

  it("refuses a size that no kernel's table has", function()
    for _, size in ipairs { "64", "131073", "many" } do
      local status, out, err = helper.run { SYSCOUNT, "--size", size }
      assert.same({ 1, "" }, { status, out })
      assert.truthy(err:find(("takes from 65 to 131072 rows, not '%s'"):format(size), 1, true), err)
    end
  end)
end)
