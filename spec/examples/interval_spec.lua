-- What the examples have in common that print a table every so often.
local helper = require "spec.support.helper"
local json = require "dkjson"

-- In several intervals.
local LOAD <const> = ("for i in 1 2 3; do %s udp 23; sleep 0.05; done >&2"):format(
  helper.quote(helper.program "support/load"))
local EXAMPLES <const> = {
  counts = { "sched:sched_switch", "net:net_dev_queue" }, hardirqs = {}, softirqs = {},
  runqlat = {}, netlat = {},
}

describe("an example with --interval", function()
  for name, words in pairs(EXAMPLES) do
    it("says of every object when its time has ended: " .. name, function()
      local argv = {
        "-f", "json", "-c", LOAD, ("examples/%s.lua"):format(name), "--interval", "0.02",
        timeout = 60,
      }
      table.move(words, 1, #words, #argv + 1, argv)
      local status, out, err = helper.run(argv)
      assert.equal(0, status, err)
      local first, last, times, without = nil, 0, 0, 0
      for line in out:gmatch "[^\n]+" do
        local object = assert(json.decode(line))
        if object.time_ns then
          first = first or object.time_ns
          assert.is_true(object.time_ns >= last, line)
          assert.equal(0, (object.time_ns - first) % 20000000)
          -- the last table is of what is left
          assert.equal(0, without)
          times = times + (object.time_ns > last and 1 or 0)
          last = object.time_ns
        elseif object.type ~= "stats" and object.type ~= "lost" then
          without = without + 1
        end
      end
      assert.is_true(name == "hardirqs" or times > 2, out)
    end)
  end
end)
