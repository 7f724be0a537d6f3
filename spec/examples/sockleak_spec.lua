local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local trace_text = require "spec.support.trace_text"
local tracefs = require "tracefs"

local SOCKLEAK <const> = "examples/sockleak.lua"
local NAME <const> = loads.NAME .. "-sockets"

local function run(...)
  local words = {
    "-c", ("%s --name %s sockets 23 5 >/dev/null"):format(
      helper.quote(helper.program "support/load"), loads.NAME), timeout = 60, ...,
  }
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

describe("examples/sockleak.lua", function()
  local it = helper.it_after(it, function()
    if not tracefs.features().syscalls then
      pending "no events of system calls in this kernel"
    end
  end)

  it("shows the 5 of 23 sockets that nobody has closed, and whose they are", function()
    local json = require "dkjson"
    local found
    for line in run("-f", "json", SOCKLEAK):gmatch "[^\n]+" do
      local object = assert(json.decode(line))
      if object.comm == NAME then
        assert.is_nil(found)
        found = object
      end
    end
    assert.is_true(found.pid > 1 and found.oldest_ns > 0)
    found.pid, found.oldest_ns = nil, nil
    assert.same({
      type = "descriptors", comm = NAME, kind = "socket", opened = 23, closed = 18, exec = 0,
      unknown = 0, left = 5,
    }, found)
  end)

  it("has the ages that the kernel's own text gives", function()
    local sockets = ("%s --name %s sockets "):format(
      helper.quote(helper.program "support/load"), loads.NAME)
    local objects, lines = trace_text.run(sockets .. "97 13; " .. sockets .. "23 5",
      { SOCKLEAK, "--comm", NAME })
    local opened, expected = {}, {}
    for _, line in ipairs(lines) do
      local fds = opened[line.pid] or {}
      opened[line.pid] = fds
      if line.event == "sys_socket" then
        fds[tonumber(line.text:match "%-> (0x%x+)")] = line.ns
      elseif line.event == "sys_close" then
        fds[tonumber(line.text:match "fd: 0?x?(%x+)", 16)] = nil
      elseif line.text:find("comm=" .. NAME, 1, true) and line.event == "sched_process_exit" then
        local oldest, left = line.ns, 0
        for _, ns in pairs(fds) do
          oldest, left = math.min(oldest, ns), left + 1
        end
        if left > 0 then
          expected[#expected + 1] = ("%d has %d for %d ns"):format(line.pid, left, line.ns - oldest)
        end
      end
    end
    local found = {}
    for _, row in ipairs(objects.descriptors) do
      found[#found + 1] = ("%d has %d for %d ns"):format(row.pid, row.left, row.oldest_ns)
    end
    table.sort(expected)
    table.sort(found)
    assert.equal(2, #found)
    assert.same(expected, found)
  end)

  it("prints a table, of one name only if asked", function()
    local out = run(SOCKLEAK, "--comm", NAME)
    assert.matches(("^process +pid kind +opened +closed +exec +unknown +left +oldest\n"
      .. "%s%%-sockets +%%d+ socket +23 +18 +0 +0 +5 +[%%d.]+[num]?s\n"
      .. "\n23 opened, 18 closed, 0 exec, 0 unknown, 5 left\n$"):format(loads.NAME), out)
    for line in out:gmatch "[^\n]+" do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("is rows and metrics, too", function()
    local out = run("-f", "csv", SOCKLEAK, "--comm", NAME)
    assert.matches("^type,closed,comm,exec,kind,left,oldest_ns,opened,pid,unknown,more\r\n"
      .. ("descriptors,18,%s%%-sockets,0,socket,5,%%d+,23,%%d+,0,\r\n"):format(loads.NAME), out)
    out = run("-f", "prometheus", SOCKLEAK, "--comm", NAME)
    assert.matches(('\nluatrace_descriptors_left{comm="%s%%-sockets",kind="socket",pid="%%d+"} 5\n')
      :format(loads.NAME), out)
  end)

  it("refuses a number of lines that is none", function()
    local status, out, err = helper.run { SOCKLEAK, "--top", "0" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("'0' is not a whole number above 0", err)
  end)
end)

-- Sequences that no load makes on purpose, brought to the script's handlers one by one.
describe("the bookkeeping of examples/sockleak.lua", function()
  local handlers, lost, at_end, rows, sums

  local function start(...)
    handlers, rows = {}, {}
    package.loaded["tracefs.script"] = {
      args = { ... },
      format = "json",
      instance = { file = "elsewhere" },
      on = function(_, event, _, handler) handlers[event:match ":(.*)"] = handler end,
      on_lost = function(_, fn) lost = fn end,
      at_end = function(_, fn) at_end = fn end,
      print = function(_, object)
        if object.type == "total" then
          sums = object
        else
          rows[object.pid .. " " .. object.kind] = object
        end
      end,
    }
    assert(loadfile(SOCKLEAK))()
  end

  after_each(function()
    package.loaded["tracefs.script"] = nil
  end)

  local function socket(thread, fd, now)
    handlers.sys_exit_socket(thread, "app", now or 100, fd)
  end
  local function close(thread, fd) handlers.sys_enter_close(thread, 200, fd) end
  local function clone(parent, pid, flags) handlers.task_newtask(parent, pid, flags, "sh") end
  local function exit(thread, now) handlers.sched_process_exit(thread, now or 300) end

  local function counts()
    at_end()
    assert.equal(sums.opened, sums.closed + sums.exec + sums.unknown + sums.left)
    return ("%d opened %d closed %d exec %d unknown %d left"):format(sums.opened, sums.closed,
      sums.exec, sums.unknown, sums.left)
  end

  it("has one table for the threads of a process, and one for each process", function()
    start()
    clone(1, 50, 0)
    clone(50, 51, 0x400)
    clone(50, 60, 0)
    socket(51, 3)
    close(60, 3)
    socket(50, 4)
    socket(60, 4)
    close(51, 4)
    exit(51)
    close(50, 3)
    assert.equal("3 opened 2 closed 0 exec 0 unknown 1 left", counts())
    assert.equal(1, rows["60 socket"].left)
    assert.is_nil(rows["50 socket"])
  end)

  it("counts what was open when the last thread ended, with its age", function()
    start()
    clone(1, 50, 0)
    clone(50, 51, 0x400)
    socket(50, 3, 100)
    socket(50, 4, 150)
    exit(50, 300)
    exit(51, 700)
    -- the number of a process comes again
    clone(1, 50, 0)
    socket(50, 3, 800)
    close(50, 3)
    close(50, 4)
    assert.equal("3 opened 1 closed 0 exec 0 unknown 2 left", counts())
    assert.equal(600, rows["50 socket"].oldest_ns)
  end)

  it("gives up what an exec and a loss leave in doubt", function()
    start()
    clone(1, 50, 0)
    socket(50, 3)
    handlers.sched_process_exec(50, 50)
    close(50, 3)
    socket(50, 4)
    socket(50, 5)
    lost { cpu = 0 }
    close(50, 4)
    assert.equal("3 opened 0 closed 1 exec 2 unknown 0 left", counts())
    assert.same({}, rows)
  end)

  it("leaves a parent its descriptors when a child that shares them becomes a program", function()
    start()
    clone(1, 50, 0)
    socket(50, 3)
    clone(50, 70, 0x400)
    handlers.sched_process_exec(70, 70)
    close(70, 3)
    exit(70)
    assert.equal("1 opened 0 closed 0 exec 0 unknown 1 left", counts())
    assert.equal(1, rows["50 socket"].left)
  end)

  it("takes the name that the thread had when it opened the first", function()
    start("--comm", "server")
    clone(1, 50, 0)
    socket(50, 3)
    handlers.task_rename(50, "server")
    socket(50, 4)
    handlers.task_rename(50, "idle")
    socket(50, 5)
    assert.equal("1 opened 0 closed 0 exec 0 unknown 1 left", counts())
    assert.equal("server", rows["50 socket"].comm)
  end)

  it("knows the other ways to close", function()
    start("--all")
    clone(1, 50, 0)
    for fd = 3, 12 do
      socket(50, fd)
    end
    handlers.sys_enter_close_range(50, 11, -1, 0)
    handlers.sys_enter_close_range(50, 3, 4, 0)
    handlers.sys_enter_close_range(50, 5, -1, 4)
    handlers.sys_enter_dup2(50, 5, 6)
    handlers.sys_exit_dup2(50, "app", 150, 6)
    handlers.sys_enter_dup2(50, 7, 7)
    handlers.sys_exit_dup2(50, "app", 160, 7)
    assert.equal("11 opened 5 closed 0 exec 0 unknown 6 left", counts())
    assert.equal(5, rows["50 socket"].left)
    assert.equal(1, rows["50 dup"].left)
  end)

  it("does not take a number that comes once more for another one that is left", function()
    start()
    socket(50, 3)
    socket(50, 3)
    assert.equal("2 opened 0 closed 0 exec 1 unknown 1 left", counts())
  end)
end)
