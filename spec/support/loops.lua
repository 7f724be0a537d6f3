--- What is asked of every example of an event loop with two sessions in it.
local assert = require "luassert"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

---@param path string of the example
return function(path)
  local example = assert(helper.read_file(path))
  local status, out, err
  -- a quiet machine may make neither calls nor switches
  loads.beside({ "--cpu", "all", "--rate", 1000, "syscalls", 1000000 }, function()
    status, out, err = helper.run_lua(example, { "1", timeout = 60 })
  end)
  assert.equal("", err)
  assert.equal(0, status)
  local counts = {}
  for name, value in out:gmatch("(%w+_?%w*)=([%d.]+)") do
    counts[name] = tonumber(value)
  end
  assert.is_true(counts.switches >= 1, out)
  assert.is_true(counts.calls > 100, out)
  assert.is_true(counts.echoes > 10, out)
  -- the error of a handler has reached the loop, and the loop went on
  assert.equal(1, counts.errors)
  -- that the sessions ever gave the others their turn; how soon is measured elsewhere
  assert.is_true(counts.late_ms < 3000 * helper.slowdown, out)
end
