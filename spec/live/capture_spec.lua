-- luatrace record, start, stop, stat, extract, reset, list on the real kernel.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local lfs = require "lfs"
local tracecmd = require "spec.support.tracecmd"
local tracefs = require "tracefs"

local function name()
  return ("spec-capture-%d"):format(helper.pid)
end

local function capture(command, ...)
  return helper.run { command, "-B", name(), ... }
end

local function instances()
  return "\n" .. table.concat(assert(core.instances(helper.tracing_dir)), "\n") .. "\n"
end

-- A shell that starts n programs, one after the other.
local function execs(n)
  return ("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done"):format(n)
end

-- How many of a file's records start /bin/true.
local function count_true(path)
  local lines, status = tracecmd.report(path)
  assert.equal(0, status)
  local count = 0
  for _, line in ipairs(lines) do
    count = count + (line:find("filename=/bin/true", 1, true) and 1 or 0)
  end
  return count
end

describe("luatrace record", function()
  it("writes what happens while a command runs, and returns its status", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local status, out, err = helper.run {
      "record", "-e", "sched:sched_process_exec", "-f", 'filename ~ "/bin/t*"', "-o", path,
      "sh", "-c", execs(23) .. "; exit 7",
    }
    assert.same({ 7, "" }, { status, out })
    assert.matches("trace.dat: %d+ events, ", err)
    assert.is_nil(err:find("\r", 1, true))
    assert.is_true(count_true(path) >= 23)
  end)

  it("writes version 6 when it is asked to", function()
    local path = helper.tmpdir() .. "/trace.dat"
    local status = helper.run {
      "record", "-e", "sched:sched_process_exec", "--file-version", "6", "-o", path, "/bin/true",
    }
    assert.equal(0, status)
    assert.equal("\x17\x08\x44tracing6\0", helper.read_file(path):sub(1, 12))
  end)

  it("says how many events are in the file, which its own system calls are not", function()
    local path = helper.tmpdir() .. "/trace.dat"
    local status, _, err = helper.run {
      "record", "-e", "raw_syscalls:sys_enter", "-o", path, "sh", "-c", execs(3) .. "; sleep 0.3",
    }
    assert.equal(0, status)
    local count = 0
    local session <close> = tracefs.session { file = path }
    session:on("*", { "common_pid" }, function() count = count + 1 end)
    session:run()
    assert.matches(("trace.dat: %d events, "):format(count), err, 1, true)
  end)

  it("ends with Ctrl-C, and the file is complete", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local process = helper.start_luatrace {
      "record", "-e", "sched:sched_process_exec", "-o", path,
    }
    assert(helper.wait_until(function()
      os.execute(execs(1))
      return (lfs.attributes(path, "size") or 0) > 0 and count_true(path) > 0
    end, 20))
    os.execute(execs(5))
    process:kill "INT"
    local status, _, err = process:wait()
    assert.equal(0, status)
    assert.matches("events, ", err)
    assert.is_true(count_true(path) >= 5)
  end)

  it("is killed: the file can be read, and the next run removes the instance", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    local process = helper.start_luatrace {
      "record", "-e", "sched:sched_process_exec", "-o", path,
    }
    assert(helper.wait_until(function()
      os.execute(execs(1))
      return (lfs.attributes(path, "size") or 0) > 0 and count_true(path) > 0
    end, 30))
    process:kill "KILL"
    process:wait()
    assert.is_true(count_true(path) > 0)
    core.remove_stale(helper.tracing_dir)
  end)

  it("refuses what cannot be, in one line and before it touches the file", function()
    local path = helper.tmpdir() .. "/trace.dat"
    helper.write_file(path, "precious")
    for _, case in ipairs {
      { 2, "nothing to record", "record", "-o", path },
      { 2, "%-f needs an event before it", "record", "-f", "a == 1", "-e", "sched" },
      { 2, "'x' is no size in KB", "record", "-b", "x", "-e", "sched" },
      { 2, "is no size in KB", "record", "-b", "99999999999999", "-e", "sched" },
      { 2, "%-f is empty", "record", "-e", "sched", "-f", "", "-o", path },
      { 2, "%-g needs a tracer[^\n]*: %-p function_graph ", "record", "-e", "sched", "-g", "a" },
      { 2, "%-l needs a tracer[^\n]*: %-p function ", "record", "-e", "sched", "-l", "a" },
      { 2, "a time above 0 is needed, not '0s'", "record", "-e", "sched", "--duration", "0s" },
      { 2, "%-C is empty", "record", "-e", "sched", "-C", "", "-o", path },
      { 1, "cannot run 'nosuch%-command'", "record", "-e", "ftrace:print", "-o", path,
        "nosuch-command" },
      { 1, "no event \"nosuch:event\"", "record", "-e", "nosuch:event", "-o", path },
      { 1, "Field not found", "record", "-e", "sched:sched_switch", "-f", "nosuch == 1", "-o",
        path },
      { 1, "trigger", "record", "-e", "sched:sched_switch", "-R", "nosuch", "-o", path },
      { 1, "no tracer \"nosuch\"", "record", "-p", "nosuch", "-o", path },
      { 1, "cannot create /nowhere/x", "record", "-e", "ftrace:print", "-o", "/nowhere/x", "true" },
      { 1, "regular file", "record", "-e", "ftrace:print", "-o", "/dev/null", "true" },
    } do
      local status, out, err = helper.run(table.move(case, 3, #case, 1, {}))
      assert.same({ case[1], "" }, { status, out }, err)
      assert.matches(case[2], err)
    end
    assert.equal("precious", helper.read_file(path))
  end)

  it("says so when it may not trace", function()
    if not helper.is_root then
      return pending("needs root to become somebody else")
    end
    local dir = helper.tmpdir()
    assert(os.execute("chmod 777 " .. dir))
    local status, _, err = helper.execute {
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", helper.command,
      "record", "-e", "sched", "-o", dir .. "/trace.dat", "true",
    }
    assert.equal(1, status)
    assert.matches("[Pp]ermi", err)
    assert.is_nil(helper.read_file(dir .. "/trace.dat"))
  end)
end)

describe("luatrace start, stop, stat, extract, reset", function()
  after_each(function()
    if instances():find("\n" .. name() .. "\n", 1, true) then
      capture "reset"
    end
  end)

  it("catch exactly what happens in between", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local path = helper.tmpdir() .. "/trace.dat"
    assert.equal(0, (capture("start", "-e", "sched:sched_process_exec", "-e", "ftrace:print")))
    assert.truthy(instances():find("\n" .. name() .. "\n", 1, true))
    -- a run in between leaves it alone
    assert.equal(0, (helper.run { "-e", "stop()" }))
    os.execute(execs(7))
    assert.equal(0, (capture "stop"))
    os.execute(execs(5))
    assert.equal(0, (capture "start"))
    os.execute(execs(11))
    assert.equal(0, (capture "stop"))
    local status, out, err = capture("extract", "-o", path)
    assert.same({ 0, "" }, { status, out }, err)
    assert.is_true(count_true(path) >= 18)
    assert.equal(0, (capture "reset"))
    assert.is_nil(instances():find("\n" .. name() .. "\n", 1, true))
  end)

  it("show how it stands, losses too, while it runs", function()
    assert.equal(0, (capture("start", "-e", "ftrace:print", "-b", "4")))
    local instance <close> = assert(core.instance_open(helper.tracing_dir, name()))
    for i = 1, 20000 do
      assert(instance:marker(("%099d"):format(i)))
    end
    local status, out = capture "stat"
    assert.equal(0, status)
    assert.matches("capture " .. name():gsub("%-", "%%-") .. ": recording, tracer nop", out)
    status, out = capture("stat", "--format", "json")
    assert.equal(0, status)
    assert.is_true(tonumber(out:match('"lost":(%d+),"name"')) > 0, out)
    assert.truthy(out:find('"events":[]', 1, true), out)
    instance:close()
    assert.equal(0, (capture "reset"))
  end)

  it("lose nothing to a full disk", function()
    if not tracecmd.is_there() then
      return pending("trace-cmd is not installed")
    end
    local dir = helper.tmpdir()
    assert.equal(0, (capture("start", "-e", "ftrace:print", "-b", "20000")))
    local instance <close> = assert(core.instance_open(helper.tracing_dir, name()))
    for i = 1, 30011 do
      assert(instance:marker(("0"):rep(180) .. ("%07d"):format(i)))
    end
    instance:close()
    assert(os.execute("mkdir " .. dir .. "/disk"))
    local status, out, err = helper.execute {
      "unshare", "-m", "sh", "-c", ([[
        mount -t tmpfs -o size=7m none '%s/disk' &&
        "$0" extract -B %s -o '%s/disk/trace.dat' --file-version 6
        echo $?
        cp --sparse=always '%s/disk/trace.dat' '%s/first.dat']]):format(dir, name(), dir, dir, dir),
      helper.command,
    }
    assert.equal(0, status)
    assert.equal("1\n", out)
    assert.matches("cannot write .*/disk/trace.dat: No space left on device", err)
    assert.equal(0, (capture("extract", "-o", dir .. "/second.dat")))
    local seen, count = {}, 0
    for _, file in ipairs { "/first.dat", "/second.dat" } do
      for _, line in ipairs((tracecmd.report(dir .. file))) do
        local number = tonumber(line:match(": 0*(%d+)$"))
        if number and not seen[number] then
          seen[number], count = true, count + 1
        end
      end
    end
    assert.equal(30011, count)
    assert.equal(0, (capture "reset"))
  end)

  it("say what is wrong", function()
    assert.equal(0, (capture("start", "-e", "ftrace:print")))
    local status, _, err = capture("start", "-e", "sched")
    assert.equal(1, status)
    assert.matches("is there already: see luatrace stat", err)
    assert.equal(0, (capture "reset"))
    for _, command in ipairs { "stop", "stat", "extract", "reset" } do
      local code, _, why = capture(command)
      assert.equal(1, code)
      assert.matches("nothing was started under the name " .. name():gsub("%-", "%%-"), why)
    end
    status, _, err = capture "start"
    assert.equal(2, status)
    assert.matches("nothing to record", err)
    status, _, err = capture("start", "-e", "sched", "make")
    assert.equal(2, status)
    assert.matches("a command to run goes with luatrace record", err)
    -- one that cannot be set up is not left half made
    assert.equal(1, (capture("start", "-e", "sched:sched_switch", "-f", "nosuch == 1")))
    assert.is_nil(instances():find("\n" .. name() .. "\n", 1, true))
  end)

  it("leave what another program made alone, unless that is meant", function()
    local path = helper.tmpdir() .. "/trace.dat"
    assert(lfs.mkdir(helper.tracing_dir .. "/instances/" .. name()))
    local other <close> = assert(core.instance_open(helper.tracing_dir, name()))
    assert.is_false(other:is_kept())
    for i = 1, 23 do
      assert(other:marker("theirs " .. i))
    end
    local function records()
      local count = 0
      for _, stats in pairs(assert(other:stats())) do
        count = count + stats.entries
      end
      return count
    end
    local function refused(done, ...)
      local status, out, err = capture(...)
      assert.same({ 1, "" }, { status, out })
      assert.equal(("luatrace: %s/instances/%s is not of luatrace start: another program may need "
        .. "it; --force %s it\n"):format(helper.tracing_dir, name(), done), err)
    end
    refused("pauses", "stop")
    assert.is_true(other:trace_is_on())
    refused("extracts", "extract", "-o", path)
    assert.is_nil(lfs.attributes(path))
    assert(other:trace_off())
    refused("goes on with", "start")
    assert.is_false(other:trace_is_on())
    refused("removes", "reset")
    assert.equal(23, records())

    assert.equal(0, (capture("start", "--force")))
    assert.is_true(other:trace_is_on())
    assert.equal(0, (capture("stop", "--force")))
    assert.is_false(other:trace_is_on())
    local status, _, err = capture("extract", "-o", path, "--force")
    assert.equal(0, status)
    assert.matches(": 23 events, ", err, 1, true)
    assert.equal(0, records())
    -- who only looks needs no leave
    assert.equal(0, (capture "stat"))
    other:close()
    assert.equal(0, (capture("reset", "--force")))
    assert.is_nil(instances():find("\n" .. name() .. "\n", 1, true))
  end)

  it("know theirs by its mark", function()
    do
      local kept <close> = assert(core.instance_create(helper.tracing_dir, name()))
      assert.is_true(kept:keep())
      assert.is_true(kept:is_kept())
    end
    for _, command in ipairs { "stop", "start", "reset" } do
      assert.equal(0, (capture(command)), command)
    end
    assert.is_nil(instances():find("\n" .. name() .. "\n", 1, true))
  end)
end)

describe("luatrace list", function()
  it("lists what there is", function()
    local status, out = helper.run { "list", "sched:sched_wak*" }
    assert.equal(0, status)
    assert.truthy(out:find("sched:sched_wakeup\n", 1, true))
    status, out = helper.run { "list", "-t" }
    assert.equal(0, status)
    assert.truthy(("\n" .. out):find("\nnop\n", 1, true))
    status, out = helper.run { "list", "-C", "mono*" }
    assert.same({ 0, "mono\nmono_raw\n" }, { status, out })
    status, out = helper.run { "list", "-o", "*overwrite" }
    assert.equal(0, status)
    assert.matches("overwrite\n$", out)
  end)

  it("says what is wrong", function()
    local status, _, err = helper.run { "list", "-t", "nosuch*" }
    assert.equal(1, status)
    assert.matches("nothing matches 'nosuch%*'", err)
    status, _, err = helper.run { "list", "-t", "-C" }
    assert.equal(2, status)
    assert.matches("one list at a time", err)
    status, _, err = helper.run { "list", "-C", "[" }
    assert.equal(2, status)
    assert.matches("bad pattern", err)
  end)

  it("explains every command", function()
    for _, command in ipairs { "record", "start", "stop", "stat", "extract", "reset", "list" } do
      local status, out, err = helper.run { command, "--help" }
      assert.same({ 0, "" }, { status, err })
      assert.matches("^Usage: luatrace " .. command, out)
      assert.matches("\nOptions:\n", out)
    end
  end)
end)
