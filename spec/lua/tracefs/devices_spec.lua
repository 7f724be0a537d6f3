local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local devices = require "tracefs.devices"

-- What the kernel says itself: "259:1" by name.
local function known()
  local list = {}
  for name in (helper.read_file("/proc/partitions") or ""):gmatch "%s(%S+)\n" do
    list[name] = (helper.read_file("/sys/class/block/" .. name .. "/dev") or ""):match "%d+:%d+"
  end
  return list
end

describe("tracefs.devices", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.devices"))
  end)

  it("writes the numbers of a record as people do, and reads them", function()
    for dev, text in pairs {
      [0] = "0:0", [8 << 20 | 1] = "8:1", [259 << 20 | 65536] = "259:65536",
      [0xffffffff] = "4095:1048575",
    } do
      assert.equal(text, devices.text(dev))
      assert.equal(dev, devices.number(text))
    end
  end)

  it("knows the names of this machine's devices", function()
    local list = known()
    if not next(list) then
      pending("this machine has no block devices")
    end
    for name, text in pairs(list) do
      local dev = devices.number(text)
      assert.equal(dev, devices.number(name))
      assert.equal(dev, devices.number("/dev/" .. name))
      assert.equal(name, devices.name(dev))
      local is_partition = helper.read_file("/sys/class/block/" .. name .. "/partition") ~= nil
      assert.equal(is_partition, devices.disk(dev) ~= dev)
    end
  end)

  it("gives a device that is not there its number for a name", function()
    assert.equal("4095:1048575", devices.name(0xffffffff))
    assert.equal(0xffffffff, devices.disk(0xffffffff))
  end)

  it("refuses what is no device", function()
    for _, word in ipairs { "", ".", "..", "nosuch", "/dev/", "/dev/null", "8:", "8:1048576",
      "4096:0", "99999999999999999999:0", "8:1x", "../block" } do
      local dev, why = devices.number(word)
      assert.is_nil(dev)
      assert.equal(("there is no block device '%s'"):format(word), why)
    end
  end)
end)
