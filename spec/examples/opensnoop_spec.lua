local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local OPENSNOOP <const> = "examples/opensnoop.lua"

describe("examples/opensnoop.lua", function()
  local has = tracefs.features()

  local it = helper.it_after(it, function()
    if not (has.syscalls or has.kprobe) then
      pending("no events of system calls and no kprobes in this kernel")
    end
  end)

  -- A program of its own name that opens 23 files which are there, and 7 that are not.
  local function command(dir)
    local list = {}
    for i = 1, 23 do
      list[i] = ("%s/file-%d"):format(dir, i)
      helper.write_file(list[i], "")
    end
    helper.write_file(dir .. "/open.lua", ([[
      local files = {}
      for i = 1, 30 do
        files[i] = io.open(("%s/%%s-%%d"):format(i <= 23 and "file" or "missing", i))
      end
    ]]):format(dir))
    local program = ("opens-%d"):format(helper.pid)
    assert.equal(0, (helper.execute { "sh", "-c",
      ("ln -s $(command -v %s) %s/%s"):format(helper.interpreter, dir, program) }))
    -- A leak check would open files of its own, behind ours.
    return ("env ASAN_OPTIONS=detect_leaks=0 %s/%s %s/open.lua"):format(dir, program, dir), list,
      program:sub(1, 15)
  end

  it("shows 23 files that are opened and 7 that are not there, by whom", function()
    local dir = helper.tmpdir()
    local run, list, comm = command(dir)
    local status, out, err = helper.run {
      "-f", "json", "-c", run, OPENSNOOP, "--comm", comm, timeout = 60,
    }
    assert.equal(0, status, err)
    local results, names = {}, {}
    for line in out:gmatch("[^\n]+") do
      local object = require("dkjson").decode(line)
      if object and object.type == "open" then
        assert.equal(comm, object.comm)
        assert.equal("integer", math.type(object.pid))
        assert.equal(object.result < 0, object.error ~= nil)
        results[#results + 1] = object.result
        names[#names + 1] = object.name
      end
    end
    -- The last ones are the program's own, behind those of its start.
    for i = 1, 7 do
      assert.equal(-2, results[#results - 7 + i])
    end
    for i = 2, 23 do
      local at = #results - 30 + i
      -- Not one by one: some may have been open from the start.
      assert.is_true(results[at - 1] < results[at])
    end
    if has.kprobe then
      assert.equal(#results, #names)
      for i, name in ipairs(list) do
        assert.equal(name, names[#names - 30 + i])
      end
    end
  end)

  it("prints a table, of failed calls only if asked", function()
    local dir = helper.tmpdir()
    local run, _, comm = command(dir)
    local status, out, err = helper.run {
      "-c", run, OPENSNOOP, "--failed", "--comm", comm, timeout = 60,
    }
    assert.equal(0, status, err)
    assert.equal("TIME       COMM             PID     RESULT  NAME", out:match("^[^\n]+"))
    local failed = 0
    for line in out:gmatch("\n([^\n]+)") do
      local result = line:match("^%d+%.%d+ +.- +%d+ +(E%u+) +%S")
      assert.is_truthy(result, line)
      failed = failed + (result == "ENOENT" and 1 or 0)
    end
    assert.is_true(failed >= 7)
  end)

  it("is rows, metrics, bars and slices, too", function()
    local dir = helper.tmpdir()
    local run, _, comm = command(dir)
    local function in_format(format)
      local status, out, err = helper.run {
        "-f", format, "-c", run, OPENSNOOP, "--comm", comm, timeout = 60,
      }
      assert.equal(0, status, err)
      assert.falsy(err:find("ENOENT", 1, true), err)
      return out
    end
    local out = in_format "csv"
    assert.equal("type,comm,error,flags,name,pid,result,time_ns,more\r\n", out:match "^[^\n]+\n")
    local failed, opened = 0, 0
    for line in out:gmatch "\n([^\n]+)\r" do
      local error_name, result = line:match(
        "^open," .. comm:gsub("%-", "%%-") .. ",(%u*),%d*,[^,]*,%d+,(%-?%d+),%d+,$")
      assert.is_truthy(result, line)
      assert.equal(tonumber(result) < 0, error_name ~= "")
      failed = failed + (error_name == "ENOENT" and 1 or 0)
      opened = opened + (error_name == "" and 1 or 0)
    end
    assert.is_true(failed >= 7 and opened >= 23)
    -- the same program opens the same files
    out = in_format "prometheus"
    for result, count in pairs { ENOENT = failed, ok = opened } do
      local sample = '\nluatrace_opens_total{comm="%s",result="%s"} %d\n'
      assert.truthy(out:find(sample:format(comm, result, count), 1, true), out)
    end
    assert.truthy(in_format "svg":find((">%s ENOENT<"):format(comm), 1, true))
    local slices = select(2, in_format "perfetto":gsub('"name":"open","cat":"pair","ph":"X"', ""))
    assert.equal(failed + opened, slices)
  end)

  it("keeps to names that match", function()
    local dir = helper.tmpdir()
    local run, _, comm = command(dir)
    local status, out, err = helper.run {
      "-c", run, OPENSNOOP, "--name", "/file%-1%d$", "--comm", comm, timeout = 60,
    }
    assert.equal(0, status, err)
    local count = select(2, out:gsub("\n", "")) - 1
    assert.equal(has.kprobe and 10 or 0, count)
  end)

  it("refuses what a slice cannot be chosen by", function()
    local status, _, err = helper.run { "-f", "perfetto", OPENSNOOP, "--failed" }
    assert.equal(1, status)
    assert.matches("%-%-failed and %-%-name choose lines", err)
  end)

  it("refuses what is no pattern", function()
    for _, pattern in ipairs { "[", "a[", "/etc/%", "a(b" } do
      local status, out, err = helper.run { OPENSNOOP, "--name", pattern }
      assert.same({ 1, "" }, { status, out })
      assert.matches(("--name takes a Lua pattern, which '%s' is not: "):format(pattern), err, 1,
        true)
    end
  end)
end)

-- Names that nobody here has, brought to the script's handlers.
describe("the lines of examples/opensnoop.lua", function()
  it("are one for each call, whatever the names are", function()
    local handlers, lines = {}, {}
    package.loaded["tracefs.script"] = {
      args = {}, format = "text", instance = { file = "made" },
      on = function(_, event, _, handler) handlers[event] = handler end,
      at_start = function() end, at_end = function() end, on_lost = function() end,
    }
    finally(function() package.loaded["tracefs.script"] = nil end)
    assert(loadfile(OPENSNOOP, "t", setmetatable({
      print = function(line) lines[#lines + 1] = line end,
    }, { __index = _G })))()
    handlers["syscalls:sys_enter_openat"] {
      common_pid = 7, common_timestamp = 100, __filename_val = "a\n0.1 sh 1 3 /etc/shadow",
    }
    handlers["syscalls:sys_exit_openat"](7, "x\ny", 1000100, 3)
    assert.same({
      "0.001000   x\\ny             7       3       a\\n0.1 sh 1 3 /etc/shadow",
    }, lines)
  end)
end)
