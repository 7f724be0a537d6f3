-- The command on the live kernel: what it runs, what ends it, and with which status.
local elsewhere = require "spec.support.elsewhere"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

local SYSCALL <const> = loads.SYSCALL

-- Globals for the scripts: how often the load's call was seen.
local function counter(nr)
  return ([[
    count = 0
    on(%q, { "id", filter = "id == %d" }, function() count = count + 1 end)
    at_end(function() print(count) end)
  ]]):format(SYSCALL, nr)
end

local function load_command(nr, count, options)
  return ("%s %s --nr %d syscalls %d >/dev/null"):format(
    helper.quote(helper.program("support/load")), options or "", nr, count)
end

local function script(text)
  local path = helper.tmpdir() .. "/script.lua"
  helper.write_file(path, text)
  return path
end

local function is_alive(pid)
  local stat = helper.read_file(("/proc/%s/stat"):format(pid))
  return stat ~= nil and not stat:find("%) Z ")
end

-- Instances whose name carries the pid of a process that was started here.
local function instances_of(pid)
  local names = {}
  local list <close> = io.popen(("ls %s/instances"):format(helper.quote(helper.tracing_dir)))
  for name in list:lines() do
    if name:find(("-%d-"):format(pid), 1, true) then
      names[#names + 1] = name
    end
  end
  return names
end

describe("luatrace", function()
  it("says who keeps its instance, which the next run removes", function()
    local status, out, err = helper.run { "-d", "0.1", "-e", [[
      held = assert(io.open(trace.instance:dir() .. "/trace_pipe"))
      on("sched:sched_process_exit", function() end)
      print(trace.instance:dir())
    ]], timeout = 10 }
    assert.equal(0, status)
    assert.matches("^luatrace: warning: cannot remove the instance /[^\n]*: it is busy", err)
    assert.matches("trace_pipe", err, 1, true)
    assert.equal(0, (helper.run { "-e", "", timeout = 10 }))
    assert.equal(1, (helper.execute { "test", "-d", (out:gsub("\n", "")) }))
  end)

  it("returns at once from a script that wants nothing", function()
    local status, out, err = helper.run { "-e", "print(1, nil, 'x')", timeout = 10 }
    assert.same({ 0, "1\tnil\tx\n", "" }, { status, out, err })
    -- Events that are only turned on call nobody either.
    status, out, err = helper.run { "-e", 'enable("sched:sched_switch")', timeout = 10 }
    assert.same({ 0, "", "" }, { status, out, err })
  end)

  it("gives a script its arguments", function()
    local path = script [[
      local trace = require "tracefs.script"
      print(#trace.args, trace.args[1], trace.args[2], arg[0], arg[1], ...)
    ]]
    local status, out, err = helper.run { path, "--one", "two words" }
    assert.same({ 0, "" }, { status, err })
    assert.equal(("2\t--one\ttwo words\t%s\t--one\t--one\ttwo words\n"):format(path), out)
    status, out, err = helper.run { "-e", "print(trace.args[1], arg[1], ...)", "--", "-x" }
    assert.same({ 0, "-x\t-x\t-x\n", "" }, { status, out, err })
  end)

  it("reads a script from standard input, and skips a first line with #", function()
    local status, out, err = helper.run {
      "-", "x",
      stdin = "#!/usr/bin/env luatrace\nprint(require('tracefs.script').args[1])\nerror('y')\n",
    }
    assert.same({ 1, "x\n", "luatrace: stdin:3: y\n" }, { status, out, err })
  end)

  it("finds modules beside the script and none in the current directory", function()
    local dir, current = helper.tmpdir(), helper.tmpdir()
    helper.write_file(dir .. "/near.lua", "return 'beside the script'")
    helper.write_file(current .. "/far.lua", "return 'in the current directory'")
    helper.write_file(dir .. "/script.lua", [[
      print((require "near"))
      print((pcall(require, "far")))
      print(package.path:find("%./%?") or package.cpath:find("%./%?"))
    ]])
    local status, out, err = helper.run { dir .. "/script.lua", cwd = current }
    assert.same({ 0, "beside the script\nfalse\nnil\n", "" }, { status, out, err })
    status, out, err = helper.run { "-e", 'print((pcall(require, "far")))', cwd = current }
    assert.same({ 0, "false\n", "" }, { status, out, err })
  end)

  it("keeps what code of -e sets out of the real globals", function()
    local status, out, err = helper.run { "-e", [[
      x = 1
      print(x, rawget(_G, "x"), trace == require("tracefs.script"), rawget(_G, "on"), type(on))
    ]] }
    assert.same({ 0, "1\tnil\ttrue\tnil\tfunction\n", "" }, { status, out, err })
  end)

  it("ends after -d", function()
    local before = os.time()
    local status, out, err = helper.run {
      "-d", "0.5", "-e", 'on("sched:sched_switch", function() n = (n or 0) + 1 end)'
        .. " at_end(function() print(n > 0) end)",
      timeout = 20,
    }
    assert.same({ 0, "true\n", "" }, { status, out, helper.without_late(err) })
    assert.is_true(os.time() - before < 10 * helper.slowdown)
  end)

  it("ends after -d although the handler never catches up", function()
    local status, out = helper.run {
      "-d", "0.5", "-b", "64", "-e", [[
        on("sched:sched_switch", function() for _ = 1, 100000 do end end)
        on("irq:*", function() for _ = 1, 100000 do end end)
        at_end(function() print "end" end)
      ]],
      timeout = 40,
    }
    assert.same({ 0, "end\n" }, { status, out })
  end)

  it("ends a loop that the script owns, too", function()
    local status, out, err = helper.run {
      "-d", "0.5", "-e", [[
        enable("sched:sched_switch")
        at_end(function() print "at_end" end)
        for ev in events() do n = (n or 0) + 1 end
        print(n > 0)
      ]],
      timeout = 20,
    }
    assert.same({ 0, "at_end\ntrue\n", "" }, { status, out, helper.without_late(err) })
    status, out, err = helper.run {
      "-d", "0.5", "-e", 'on("sched:sched_switch", function() end) print(run().produced > 0)',
      timeout = 20,
    }
    assert.same({ 0, "true\n", "" }, { status, out, helper.without_late(err) })
  end)

  it("runs at_end once when the script leaves its loop", function()
    local status, out, err = helper.run {
      "-e", [[
        enable("sched:sched_switch")
        at_end(function() print "at_end" end)
        for ev in events() do break end
        print "left"
      ]],
      timeout = 20,
    }
    assert.same({ 0, "left\nat_end\n", "" }, { status, out, helper.without_late(err) })
  end)

  it("runs two at once", function()
    local nr = loads.fresh_nr(2)
    local one = helper.start_luatrace { "-c", load_command(nr, 1009), "-e", counter(nr) }
    local two = helper.start_luatrace { "-c", load_command(nr + 1, 2003), "-e", counter(nr + 1) }
    assert.same({ 0, "1009\n", "" }, { one:wait() })
    assert.same({ 0, "2003\n", "" }, { two:wait() })
  end)

  it("says that the order is best effort with a clock that nobody can read", function()
    local status, out, err = helper.run { "-C", "local", "-e", "print(trace.instance:get_clock())" }
    assert.same({ 0, "local\n" }, { status, out })
    assert.matches("^luatrace: [^\n]*clock local[^\n]*best effort\n$", err)
    status, out, err = helper.run { "-q", "-C", "local", "-e", "x = 1" }
    assert.same({ 0, "", "" }, { status, out, err })
  end)

  it("says that the times of a clock that only counts are no ns", function()
    local status, out, err = helper.run { "-C", "counter", "-e", "x = 1" }
    assert.same({ 0, "" }, { status, out })
    assert.matches("\nluatrace: the clock counter does not count ns: [^\n]+\n$", err)
  end)

  it("tells an ordinary user what is missing", function()
    local argparse = assert(package.searchpath("argparse", package.path))
    local status, out, err = elsewhere.run({ user = 65534 }, ([[
      package.path = package.path .. ";%s"
      os.exit(require("tracefs.command").main { "-e", "on('sched:*')" }, true)
    ]]):format((argparse:gsub("argparse%.lua$", "?.lua"))))
    assert.same({ 1, "" }, { status, out })
    assert.matches("^luatrace: cannot open the tracing directory [^\n]*permission denied[^\n]*"
      .. "Run as root", err)
  end)

  it("does not print into the kernel's files when standard output is closed", function()
    local path = helper.tmpdir() .. "/err"
    local status = helper.execute {
      "sh", "-c", 'exec "$0" -q -c "exit 0" -e "print(1)" >&- 2>"$1"', helper.command, path,
    }
    assert.equal(1, status)
    assert.equal("luatrace: cannot write to standard output: Bad file descriptor\n",
      helper.read_file(path))
  end)

  it("leaves the top level of tracefs alone", function()
    local files = { "tracing_on", "current_tracer", "set_event", "buffer_size_kb", "trace_clock" }
    local function top_level()
      local found = {}
      for _, file in ipairs(files) do
        found[file] = helper.read_file(helper.tracing_dir .. "/" .. file)
      end
      return found
    end
    local before = top_level()
    local nr = loads.fresh_nr()
    assert.equal(0, (helper.run { "-C", "boot", "-b", "512", "-p", tostring(helper.pid),
      "-c", load_command(nr, 11), "-e", counter(nr) }))
    assert.same(before, top_level())
  end)
end)

describe("luatrace -c", function()
  it("sees all of the command, and returns its status", function()
    for _, case in ipairs { { 23, 0 }, { 10007, 7 } } do
      local nr = loads.fresh_nr()
      local status, out, err = helper.run {
        "-c", load_command(nr, case[1]) .. "; exit " .. case[2], "-e", counter(nr),
      }
      assert.same({ case[2], case[1] .. "\n", "" }, { status, out, err })
    end
  end)

  it("sees the command's first system call: it starts when everything is on", function()
    -- at_start runs when everything is on; the command has not run yet, and still does not.
    local made = helper.tmpdir() .. "/made"
    local status, out, err = helper.run {
      "-c", ("exec touch %s"):format(made),
      "-e", ([[
        local path = %q
        at_start(function()
          local until_then = trace.instance and os.clock() + 0.2
          while os.clock() < until_then do end
          print("at_start", io.open(path))
        end)
        on("sched:sched_process_exec", { "filename", filter = 'filename ~ "*/touch"' },
          function(filename) seen = (seen or 0) + 1 end)
        at_end(function() print(seen > 0, io.open(path) ~= nil) end)
      ]]):format(made),
    }
    assert.same({ 0, "" }, { status, err })
    assert.matches("^at_start\tnil\t[^\n]*No such file or directory\t2\ntrue\ttrue\n$", out)
  end)

  it("keeps its environment and its standard input", function()
    local status, out, err = helper.run {
      "-c", 'echo "$KEPT"; cat', "-e", "x = 1",
      env = { KEPT = "two  words" }, stdin = "from standard input\n",
    }
    assert.same({ 0, "two  words\nfrom standard input\n", "" }, { status, out, err })
  end)

  it("gives 128 + N for a signal, and the shell's status for what is not there", function()
    assert.equal(128 + 10, (helper.run { "-c", "kill -USR1 $$", "-e", "x = 1" }))
    local status, _, err = helper.run { "-c", "no-such-program-anywhere", "-e", "x = 1" }
    assert.equal(127, status)
    assert.matches("no-such-program-anywhere", err, 1, true)
  end)

  it("runs it without a script that wants anything, and with a loop of the script", function()
    local nr = loads.fresh_nr()
    local status, out, err = helper.run {
      "-c", load_command(nr, 101) .. "; exit 5",
      "-e", ([[
        enable(%q, { filter = "id == %d" })
        for ev in events() do n = (n or 0) + 1 end
        print(n)
      ]]):format(SYSCALL, nr),
    }
    assert.same({ 5, "101\n", "" }, { status, out, err })
  end)

  it("ends it, and all that it has started, when the run ends first", function()
    local dir = helper.tmpdir()
    local status, _, err = helper.run {
      "-d", "0.5", "-c", ("sleep 1000 & echo $! $$ >%s/pids; sleep 1000; true"):format(dir),
      "-e", 'on("sched:sched_switch", function() end)',
      timeout = 20,
    }
    assert.equal(0, status)
    assert.equal("luatrace: the command is still running: ending it\n", err)
    local pids = helper.read_file(dir .. "/pids")
    for pid in pids:gmatch("%d+") do
      assert.is_true(helper.wait_until(function() return not is_alive(pid) end))
    end
  end)

  it("kills a command that does not want to end", function()
    local pid_file = helper.tmpdir() .. "/pid"
    local status, _, err = helper.run {
      "-c", ("trap '' TERM; echo $$ >%s; while :; do sleep 0.1; done"):format(pid_file),
      -- not before it has said that it does not want to
      "-e", ('on("sched:sched_switch", function() if io.open(%q) then stop() end end)'):format(
        pid_file),
      timeout = 30,
    }
    assert.equal(0, status)
    assert.matches("does not end: killing it", err, 1, true)
    assert.is_false(is_alive((helper.read_file(pid_file):gsub("%s", ""))))
  end)

  it("does not run it when the script is wrong", function()
    local made = helper.tmpdir() .. "/made"
    for _, code in ipairs { "x = = 1", "error('no')", 'on("sched:nosuch", print)' } do
      assert.equal(1, (helper.run { "-c", "touch " .. made, "-e", code }))
    end
    assert.is_nil(helper.read_file(made))
  end)

  it("ends it when a handler raises", function()
    local dir = helper.tmpdir()
    local status, out, err = helper.run {
      "-c", ("echo $$ >%s/pid; exec sleep 1000"):format(dir),
      "-e", 'on("sched:sched_process_exec", { filter = \'filename ~ "*/sleep"\' }, function(ev)'
        .. ' error("on purpose") end) at_end(function() print "at_end" end)',
      timeout = 20,
    }
    assert.same({ 1, "at_end\n" }, { status, out })
    assert.matches("^luatrace: %-e:1: on purpose\nwhile handling: [^\n]*filename=[^\n]*/sleep", err)
    assert.is_false(is_alive((helper.read_file(dir .. "/pid"):gsub("%s", ""))))
  end)
end)

describe("luatrace -p", function()
  -- A shell that does `before`, waits for the file `go`, and then does the load.
  local function waiting_load(dir, nr, count, before)
    return helper.start {
      "sh", "-c",
      ("%s echo >%s/ready; until [ -e %s/go ]; do sleep 0.05; done; %s; %s"):format(
        before or "", dir, dir, load_command(nr, count), "exit 0"),
    }
  end

  it("traces a process and what it starts, nothing else, and ends with it", function()
    local nr = loads.fresh_nr()
    local dir = helper.tmpdir()
    local traced, other = waiting_load(dir, nr, 23), waiting_load(dir, nr, 17)
    local run = helper.start_luatrace {
      "-v", "-p", tostring(traced.pid), "-e", counter(nr),
    }
    run:expect "KB for each CPU"
    helper.write_file(dir .. "/go", "")
    local status, out, err = run:wait()
    assert.same({ 0, "23\n" }, { status, out })
    assert.matches("the traced process has ended", err, 1, true)
    traced:wait()
    other:wait()
  end)

  it("takes several, and children that there are already", function()
    local nr = loads.fresh_nr()
    local dir = helper.tmpdir()
    local one = waiting_load(dir, nr, 23)
    -- Here it is a child that does the load.
    local two = helper.start {
      "sh", "-c", ("(until [ -e %s/go ]; do sleep 0.05; done; %s; true); true"):format(
        dir, load_command(nr, 19)),
    }
    assert.is_truthy(helper.wait_until(function()
      return #require("tracefs.core").descendants(two.pid) >= 1
    end))
    local run = helper.start_luatrace {
      "-v", "-p", tostring(one.pid), "-p", tostring(two.pid), "-e", counter(nr),
    }
    run:expect "KB for each CPU"
    helper.write_file(dir .. "/go", "")
    local status, out = run:wait()
    assert.same({ 0, "42\n" }, { status, out })
    one:wait()
    two:wait()
  end)

  it("traces all threads", function()
    local nr = loads.fresh_nr()
    local cpus = select(2, helper.read_file("/proc/cpuinfo"):gsub("processor%s*:", ""))
    -- A thread for each CPU, all of them there before the trace begins, and until it has seen them.
    local process = helper.start {
      helper.program("support/load"), "--cpu", "all", "--rate", "500", "--nr", tostring(nr),
      "syscalls", "100000",
    }
    assert.is_truthy(helper.wait_until(function()
      return #(require("tracefs.core").threads(process.pid) or {}) > cpus
    end))
    local status, out = helper.run {
      "-p", tostring(process.pid), "-d", "20", "-e", ([[
        local threads, n = {}, 0
        on(%q, { "common_pid", filter = "id == %d" }, function(pid)
          if not threads[pid] then
            threads[pid] = true
            n = n + 1
            if n == %d then
              finish()
            end
          end
        end)
        at_end(function() print(n) end)
      ]]):format(SYSCALL, nr, cpus), timeout = 60,
    }
    assert.same({ 0, cpus .. "\n" }, { status, out })
    process:kill "KILL"
    process:wait()
  end)

  it("says that there is no such process", function()
    local status, out, err = helper.run { "-p", "2147483647", "-e", 'on("sched:*")' }
    assert.same({ 1, "", "luatrace: there is no process 2147483647\n" }, { status, out, err })
  end)
end)

describe("luatrace --dry-run", function()
  it("checks everything and traces nothing", function()
    local made = helper.tmpdir() .. "/made"
    local status, out, err = helper.run {
      "--dry-run", "-c", "touch " .. made, "-e", [[
        on("sched:sched_switch", { "prev_pid", filter = "prev_pid > 1" }, function() end)
        on("sched:sched_wak*", function() end)
        enable("irq:irq_handler_entry")
        at_start(function() print "at_start" end)
        at_end(function() print "at_end" end)
        for ev in events() do print "event" end
        run()
        print(step())
      ]],
      timeout = 10,
    }
    assert.same({ 0, "" }, { status, err })
    assert.matches(
      "^0\tend\n%d+ events, fields and filters are accepted; nothing was traced\n$", out)
    assert.is_true(tonumber(out:match("(%d+) events")) >= 4)
    assert.is_nil(helper.read_file(made))
  end)

  it("says what is wrong", function()
    local cases = {
      ['on("sched:sched_swich", print)'] = "sched:sched_switch",
      ['on("sched:sched_switch", { "nosuch" }, print)'] = "has no field 'nosuch'",
      ['on("sched:sched_switch", { filter = "nosuch == 1" }, print)'] = "Field not found",
      ["x = = 1"] = "unexpected symbol near '='",
      ["nosuch()"] = "nosuch",
    }
    for code, message in pairs(cases) do
      local status, out, err = helper.run { "--dry-run", "-e", code }
      assert.same({ 1, "" }, { status, out })
      assert.matches(message, err, 1, true)
      assert.matches("^luatrace: %-e:1: ", err)
      assert.is_nil(err:find("lua/tracefs", 1, true), err)
    end
  end)
end)

describe("luatrace and errors", function()
  it("shows the script's lines, and no others", function()
    local path = script [[
      local trace = require "tracefs.script"
      local function inner(t)
        return t.x
      end
      local function outer()
        inner(nil)
      end
      outer()
    ]]
    local status, out, err = helper.run { path }
    assert.same({ 1, "" }, { status, out })
    assert.equal(([[
luatrace: %s:3: attempt to index a nil value (local 't')
  %s:3: in function 'inner'
  %s:6: in function 'outer'
  %s:8: in the main chunk
]]):format(path, path, path, path), err)
  end)

  it("shows the record that a handler could not take", function()
    local nr = loads.fresh_nr()
    local path = script(([[
      local trace = require "tracefs.script"
      trace:on(%q, { filter = "id == %d" }, function(ev)
        local text = ev.nosuch .. "x"
      end)
      trace:at_end(function() print "at_end" end)
    ]]):format(SYSCALL, nr))
    local status, out, err = helper.run { "-c", load_command(nr, 3), path }
    assert.same({ 1, "at_end\n" }, { status, out })
    assert.matches(("^luatrace: %s:3: attempt to concatenate a nil value %%(field 'nosuch'%%)\n"
      .. "while handling: [^\n]*sys_enter: NR %d %%([^\n]*\n"):format(path, nr), err)
  end)

  it("counts errors and goes on when the script says so", function()
    local nr = loads.fresh_nr()
    local status, out, err = helper.run {
      "-c", load_command(nr, 23), "-e", ([[
        trace.on_error = "warn"
        on(%q, { filter = "id == %d" }, function() n = (n or 0) + 1 error("on purpose") end)
        at_end(function() print(n) end)
      ]]):format(SYSCALL, nr),
    }
    assert.same({ 0, "23\n" }, { status, out })
    assert.matches("warning: error in a handler (others are only counted): -e:2: on purpose",
      err, 1, true)
    assert.matches("warning: 23 errors in handlers", err, 1, true)
    assert.equal(1, select(2, err:gsub("on purpose", "")))
  end)

  it("names a script that is missing, is a folder, or cannot be read", function()
    local dir = helper.tmpdir()
    local status, out, err = helper.run { dir .. "/missing.lua" }
    assert.same({ 1, "", ("luatrace: cannot read the script %s/missing.lua: No such file or"
      .. " directory\n"):format(dir) }, { status, out, err })
    status, out, err = helper.run { dir }
    assert.same({ 1, "", ("luatrace: cannot read the script %s: Is a directory\n"):format(dir) },
      { status, out, err })
  end)

  it("shows values that are no text", function()
    local status, _, err = helper.run { "-e", "error {}" }
    assert.same({ 1, "luatrace: error object is a table value\n" }, { status, err })
    status, _, err = helper.run { "-e", "error(setmetatable({}, { __tostring = function()"
      .. " return 'shown\\27' end }))" }
    assert.same({ 1, "luatrace: shown\\x1B\n" }, { status, err })
    status, _, err = helper.run { "-e", "error()" }
    assert.same({ 1, "luatrace: error object is a nil value\n" }, { status, err })
  end)

  it("ends at once with os.exit, whatever catches errors", function()
    for code, expected in pairs {
      ["os.exit(5)"] = 5,
      ["os.exit()"] = 0,
      ["os.exit(false)"] = 1,
      ["pcall(os.exit, 9) print 'never'"] = 9,
      ["coroutine.wrap(function() pcall(os.exit, 8) print 'never' end)()"] = 8,
      ['on("sched:sched_switch", function() os.exit(6) end)'] = 6,
      ['trace.on_error = "warn" on("sched:sched_switch", function() os.exit(6) end)'] = 6,
      ['enable("sched:sched_switch") for ev in events() do pcall(os.exit, 4) end'] = 4,
    } do
      local status, out, err = helper.run {
        "-e", "at_end(function() print 'at_end' end) " .. code, timeout = 20,
      }
      assert.same({ expected, "", "" }, { status, out, err })
    end
  end)

  it("lets the script close the session", function()
    local status, out, err = helper.run {
      "-e", 'on("sched:sched_switch", function() close() end)'
        .. ' at_end(function() print "at_end" end)',
      timeout = 20,
    }
    assert.same({ 0, "at_end\n", "" }, { status, out, helper.without_late(err) })
    status, out, err = helper.run { "-e", "trace:close() print 'closed'" }
    assert.same({ 0, "closed\n", "" }, { status, out, err })
  end)

  it("removes what a killed one has left, and says so with -v", function()
    local err
    -- Any other session on this machine may be quicker, and often is where several suites run.
    for _ = 1, 20 do
      local killed = helper.start_luatrace {
        "-v", "-c", "echo $$; exec sleep 1000", "-e", 'on("sched:sched_switch", function() end)',
      }
      killed:expect "KB for each CPU"
      local child = helper.wait_until(function() return killed:output():match("^(%d+)\n") end)
      killed:kill "KILL"
      killed:wait()
      local left = #instances_of(killed.pid)
      err = select(3, helper.run { "-v", "-e", "x = 1" })
      assert.same({}, instances_of(killed.pid))
      -- The command has not survived it.
      assert.is_true(helper.wait_until(function() return not is_alive(child) end))
      if left == 1 and err:find("removed", 1, true) then
        break
      end
    end
    assert.matches("removed %d+ instances? of luatrace processes that are gone", err)
  end)

  it("takes the command of a killed one along", function()
    local seconds = ("10%d"):format(os.time())
    local function running()
      local file <close> = assert(io.popen("cat /proc/[0-9]*/cmdline 2>/dev/null"))
      return file:read("a"):find("sleep\0" .. seconds, 1, true) ~= nil
    end
    local killed = helper.start_luatrace {
      "-c", "sleep " .. seconds, "-e", 'on("sched:sched_switch", function() end)',
    }
    assert.is_true(helper.wait_until(running))
    killed:kill "KILL"
    killed:wait()
    assert.is_true(helper.wait_until(function() return not running() end))
    helper.run { "-e", "x = 1" }
    assert.same({}, instances_of(killed.pid))
  end)
end)
