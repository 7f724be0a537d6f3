local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

local COUNTS <const> = "examples/counts.lua"
local LOAD <const> = ("%s --name %s"):format(helper.quote(helper.program("support/load")),
  loads.NAME)
local ENTER <const> = loads.SYSCALL

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  return out
end

local function run_json(words)
  local json = require "dkjson"
  local found = {}
  for line in run(table.move(words, 1, #words, 3, { "-f", "json" })):gmatch("{[^\n]+") do
    local object = assert(json.decode(line))
    if object.type == "count" then
      object.type = nil
      found[#found + 1] = object
    end
  end
  return found
end

describe("examples/counts.lua", function()
  it("counts 1009 system calls in a table", function()
    local nr, filter = loads.fresh_nr()
    local out = run {
      "-c", ("%s syscalls 1009 --nr %d >&2"):format(LOAD, nr), COUNTS, ENTER,
      "raw_syscalls:sys_exit", "--filter", filter .. " && id > 0",
    }
    -- The other one has its result where this has its arguments, and the same number.
    assert.matches("^ +count +each s event\n +1009 +%d+ raw_syscalls:sys_enter\n"
      .. " +1009 +%d+ raw_syscalls:sys_exit\n\n2018 events in %d+%.%d%d s\n$", out)
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("counts by CPU, and an event once that two patterns mean", function()
    local nr, filter = loads.fresh_nr()
    local found = run_json {
      "-c", ("%s syscalls 101 --cpu all --nr %d >&2"):format(LOAD, nr), COUNTS,
      "raw_syscalls:*ter", ENTER, "--by", "cpu", "--filter", filter,
    }
    local expected = {}
    for i, cpu in ipairs(loads.cpus()) do
      expected[i] = { event = ENTER, cpu = cpu, count = 101 }
    end
    table.sort(found, function(a, b) return a.cpu < b.cpu end)
    assert.same(expected, found)
  end)

  it("counts only the command when asked, as perf stat does", function()
    -- Beside it somebody else sends the same signals.
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/beside", "while [ -e beside ]; do kill -USR1 $$; sleep 0.01; done")
    local other = helper.start { "sh", "-c", "trap : USR1; . ./beside", cwd = dir }
    local perf = ("perf stat -x, -o %s/perf -e signal:signal_generate --filter 'sig == 10' ")
      :format(dir)
    local has_perf = os.execute(perf .. "true >/dev/null 2>&1")
    local found = run_json {
      "-c", ("%s%s signals 499 >&2"):format(has_perf and perf or "", LOAD), COUNTS,
      "signal:signal_generate", "signal:signal_deliver", "--filter", "sig == 10", "--command",
    }
    os.remove(dir .. "/beside")
    other:wait()
    -- no handler is called: the target waits for them
    assert.same({ { event = "signal:signal_generate", count = 499 },
      { event = "signal:signal_deliver", count = 0 } }, found)
    if has_perf then
      assert.matches("\n499,", helper.read_file(dir .. "/perf"))
    end
  end)

  it("counts anew at each interval, and by name", function()
    local nr, filter = loads.fresh_nr()
    local call = ("%s syscalls 23 --nr %d"):format(LOAD, nr)
    local out = run {
      "-c", ("%s >&2; sleep 0.2; %s >&2"):format(call, call), COUNTS, ENTER, "--filter", filter,
      "--interval", "0.1", "--by", "comm",
    }
    local tables, sum = 0, 0
    for events in out:gmatch("\n(%d+) events in ") do
      tables, sum = tables + 1, sum + events
    end
    assert.equal(46, sum, out)
    assert.is_true(tables >= 2, out)
    assert.matches("^ +count +each s comm +event\n", out)
    for count in out:gmatch("\n +(%d+) +%d+ %S+ +raw_syscalls:sys_enter") do
      sum = sum - count
    end
    assert.equal(0, sum, out)
  end)

  it("refuses what it cannot count", function()
    for words, why in pairs {
      [{ "--interval", "0", ENTER }] = "not '0'",
      [{ "--command", ENTER }] = "luatrace -c COMMAND",
      [{ "--filter", "nosuch == 1", ENTER }] = "Field not found",
    } do
      local status, out, err = helper.run { COUNTS, table.unpack(words) }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(why, 1, true), err)
    end
  end)
end)

-- Ticks that come in one go, brought to the script's handlers.
describe("the tables of examples/counts.lua", function()
  it("are of the time between ticks, whenever these are looked at", function()
    local tick, at_end, count, lines
    lines = {}
    package.loaded["tracefs.script"] = {
      args = { ENTER, "--interval", "0.5" }, format = "text",
      on = function(_, _, _, handler) count = handler end,
      every = function(_, _, fn) tick = fn end,
      at_end = function(_, fn) at_end = fn end,
      stats = function() return { elapsed = 1.25, lost = 0 } end,
    }
    finally(function() package.loaded["tracefs.script"] = nil end)
    assert(loadfile(COUNTS, "t", setmetatable({
      print = function(line) lines[#lines + 1] = line end,
    }, { __index = _G })))()
    for now = 1, 2 do
      for _ = 1, 7 do
        count(ENTER)
      end
      tick(now * 500000000)
    end
    count(ENTER)
    at_end()
    local text = table.concat(lines, "\n")
    local found = {}
    for row in text:gmatch(" +(%d+ +%d+) raw_syscalls:sys_enter") do
      found[#found + 1] = row:gsub(" +", " ")
    end
    for seconds in text:gmatch("events in ([%d.]+) s") do
      found[#found + 1] = seconds
    end
    assert.same({ "7 14", "7 14", "1 4", "0.50", "0.50", "0.25" }, found)
  end)
end)
