local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tracefs = require "tracefs"

local PAGEFAULTS <const> = "examples/pagefaults.lua"
local COMM <const> = loads.NAME .. "-faults"

describe("examples/pagefaults.lua", function()
  local function run(words)
    if not tracefs.event("exceptions:page_fault_user") then
      pending("this kernel has no events of page faults")
    end
    words.timeout = 60
    local status, out, err = helper.run(words)
    assert.equal(0, status, err)
    return out
  end

  -- By name, what the load's task did and what it all adds up to.
  local function run_json(words)
    local json = require "dkjson"
    local tasks, total = {}, nil
    for line in run(table.move(words, 1, #words, 3, { "-f", "json" })):gmatch("{[^\n]+") do
      local object = assert(json.decode(line))
      if object.type == "faults" then
        assert.equal(object.faults, object.read + object.write + object.exec + object.denied)
        tasks[#tasks + 1] = object
      elseif object.type == "total" then
        total = object.faults
      end
    end
    return tasks, total
  end

  local function faults(pages, by_kernel)
    return ("%s --name %s faults %d %d >&2"):format(
      helper.quote(helper.program("support/load")), loads.NAME, pages, by_kernel)
  end

  it("counts 997 pages that a process touches, and 101 that the kernel touches for it", function()
    local tasks, total = run_json { "-c", faults(997, 101), PAGEFAULTS, "--comm", COMM }
    assert.equal(1, #tasks)
    assert.equal("integer", math.type(tasks[1].pid))
    tasks[1].pid, tasks[1].comm = nil, nil
    assert.same({ type = "faults", faults = 1098, write = 1098, read = 0, exec = 0, denied = 0,
      kernel = 101 }, tasks[1])
    assert.equal(1098, total)
  end)

  it("prints a table, by task or by name, as long as asked for", function()
    local out = run { "-c", faults(499, 7), PAGEFAULTS, "--comm", COMM, "--by", "comm" }
    assert.matches("^task +faults +read +write +exec +denied +kernel\n"
      .. "%S+ +506 +0 +506 +0 +0 +7\n\n506 page faults\n$", out)
    out = run { "-c", "for i in 1 2 3; do /bin/true; done", PAGEFAULTS, "--top", "2" }
    local lines = out:match("^task[^\n]+\n(.-)%.%.%. and %d+ more lines\n")
    assert.equal(2, select(2, lines:gsub("\n", "")), out)
    for line in out:gmatch("[^\n]+") do
      assert.is_true(#line < 80, "80 columns or more: " .. line)
    end
  end)

  it("tells tasks of one name apart as metrics and bars, too, and adds them up by name", function()
    local function in_format(format, by)
      return run { "-f", format, "-c", faults(23, 0) .. "; " .. faults(19, 5), PAGEFAULTS, "--comm",
        COMM, "--by", by }
    end
    -- under the names that the tasks are known by
    local SAMPLE <const> = '\nluatrace_faults_faults{comm="[^"]+"(%S*)} (%d+)'
    local found, sum = {}, 0
    for pid, count in in_format("prometheus", "task"):gmatch(SAMPLE) do
      assert.matches('^,pid="%d+"$', pid)
      assert.is_nil(found[pid])
      found[pid] = count
      sum = sum + count
    end
    assert.equal(47, sum)
    for pid, count in in_format("prometheus", "comm"):gmatch(SAMPLE) do
      assert.equal("", pid)
      sum = sum - count
    end
    assert.equal(0, sum)
    local _, bars = in_format("svg", "task"):gsub(">[^<> ]+ %d+</text>", "")
    assert.equal(2, bars)
  end)

  it("tells a page that is copied, and code that is not there", function()
    -- The child of a fork writes to pages that it shares with its parent; true is loaded anew.
    local tasks = run_json { "-c", "(i=1); /bin/true", PAGEFAULTS, "--by", "comm" }
    local sum = { denied = 0, exec = 0 }
    for _, task in ipairs(tasks) do
      assert.is_nil(task.pid)
      sum.denied, sum.exec = sum.denied + task.denied, sum.exec + task.exec
    end
    assert.is_true(sum.denied > 0 and sum.exec > 0)
  end)

  it("looks at some addresses only", function()
    local _, total = run_json { "-c", faults(23, 0), PAGEFAULTS, "--comm", COMM,
      "--range", "0x0-1000" }
    assert.equal(0, total)
  end)

  it("refuses options that make no sense", function()
    for _, words in ipairs { { "--range", "soon" }, { "--top", "0" }, { "--comm", 'a"b' } } do
      local status, out, err = helper.run { PAGEFAULTS, words[1], words[2] }
      assert.is_true(status > 0)
      assert.equal("", out)
      assert.truthy(err:find(words[1], 1, true), err)
    end
  end)

  it("says so where the kernel does not have the events", function()
    local event = tracefs.event
    package.loaded["tracefs.script"] = { args = {}, format = "text", instance = {} }
    tracefs.event = function() end
    local ok, err = pcall(assert(loadfile(PAGEFAULTS)))
    tracefs.event, package.loaded["tracefs.script"] = event, nil
    assert.is_false(ok)
    assert.matches("^pagefaults: this kernel has no event exceptions:page_fault_user, ", err)
  end)
end)
