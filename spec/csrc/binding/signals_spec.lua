local helper = require "spec.support.helper"

-- Signals belong to the process, so each case is one of its own.
local function run(code)
  return helper.run_lua("local core = require 'tracefs.core'\n" .. code)
end

local function expect(expected, code)
  local status, out, err = run(code)
  assert.equal("", err)
  assert.equal(expected, out)
  assert.equal(0, status)
end

-- For the scripts: sends this process a signal.
local KILL <const> = [[
  local function kill(name)
    local child <close> = core.spawn { "sh", "-c", "kill -" .. name .. " $PPID" }
    child:release()
    repeat
      core.poll({ child:fileno() }, 10)
    until child:wait()
  end
]]

describe("core.signals", function()
  it("is there once for a process, until it is closed", function()
    expect("true\nfalse\ttrue\ntrue\n", [[
      local signals = core.signals()
      print(signals ~= nil)
      local ok, message = pcall(core.signals)
      print(ok, message:find("has its signals object already", 1, true) ~= nil)
      signals:close()
      signals:close()
      local again <close> = core.signals()
      print(again ~= nil)
    ]])
  end)

  it("refuses calls of a closed object", function()
    expect("5\n", [[
      local signals = core.signals()
      signals:close()
      local count = 0
      for _, name in ipairs { "fileno", "received", "second", "stop", "guard" } do
        local ok, message = pcall(signals[name], signals, print, print)
        count = count + ((not ok and message:find("closed")) and 1 or 0)
      end
      print(count)
    ]])
  end)

  for _, case in ipairs { { "INT", 2 }, { "TERM", 15 }, { "HUP", 1 } } do
    it("notes the first SIG" .. case[1], function()
      expect(("nil\n0\n1\n%d\tprocess\n0\n%d\tprocess\nnil\n"):format(case[2], case[2]), KILL .. ([[
        local signals <close> = core.signals()
        print(signals:received())
        print(#core.poll({ signals:fileno() }, 0))
        kill "%s"
        print(#core.poll({ signals:fileno() }, 10))
        print(signals:received())
        print(#core.poll({ signals:fileno() }, 0))
        print(signals:received())
        print(signals:second())
      ]]):format(case[1]))
    end)
  end

  it("ends a wait early", function()
    expect("true\n", [[
      local signals <close> = core.signals()
      local child <close> = core.spawn("sleep 0.1; kill -INT $PPID")
      child:release()
      local start = core.now "mono"
      core.poll({}, 20)
      print(core.now "mono" - start < 10e9)
    ]])
  end)

  -- For the scripts. SIGINT is left out: the interpreter itself handles it.
  local HAS <const> = [[
    local function has(field, number)
      local file <close> = io.open("/proc/self/status")
      local mask = file:read("a"):match(field .. ":%s*(%x+)")
      return tonumber(mask, 16) & 1 << number - 1 ~= 0
    end
  ]]

  it("restores what was there", function()
    expect("false\tfalse\ntrue\ttrue\nfalse\tfalse\n", HAS .. [[
      local function show()
        print(has("SigCgt", 15), has("SigIgn", 13))
      end
      show()
      local signals = core.signals()
      show()
      signals:close()
      show()
    ]])
  end)

  it("leaves an ignored SIGHUP ignored, and takes an ignored SIGTERM over", function()
    local script = helper.tmpdir() .. "/script.lua"
    local path = ("package.cpath = %q\n"):format(helper.core_dir .. "/?.so")
    helper.write_file(script, path .. HAS .. [[
      local core = require "tracefs.core"
      local signals <close> = core.signals()
      print(has("SigIgn", 1), has("SigCgt", 1), has("SigIgn", 15), has("SigCgt", 15))
      io.stdout:flush()
      -- The child gets what this process was started with.
      local child <close> = core.spawn { "grep", "SigIgn", "/proc/self/status" }
      child:release()
      core.poll { child:fileno() }
    ]])
    local status, out, err = helper.execute {
      "env", "--ignore-signal=HUP,TERM", helper.interpreter, script,
    }
    assert.equal("", err)
    assert.equal(0, status)
    local own, mask = out:match("^(.-)\nSigIgn:%s*(%x+)\n$")
    assert.equal("true\tfalse\tfalse\ttrue", own)
    assert.equal(1 << 0 | 1 << 14, tonumber(mask, 16) & (1 << 0 | 1 << 14 | 1 << 12))
  end)
end)

describe("signals:guard", function()
  it("calls as xpcall does", function()
    expect("true\t1\tnil\t3\nfalse\thandled: x\nfalse\tb\n", [[
      local signals <close> = core.signals()
      local function handler(err) return "handled: " .. tostring(err) end
      print(signals:guard(function(...) return ... end, handler, 1, nil, 3))
      print(signals:guard(function() error("x", 0) end, handler))
      print(signals:guard(function() error({}) end, function() return "b" end))
    ]])
  end)

  it("refuses wrong arguments and to be nested", function()
    expect("false\nfalse\ntrue\tfalse\n", [[
      local signals <close> = core.signals()
      print((pcall(signals.guard, signals, 1, print)))
      print((pcall(signals.guard, signals, print, nil)))
      print(signals:guard(function()
        return (pcall(signals.guard, signals, print, print))
      end, print))
    ]])
  end)

  -- Each script runs for ever unless the second signal stops it.
  local forever = {
    ["a plain loop"] = "while true do end",
    ["a loop of pcall"] = "while true do pcall(function() while true do end end) end",
    ["a recursion that catches"] = "local function f() pcall(f) return f() end f()",
    ["a loop of xpcall with a handler"] =
      "while true do xpcall(function() while true do end end, function() return 1 end) end",
    ["a coroutine"] = "coroutine.wrap(function() while true do end end)()",
    ["a coroutine that is resumed"] = [[
      local co = coroutine.create(function() while true do pcall(coroutine.yield) end end)
      while true do coroutine.resume(co) end]],
    ["coroutines inside each other"] = [[
      coroutine.wrap(function()
        while true do
          pcall(coroutine.wrap(function() while true do pcall(error) end end))
        end
      end)()]],
    ["a wait"] = "while true do core.poll({}, 100) end",
    ["a pending close"] = [[
      while true do
        pcall(function()
          local x <close> = setmetatable({}, { __close = function() while true do end end })
          while true do end
        end)
      end]],
    ["a read"] = [[
      local name = os.tmpname()
      os.remove(name)
      os.execute("mkfifo " .. name)
      local fifo = io.open(name, "r+")
      os.remove(name)
      while true do fifo:read(1) end]],
  }
  local names = {}
  for name in pairs(forever) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    it("is stopped by the second signal in " .. name, function()
      local status, out, err = helper.run_lua([[
        local core = require "tracefs.core"
        local signals <close> = core.signals()
        signals:track(coroutine)
        local child <close> = core.spawn("sleep 0.1; kill -INT $PPID; sleep 0.1; kill -TERM $PPID")
        child:release()
        local ok, message = signals:guard(function() ]] .. forever[name] .. [[ end, tostring)
        print(ok, (message:gsub("^.-%d+: ", "")))
        -- Outside of the guard nothing is stopped any more.
        for _ = 1, 1000 do pcall(error) end
        print(signals:received())
        print(signals:second())
        repeat core.poll({ child:fileno() }, 1) until child:wait()
      ]], { timeout = 10 })
      assert.equal("", err)
      assert.equal("false\tinterrupted\n2\tprocess\n15\n", out)
      assert.equal(0, status)
    end)
  end

  it("is stopped by stop() too", function()
    expect("false\tinterrupted\nnil\n", [[
      local signals <close> = core.signals()
      local ok, message = signals:guard(function()
        while true do pcall(function() signals:stop() while true do end end) end
      end, tostring)
      print(ok, (message:gsub("^.-%d+: ", "")))
      print(signals:second())
    ]])
  end)

  it("leaves coroutines what they are", function()
    expect("1\t2\t3\ntrue\t4\nfalse\tcannot resume dead coroutine\nfalse\tx\nfalse\ty\ntrue\n", [[
      local signals <close> = core.signals()
      signals:track(coroutine)
      local co = coroutine.create(function(...)
        local got = coroutine.yield(...)
        return got
      end)
      print(select(2, coroutine.resume(co, 1, 2, 3)))
      print(coroutine.resume(co, 4))
      print(coroutine.resume(co))
      print(coroutine.resume(coroutine.create(function() error("x", 0) end)))
      print(pcall(coroutine.wrap(function() error("y", 0) end)))
      print(not pcall(coroutine.resume, 1))
    ]])
  end)

  it("dies of a signal that comes when stopping has not helped for a second", function()
    -- No instruction of Lua runs in a pattern that never ends matching.
    local process = helper.start {
      helper.interpreter,
      "-e",
      ("package.cpath = %q"):format(helper.core_dir .. "/?.so"),
      "-e",
      [[
        local signals = require "tracefs.core".signals()
        print "ready"
        io.stdout:flush()
        signals:guard(function()
          local text = ("a"):rep(100)
          text:find((".-"):rep(30) .. "b")
        end, tostring)
      ]],
    }
    process:expect "ready"
    -- of two kinds: two of one kind that come at once are one
    process:kill "HUP"
    helper.sleep(0.1)
    process:kill "INT"
    helper.sleep(2.2)
    process:kill "TERM"
    assert.equal(143, (process:wait()))
  end)
end)
