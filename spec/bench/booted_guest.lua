-- Runs inside a booted kernel (spec/bench/booted): each of traced.lua's ways that the kernel of the
-- machine may not have, in turn. Prints a line for each: way= its number, and its figures or why=.
package.path = "/bench/?.lua;" .. package.path
local process = require "process"
local traced = require "traced"

local out <close> = assert(io.open(arg[1], "w"))
out:setvbuf "line"
assert(os.execute "mount -t tracefs nodev /sys/kernel/tracing")
local settings = process.parse(process.read_file "/bench/settings")

local ways = traced.rows {
  build = "/bench/build", events = settings.events, cpu = 0, marginal = true,
  work_file = function(name) return "/tmp/" .. name end,
  measure = function(...)
    return process.measure("/bench/build/bench/measure", "/tmp/whole", ...)
  end,
  read_figures = function(path) return process.parse(process.read_file(path)) end,
  has_program = function() return false end,
}
for _ = 1, settings.runs do
  for number, way in ipairs(ways) do
    if way.is_booted then
      local sample, why = way.read()
      if sample then
        out:write(("way=%d events=%d load_ns=%d own_ns=%d\n"):format(number, sample.events,
          sample.load_ns, sample.own_ns))
      else
        out:write(("way=%d why=%s\n"):format(number, (why:gsub("%s", "_"))))
      end
    end
  end
end
