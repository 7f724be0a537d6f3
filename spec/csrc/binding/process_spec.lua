local helper = require "spec.support.helper"
local core = require "tracefs.core"

-- How the child ended; waits for it.
local function ended(process)
  assert.same({ process:fileno() }, core.poll({ process:fileno() }, 10))
  return process:wait()
end

local function state(pid)
  local stat = helper.read_file(("/proc/%d/stat"):format(pid))
  return stat and stat:match("%) (%a)")
end

describe("core.spawn", function()
  it("refuses what is no command", function()
    assert.has_error(function() core.spawn() end)
    assert.has_error(function() core.spawn(1) end)
    assert.error_matches(function() core.spawn {} end, "no program to run")
    assert.error_matches(function() core.spawn { "ls", 1 } end, "list of strings")
    assert.error_matches(function() core.spawn { "ls", "a\0b" } end, "zero byte")
    assert.error_matches(function() core.spawn("ls\0x") end, "zero byte")
  end)

  it("holds the child until it is released", function()
    local dir = helper.tmpdir()
    local process <close> = assert(core.spawn { "touch", dir .. "/made" })
    assert.is_true(process:pid() > 1)
    helper.sleep(0.1)
    assert.is_nil(process:wait())
    assert.is_nil(helper.read_file(dir .. "/made"))
    -- The child is there, and is still this program.
    assert.equal(helper.read_file("/proc/self/comm"),
      helper.read_file(("/proc/%d/comm"):format(process:pid())))
    assert.is_true(process:release())
    assert.same({ "exit", 0 }, { ended(process) })
    assert.equal("", helper.read_file(dir .. "/made"))
    assert.error_matches(function() process:release() end, "released already")
  end)

  it("gives a line to the shell, and the words of a list to the program as they are", function()
    local dir = helper.tmpdir()
    local shell <close> = assert(core.spawn(("echo $((6*7)) >'%s/out'"):format(dir)))
    shell:release()
    ended(shell)
    assert.equal("42\n", helper.read_file(dir .. "/out"))

    local words <close> = assert(core.spawn {
      "sh", "-c", 'printf "[%s]" "$@" >"$0"', dir .. "/out", "$HOME", "a b", "", "*",
    })
    words:release()
    ended(words)
    assert.equal("[$HOME][a b][][*]", helper.read_file(dir .. "/out"))
  end)

  it("keeps the environment", function()
    local status, out = helper.run_lua([[
      local core = require "tracefs.core"
      local process <close> = core.spawn('echo "$KEPT"')
      process:release()
      core.poll { process:fileno() }
    ]], { env = { KEPT = "two words" } })
    assert.equal(0, status)
    assert.equal("two words\n", out)
  end)

  it("tells an exit status from a signal", function()
    for _, code in ipairs { 0, 1, 7, 255 } do
      local process <close> = assert(core.spawn("exit " .. code))
      process:release()
      assert.same({ "exit", code }, { ended(process) })
      assert.same({ "exit", code }, { process:wait() })
    end
    local process <close> = assert(core.spawn("kill -USR1 $$"))
    process:release()
    assert.same({ "signal", 10 }, { ended(process) })
  end)

  it("says exactly why a program cannot be run", function()
    local missing <close> = assert(core.spawn { "/nonexistent/x", "y" })
    local ok, message, errno = missing:release()
    assert.is_nil(ok)
    assert.equal("cannot run '/nonexistent/x': No such file or directory", message)
    assert.equal(2, errno)
    assert.same({ "exit", 127 }, { missing:wait() })

    local dir = helper.tmpdir()
    local directory <close> = assert(core.spawn { dir })
    ok, message, errno = directory:release()
    assert.is_nil(ok)
    assert.equal(("cannot run '%s': Permission denied"):format(dir), message)
    assert.equal(13, errno)

    local nowhere <close> = assert(core.spawn { "no-such-program-anywhere" })
    ok, message = nowhere:release()
    assert.is_nil(ok)
    assert.equal("cannot run 'no-such-program-anywhere': No such file or directory", message)
  end)

  it("gives the child the signal mask and dispositions that it should have", function()
    local process <close> = assert(core.spawn { "sleep", "1000" })
    process:release()
    local text = helper.read_file(("/proc/%d/status"):format(process:pid()))
    local own = helper.read_file("/proc/self/status")
    assert.equal(own:match("SigBlk:%s*(%x+)"), text:match("SigBlk:%s*(%x+)"))
    assert.equal(0, tonumber(text:match("SigIgn:%s*(%x+)"), 16) & 1 << 12, "SIGPIPE is ignored")
  end)

  it("gives the child no descriptor of its own", function()
    local other <close> = assert(core.spawn { "sleep", "1000" })
    local process <close> = assert(core.spawn { "sleep", "1000" })
    process:release()
    local inherited = {}
    local list <close> = io.popen(("ls -l /proc/%d/fd"):format(process:pid()))
    for line in list:lines() do
      if line:find("socket:") or line:find("pidfd") then
        inherited[#inherited + 1] = line
      end
    end
    assert.same({}, inherited)
    assert.is_nil(other:wait())
  end)
end)

describe("a process", function()
  it("that is held goes away when it is closed", function()
    local process = assert(core.spawn { "sleep", "1000" })
    local pid = process:pid()
    process:close()
    assert.is_nil(state(pid))
    process:close()
    assert.error_matches(function() process:pid() end, "process is closed")
    assert.error_matches(function() process:wait() end, "process is closed")
    assert.equal("tracefs.process (closed)", tostring(process))
  end)

  it("that runs is killed and reaped by close, with what it has started", function()
    local process = assert(core.spawn("sleep 1000 & sleep 1001; true"))
    process:release()
    local children = helper.wait_until(function()
      local list = core.descendants(process:pid())
      return #list == 2 and list
    end)
    local pid = process:pid()
    process:close()
    assert.is_nil(state(pid))
    for _, child in ipairs(children) do
      -- Whoever inherits them may take its time to reap them.
      assert.is_true(helper.wait_until(function()
        local letter = state(child)
        return letter == nil or letter == "Z"
      end), "still there: " .. child)
    end
  end)

  it("is killed and reaped by the collector, and by an error in its block", function()
    local pid
    do
      local process = assert(core.spawn { "sleep", "1000" })
      process:release()
      pid = process:pid()
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(state(pid))

    pcall(function()
      local process <close> = assert(core.spawn { "sleep", "1000" })
      process:release()
      pid = process:pid()
      error("x")
    end)
    assert.is_nil(state(pid))
  end)

  it("is left alone by a copy of the Lua state in a fork", function()
    -- The copy closes its state; the child belongs to the first process.
    local status, out, err = helper.run_lua([[
      local core = require "tracefs.core"
      local ok, unistd = pcall(require, "posix.unistd")
      if not ok then
        print("no posix")
        os.exit(0)
      end
      local wait = require "posix.sys.wait".wait
      local process = assert(core.spawn { "sleep", "1000" })
      process:release()
      local pid = unistd.fork()
      if pid == 0 then
        os.exit(0, true)
      end
      wait(pid)
      print(process:wait())
      process:close()
    ]])
    assert.equal("", err)
    assert.equal(0, status)
    if out == "no posix\n" then
      pending("luaposix is not installed")
      return
    end
    assert.equal("nil\n", out)
  end)

  it("takes signals, alone or with what it has started", function()
    local process <close> = assert(core.spawn { "sleep", "1000" })
    process:release()
    assert.error_matches(function() process:kill(-1) end, "not a signal")
    assert.error_matches(function() process:kill(15, "all") end, "invalid option")
    assert.is_true(process:kill(15))
    assert.same({ "signal", 15 }, { ended(process) })
    assert.is_false(process:kill(15))

    local tree <close> = assert(core.spawn("sleep 1000; true"))
    tree:release()
    local child = helper.wait_until(function()
      return core.descendants(tree:pid())[1]
    end)
    assert.is_true(tree:kill(15, "tree"))
    assert.same({ "signal", 15 }, { ended(tree) })
    assert.is_true(helper.wait_until(function()
      local letter = state(child)
      return letter == nil or letter == "Z"
    end))
  end)

  it("that was killed behind the gate is no success", function()
    local process <close> = assert(core.spawn { "true" })
    assert.is_true(process:kill(9))
    assert.same({ process:fileno() }, core.poll({ process:fileno() }, 10))
    process:release()
    assert.same({ "signal", 9 }, { process:wait() })
  end)

  it("goes away with the one that started it, when asked to", function()
    local process = helper.start {
      helper.interpreter,
      "-e",
      ("package.cpath = %q"):format(helper.core_dir .. "/?.so"),
      "-e",
      [[
        local core = require "tracefs.core"
        child = core.spawn({ "sleep", "1000" }, true)
        child:release()
        held = core.spawn { "sleep", "1000" }
        print(child:pid(), held:pid())
        io.stdout:flush()
        core.poll({}, 100)
      ]],
    }
    local child, held = helper.wait_until(function()
      return process:output():match("(%d+)\t%d+\n")
    end), process:output():match("%d+\t(%d+)\n")
    assert.is_truthy(state(child))
    process:kill("KILL")
    process:wait()
    for _, pid in ipairs { child, held } do
      assert.is_true(helper.wait_until(function()
        local letter = state(pid)
        return letter == nil or letter == "Z"
      end), "still there: " .. pid)
    end
  end)

  it("works without descriptors for processes", function()
    if not os.execute("strace -V >/dev/null 2>&1") then
      pending("strace is not installed")
      return
    end
    local status, out, err = helper.execute {
      "strace", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e",
      "inject=pidfd_open:error=ENOSYS",
      helper.interpreter,
      "-e",
      ("package.cpath = %q"):format(helper.core_dir .. "/?.so"),
      "-e",
      [[
        local core = require "tracefs.core"
        local process <close> = core.spawn("exit 3")
        print(process:fileno())
        process:release()
        local how, code
        repeat
          core.poll({}, 0.01)
          how, code = process:wait()
        until how
        print(how, code)
        local other <close> = core.watch(1)
        print(other:fileno(), other:wait())
        print(core.watch(2147483647))
      ]],
      -- A sanitizer's look for leaks is a tracer too, and there can be only one.
      env = { ASAN_OPTIONS = (os.getenv("ASAN_OPTIONS") or "") .. ":detect_leaks=0" },
    }
    if err:find("ptrace", 1, true) then
      pending("no ptrace here: " .. err)
      return
    end
    assert.equal("", err)
    assert.equal(0, status)
    assert.equal("nil\tno descriptor for a process: Function not implemented\t38\n"
      .. "exit\t3\n"
      .. "nil\tnil\n"
      .. "nil\tthere is no process 2147483647\t3\n", out)
  end)
end)

describe("core.watch", function()
  it("refuses what is no pid and says when there is no such process", function()
    assert.error_matches(function() core.watch(0) end, "not a pid")
    assert.error_matches(function() core.watch(-3) end, "not a pid")
    assert.error_matches(function() core.watch(1 << 40) end, "not a pid")
    assert.error_matches(function() core.watch("x") end, "number expected")
    local process, message, errno = core.watch(2147483647)
    assert.is_nil(process)
    assert.equal("there is no process 2147483647", message)
    assert.equal(3, errno)
  end)

  it("sees the end of a process and never ends it", function()
    local child <close> = assert(core.spawn { "sleep", "1000" })
    child:release()
    local watched = assert(core.watch(child:pid()))
    assert.is_nil(watched:wait())
    assert.error_matches(function() watched:kill(9) end, "spawned here")
    watched:close()
    assert.is_nil(child:wait())

    watched = assert(core.watch(child:pid()))
    child:kill(9)
    assert.equal("gone", (ended(watched)))
    watched:close()
  end)
end)
