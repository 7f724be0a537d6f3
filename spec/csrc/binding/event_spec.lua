local core = require "tracefs.core"
local decode = require "spec.support.decode"
local helper = require "spec.support.helper"

local TEXT = decode.format {
  name = "wake",
  id = 77,
  print = '"pid=%d", REC->pid',
  fields = { { "pid_t pid", "i4" }, { "char comm[4]", "c4" } },
}

describe("a catalog", function()
  it("is of this machine, or of the one that it is told of", function()
    local catalog = core.catalog()
    local event = assert(catalog:parse("sched", TEXT))
    assert.equal(1, event:record(("<I8I4"):pack(0, 1) .. "cat\0").pid)
    local big = core.catalog(true, 4)
    assert.equal(1, assert(big:parse("sched", TEXT)):record((">I8I4"):pack(0, 1) .. "cat\0").pid)
  end)

  it("refuses what is no machine", function()
    assert.has_error(
      function() core.catalog(false, 3) end,
      "bad argument #2 to 'catalog' (a long has 4 or 8 bytes)"
    )
    assert.has_error(function() core.catalog("big") end)
    assert.has_error(function() core.catalog(false, "x") end)
  end)

  it("has one description for an event", function()
    local catalog = core.catalog()
    local event = assert(catalog:parse("sched", TEXT))
    assert.is_true(rawequal(event, catalog:parse("sched", TEXT)))
    assert.is_true(rawequal(event, catalog:by_id(77)))
    assert.is_nil(catalog:by_id(78))
  end)

  it("says what is wrong with a format", function()
    local event, message, code = core.catalog():parse("sched", "name: x\n")
    assert.is_nil(event)
    assert.equal('cannot parse the format of sched:x: no "ID: " line', message)
    assert.equal(22, code)
    assert.has_error(function() core.catalog():parse("sched") end)
    assert.has_error(function() core.catalog():parse(nil, TEXT) end)
    assert.has_error(function() core.catalog().parse({}, "sched", TEXT) end)
    assert.has_error(function() core.catalog():by_id("x") end)
    assert.has_error(function() core.catalog():set_hz(0) end)
    assert.has_error(function() core.catalog():set_live() end)
  end)

  it("reads the live kernel's formats", function()
    local dir = assert(core.tracing_dir())
    local catalog = core.catalog()
    assert.is_true(catalog:set_live(dir))
    local event = assert(
      catalog:parse("sched", helper.read_file(dir .. "/events/sched/sched_switch/format"))
    )
    assert.equal("sched:sched_switch", event:label())
    assert.is_nil(event:no_text())
    assert.is_true(event:has("prev_comm"))
  end)
end)

describe("an event description", function()
  local catalog = core.catalog()
  local event = assert(catalog:parse("sched", TEXT))

  it("tells what its format file says", function()
    assert.equal("sched", event:system())
    assert.equal("wake", event:name())
    assert.equal("sched:wake", event:label())
    assert.equal(77, event:id())
    assert.equal('"pid=%d", REC->pid', event:print_fmt())
    assert.is_nil(event:no_text())
    assert.equal(6, #event:fields())
    assert.same({
      name = "pid", type = "pid_t", offset = 8, size = 4,
      kind = "int", place = "fixed", signed = true, common = false,
    }, event:fields()[5])
  end)

  it("knows which fields its records have", function()
    for _, name in ipairs {
      "pid", "comm", "common_pid", "common_type", "common_flags", "common_preempt_count",
      "common_timestamp", "common_cpu", "common_comm", "common_event", "common_late",
      "common_scale",
    } do
      assert.is_true(event:has(name), name)
    end
    for _, name in ipairs { "", "Pid", "timestamp", "name", "nosuch" } do
      assert.is_false(event:has(name), name)
    end
    assert.has_error(function() event:has() end)
  end)

  it("makes records of bytes, so that handlers can be tested without a kernel", function()
    local bytes = ("<I2BBi4i4"):pack(77, 1, 2, 30, -5) .. "cat\0"
    local record = event:record(bytes, { common_timestamp = 1234567890, common_cpu = 3 })
    assert.equal(-5, record.pid)
    assert.equal("cat", record.comm)
    assert.equal(30, record.common_pid)
    assert.equal(1, record.common_flags)
    assert.equal(2, record.common_preempt_count)
    assert.equal(1234567890, record.common_timestamp)
    assert.equal(3, record.common_cpu)
    assert.equal("sched:wake", record.common_event)
    assert.equal("pid=-5", core.text(record))
    assert.equal(
      "           <...>-30      [003] d..2.     1.234568: wake: pid=-5", tostring(record)
    )
    assert.equal(0, event:record(bytes).common_timestamp)
    assert.is_nil(event:record("").pid)
  end)

  it("refuses what makes no record", function()
    assert.has_error(function() event:record() end)
    assert.has_error(function() event:record("", "x") end)
    assert.has_error(function() event:record("", { cpu = 1 }) end)
    assert.has_error(function() event:record("", { common_cpu = "x" }) end)
    assert.has_error(function() event:record("", { common_cpu = 1.5 }) end)
    assert.has_error(function() event.record({}, "") end)
  end)

  it("outlives its catalog's variable, and so do its records", function()
    local record
    do
      local other = assert(core.catalog():parse("sched", TEXT))
      record = other:record(("<I8i4"):pack(0, 9) .. "cat\0")
    end
    for _ = 1, 5 do
      collectgarbage()
    end
    assert.equal(9, record.pid)
    assert.matches("wake: pid=9", tostring(record), 1, true)
  end)

  it("can be met by a finalizer after its catalog is gone, without harm", function()
    local status, out, err = helper.run_lua([[
      local kept = setmetatable({}, { __gc = function(self)
        for _, read in ipairs {
          function() return self.record.pid end,
          function() return tostring(self.record) end,
          function() return pairs(self.record)(self.record) end,
          function() return require "tracefs.core".text(self.record) end,
          function() return self.event:label() end,
          function() return self.event:record("") end,
        } do
          print((select(2, pcall(read))))
        end
        print(tostring(self.event))
      end })
      local core = require "tracefs.core"
      kept.event = core.catalog():parse("sched", ...)
      kept.record = kept.event:record(("<I8i4"):pack(0, 9) .. "cat\0")
    ]], { TEXT })
    assert.equal("", err)
    assert.equal(0, status)
    local lines = 0
    for line in out:gmatch("[^\n]+") do
      lines = lines + 1
      assert.matches("closed", line, 1, true)
    end
    assert.equal(7, lines)
  end)
end)
