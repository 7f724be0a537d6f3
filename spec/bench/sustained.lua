-- As many events as one CPU can make, for half a minute, through a session with default settings
-- to a handler that counts: what arrives, what is lost, what memory it takes.
-- Usage: lua spec/bench/sustained.lua [BUILD-FOLDER [SECONDS]]
local build = arg[1] or os.getenv("LUATRACE_BUILD") or "build"
local seconds = tonumber(arg[2] or 30)

package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
package.cpath = build .. "/?.so;" .. package.cpath
local tracefs = require("tracefs")

local function read_file(path)
  local file <close> = io.open(path)
  return file and file:read("a")
end

local function resident_kb()
  return math.tointeger(read_file("/proc/self/status"):match("VmRSS:%s*(%d+) kB"))
end

local pid = math.tointeger(read_file("/proc/self/stat"):match("^%d+"))
-- No kernel has a system call of this number: nobody else makes it, and it is traced all the same.
local nr = 0x100000 + pid
local out = ("%s/sustained-%d"):format(build, pid)
local cpu = math.tointeger(assert(io.popen("nproc --all")):read("n")) - 1

local function load_command(count)
  return ("%s/support/load --cpu %d --nr %d --limit 600 syscalls %d >%s.new"):format(
    build, cpu, nr, count, out)
end

local function load_result()
  local text = read_file(out)
  return text and {
    calls = math.tointeger(text:match("calls=(%d+)")),
    ns = math.tointeger(text:match("ns=(%d+)")),
  }
end

-- Traced calls are slower than others; how many a second is known only after trying.
local function calls_per_second()
  local instance <close> = assert(tracefs.instance_create(("luatrace-bench-%d"):format(pid)))
  assert(instance:set_clock("mono"))
  assert(instance:set_filter("raw_syscalls", "sys_enter", ("id == %d"):format(nr)))
  assert(instance:enable("raw_syscalls", "sys_enter"))
  assert(os.execute(load_command(500000) .. (" && mv %s.new %s"):format(out, out)))
  local result = load_result()
  os.remove(out)
  return result.calls / result.ns * 1e9
end

local total = math.floor(calls_per_second() * seconds)
local session <close> = tracefs.session({})
local count, resident, cpu_before = 0, {}, 0

session:on("raw_syscalls:sys_enter", { filter = ("id == %d"):format(nr) }, function()
  count = count + 1
end)

session:every(0.25, function()
  resident[#resident + 1] = resident_kb()
  if read_file(out) then
    session:finish()
  end
end)

session:at_start(function()
  cpu_before = os.clock()
  -- The result file appears whole or not at all; it appears empty when the load has failed.
  os.execute(("(%s; mv %s.new %s) &"):format(load_command(total), out, out))
end)

session:run({ duration = 600 })

local spent = os.clock() - cpu_before
local result = load_result()
os.remove(out)
if not (result and result.calls) then
  io.stderr:write("sustained: the load has failed\n")
  os.exit(1)
end
local stats = session:stats()
print(("%d events in %.1f s from CPU %d: %.0f events/s"):format(
  result.calls, result.ns / 1e9, cpu, result.calls / result.ns * 1e9))
print(("counted %d, lost %d, late %d"):format(count, stats.lost, stats.late))
print(("reader: %.0f ns of CPU time an event, %.0f %% of a CPU"):format(
  spent / count * 1e9, spent / result.ns * 1e11))
-- The buffers and the first collections of garbage have their size after a few seconds.
local warm = math.min(#resident, 20)
print(("resident memory: %d KiB after %g s, %d KiB in the middle, %d KiB at the end"):format(
  resident[warm], warm / 4, resident[#resident // 2 + 1], resident[#resident]))
os.exit(count + stats.lost == result.calls and stats.lost == 0, true)
