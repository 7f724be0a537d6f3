local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

local KILLSNOOP <const> = "examples/killsnoop.lua"
local SENDER <const>, TARGET <const> = loads.NAME .. "-sender", loads.NAME .. "-target"

local function signals(count)
  return ("%s --name %s signals %d"):format(
    helper.quote(helper.program("support/load")), loads.NAME, count)
end

-- The kernel forgets names when many tasks are traced at a time.
local function assert_name(expected, name)
  assert.equal(expected, name ~= "<...>" and name or expected)
end

local function run(words)
  words.timeout = 60
  local status, out, err = helper.run(words)
  assert.equal(0, status, err)
  for line in out:gmatch("[^\n]+") do
    assert.is_true(#line < 80, "80 columns or more: " .. line)
  end
  return out
end

local function run_json(words)
  local json = require "dkjson"
  local status, out, err = helper.run(
    table.move(words, 1, #words, 3, { "-f", "json", timeout = 60 }))
  assert.equal(0, status, err)
  local found = { signal = {}, signals = {}, total = {} }
  for line in out:gmatch("{[^\n]+") do
    local object = assert(json.decode(line))
    if found[object.type] then
      table.insert(found[object.type], object)
    end
  end
  return found, out
end

describe("examples/killsnoop.lua", function()
  it("shows each of 499 signals once: from whom, to whom, and that it was sent", function()
    local found, out = run_json { "-c", signals(499), KILLSNOOP, "--signal", "USR1" }
    local sender, target = out:match("sender=(%d+) target=(%d+)")
    local ours, before = 0, 0
    for _, signal in ipairs(found.signal) do
      assert.equal("USR1", signal.signal)
      if signal.to_pid == tonumber(target) then
        ours = ours + 1
        assert.equal(tonumber(sender), signal.from_pid)
        assert_name(SENDER, signal.from)
        assert.equal(TARGET, signal.to)
        assert.equal("sent", signal.result)
        -- made by the process, as all that is shown without --kernel
        assert.equal(0, signal.code)
        assert.is_true(signal.whole_process)
        assert.is_true(signal.time_ns > before)
        before = signal.time_ns
      end
    end
    assert.equal(499, ours)
    assert.equal(#found.signal, found.total[1].signals)
  end)

  it("adds up by who has sent what to whom", function()
    local out = run { "-c", signals(101) .. " >&2", KILLSNOOP, "--summary" }
    assert.matches("^from +signal to +signals\n", out)
    assert.matches((" USR1 +%s%%-target +101\n"):format(loads.NAME), out)
    local found = run_json { "-c", signals(7) .. " >&2", KILLSNOOP, "--summary",
      "--signal", "sigusr1", "--signal", "9" }
    local ours = {}
    for _, row in ipairs(found.signals) do
      if row.to == TARGET then
        assert_name(SENDER, row.from)
        row.from = nil
        table.insert(ours, row)
      end
    end
    assert.same({ { type = "signals", to = TARGET, signal = "USR1", signals = 7 } }, ours)
  end)

  it("is instants, metrics and bars, too", function()
    local function in_format(format)
      local status, out, err = helper.run {
        "-f", format, "-c", signals(7) .. " >&2", KILLSNOOP, "--signal", "USR1", timeout = 60,
      }
      assert.equal(0, status, err)
      return out
    end
    local instant = ('\n{"name":"signal","cat":"signal","ph":"i"[^\n]*"signal":"USR1","to":"%s"')
      :format(TARGET:gsub("%-", "%%-"))
    assert.equal(7, select(2, in_format("perfetto"):gsub(instant, "")))
    local series = in_format("prometheus"):match(
      ('\nluatrace_signals_total{from="[^"]+",signal="USR1",to="%s"} (%%d+)\n'):format(
        TARGET:gsub("%-", "%%-")))
    assert.equal("7", series)
    assert.matches((" USR1 %s: 7</title>"):format(TARGET), in_format "svg", 1, true)
  end)

  it("shows what is ignored, and what waits already", function()
    local blocked = "env --block-signal=USR2 sh -c 'kill -USR2 $$; kill -USR2 $$; exit 0'"
    -- a shell that is about to become another program blocks its signals
    local sleeping = "sleep 60 & until grep -q sleep /proc/$!/comm; do :; done; "
    local out = run { "-c", sleeping .. "kill -CONT $!; kill $!; " .. blocked .. "; true",
      KILLSNOOP }
    assert.matches("^ +time from +pid signal +to +pid result\n", out)
    assert.matches("\n +%d+%.%d%d%d %S+ +%d+ CONT +%S+ +%d+ ignored\n", out)
    assert.matches("\n +%d+%.%d%d%d %S+ +%d+ TERM +%S+ +%d+ sent\n", out)
    assert.matches(" %d+ USR2 +sh +%d+ sent\n.* %d+ USR2 +sh +%d+ pending\n", out)
    assert.matches("\n\n%d+ signals\n$", out)
  end)

  it("has what the kernel sends when asked", function()
    local found, out = run_json { "-c", signals(1), KILLSNOOP, "--kernel", "--signal", "CHLD" }
    local target = tonumber(out:match("target=(%d+)"))
    local ends = 0
    for _, signal in ipairs(found.signal) do
      ends = ends + (signal.from_pid == target and signal.to == SENDER and 1 or 0)
    end
    assert.equal(1, ends)
  end)

  it("looks at the signals to one, and prints rows", function()
    local status, csv, err = helper.run {
      "-f", "csv", "-c", ("kill -CONT $$; kill -CONT %d"):format(helper.pid), KILLSNOOP,
      "--to", helper.pid,
    }
    assert.equal(0, status, err)
    assert.matches("^type,code,from,from_pid,result,signal,time_ns,to,to_pid,whole_process,more\r\n"
      .. ("signal,0,[^,]+,%%d+,ignored,CONT,%%d+,[^,]+,%d,true,\r\n$"):format(helper.pid),
      csv)
  end)

  it("refuses what is no signal and no number", function()
    for _, words in ipairs { { "--signal", "SOON" }, { "--signal", "65" }, { "--to", "init" } } do
      local status, out, err = helper.run { KILLSNOOP, words[1], words[2] }
      assert.equal(1, status)
      assert.equal("", out)
      assert.truthy(err:find(("not '%s'"):format(words[2]), 1, true), err)
    end
  end)
end)
