local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT, EBADF, ENOMEM, EINVAL = 2, 9, 12, 22

describe("in an instance", function()
  local dir = assert(core.tracing_dir())
  local instance

  before_each(function()
    instance = assert(core.instance_create(dir))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function contains(text, part)
    assert.truthy(text:find(part, 1, true), ("%q is not in %q"):format(part, text))
  end

  local function cpu_count()
    local count = 0
    for _ in pairs(instance:stats()) do
      count = count + 1
    end
    return count
  end

  describe("the clock", function()
    it("is each of those that the kernel has", function()
      local clocks = instance:clocks()
      local all = helper.read_file(instance:dir() .. "/trace_clock")
      assert.equal(all:gsub("[%[%]\n]", ""):gsub("%s+$", ""), table.concat(clocks, " "))
      for _, clock in ipairs(clocks) do
        assert(instance:set_clock(clock))
        assert.equal(clock, instance:get_clock())
        contains(helper.read_file(instance:dir() .. "/trace_clock"), "[" .. clock .. "]")
      end
    end)

    it("is refused when it is not there, with a list of those that are", function()
      assert(instance:set_clock("mono"))
      for _, name in ipairs { "nosuch", "", "mono boot" } do
        local done, message, errno = instance:set_clock(name)
        assert.is_nil(done)
        assert.equal(EINVAL, errno)
        contains(message, ("no trace clock %q in this kernel (%s/trace_clock)"):format(
          name, instance:dir()))
        contains(message, "It has: " .. table.concat(instance:clocks(), " "))
      end
      assert.equal("mono", instance:get_clock())
    end)
  end)

  describe("the size of the buffer", function()
    it("is what the kernel has made of it", function()
      for _, kb in ipairs { 1, 64, 1409, 8192 } do
        local size = assert(instance:set_buffer_kb(kb))
        assert.equal(tonumber(helper.read_file(instance:dir() .. "/buffer_size_kb")), size)
        assert.is_true(size >= kb and size < kb * 1.1 + 16)
        assert.equal(size, instance:get_buffer_kb())
      end
    end)

    it("is the largest when CPUs differ", function()
      if cpu_count() < 2 then
        pending("one CPU cannot differ from itself")
        return
      end
      assert(instance:set_buffer_kb(64))
      assert(instance:write("per_cpu/cpu1/buffer_size_kb", "512"))
      assert.equal("X\n", instance:read("buffer_size_kb"))
      assert.equal(tonumber(instance:read("per_cpu/cpu1/buffer_size_kb")), instance:get_buffer_kb())
    end)

    it("is refused when it is more than the machine has, and the old one stays", function()
      local old = assert(instance:set_buffer_kb(512))
      for _, kb in ipairs { 2000000000, 40000000000, math.maxinteger } do
        local size, message, errno = instance:set_buffer_kb(kb)
        assert.is_nil(size)
        assert.equal(ENOMEM, errno)
        contains(message, ("cannot set the buffer to %d KiB for each CPU (%s/buffer_size_kb)")
          :format(kb, instance:dir()))
        contains(message, ("%d KiB x %d CPUs is "):format(kb, cpu_count()))
        assert.truthy(message:find("and %d+%.%d GiB of memory are free%."), message)
        contains(message, ("It stays at %d KiB for each CPU; ask for less"):format(old))
        assert.equal(old, instance:get_buffer_kb())
      end
    end)
  end)

  describe("the size of sub-buffers", function()
    local function has_sizes()
      if instance:has "buffer_subbuf_size_kb" then
        return true
      end
      local size, message, errno = instance:get_subbuf_kb()
      assert.is_nil(size)
      assert.equal(ENOENT, errno)
      contains(message, "is there from Linux 6.8 on")
      pending(message)
      return false
    end

    it("is what the kernel has made of it", function()
      if not has_sizes() then
        return
      end
      for _, kb in ipairs { 64, 4, 8, 5 } do
        local size = assert(instance:set_subbuf_kb(kb))
        assert.is_true(size >= 4 and size <= 64 and size & (size - 1) == 0)
        assert.equal(size, instance:get_subbuf_kb())
        assert.equal(("%d\n"):format(size), instance:read("buffer_subbuf_size_kb"))
      end
      assert.equal(64, instance:set_subbuf_kb(64))
    end)

    it("is refused when it is too large, and the old one stays", function()
      if not has_sizes() then
        return
      end
      local old = assert(instance:set_subbuf_kb(8))
      for _, kb in ipairs { 1 << 20, math.maxinteger } do
        local size, message, errno = instance:set_subbuf_kb(kb)
        assert.is_nil(size)
        assert.is_true(errno == EINVAL or errno == ENOMEM)
        contains(message, ("cannot set sub-buffers to %d KiB (%s/buffer_subbuf_size_kb): "):format(
          kb, instance:dir()))
        contains(message, ("They stay at %d KiB; sizes are powers of two"):format(old))
        assert.equal(old, instance:get_subbuf_kb())
      end
    end)
  end)

  it("recording is turned on and off", function()
    assert(instance:trace_on())
    assert.is_true(instance:trace_is_on())
    assert.equal("1\n", instance:read("tracing_on"))
    assert(instance:trace_off())
    assert.is_false(instance:trace_is_on())
    assert.equal("0\n", instance:read("tracing_on"))
  end)

  describe("options", function()
    it("are set one by one", function()
      for _, name in ipairs { "overwrite", "event-fork", "markers" } do
        local before = instance:get_option(name)
        for _, on in ipairs { not before, before } do
          assert(instance:set_option(name, on))
          assert.equal(on, instance:get_option(name))
          assert.equal(on and "1\n" or "0\n", instance:read("options/" .. name))
        end
      end
    end)

    it("that are not there are refused by name, with a list of those that are", function()
      for _, name in ipairs { "nosuch", "", "../tracing_on", "..", "over write" } do
        local done, message, errno = instance:set_option(name, true)
        assert.is_nil(done)
        assert.equal(ENOENT, errno)
        contains(message, ("no option %q in %s/options."):format(name, instance:dir()))
        contains(message, " There are: ")
        contains(message, " event-fork ")
        contains(message, " overwrite ")
        assert.is_nil((instance:get_option(name)))
      end
    end)
  end)

  it("an option that is nearly there is offered", function()
    local _, message = instance:set_option("event_frok", true)
    contains(message, "Did you mean event-fork?")
  end)

  it("all options are listed with what they are set to", function()
    local options = instance:options()
    local count = 0
    for name, on in pairs(options) do
      count = count + 1
      assert.equal(on and "1\n" or "0\n", instance:read("options/" .. name))
    end
    assert.is_true(count > 10)
    assert.is_boolean(options.overwrite)
  end)

  it("a clock that is nearly there is offered", function()
    local _, message = instance:set_clock("monoo")
    contains(message, "Did you mean mono")
  end)

  describe("a marker", function()
    local function entries()
      local _, count = instance:read("trace"):gsub("tracing_mark_write: ", "")
      return count
    end

    it("is an event with its text", function()
      assert(instance:trace_on())
      for i = 1, 23 do
        assert.equal(#("number %02d"):format(i), instance:marker(("number %02d"):format(i)))
      end
      assert.equal(23, entries())
      contains(instance:read("trace"), "tracing_mark_write: number 23\n")
      assert(instance:clear())
      assert.equal(0, entries())
    end)

    it("that is too long for the kernel is reported as short", function()
      assert(instance:trace_on())
      local taken = instance:marker(("x"):rep(70000))
      assert.is_true(taken > 1000 and taken < 70000)
      local text = instance:read("trace")
      assert.equal(1, entries())
      assert.equal(taken, #text:match("tracing_mark_write: (x+)\n"))
    end)

    it("is refused while nothing is recorded", function()
      local taken, message, errno = instance:marker("text")
      assert.is_nil(taken)
      assert.equal(EBADF, errno)
      contains(message, ("cannot write to %s/trace_marker: nothing is recorded"):format(
        instance:dir()))
      contains(message, "tracing is off (trace_on turns it on)")
    end)

    it("can be raw", function()
      assert(instance:trace_on())
      assert.equal(7, instance:marker_raw(string.pack("=I4", 0x2a) .. "abc"))
      contains(instance:read("trace"), "# 2a buf: 61 62 63")
      local taken, message, errno = instance:marker_raw("abc")
      assert.is_nil(taken)
      assert.equal(EINVAL, errno)
      contains(message, "bad raw marker of 3 bytes: it begins with a number of 4 bytes")
    end)
  end)
end)
