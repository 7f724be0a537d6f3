local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local PROFILE = "examples/profile.lua"
local TICK = "timer:hrtimer_expire_entry"
local IS_TICK <const> = { tick_nohz_handler = true, tick_sched_timer = true }

local function objects(out)
  local json = require "dkjson"
  local found = { task = {}, stack = {}, profile = {} }
  for line in out:gmatch("[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      table.insert(found[object.type], object)
    end
  end
  return found, found.profile[1]
end

local function sum(list, name)
  local total = 0
  for _, object in ipairs(list) do
    total = total + object[name]
  end
  return total
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

describe("examples/profile.lua", function()
  if not tracefs.features().trigger_stacktrace then
    pending "the kernel has no trigger stacktrace"
    return
  end

  -- The load under a name that no other process has.
  local function hog()
    local name = loads.NAME .. "-hog"
    local path = helper.tmpdir() .. "/" .. name
    assert(os.execute(("cp %s %s"):format(helper.quote(helper.program "support/load"),
      helper.quote(path))))
    return name, path
  end

  it("has a sample for each tick of a program, as another session counts them", function()
    local name, path = hog()
    local ticks, command = 0, nil
    local session <close> = tracefs.session {}
    session:on(TICK, { filter = ('COMM == "%s"'):format(name) }, function(ev)
      if IS_TICK[tracefs.text(ev, "function")] then
        ticks = ticks + 1
      end
    end)
    session:at_start(function()
      command = helper.start_luatrace { "-f", "json", "-c", path .. " hogs 1 1 >&2", PROFILE,
        "--comm", name, "--user", timeout = 60 }
    end)
    session:every(0.1, function()
      if helper.read_file(command.dir .. "/status") then
        session:finish()
      end
    end)
    session:run { duration = 60 * helper.slowdown }
    local status, out, err = command:wait()
    assert.equal(0, status, err)
    local found, sums = objects(out)
    assert.equal(ticks, sums.samples)
    assert.is_true(ticks > 0)
    assert.equal(1, #found.task)
    assert.equal(name, found.task[1].comm)
    assert.equal(ticks, found.task[1].samples)
    assert.equal(ticks, sum(found.stack, "samples"))
    for _, entry in ipairs(found.stack) do
      assert.truthy(entry.stack:find(name, 1, true) == 1)
      assert.is_nil(entry.stack:find("hrtimer_interrupt", 1, true), entry.stack)
      -- It is a program all the time. Its functions have names only while it runs.
      assert.is_nil(entry.stack:find("[program]", 1, true), entry.stack)
    end
  end)

  -- Of a program there is the interrupt of the tick, first and once.
  local function is_of_kernel(stack)
    local entries = 0
    for frame in stack:gmatch("[^;]+") do
      if frame:find("^asm_sysvec_") or frame == "asm_common_interrupt"
        or frame:find("^el[01]h?t?_?6?4?_irq$") then
        entries = entries + 1
      end
    end
    local first = stack:match("^[^;]+")
    return entries ~= 1 or not (first:find("^asm_sysvec_") or first == "asm_common_interrupt"
      or first:find("^el0"))
  end

  describe("on a recording", function()
    it("gives the same numbers in each of its outputs", function()
      local name, path = hog()
      local file = helper.tmpdir() .. "/profile.dat"
      local ticks, kernel = 0, 0
      do
        local session <close> = tracefs.session {}
        session:record(file)
        session:on(TICK, { filter = ('COMM == "%s"'):format(name), stack = true }, function(ev)
          if IS_TICK[tracefs.text(ev, "function")] then
            ticks = ticks + 1
            kernel = kernel + (is_of_kernel(ev.common_stack) and 1 or 0)
          end
        end)
        local load
        session:at_start(function() load = helper.start { path, "hogs", "1", "1" } end)
        session:every(0.1, function()
          if helper.read_file(load.dir .. "/status") then
            session:finish()
          end
        end)
        session:run { duration = 60 * helper.slowdown }
        load:wait()
      end
      assert.is_true(ticks > 0)
      local found, sums = objects(run { "-i", file, "-f", "json", PROFILE, "--comm", name })
      assert.equal(ticks, sums.samples)
      assert.equal(kernel, sums.kernel)
      assert.equal(ticks, sum(found.stack, "samples"))

      local flame, total = helper.tmpdir() .. "/profile.svg", 0
      for line in run({ "-i", file, PROFILE, "--comm", name, "--folded", "--flame", flame })
        :gmatch("[^\n]+") do
        local stack, count = line:match("^(.+) (%d+)$")
        assert.truthy(stack:find(name, 1, true) == 1)
        total = total + count
      end
      assert.equal(ticks, total)
      assert.truthy(helper.read_file(flame):find(
        ("<title>all: %d samples, 100.00 %%</title>"):format(ticks), 1, true))

      local picture = run { "-i", file, "-f", "svg", PROFILE, "--comm", name }
      assert.truthy(picture:find(
        ("<title>all: %d samples, 100.00 %%</title>"):format(ticks), 1, true))

      local metrics = { kernel = 0, program = 0, unknown = 0 }
      for where, count in run({ "-i", file, "-f", "prometheus", PROFILE, "--comm", name })
        :gmatch('\nluatrace_samples_total{comm="' .. name:gsub("%-", "%%-")
          .. '",where="(%l+)"} (%d+)') do
        metrics[where] = tonumber(count)
      end
      assert.equal(kernel, metrics.kernel)
      assert.equal(ticks, metrics.kernel + metrics.program + metrics.unknown)

      local out = run { "-i", file, PROFILE, "--comm", name }
      assert.matches(("\n%s +%d +100.0%%%%"):format(name:gsub("%-", "%%-"), ticks), out)
      assert.truthy(out:find(("\n%d samples, "):format(ticks), 1, true), out)
      for line in out:gmatch("[^\n]+") do
        assert.is_true(#line < 80, "80 columns or more: " .. line)
      end
    end)
  end)

  it("says so when nothing was sampled", function()
    assert.equal("no sample\n", run { "-c", "true", PROFILE, "--comm", "no-such-task" })
  end)

  it("prints what it has seen also when the picture cannot be written", function()
    local status, out, err = helper.run {
      "-q", "-i", "examples/demo.dat", PROFILE, "--flame", "/nowhere/x.svg",
    }
    assert.same({ 1, "no sample\n" }, { status, out })
    assert.matches("cannot write to '/nowhere/x.svg'", err, 1, true)
  end)

  it("keeps a name in its column", function()
    local path = helper.tmpdir() .. "/x\ty"
    assert(os.execute(("cp %s %s"):format(helper.quote(helper.program "support/load"),
      helper.quote(path))))
    local out = run { "-c", helper.quote(path) .. " hogs 1 1 >&2", PROFILE, "--comm", "x?y" }
    assert.matches("^task +samples +share +kernel\nx\\ty +%d+ ", out)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs {
      { PROFILE, "--top", "0" }, { PROFILE, "--pid", "x" }, { PROFILE, "--stacks", "none" },
    } do
      local status, out, err = helper.run(words)
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(words[2], 1, true) or err:find(words[3], 1, true), err)
    end
  end)
end)
