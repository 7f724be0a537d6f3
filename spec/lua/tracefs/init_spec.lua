local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/init_spec%.lua:%d+: "

describe("tracefs", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs"))
  end)

  it("has a version and its core", function()
    assert.matches("^%d+%.%d+%.%d+$", tracefs.version)
    assert.equal(require("tracefs.core"), tracefs.core)
  end)

  it("has no function that is undocumented here", function()
    local names = {}
    for name, value in pairs(tracefs) do
      if type(value) == "function" then
        table.insert(names, name)
      end
    end
    table.sort(names)
    assert.same({
      "dynamic_events", "event", "events", "features", "filter", "folded",
      "instance_create", "instance_open", "instances", "ksym", "now", "remove_stale",
      "saved_cmdlines_size", "session", "snapshot_events", "text", "tracing_dir", "tracing_thresh",
      "u64",
    }, names)
  end)
end)

describe("tracefs.tracing_dir", function()
  it("finds what is mounted", function()
    assert.equal(helper.tracing_dir, tracefs.tracing_dir())
  end)

  it("takes another folder for this Lua state, and refuses what is no tracefs", function()
    local status, out, err = helper.run_lua(([[
      local tracefs = require "tracefs"
      local found = tracefs.tracing_dir()
      local path, message, errno = tracefs.tracing_dir("/tmp")
      print(path, errno, message:find("/tmp", 1, true) and "named")
      print(tracefs.tracing_dir() == found)
      print(tracefs.tracing_dir(%q))
    ]]):format(helper.tracing_dir .. "/"))
    assert.equal(0, status, err)
    local first, second, third = out:match("([^\n]*)\n([^\n]*)\n([^\n]*)\n")
    assert.matches("^nil\t%d+\tnamed$", first)
    assert.equal("true", second)
    assert.matches("^" .. helper.tracing_dir, third)
  end)

  it("refuses an argument that is no string", function()
    assert.has_error(function()
      tracefs.tracing_dir({})
    end)
  end)
end)

describe("tracefs.u64", function()
  it("writes 64 bits as an unsigned number", function()
    for integer, digits in pairs({
      [0] = "0",
      [7] = "7",
      [math.maxinteger] = "9223372036854775807",
      [math.mininteger] = "9223372036854775808",
      [-1] = "18446744073709551615",
      [-6] = "18446744073709551610",
      [-10] = "18446744073709551606",
    }) do
      assert.equal(digits, tracefs.u64(integer))
    end
  end)

  it("agrees with long division for any number", function()
    for _ = 1, 1000 do
      local x = math.random(0)
      local expected, rest = "", x
      repeat
        local tens = math.ult(rest, 10) and 0 or rest < 0 and (rest >> 1) // 5 or rest // 10
        expected = tostring(rest - tens * 10) .. expected
        rest = tens
      until rest == 0
      assert.equal(expected, tracefs.u64(x))
    end
  end)

  it("refuses what is no integer", function()
    for _, value in ipairs({ 1.5, "7", {}, true }) do
      local ok, message = pcall(function()
        tracefs.u64(value)
      end)
      assert.is_false(ok)
      assert.matches(HERE .. "u64: an integer is needed, not ", message)
    end
  end)
end)

describe("tracefs.ksym", function()
  it("wants an integer", function()
    for _, bad in ipairs { 1.5, "0xffffffff81000000", {} } do
      assert.error_matches(function() tracefs.ksym(bad) end, "ksym: an address is an integer, not ")
    end
    assert.error_matches(function() tracefs.ksym() end, "ksym: an address is an integer, not nil")
  end)

  it("names what is at an address of the kernel, with the place in it", function()
    local address
    for line in io.lines("/proc/kallsyms") do
      address = address or line:match("^(%x+) [tT] vfs_read$")
    end
    address = tonumber("0x" .. (address or "0"))
    if address == 0 then
      pending("this user may not see the kernel's addresses")
    end
    assert.same({ "vfs_read", 0 }, { tracefs.ksym(address) })
    assert.same({ "vfs_read", 3 }, { tracefs.ksym(address + 3) })
  end)

  it("knows nothing of what is outside of the kernel", function()
    assert.is_nil(tracefs.ksym(0))
    assert.is_nil(tracefs.ksym(0x1000))
  end)
end)

describe("tracefs.now", function()
  it("reads the clocks that user space can read", function()
    for _, clock in ipairs({ "mono", "boot", "mono_raw", "tai" }) do
      local first = tracefs.now(clock)
      local second = tracefs.now(clock)
      assert.equal("integer", math.type(first))
      assert.is_true(second >= first and second - first < 1000000000)
    end
    assert.is_true(tracefs.now() - tracefs.now("mono") <= 0)
  end)

  it("says which clocks it cannot read", function()
    for _, clock in ipairs({ "local", "global", "perf", "counter", "x86-tsc", "uptime", "nosuch",
      "" }) do
      local now, message = tracefs.now(clock)
      assert.is_nil(now)
      assert.equal(("the clock '%s' cannot be read outside the kernel: "
        .. "use mono, boot, mono_raw or tai"):format(clock), message)
    end
    assert.has_error(function()
      tracefs.now({})
    end)
  end)
end)

describe("tracefs.instances and its like", function()
  it("create, list and open instances", function()
    local instance <close> = assert(tracefs.instance_create())
    local found = false
    for _, name in ipairs(assert(tracefs.instances())) do
      assert.is_true(#name > 0)
      found = found or name == instance:name()
    end
    assert.is_true(found)
    local opened <close> = assert(tracefs.instance_open(instance:name()))
    assert.equal(instance:dir(), opened:dir())
    assert.equal("integer", math.type(tracefs.remove_stale()))
    assert.is_true(instance:has("trace"))
  end)

  it("return what the system refuses", function()
    local instance <close> = assert(tracefs.instance_create())
    for _, refused in ipairs({
      table.pack(tracefs.instance_create(instance:name())),
      table.pack(tracefs.instance_create("a/b")),
      table.pack(tracefs.instance_open("no-such-instance")),
    }) do
      assert.is_nil(refused[1])
      assert.is_string(refused[2])
      assert.equal("integer", math.type(refused[3]))
    end
  end)
end)

describe("tracefs.events", function()
  it("lists labels, sorted, all or those of a pattern", function()
    local all = assert(tracefs.events())
    assert.is_true(#all > 100)
    for i = 2, #all do
      assert.is_true(all[i - 1] < all[i] or all[i - 1]:match("[^:]*") < all[i]:match("[^:]*"))
    end
    assert.same({ "sched:sched_switch" }, tracefs.events("sched:sched_switch"))
    assert.same({ "raw_syscalls:sys_enter", "raw_syscalls:sys_exit" },
      tracefs.events("raw_syscalls:*"))
  end)

  it("returns what is wrong with a pattern", function()
    local labels, message, errno = tracefs.events("sched:sched_swich")
    assert.is_nil(labels)
    assert.matches("sched:sched_switch", message)
    assert.equal(2, errno)
    assert.is_nil((tracefs.events("[")))
  end)
end)

describe("tracefs.event", function()
  it("describes an event", function()
    local event = assert(tracefs.event("sched:sched_switch"))
    assert.equal("sched:sched_switch", event:label())
    assert.is_true(event:has("prev_comm"))
  end)

  it("returns what is wrong with a label", function()
    local event, message, errno = tracefs.event("sched:nosuch")
    assert.is_nil(event)
    assert.is_string(message)
    assert.equal("integer", math.type(errno))
  end)
end)

describe("tracefs.text", function()
  local event = assert(tracefs.event("raw_syscalls:sys_enter"))
  local bytes = ("<I2BBi4i8i8i8i8i8i8i8"):pack(event:id(), 0, 0, 77, 39, 1, 2, 3, 4, 5, 6)
  local record = event:record(bytes)

  it("is an event's text, or one field's", function()
    assert.equal("NR 39 (1, 2, 3, 4, 5, 6)", tracefs.text(record))
    assert.equal("39", tracefs.text(record, "id"))
    assert.equal("raw_syscalls:sys_enter", tracefs.text(record, "common_event"))
  end)

  it("returns nothing for a field that is not there", function()
    local text, message = tracefs.text(record, "nosuch")
    assert.is_nil(text)
    assert.equal("raw_syscalls:sys_enter has no field 'nosuch'", message)
  end)

  it("takes records only", function()
    for _, value in ipairs({ 1, "x", {}, io.stdout, event }) do
      assert.error_matches(function()
        tracefs.text(value)
      end, "tracefs.record expected")
    end
    assert.has_error(function()
      tracefs.text()
    end)
    assert.has_error(function()
      tracefs.text(record, {})
    end)
  end)
end)
