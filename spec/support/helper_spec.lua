local helper = require "spec.support.helper"

describe("the support helper", function()
  it("runs a program with its arguments, input and environment", function()
    local status, out, err = helper.execute {
      "sh", "-c", 'cat; echo "$1 $NAME"; echo e >&2; exit 3', "sh", "it's \"a\" $b",
      stdin = "in ",
      env = { NAME = "c d" },
    }
    assert.same({ 3, "in it's \"a\" $b c d\n", "e\n" }, { status, out, err })
  end)

  it("runs Lua code in a process of its own", function()
    local status, out = helper.run_lua("print(package.path, ...)", { 5 })
    assert.equal(0, status)
    assert.truthy(out:find(helper.lua_dir .. "/?.lua", 1, true))
    assert.truthy(out:find("\t5\n"))
  end)

  it("ends what takes too long", function()
    assert.error_matches(function()
      helper.execute { "sleep", "30", timeout = 0.2 }
    end, "not ended after")
  end)

  it("starts a program, reads what it says, signals it", function()
    local process = helper.start { "sh", "-c", "echo ready; exec sleep 30" }
    process:expect("ready")
    process:kill("INT")
    assert.same({ 130, "ready\n", "" }, { process:wait() })
    assert.error_matches(function()
      process:expect("steady")
    end, '"steady" did not come %(it ended%)')
  end)

  describe("reports", function()
    local before

    before_each(function()
      before = helper.snapshot()
      assert.same({}, helper.leftovers(before))
    end)

    local function assert_left(pattern)
      local list = helper.leftovers(before)
      assert.equal(1, #list, table.concat(list, "; "))
      assert.truthy(list[1]:find(pattern), list[1])
    end

    it("an open descriptor", function()
      local file <close> = assert(io.open("/proc/version"))
      assert_left("^open descriptor %d+ /proc/version$")
      assert(file)
    end)

    it("a child", function()
      local pipe <close> = assert(io.popen("exec sleep 0.2", "w"))
      local list = helper.leftovers(before)
      assert.truthy(table.concat(list, "\n"):find("child %d+: "), table.concat(list, "\n"))
      assert(pipe)
    end)

    it("a process that was started and still runs, and ends it", function()
      local process = helper.start { "sleep", "30" }
      assert_left("^process %d+ still runs: 'sleep' '30'$")
      assert.equal(137, (process:wait()))
    end)

    it("an instance of this process", function()
      if not (helper.tracing_dir and helper.is_root) then
        pending("needs root and a mounted tracefs")
      end
      local name = ("luatrace-%d-0-%d"):format(helper.pid, 0)
      local dir = helper.tracing_dir .. "/instances/" .. name
      assert(os.execute("mkdir " .. dir))
      finally(function()
        os.execute("rmdir " .. dir)
      end)
      assert_left("^instance " .. name:gsub("%-", "%%-") .. "$")
    end)

    it("no instance of other processes", function()
      if not (helper.tracing_dir and helper.is_root) then
        pending("needs root and a mounted tracefs")
      end
      -- Pid 0 is nobody's.
      local dir = helper.tracing_dir .. "/instances/luatrace-0-0-" .. helper.pid
      assert(os.execute("mkdir " .. dir))
      finally(function()
        os.execute("rmdir " .. dir)
      end)
      assert.same({}, helper.leftovers(before))
    end)
  end)
end)
