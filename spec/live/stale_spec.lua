-- What processes leave that were killed, and what only looks like it.
local helper = require "spec.support.helper"
local elsewhere = require "spec.support.elsewhere"
local core = require "tracefs.core"

-- Others may trace here too, and each of their sessions removes what it finds: what counts on the
-- real tracefs is what is gone afterwards, not who has removed it. Where numbers count, the names
-- are directories in a place of our own.
describe("instances of processes that are gone", function()
  local dir = assert(core.tracing_dir())
  local place

  local function exists(name, where)
    return (helper.execute { "test", "-d", ("%s/instances/%s"):format(where or dir, name) }) == 0
  end

  local function make(name)
    local status, _, err = helper.execute { "mkdir", ("%s/instances/%s"):format(place, name) }
    assert(status == 0, err)
    return name
  end

  before_each(function()
    place = helper.tmpdir()
    assert.equal(0, (helper.execute { "mkdir", place .. "/instances" }))
  end)

  local function number_of_ns(pid)
    local _, link = helper.execute { "readlink", ("/proc/%s/ns/pid"):format(pid) }
    return link:match("%d+")
  end

  local function start_time(pid)
    local stat = assert(helper.read_file(("/proc/%d/stat"):format(pid)))
    local count = 2
    for field in stat:match("^.*%)(.*)$"):gmatch("%S+") do
      count = count + 1
      if count == 22 then
        return field
      end
    end
  end

  local own_ns = number_of_ns("self")
  local space = own_ns == "4026531836" and "" or "ns" .. own_ns .. "-"

  local function named(pid, start, n)
    return ("luatrace-%s%s-%s-%s"):format(space, pid, start, n)
  end

  -- Makes an instance, says its name and stays until it is killed.
  local HOLD <const> = ([[
    local instance = assert(require("tracefs.core").instance_create(%q))
    print(instance:name())
    io.stdout:flush()
    io.open(...) -- a pipe that nobody writes to
  ]]):format(dir)

  local function fifo()
    local name = helper.tmpdir() .. "/fifo"
    assert.equal(0, (helper.execute { "mkfifo", "-m", "666", name }))
    return name
  end

  local function start(interpreter)
    local script = helper.tmpdir() .. "/hold.lua"
    helper.write_file(script, HOLD)
    local process = helper.start {
      interpreter or helper.interpreter, script, fifo(),
      env = { LUA_PATH = package.path, LUA_CPATH = package.cpath },
    }
    process:expect("\n")
    return process, (process:output():gsub("\n", ""))
  end

  it("are removed after SIGKILL by whoever comes next", function()
    local process, name = start()
    assert.equal(named(process.pid, start_time(process.pid), 1), name)
    core.remove_stale(dir)
    assert.is_true(exists(name))
    process:kill("KILL")
    process:wait()
    core.remove_stale(dir)
    assert.is_false(exists(name))
  end)

  it("are removed by the next session", function()
    local process, name = start()
    process:kill("KILL")
    process:wait()
    local status, _, err = helper.run_lua('require("tracefs").session():close()')
    assert.same({ 0, "" }, { status, err })
    assert.is_false(exists(name))
  end)

  it("are removed while nobody has collected the dead process yet", function()
    local script = helper.tmpdir() .. "/hold.lua"
    helper.write_file(script, HOLD)
    -- sleep does not wait for the child that it got from the shell.
    local parent = helper.start {
      "sh", "-c", '"$@" & echo $!; exec sleep 30', "sh", helper.interpreter, script, fifo(),
      env = { LUA_PATH = package.path, LUA_CPATH = package.cpath },
    }
    parent:expect("luatrace-")
    local out = parent:output()
    local pid, name = out:match("^(%d+)\n"), out:match("luatrace%-[^\n]+")
    assert.equal(0, (helper.execute { "kill", "-KILL", pid }))
    assert.is_truthy(helper.wait_until(function()
      return helper.read_file(("/proc/%s/stat"):format(pid)):find(") Z ", 1, true)
    end))
    core.remove_stale(dir)
    assert.is_false(exists(name))
    parent:kill("KILL")
    parent:wait()
  end)

  it("are not those of living ones, whether they hold them or not", function()
    local own <close> = assert(core.instance_create(dir))
    core.remove_stale(dir)
    assert.is_true(exists(own:name()))
    local bare = make(named(helper.pid, start_time(helper.pid), 1))
    local other = make(named(1, start_time(1), 1))
    assert.equal(0, core.remove_stale(place))
    assert.is_true(exists(bare, place))
    assert.is_true(exists(other, place))
  end)

  it("are not those of a process whose first thread has ended before the others", function()
    local script = helper.tmpdir() .. "/hold.lua"
    helper.write_file(script, ("print 'there'; io.stdout:flush(); io.open(%q)"):format(fifo()))
    local process = helper.start { helper.program "support/threads", "1", script, "alone" }
    process:expect("there")
    assert.is_truthy(helper.wait_until(function()
      return helper.read_file(("/proc/%d/stat"):format(process.pid)):find(") Z ", 1, true)
    end))
    local name = make(named(process.pid, start_time(process.pid), 1))
    assert.equal(0, core.remove_stale(place))
    process:kill("KILL")
    process:wait()
    assert.equal(1, core.remove_stale(place))
    assert.is_false(exists(name, place))
  end)

  it("are those whose pid another process has by now", function()
    local name = make(named(helper.pid, start_time(helper.pid) + 1, 1))
    local other = make(named(1, 987654321, 1))
    assert.equal(2, core.remove_stale(place))
    assert.is_false(exists(name, place))
    assert.is_false(exists(other, place))
  end)

  it("are not those that are named in another way", function()
    -- No process has this pid: it is above the largest that Linux gives.
    local names = {
      "luatrace", "luatrace-", "luatrace-spec", "luatrace-4194305", "luatrace-4194305-1",
      "luatrace-4194305-1-", "luatrace-4194305-1-1x", "luatrace-4194305-1-1-1",
      "luatrace-x-1-1", "luatrace--1-1-1", "luatrace-+1-1-1", "luatrace- 1-1-1",
      "luatrace-0-1-1", "luatrace-0x10-1-1", "luatrace-99999999999999999999-1-1",
      "luatrace-ns-4194305-1-1", "luatrace-nsx-4194305-1-1", "Luatrace-4194305-1-1",
      "xluatrace-4194305-1-1", "luatrace_4194305_1_1", "bpftrace-4194305-1-1",
    }
    for _, name in ipairs(names) do
      make(name)
    end
    assert.equal(0, core.remove_stale(place))
    for _, name in ipairs(names) do
      assert.is_true(exists(name, place), name)
    end
    make(named(4194305, 1, 1))
    assert.equal(1, core.remove_stale(place))
    assert.equal(0, core.remove_stale(place))
  end)

  it("stay as long as somebody has a file of them open", function()
    local process, name = start()
    local file <close> = assert(io.open(("%s/instances/%s/trace_clock"):format(dir, name)))
    process:kill("KILL")
    process:wait()
    core.remove_stale(dir)
    assert.is_true(exists(name))
    file:close()
    core.remove_stale(dir)
    assert.is_false(exists(name))
  end)

  it("are found whatever the process calls itself", function()
    -- The name of the file that is run becomes the name in /proc/PID/stat.
    local odd = helper.tmpdir() .. "/a) R 1 (b"
    assert.equal(0, (helper.execute {
      "sh", "-c", 'ln -s "$(command -v "$1")" "$2"', "sh", helper.interpreter, odd,
    }))
    local process, name = start(odd)
    assert.truthy(helper.read_file(("/proc/%d/stat"):format(process.pid))
      :find("(a) R 1 (b)", 1, true))
    assert.equal(named(process.pid, start_time(process.pid), 1), name)
    process:kill("KILL")
    process:wait()
    core.remove_stale(dir)
    assert.is_false(exists(name))
  end)

  it("of another pid namespace are judged from the first one only", function()
    if space ~= "" then
      pending("these specs run in a pid namespace of their own")
      return
    end
    local outer = make(named(4194305, 1, 1))
    local process = helper.start(elsewhere.argv({ pids = true }, [[
      local core = require "tracefs.core"
      local dir, place, fifo = ...
      print(core.remove_stale(place))
      local instance = assert(core.instance_create(dir))
      print(instance:name())
      io.stdout:flush()
      io.open(fifo)
    ]], { dir, place, fifo() }))
    process:expect("luatrace-ns")
    local out = process:output()
    assert.truthy(out:find("^0\n"), out)
    assert.is_true(exists(outer, place))

    local name = out:match("luatrace%-[^\n]+")
    local ns, pid, start_ticks = name:match("^luatrace%-ns(%d+)%-(%d+)%-(%d+)%-1$")
    assert.equal("1", pid)
    local _, there = helper.execute {
      "sh", "-c", 'readlink /proc/[0-9]*/ns/pid | grep -c -F "pid:[$1]"', "sh", ns,
    }
    assert.is_true(tonumber(there) >= 1)
    local bare = make(("luatrace-ns%s-%s-%s-2"):format(ns, pid, start_ticks))
    local reused = make(("luatrace-ns%s-%s-%d-2"):format(ns, pid, start_ticks + 1))
    local gone = make("luatrace-ns1-1-1-1")
    assert.equal(3, core.remove_stale(place))
    core.remove_stale(dir)
    assert.is_true(exists(name))
    assert.is_true(exists(bare, place))
    for _, dead in ipairs { outer, reused, gone } do
      assert.is_false(exists(dead, place), dead)
    end

    process:kill("KILL")
    process:wait()
    assert.is_truthy(helper.wait_until(function()
      core.remove_stale(dir)
      core.remove_stale(place)
      return not exists(name) and not exists(bare, place)
    end))
  end)
end)
