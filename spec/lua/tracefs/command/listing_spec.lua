local helper = require "spec.support.helper"
local dkjson = require "dkjson"
local tracefs = require "tracefs"

local function lines(text)
  local list = {}
  for line in text:gmatch("([^\n]*)\n") do
    list[#list + 1] = line
  end
  return list
end

describe("luatrace -l", function()
  it("lists all events, sorted", function()
    local status, out, err = helper.run { "-l" }
    assert.same({ 0, "" }, { status, err })
    local list = lines(out)
    local _, count = helper.read_file(tracefs.tracing_dir() .. "/available_events"):gsub("\n", "")
    assert.equal(count, #list)
    assert.same(tracefs.events(), list)
  end)

  it("lists those that match", function()
    local status, out = helper.run { "-l", "sched:sched_process_ex*" }
    assert.equal(0, status)
    local list = lines(out)
    local there = {}
    for _, label in ipairs(list) do
      assert.matches("^sched:sched_process_ex", label)
      there[label] = true
    end
    assert.is_true(there["sched:sched_process_exec"] and there["sched:sched_process_exit"])
    status, out = helper.run { "-l", "sched_switch" }
    assert.same({ 0, "sched:sched_switch\n" }, { status, out })
  end)

  it("has the fields with -v", function()
    local status, out, err = helper.run { "-lv", "sched:sched_switch" }
    assert.same({ 0, "" }, { status, err })
    local list = lines(out)
    assert.equal("sched:sched_switch", list[1])
    local format = helper.read_file(tracefs.tracing_dir()
      .. "/events/sched/sched_switch/format"):match("common_pid[^\n]*\n\n(.*)")
    local names = {}
    for declaration in format:gmatch("field:([^;]+);") do
      names[#names + 1] = declaration:match("([%w_]+)[%[%]%d]*$")
    end
    assert.equal(#names, #list - 1)
    for i, name in ipairs(names) do
      assert.matches("^    %S.* " .. name .. "$", list[i + 1])
    end
  end)

  it("gives objects with -f json, and writes to the file of -o", function()
    local path = helper.tmpdir() .. "/out"
    local status, out = helper.run {
      "-v", "-f", "json", "-o", path, "-l", "sched:sched_process_exec",
    }
    assert.same({ 0, "" }, { status, out })
    local value = assert(dkjson.decode(helper.read_file(path)))
    assert.equal("sched:sched_process_exec", value.event)
    assert.equal("filename", value.fields[1].name)
    assert.is_string(value.fields[1].type)
    status, out = helper.run { "-f", "json", "-l", "sched:sched_process_exec" }
    assert.same({ 0, '{"event":"sched:sched_process_exec"}\n' }, { status, out })
  end)

  it("says when nothing matches, with what is near, and when the pattern is wrong", function()
    local status, out, err = helper.run { "-l", "sched:sched_swich" }
    assert.same({ 1, "" }, { status, out })
    assert.matches('no event "sched:sched_swich"', err, 1, true)
    assert.matches("sched:sched_switch", err, 1, true)
    status, out, err = helper.run { "-l", "[" }
    assert.same({ 1, "" }, { status, out })
    assert.matches('bad event pattern "["', err, 1, true)
  end)

  it("makes no instance", function()
    local count = #tracefs.instances()
    local status, out = helper.execute {
      "sh", "-c", ("%s -lv 'sched:*' >/dev/null & pid=$!; wait $pid; ls %s/instances | grep -c"
        .. " -- -$pid-"):format(helper.command, tracefs.tracing_dir()),
    }
    assert.same({ 1, "0\n" }, { status, out })
    assert.is_number(count)
  end)
end)
