local helper = require "spec.support.helper"

-- The command's children need its signals, which a process has once: each case is one.
local function expect(expected, code)
  local status, out, err = helper.run_lua([[
    local core = require "tracefs.core"
    local child = require "tracefs.command.child"
    require("tracefs.command.report").quiet = true
    local signals <close> = core.signals()
    local function alive(pid)
      local file <close> = io.open("/proc/" .. pid .. "/stat")
      return file ~= nil and not file:read("a"):find("%) Z ")
    end
  ]] .. code)
  assert.same({ 0, expected, "" }, { status, out, err })
end

describe("the command of -c", function()
  it("has not run when it was not released", function()
    expect("nil\tfalse\n", [[
      local one = child.start("echo ran")
      local pid = one.process:pid()
      print(one:finish(signals, false), alive(pid))
    ]])
  end)

  it("gives its status as a shell does", function()
    expect("7\n137\n", [[
      for _, line in ipairs { "exit 7", "kill -KILL $$" } do
        local one = child.start(line)
        one:release()
        repeat core.poll({ one.process:fileno() }, 5) until one:has_ended()
        print(one:finish(signals, false))
      end
    ]])
  end)

  it("is asked to end when the run is over, and has no status then", function()
    expect("false\nnil\tfalse\n", [[
      local one = child.start("exec sleep 1000")
      local pid = one.process:pid()
      one:release()
      print(one:has_ended())
      print(one:finish(signals, false), alive(pid))
    ]])
  end)

  it("keeps its status when a signal has reached it", function()
    expect("143\n", [[
      local one = child.start("exec sleep 1000")
      one:release()
      one:signal(15)
      print(one:finish(signals, true))
    ]])
  end)

  it("is not sent signals before it is released", function()
    expect("false\nnil\n", [[
      local one = child.start("exec sleep 1000")
      one:signal(15)
      print(one:has_ended())
      print(one:finish(signals, true))
    ]])
  end)
end)

describe("the words of a command", function()
  local child = require "tracefs.command.child"

  it("are taken apart where no shell is needed", function()
    assert.same({ "sleep", "77" }, child.words("sleep 77"))
    assert.same({ "/bin/dd", "-x", "a.b:c,d+e@f" }, child.words("  /bin/dd -x a.b:c,d+e@f "))
  end)

  it("are left to the shell otherwise", function()
    for _, line in ipairs { "a | b", "echo $HOME", "echo 'a b'", "A=1 true", "ls *", "exit 7",
      "nosuchprogram x", "true; false", "~/x", "" } do
      assert.equal(line, child.words(line))
    end
  end)
end)
