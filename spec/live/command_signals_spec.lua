-- Signals to the command: the first one ends the run properly, the second one at once; and never
-- does anything stay behind (the helper looks after each test).
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local terminal = require "spec.support.terminal"

-- Starts a run that counts, and waits until it has begun.
local function start(words)
  local argv = { "-v" }
  for _, word in ipairs(words) do
    argv[#argv + 1] = word
  end
  local run = helper.start_luatrace(argv)
  run:expect "KB for each CPU"
  return run
end

local function ended(run)
  local status, out = run:wait()
  return { status, out }
end

-- Says when the first event has come.
local SAY <const> = 'io.stderr:write "an event\\n" '
local COUNT <const> = [[
  n = 0
  on("sched:sched_switch", function()
    n = n + 1
    if n == 1 then ]] .. SAY .. [[ end
  end)
  at_end(function() print(n > 0) end)
]]

describe("the first signal", function()
  for _, name in ipairs { "INT", "TERM", "HUP" } do
    it("ends the run properly: SIG" .. name, function()
      local run = start { "-e", COUNT }
      run:expect "an event"
      run:kill(name)
      local status, out, err = run:wait()
      assert.same({ 0, "true\n" }, { status, out })
      -- Everything that was in the buffers has been delivered.
      local produced, delivered, lost, left = err:match(
        "(%d+) events in [%d.]+ s: (%d+) delivered, (%d+) lost, (%d+) not read")
      assert.equal("0", left)
      assert.equal(tonumber(produced), delivered + lost)
    end)
  end

  it("delivers what is in the buffers", function()
    -- A handler that is behind by far more than it can do before the signal.
    local nr, filter = loads.fresh_nr()
    local run = start {
      "-e", ([[
        n = 0
        on(%q, { filter = %q }, function()
          n = n + 1
          if n == 1 then
            local until_then = os.clock() + 1
            while os.clock() < until_then do end
          end
        end)
        at_end(function() print(n) end)
      ]]):format(loads.SYSCALL, filter),
    }
    loads.run { "--nr", nr, "syscalls", 5003 }
    run:kill "INT"
    assert.same({ 0, "5003\n" }, ended(run))
  end)

  it("ends a loop that the script owns, and the script goes on behind it", function()
    local run = start {
      "-e", 'enable("sched:sched_switch") for ev in events() do if not n then ' .. SAY
        .. 'end n = 1 end print("behind", n)',
    }
    run:expect "an event"
    run:kill "TERM"
    assert.same({ 0, "behind\t1\n" }, ended(run))
  end)

  it("ends a loop that never waits", function()
    local nr, filter = loads.fresh_nr()
    local run = start {
      "-e", ([[
        enable(%q, { filter = %q })
        for ev in events() do
          for _ = 1, 3000 do end
          n = (n or 0) + 1
          if n == 10000 then io.stderr:write "an event\n" end
        end
        print "behind"
      ]]):format(loads.SYSCALL, filter),
    }
    -- About twice of what the loop can take.
    local load = loads.start { "--nr", nr, "--rate", 60000, "syscalls", 10000000 }
    run:expect("an event", 60)
    run:kill "INT"
    assert.same({ 0, "behind\n" }, ended(run))
    load.process:kill "TERM"
    load.process:wait()
  end)

  it("that comes before the run begins ends it when it does", function()
    local run = helper.start_luatrace {
      "-e", 'io.stderr:write("loading\\n") local t = os.clock() + 0.5 while os.clock() < t do end '
        .. COUNT:gsub("n > 0", '"at_end"'),
    }
    run:expect "loading"
    run:kill "TERM"
    assert.same({ 0, "at_end\n" }, ended(run))
  end)

  it("reaches the command of -c, whose status counts", function()
    local run = start {
      "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done", "-e", COUNT,
    }
    run:expect "ready"
    run:kill "TERM"
    local status, out = run:wait()
    assert.equal(7, status)
    assert.matches("true\n", out, 1, true)

    run = start { "-c", "echo ready; exec sleep 1000", "-e", COUNT }
    run:expect "ready"
    run:kill "INT"
    assert.equal(128 + 2, (run:wait()))
  end)
end)

describe("the second signal", function()
  -- Two signals of one kind are one while a process that has to wait for a CPU has not taken the
  -- first, and of two kinds it takes the one with the lower number first.
  local function kill_twice(run, first, second)
    run:kill(first)
    helper.sleep(0.3)
    run:kill(second)
  end

  local loops = {
    ["a handler that never returns"] = 'on("sched:sched_switch", function() ' .. SAY
      .. "while true do end end)",
    ["a handler that catches everything"] = [[
      trace.on_error = "warn"
      on("sched:sched_switch", function() ]] .. SAY .. [[
        while true do pcall(function() while true do end end) end
      end)]],
    ["an at_end that never returns"] = COUNT .. "at_end(function() while true do end end)",
    ["a coroutine"] = [[
      on("sched:sched_switch", function() ]] .. SAY .. [[
        coroutine.wrap(function() while true do end end)()
      end)]],
    ["a script that never starts"] = SAY .. "while true do end",
    ["a script that sleeps in the kernel"] = SAY
      .. 'while true do require("tracefs").core.poll({}) end',
  }
  for name, code in pairs(loops) do
    it("ends at once " .. name, function()
      local run = helper.start_luatrace { "-v", "-e", code }
      run:expect "an event"
      kill_twice(run, "INT", "TERM")
      local status, _, err = run:wait()
      assert.equal(128 + 15, status)
      assert.matches("luatrace: interrupted\n$", err)
    end)
  end

  it("gives 128 + its number", function()
    local run = start {
      "-e", 'on("sched:sched_switch", function() ' .. SAY .. "while true do end end)",
    }
    run:expect "an event"
    kill_twice(run, "HUP", "INT")
    assert.equal(128 + 2, (run:wait()))
  end)

  it("kills a command that does not end", function()
    local run = start {
      "-c", "trap '' TERM INT; echo $$; while :; do sleep 0.05; done", "-e", COUNT,
    }
    local pid = helper.wait_until(function() return run:output():match("^(%d+)\n") end)
    kill_twice(run, "INT", "TERM")
    assert.equal(128 + 15, (run:wait()))
    assert.is_true(helper.wait_until(function()
      local stat = helper.read_file(("/proc/%s/stat"):format(pid))
      return not stat or stat:find("%) Z ") ~= nil
    end))
  end)
end)

describe("a key on the terminal", function()
  it("reaches the command of -c once, and ends both", function()
    if not terminal.is_there() then
      pending("script is not installed")
      return
    end
    local status, out = terminal.run(
      ("%s -c 'n=0; trap \"n=\\$((n+1)); sleep 0.3; echo \\$n; exit 9\" INT; echo ready;"
        .. " while :; do sleep 0.05; done' -e 'at_end(function() print \"at_end\" end)'"):format(
        helper.command),
      { keys = "\\003", after = "ready" }
    )
    assert.equal(9, status)
    assert.matches("at_end\n", out, 1, true)
    assert.matches("1\n", out, 1, true)
    assert.is_nil(out:find("2\n", 1, true), out)
  end)
end)
