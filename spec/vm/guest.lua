-- Runs inside a booted kernel (spec/vm/run): every check of spec/vm/checks, one after the other.
-- Prints `ok - NAME`, `not ok - NAME` with `# ` lines that explain it, `ok - NAME # SKIP why`,
-- and at the end the plan, `1..N`. arg[1] is the file that this goes to, arg[2] how many checks
-- come behind these.
local version = _VERSION:match("%d+%.%d+")
local modules = "/usr/local/share/lua/" .. version
package.path = ("%s/?.lua;%s/?/init.lua;/spec/vm/?.lua;%s"):format(modules, modules, package.path)
package.cpath = ("/usr/local/lib/lua/%s/?.so;%s"):format(version, package.cpath)

local guest = require "harness"

guest.open(arg[1])
-- Must come first: it mounts tracefs.
require "checks.mount"
-- What was chosen (LUATRACE_VM_CHECKS of spec/vm/run), or all of it.
local only, chosen = guest.read("/spec/vm/only") or "", {}
for room in only:gmatch("%S+") do
  chosen[room] = true
end
for _, room in ipairs {
  "info", "features", "settings", "triggers", "formats", "exact", "order", "losses", "buffers",
  "waking", "clocks", "text", "hist", "synthetic", "latency", "functions", "toplevel", "recording",
  "refusals", "probes", "processes", "stacks", "cleaning", "user", "hotplug", "examples",
} do
  if next(chosen) == nil or chosen[room] then
    guest.room("checks." .. room)
  end
end
guest.close(math.tointeger(arg[2]) or 0)
