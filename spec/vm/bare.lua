-- The last checks inside a booted kernel, run by the static luatrace as the machine's first
-- process: there is nothing but it, busybox, netlat.lua and this file, and nothing is mounted.
-- trace.args[1] is the file that the results go to; the plan stands there already.
local trace = require "tracefs.script"
local tracefs = require "tracefs"

local out = assert(io.open(trace.args[1], "a"))

local function check(name, fn)
  local ok, message = xpcall(fn, debug.traceback)
  out:write(ok and "ok - " or "not ok - ", name, "\n")
  for line in (ok and "" or message):gmatch("[^\n]+") do
    out:write("# ", line, "\n")
  end
  out:flush()
end

check("alone in an initramfs: luatrace mounts what it needs", function()
  local file <close> = assert(io.open("/proc/self/stat"))
  assert(file:read("n") == 1, "this is not the first process")
  assert(tracefs.tracing_dir() == "/sys/kernel/tracing", tracefs.tracing_dir())
  assert(require("neighbour") == "found", "require does not find the script's neighbour")
end)

check("alone in an initramfs: netlat finds 46 packets of 23 echoes", function()
  local pipe = assert(io.popen("exec /luatrace -c '/bin/busybox ping -q -i 0.01 -c 23 127.0.0.1'"
    .. " /netlat.lua --device lo 2>&1"))
  local text = pipe:read("a")
  assert(pipe:close(), text)
  assert(text:find("\nlo +46 +46 +0 +0 +0 +0 +46 +0\n"), text)
  assert(#assert(tracefs.instances()) == 1, "more than this script's own instance is there")
end)

out:close()
