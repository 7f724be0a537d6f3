local helper = require "spec.support.helper"

-- The sanitizers' runs have enough with what is ours and quick.
local ONLY = helper.short and "bchikl" or "abcdefghijkl"

-- What the benchmark measures is nobody's failure; that it measures everything is checked.
describe("make bench", function()
  it("comes to its table, with every way of reading both events", function()
    local status, out, err = helper.execute({
      helper.interpreter, "spec/bench/run.lua", helper.build, "--quick", "--only", ONLY,
      timeout = 180, collector = "usual",
    })
    assert.equal(0, status, err)
    local section
    local rows = {}
    for line in out:gmatch("[^\n]+") do
      section = line:match("^   ([%w_]+:[%w_]+)$") or line:match("^   (starting):")
        or line:match("^   (memory):") or line:match("^   (file):")
        or line:match("^   (traced):") or section
      local letter, rest = line:match("^(%l)  (.*)$")
      if letter then
        table.insert(rows, letter .. " " .. section)
        -- A number, or the reason why there is none.
        local said = rest:find("%d%.%d") or rest:find("not installed") or rest:find("cannot")
          or rest:find("has no")
        assert.truthy(said, line)
      end
    end
    local expected = {}
    for _, label in ipairs({ "raw_syscalls:sys_enter", "sched:sched_switch" }) do
      for letter in ("abbccdehfkk"):gmatch("[" .. ONLY .. "]") do
        table.insert(expected, letter .. " " .. label)
      end
    end
    for letter in ("hhhhhhi"):gmatch("[" .. ONLY .. "]") do
      table.insert(expected, letter .. " memory")
    end
    for letter in ("jjjjjjj"):gmatch("[" .. ONLY .. "]") do
      table.insert(expected, letter .. " file")
    end
    -- Takes these out, and tells how many there were.
    local function take(name)
      local count = 0
      for at = #rows, 1, -1 do
        if rows[at] == name then
          table.remove(rows, at)
          count = count + 1
        end
      end
      return count
    end
    -- the load without a tracer; each way's line and the one of its CPU time, or why there is none
    local ways, starts = take "l traced", take "g starting"
    assert.is_true(ways >= 5, out)
    assert.same(expected, rows)
    assert.is_true(starts >= 3 or not ONLY:find("g"), out)
  end)
end)
