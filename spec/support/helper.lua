--- What the specs share: where the built things are, how a command is run with a time limit, and
--- the check that no test leaves an instance, a probe, an open descriptor or a process behind.
---
--- busted loads this file before the first spec (.busted); a spec gets it with
--- `local helper = require "spec.support.helper"`. What it reads from the environment:
---
---   LUATRACE_BUILD        the build folder                                  (build)
---   LUATRACE_LUA_DIR      the folder with tracefs/init.lua                  (lua)
---   LUATRACE_CORE_DIR     the folder with tracefs/core.so                   (the build folder)
---   LUATRACE_COMMAND      the command luatrace                              (BUILD/luatrace)
---   LUATRACE_INTERPRETER  the Lua that runs scripts in other processes      (lua5.4)
---   LUATRACE_GC           "aggressive": the collector runs all the time, here and in commands
---   LUATRACE_SLOWDOWN     factor by which this build is slower: stretches time limits (1)
---   LUATRACE_SHORT        set: loads that only prove endurance are shortened
local helper = {}

local function capture(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read("a")
end

local function absolute(path, base)
  return path:sub(1, 1) == "/" and path or base .. "/" .. path
end

helper.root = capture("pwd"):gsub("\n$", "")
helper.build = absolute(os.getenv("LUATRACE_BUILD") or "build", helper.root)
helper.lua_dir = absolute(os.getenv("LUATRACE_LUA_DIR") or "lua", helper.root)
helper.core_dir = absolute(os.getenv("LUATRACE_CORE_DIR") or helper.build, helper.root)
helper.command = absolute(os.getenv("LUATRACE_COMMAND") or helper.build .. "/luatrace", helper.root)
helper.interpreter = os.getenv("LUATRACE_INTERPRETER") or "lua5.4"
helper.slowdown = tonumber(os.getenv("LUATRACE_SLOWDOWN") or "1")
helper.short = (os.getenv("LUATRACE_SHORT") or "") ~= ""
helper.is_root = capture("id -u") == "0\n"

local LUA_PATH = ("%s/?.lua;%s/?/init.lua"):format(helper.lua_dir, helper.lua_dir)
local LUA_CPATH = helper.core_dir .. "/?.so"
package.path = LUA_PATH .. ";" .. package.path
package.cpath = LUA_CPATH .. ";" .. package.cpath

--- Code that sets the incremental collector, for this process or another one.
---@param pause integer percent
---@param multiplier integer percent
---@param step integer the power of two of a step's bytes
---@return string
function helper.collector(pause, multiplier, step)
  return ([[if _VERSION == "Lua 5.4" then
      collectgarbage("incremental", %d, %d, %d)
    else
      collectgarbage("incremental")
      collectgarbage("param", "pause", %d)
      collectgarbage("param", "stepmul", %d)
      collectgarbage("param", "stepsize", %d)
    end
  ]]):format(pause, multiplier, step, pause, multiplier, 1 << step)
end

-- A collection that goes on at every few bytes: what is used after it was freed, or was never
-- anchored, shows at once.
local AGGRESSIVE = helper.collector(10, 400, 4)
helper.aggressive = os.getenv("LUATRACE_GC") == "aggressive"

local function chosen_collector()
  if helper.aggressive then
    assert(load(AGGRESSIVE))()
  end
end
chosen_collector()

--- The usual collector until the spec file ends: for specs of C programs, where Lua only makes
--- the input, and an aggressive collector would find nothing but take minutes.
function helper.usual_collector()
  assert(load(helper.collector(200, 100, 13)))()
end

--- The pid of this process.
local own_pid
do
  local file <close> = assert(io.open("/proc/self/stat"))
  own_pid = math.tointeger(file:read("n"))
end
helper.pid = own_pid

--- Where tracefs is mounted, or nil.
helper.tracing_dir = nil
do
  local file <close> = assert(io.open("/proc/mounts"))
  for line in file:lines() do
    local dir, kind = line:match("^%S+ (%S+) (%S+)")
    if kind == "tracefs" then
      helper.tracing_dir = dir
      break
    end
  end
end

---@param path string
---@return string? content nil when the file cannot be read
function helper.read_file(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

---@param path string
---@param content string
function helper.write_file(path, content)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(content))
end

--- One word for the shell.
---@param word any
---@return string
function helper.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end
local quote = helper.quote

local function words(list)
  local quoted = {}
  for i, word in ipairs(list) do
    quoted[i] = quote(word)
  end
  return table.concat(quoted, " ")
end

--- A program of spec/support or spec/bench in the build folder.
---@param name string for example "support/udp"
---@return string path
function helper.program(name)
  local path = helper.build .. "/" .. name
  local file <close> = io.open(path, "rb")
  return file and path or error(path .. " is not built: configure with LUATRACE_TESTS=ON", 2)
end

---@param seconds number
function helper.sleep(seconds)
  os.execute(("sleep %.3f"):format(seconds))
end

--- Asks until the answer is true.
---@param condition fun(): any
---@param seconds? number 20 by default
---@return any answer false when the time is over
function helper.wait_until(condition, seconds)
  for _ = 1, (seconds or 20) * helper.slowdown / 0.02 do
    local answer = condition()
    if answer then
      return answer
    end
    helper.sleep(0.02)
  end
  return false
end

--- `it` for tests that need what may not be there: `local it = helper.it_after(it, check)`. Each
--- begins with check(), which may call pending(); in a before_each busted does not take that.
---@param it fun(name: string, fn: fun()) busted's
---@param check fun()
---@return fun(name: string, fn: fun())
function helper.it_after(it, check)
  return function(name, fn)
    -- a tail call: busted names the line that it is called from
    return it(name, function()
      check()
      fn()
    end)
  end
end

-- What has been made here; after each test its part of it is looked at and cleared.
local made = { dirs = {}, processes = {} }

--- A new folder that goes away after the test.
---@return string path
function helper.tmpdir()
  local dir = capture("mktemp -d"):gsub("\n$", "")
  table.insert(made.dirs, dir)
  return dir
end

local Process = {}
Process.__index = Process

-- The shell command that runs argv: its output in dir/out and dir/err, its pid in dir/pid. The
-- shell sets SIGINT and SIGQUIT to be ignored in what it starts in the background; `env` undoes it.
local function shell_command(argv, dir)
  local env = {}
  if helper.aggressive and argv.collector ~= "usual" then
    table.insert(env, "LUA_INIT=" .. AGGRESSIVE)
  end
  for name, value in pairs(argv.env or {}) do
    table.insert(env, name .. "=" .. value)
  end
  local limit = (argv.timeout or 30) * helper.slowdown
  return ("cd %s && env --default-signal=INT,QUIT %s timeout -k 5 %g sh -c %s %s %s"):format(
    quote(argv.cwd or helper.root),
    words(env),
    limit,
    quote('echo $$ >"$0/pid.new" && mv "$0/pid.new" "$0/pid" && exec "$@"'),
    quote(dir),
    words(argv)
  ), limit
end

local function stdio(argv, dir)
  local stdin = "/dev/null"
  if argv.stdin then
    stdin = dir .. "/in"
    helper.write_file(stdin, argv.stdin)
  end
  return ("<%s >%s 2>%s/err"):format(quote(stdin), quote(argv.stdout or dir .. "/out"), quote(dir))
end

--- What stands before a command in a shell so that it has the collector of this run.
---@return string
function helper.collector_env()
  return helper.aggressive and "LUA_INIT=" .. quote(AGGRESSIVE) or ""
end

--- Starts a program and returns at once.
---
--- Fields of argv beside the words: `timeout` seconds until it is ended by force (30), `stdin`
--- text, `stdout` a file instead of the one that wait() reads, `env` names and values, `cwd`,
--- `collector` "usual" when an aggressive one makes no sense.
---@param argv table
---@return table process with pid, kill(signal), wait(), output()
function helper.start(argv)
  local dir = helper.tmpdir()
  local command, limit = shell_command(argv, dir)
  assert(
    os.execute(
      ("(%s %s; echo $? >%s/status.new; mv %s/status.new %s/status) >/dev/null 2>&1 &"):format(
        command,
        stdio(argv, dir),
        dir,
        dir,
        dir
      )
    )
  )
  local process = setmetatable({ dir = dir, limit = limit, words = words(argv) }, Process)
  local pid = helper.wait_until(function()
    return helper.read_file(dir .. "/pid") or helper.read_file(dir .. "/status")
  end)
  process.pid = assert(math.tointeger(pid), process.words .. " did not start")
  table.insert(made.processes, process)
  return process
end

--- What it has written until now.
---@return string stdout
---@return string stderr
function Process:output()
  return helper.read_file(self.dir .. "/out") or "", helper.read_file(self.dir .. "/err") or ""
end

---@param signal string "INT", "TERM", "KILL", ...
function Process:kill(signal)
  assert(os.execute(("kill -%s %d"):format(signal, self.pid)))
end

--- Waits until stdout or stderr holds the text.
---@param text string plain, no pattern
---@param seconds? number
function Process:expect(text, seconds)
  local seen = helper.wait_until(function()
    local out, err = self:output()
    return out:find(text, 1, true) or err:find(text, 1, true)
      or helper.read_file(self.dir .. "/status") and "ended"
  end, seconds)
  local out, err = self:output()
  if not (out:find(text, 1, true) or err:find(text, 1, true)) then
    error(("%s: %q did not come (%s); stdout: %s; stderr: %s"):format(
      self.words, text, seen and "it ended" or "time is over", out, err), 2)
  end
end

--- Waits for the end. Raises when the time limit ended it.
---@return integer status as the shell gives it: 128 + n for a signal n
---@return string stdout
---@return string stderr
function Process:wait()
  local ended = os.execute(
    ("timeout %g sh -c 'until [ -e %s/status ]; do sleep 0.01; done'"):format(
      self.limit + 10,
      self.dir
    )
  )
  local status = ended and math.tointeger(helper.read_file(self.dir .. "/status"))
  local out, err = self:output()
  if not status or status == 124 then
    error(("%s: not ended after %g s; stdout: %s; stderr: %s"):format(
      self.words, self.limit, out, err), 2)
  end
  self.has_ended = true
  return status, out, err
end

--- Runs a program to its end; argv as for start().
---@param argv table
---@return integer status
---@return string stdout
---@return string stderr
function helper.execute(argv)
  local dir = helper.tmpdir()
  local command, limit = shell_command(argv, dir)
  local _, _, status = os.execute(("%s %s"):format(command, stdio(argv, dir)))
  local out = helper.read_file(dir .. "/out") or ""
  local err = helper.read_file(dir .. "/err") or ""
  local pid = math.tointeger(helper.read_file(dir .. "/pid"))
  if pid then
    table.insert(made.processes, setmetatable({
      pid = pid, words = words(argv), has_ended = true,
    }, Process))
  end
  if status == 124 then
    error(("%s: not ended after %g s; stdout: %s; stderr: %s"):format(
      words(argv), limit, out, err), 2)
  end
  return status, out, err
end

local function with_first(first, argv)
  local all = table.move(argv, 1, #argv, #first + 1, table.move(first, 1, #first, 1, {}))
  for key, value in pairs(argv) do
    if math.type(key) ~= "integer" then
      all[key] = value
    end
  end
  return all
end

--- Runs the command luatrace: `local status, out, err = helper.run { "-e", code, timeout = 10 }`.
---@param argv table
---@return integer status
---@return string stdout
---@return string stderr
function helper.run(argv)
  return helper.execute(with_first({ helper.command }, argv))
end

--- What the command has said on stderr but for its word on late events: a CPU of a virtual machine
--- may stand still for longer than the reader waits, where all CPUs have events.
---@param err string
---@return string
function helper.without_late(err)
  return (err:gsub("luatrace: warning: %d+ events? came late, [^\n]*\n", ""))
end

--- Starts the command luatrace and returns at once.
---@param argv table
---@return table process
function helper.start_luatrace(argv)
  return helper.start(with_first({ helper.command }, argv))
end

--- Runs a Lua script (code) in a process of its own, with the modules of this build.
---@param code string
---@param argv? table words are the script's arguments
---@return integer status
---@return string stdout
---@return string stderr
function helper.run_lua(code, argv)
  local script = helper.tmpdir() .. "/script.lua"
  helper.write_file(script, code)
  local all = with_first({ helper.interpreter, script }, argv or {})
  all.env = with_first({}, all.env or {})
  all.env.LUA_PATH = LUA_PATH .. ";;"
  all.env.LUA_CPATH = LUA_CPATH .. ";;"
  return helper.execute(all)
end

-- ---------------------------------------------------------------------------
-- Nothing left behind
-- ---------------------------------------------------------------------------

-- Without another process: it runs twice for every test. Other processes trace on the same
-- machine: only names that carry one of our pids count.
local lfs = require "lfs"

local PROBE_FILES = { "dynamic_events", "uprobe_events", "kprobe_events", "synthetic_events" }

local function entries(dir)
  local names = {}
  if lfs.attributes(dir, "mode") == "directory" then
    for name in lfs.dir(dir) do
      names[#names + 1] = name
    end
  end
  return names
end

local function parent_of(pid)
  local stat = helper.read_file(("/proc/%s/stat"):format(pid))
  return stat and tonumber(stat:match("^.*%) %u (%d+)"))
end

local function inspect()
  local found = { fds = {}, fd_count = 0, children = {}, instances = {}, probes = {} }
  -- The descriptor of the listing itself leads to a folder that is closed by now.
  for _, fd in ipairs(entries("/proc/self/fd")) do
    local target = lfs.symlinkattributes("/proc/self/fd/" .. fd, "target")
    if target then
      found.fds[fd .. " " .. target] = true
      found.fd_count = found.fd_count + 1
    end
  end
  for _, pid in ipairs(entries("/proc")) do
    if pid:find("^%d+$") and parent_of(pid) == own_pid then
      found.children[pid] = true
    end
  end
  if helper.tracing_dir then
    for _, name in ipairs(entries(helper.tracing_dir .. "/instances")) do
      found.instances[name] = true
    end
    for _, name in ipairs(PROBE_FILES) do
      for line in (helper.read_file(helper.tracing_dir .. "/" .. name) or ""):gmatch("[^\n]+") do
        found.probes[line] = true
      end
    end
  end
  return found
end

local function alive(pid)
  local stat = helper.read_file(("/proc/%d/stat"):format(pid))
  return stat and not stat:find("%) Z ")
end

-- Names of what is in `now`, was not in `before`, and carries one of the pids.
local function left(now, before, pids)
  local names = {}
  for name in pairs(now) do
    local pid = not before[name] and name:match("luatrace[-_](%d+)[-_]")
    if pid and pids[tonumber(pid)] then
      table.insert(names, name)
    end
  end
  return names
end

local function complaints(before, now, processes)
  local list = {}
  local pids = { [own_pid] = true }
  for _, process in ipairs(processes) do
    pids[process.pid] = true
    -- the number of one that has ended may be another one's by now
    if not process.has_ended and alive(process.pid) then
      table.insert(list, ("process %d still runs: %s"):format(process.pid, process.words))
      os.execute(("kill -KILL %d 2>/dev/null"):format(process.pid))
    end
  end
  for pid in pairs(now.children) do
    if not before.children[pid] then
      local command = helper.read_file(("/proc/%s/cmdline"):format(pid)) or ""
      table.insert(list, ("child %s: %s"):format(pid, (command:gsub("\0", " "))))
    end
  end
  for _, name in ipairs(left(now.instances, before.instances, pids)) do
    table.insert(list, "instance " .. name)
  end
  for _, name in ipairs(left(now.probes, before.probes, pids)) do
    table.insert(list, "dynamic event " .. name)
  end
  if now.fd_count > before.fd_count then
    for fd in pairs(now.fds) do
      if not before.fds[fd] then
        table.insert(list, "open descriptor " .. fd)
      end
    end
  end
  return list
end

--- What is there now; leftovers() compares with it.
function helper.snapshot()
  collectgarbage()
  collectgarbage()
  return inspect()
end

--- What the test has left behind since the snapshot, as a list of texts. Every test is checked
--- without a call; a spec calls it to look in between.
---@param before table a snapshot()
---@return string[]
function helper.leftovers(before)
  return complaints(before, helper.snapshot(), made.processes)
end

-- The root block's hooks run around every test of every file. What a setup() has made lies
-- outside the marks and stays for the tests of its block.
local busted = package.loaded.busted
if busted and busted.before_each then
  local test, before, first_dir, first_process

  local function remove_dirs(first)
    for i = #made.dirs, first, -1 do
      os.execute("rm -rf " .. quote(made.dirs[i]))
      made.dirs[i] = nil
    end
  end

  busted.subscribe({ "test", "start" }, function(element)
    test = ("%s:%d: %s"):format(element.trace.short_src, element.trace.currentline, element.name)
    return nil, true
  end)

  busted.subscribe({ "file", "end" }, function()
    chosen_collector()
    return nil, true
  end)

  busted.subscribe({ "suite", "end" }, function()
    remove_dirs(1)
    return nil, true
  end)

  busted.before_each(function()
    first_dir, first_process = #made.dirs + 1, #made.processes + 1
    before = helper.snapshot()
  end)

  busted.after_each(function()
    local processes = table.move(made.processes, first_process, #made.processes, 1, {})
    local list = complaints(before, helper.snapshot(), processes)
    remove_dirs(first_dir)
    for i = #made.processes, first_process, -1 do
      made.processes[i] = nil
    end
    if #list > 0 then
      error(("%s left behind: %s"):format(test, table.concat(list, "; ")), 0)
    end
  end)
end

return helper
