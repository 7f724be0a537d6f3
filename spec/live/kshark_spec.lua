-- KernelShark's library opens what is written here, and finds the same number of records.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

describe("KernelShark's library", function()
  local KSHARK <const> = helper.build .. "/support/kshark"
  if not helper.read_file(KSHARK) then
    pending("libkshark is not installed")
    return
  end

  -- Records by CPU, as the library has them.
  local function theirs(path)
    local status, out, err = helper.execute {
      KSHARK, path, collector = "usual",
      env = { ASAN_OPTIONS = "detect_leaks=0" }, -- what it does not give back is not ours
    }
    assert.equal(0, status, err)
    local counts = {}
    for cpu, count in out:gmatch "(%d+) (%d+)\n" do
      counts[tonumber(cpu)] = tonumber(count)
    end
    return counts
  end

  -- As luatrace report prints them.
  local function ours(path)
    local status, out, err = helper.run { "report", "-q", path }
    assert.equal(0, status, err)
    local counts = {}
    for digits in out:gmatch "%-%d+ +%[(%d+)%] " do
      local cpu = tonumber(digits)
      counts[cpu] = (counts[cpu] or 0) + 1
    end
    return counts
  end

  local VERSIONS <const> = core.can_compress() and { 6, 7 } or { 6 }

  it("counts what is recorded, from a live session", function()
    if not helper.tracing_dir then
      pending("no tracefs")
      return
    end
    for _, version in ipairs(VERSIONS) do
      local path = helper.tmpdir() .. "/live.dat"
      local session <close> = tracefs.session()
      local nr, filter = loads.fresh_nr()
      session:on(loads.SYSCALL, { filter = filter }, function() end)
      session:record(path, { version = version })
      loads.run_session(session, { "--nr", nr, "syscalls", 23 })
      local counts = theirs(path)
      assert.same(ours(path), counts)
      local all = 0
      for _, count in pairs(counts) do
        all = all + count
      end
      assert.equal(23, all)
    end
  end)

  it("counts what is cut out of other files", function()
    local files = { helper.root .. "/examples/demo.dat" }
    for _, name in ipairs(inputs.are_there and { "lost_overwrite" } or {}) do
      files[#files + 1] = inputs.path("kernel-6.18/" .. name .. ".dat")
    end
    for _, file in ipairs(files) do
      for _, version in ipairs(VERSIONS) do
        local path = helper.tmpdir() .. "/cut.dat"
        local status, _, err = helper.run {
          "cut", "-q", "--file-version", version, "-o", path, file,
        }
        assert.equal(0, status, err)
        assert.is_not_nil(next(ours(path)))
        assert.same(ours(path), theirs(path))
      end
    end
  end)
end)
