local core = require "tracefs.core"
local helper = require "spec.support.helper"
local tracedat = require "spec.support.tracedat"
local tracefs = require "tracefs"

local function read_line(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read("l")
end

describe("core.syscall", function()
  it("knows in which call a process is", function()
    -- the C library reads a file with one of two
    local number = math.tointeger(tonumber(helper.read_file("/proc/self/syscall"):match "^%d+"))
    assert.matches("^sys_readv?$", core.syscall(number))
  end)

  it("has the numbers that the kernel's events of each call have", function()
    local session <close> = tracefs.session {}
    local seen = {}
    for _, call in ipairs { "openat", "close", "read", "execve", "exit_group" } do
      local label = "syscalls:sys_enter_" .. call
      if #(tracefs.events(label) or {}) == 0 then
        pending("this kernel has no " .. label)
        return
      end
      session:on(label, { "__syscall_nr" }, function(number)
        seen[call] = session:syscall_name(number)
      end)
    end
    session:start()
    assert.is_true(os.execute "cat /proc/self/stat >/dev/null")
    session:finish()
    session:run()
    for _, call in ipairs { "openat", "close", "read", "execve", "exit_group" } do
      assert.equal("sys_" .. call, seen[call])
    end
  end)

  it("has none for numbers that there are not, and for other machines", function()
    for _, number in ipairs { -1, 100000, math.mininteger, math.maxinteger } do
      assert.is_nil(core.syscall(number))
    end
    assert.is_nil(core.syscall(1, "pdp11"))
    assert.is_nil(core.syscall(1, ""))
    assert.has_error(function() core.syscall() end)
    assert.has_error(function() core.syscall("x") end)
  end)
end)

describe("session:syscall_name", function()
  local UNAME <const> = 5

  local function name_in(uname)
    local path = helper.tmpdir() .. "/made.dat"
    helper.write_file(path, tracedat.build {
      ftrace = {}, events = {}, version = 7, buffers = { { name = "", cpus = { [0] = "" } } },
      options = uname and { { id = UNAME, data = uname .. "\0" } },
    })
    local session <close> = tracefs.session { file = path }
    return session:syscall_name(1)
  end

  it("is this machine's, live and of recordings made on one of its kind", function()
    local machine = read_line "uname -m"
    local name = core.syscall(1)
    assert.equal(name, name_in("Linux there 6.1.0 " .. machine))
    local session <close> = tracefs.session {}
    assert.equal(name, session:syscall_name(1))
    assert.is_nil(session:syscall_name(100000))
  end)

  it("is unknown of recordings of others, and of those that do not say", function()
    assert.is_nil(name_in "Linux there 6.1.0 pdp11")
    assert.is_nil(name_in "")
    assert.is_nil(name_in(nil))
  end)
end)
