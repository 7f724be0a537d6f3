--- What the checks inside a booted kernel share: naming and judging a check, running commands and
--- loads, and looking at what tracing must leave alone.
local core = require "tracefs.core"
local tracefs = require "tracefs"

local guest = {}

local out
local count = 0
local began
local untouched

---@param path string the file that the results go to
function guest.open(path)
  out = assert(io.open(path, "w"))
  out:setvbuf("line")
  began = core.now("mono")
end

--- The plan, and how long it took.
---@param more integer checks that others make
function guest.close(more)
  out:write(("# seconds: %.1f\n"):format((core.now("mono") - began) / 1e9))
  out:write(("1..%d\n"):format(count + more))
  out:close()
end

local function write(line)
  out:write(line, "\n")
end

local notes = {}

--- What is good to know beside the result of the check that runs.
---@param ... any a format and its values
function guest.note(...)
  notes[#notes + 1] = string.format(...)
end

--- What cannot be checked on this kernel: raised inside a check.
local Skip = {}

---@param reason string
function guest.skip(reason)
  error(setmetatable({ reason = reason }, Skip), 0)
end

---@param path string
---@return string? text nil when it cannot be read
function guest.read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

---@param path string
---@param text string
function guest.write(path, text)
  local file <close> = assert(io.open(path, "w"))
  assert(file:write(text))
  assert(file:close())
end

---@param path string
---@return boolean
function guest.exists(path)
  return (os.rename(path, path)) == true or guest.read(path) ~= nil
    or os.execute(("[ -e '%s' ]"):format(path)) == true
end

--- Where tracefs is mounted by checks.mount.
guest.dir = "/sys/kernel/tracing"

-- What belongs to others: the top level's settings and events.
local TOP_LEVEL <const> = {
  "tracing_on", "current_tracer", "set_event", "set_event_pid", "buffer_size_kb", "trace_clock",
  "tracing_cpumask", "trace_options", "events/enable", "dynamic_events", "buffer_subbuf_size_kb",
  "buffer_percent", "set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid",
  "set_ftrace_notrace_pid", "set_graph_function", "set_graph_notrace", "max_graph_depth",
  "tracing_thresh", "per_cpu/cpu0/stats", "per_cpu/cpu1/stats",
}

--- The top level of tracefs as one text.
---@return string
function guest.top_level()
  local parts = {}
  for _, file in ipairs(TOP_LEVEL) do
    local text = guest.read(guest.dir .. "/" .. file) or "-"
    if file == "buffer_size_kb" then
      -- "7 (expanded: 1408)" becomes 1410 as soon as anything is traced, in older kernels also
      -- when that is in an instance: the size that it has then is the one that it must keep.
      local kb = text:match("expanded: (%d+)") or text:match("%d+")
      text = tostring(tonumber(kb) // 64 * 64)
    elseif file:find("stats$") then
      text = text:match("entries: %d+") or text
    end
    parts[#parts + 1] = file .. "=" .. text
  end
  return table.concat(parts, "\n")
end

-- Names of instances, and children: between two checks there are none.
local function leftovers()
  local left = tracefs.instances() or {}
  for _, pid in ipairs(core.descendants(guest.pid) or {}) do
    local stat = guest.read(("/proc/%d/stat"):format(pid)) or ""
    left[#left + 1] = "child " .. (stat:match("%(.*%) %a") or pid)
  end
  return left
end

-- One check that fails is enough.
local function clean_up()
  for _, pid in ipairs(core.descendants(guest.pid) or {}) do
    os.execute(("kill -9 %d"):format(pid))
  end
  for _, name in ipairs(tracefs.instances() or {}) do
    os.remove(("%s/instances/%s"):format(guest.dir, name))
  end
end

guest.pid = math.tointeger(guest.read("/proc/self/stat"):match("^%d+"))

local function show(value)
  if type(value) == "string" then
    return ("%q"):format(value)
  end
  return tostring(value)
end

--- Raises when the values differ.
---@param expected any
---@param actual any
---@param what? string
function guest.equal(expected, actual, what)
  if expected ~= actual or math.type(expected) ~= math.type(actual) then
    error(("%s: expected %s, got %s"):format(what or "value", show(expected), show(actual)), 2)
  end
end

---@param condition any
---@param ... any a format and its values
function guest.truth(condition, ...)
  if not condition then
    error(string.format(...), 2)
  end
end

--- Raises when the text lacks one of the parts.
---@param text string?
---@param ... string plain
function guest.contains(text, ...)
  for _, part in ipairs { ... } do
    if not (text and text:find(part, 1, true)) then
      error(("%s is not in: %s"):format(show(part), show(text)), 2)
    end
  end
end

-- The lines that are only in one of two texts.
local function difference(before, after)
  local lines, known = {}, {}
  for line in before:gmatch("[^\n]+") do
    known[line] = "-" .. line
    lines[#lines + 1] = line
  end
  for line in after:gmatch("[^\n]+") do
    lines[#lines + 1] = not known[line] and line or nil
    known[line] = not known[line] and "+" .. line or nil
  end
  local different = {}
  for _, line in ipairs(lines) do
    different[#different + 1] = known[line]
  end
  return table.concat(different, "\n")
end

-- The columns of a line that name its task: "              sh-635    ".
local NAME <const>, PID <const> = 16, 8

--- Takes the names of tasks away that the kernel itself does not know: its list of names is short,
--- and we look into /proc behind it.
---@param theirs string[] lines of the kernel's text
---@param ours string[] lines of ours, which are changed
function guest.forget_names(theirs, ours)
  local unknown = {}
  for _, line in ipairs(theirs) do
    local name, pid = line:sub(1, NAME), line:sub(NAME + 1, NAME + PID)
    if name:find("^ +<%.%.%.>$") and pid:find("^%-%d+ *$") then
      unknown[pid] = name
    end
  end
  for i, line in ipairs(ours) do
    local name = unknown[line:sub(NAME + 1, NAME + PID)]
    if name then
      ours[i] = name .. line:sub(NAME + 1)
    end
  end
end

--- One check. Whatever it does, it leaves no instance and no child, and the top level of tracefs
--- as it was.
---@param name string
---@param fn fun()
function guest.check(name, fn)
  count = count + 1
  local before, start = untouched, core.now("mono")
  local ok, err = xpcall(function()
    fn()
    collectgarbage()
    collectgarbage()
    guest.equal("", table.concat(leftovers(), ", "), "what is left behind")
    untouched = guest.exists(guest.dir .. "/events") and guest.top_level() or nil
    if before and before ~= untouched then
      error("the top level of tracefs has changed:\n" .. difference(before, untouched), 0)
    end
  end, function(err)
    if getmetatable(err) == Skip then
      return err
    end
    return debug.traceback(tostring(err), 2)
  end)
  if ok then
    write("ok - " .. name)
  elseif getmetatable(err) == Skip then
    write(("ok - %s # SKIP %s"):format(name, err.reason))
  else
    write("not ok - " .. name)
    for line in err:gmatch("[^\n]+") do
      write("# " .. line)
    end
    clean_up()
  end
  guest.note("%.1f s", (core.now("mono") - start) / 1e9)
  for _, note in ipairs(notes) do
    write("# " .. note)
  end
  notes = {}
end

--- The checks of a file. One that cannot even be loaded is a failure.
---@param module string
function guest.room(module)
  local ok, err = pcall(require, module)
  if not ok then
    guest.check(module .. " can be loaded", function()
      error(err, 0)
    end)
  end
end

--- Runs a shell command to its end.
---@param command string
---@return integer status as the shell gives it
---@return string stdout
---@return string stderr
function guest.sh(command)
  local pipe = assert(io.popen(("{ %s\n} 2>/tmp/stderr"):format(command)))
  local text = pipe:read("a")
  local _, how, code = pipe:close()
  return how == "signal" and 128 + code or code, text, guest.read("/tmp/stderr")
end

--- One word for the shell.
---@param word any
---@return string
function guest.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

local function words(list)
  local quoted = {}
  for i, word in ipairs(list) do
    quoted[i] = guest.quote(word)
  end
  return table.concat(quoted, " ")
end

--- Runs the command luatrace to its end.
---@param ... any its words
---@return integer status
---@return string stdout
---@return string stderr
function guest.luatrace(...)
  return guest.sh("luatrace " .. words { ... })
end

--- The same, once more when events came late: a virtual CPU may stand still between the time of an
--- event and its record for longer than luatrace waits.
---@param ... any words of the command
---@return integer status
---@return string stdout
---@return string stderr
function guest.luatrace_in_time(...)
  local status, text, err
  for _ = 1, 5 do
    status, text, err = guest.luatrace(...)
    if not err:find(" came late, ", 1, true) then
      break
    end
    guest.note("events came late: once more")
  end
  return status, text, err
end

--- Waits until a condition holds; raises when it does not in time, which is enough for a machine
--- that is ten times slower than usual.
---@param condition fun(): any
---@param what string
---@return any
function guest.wait_until(condition, what)
  local limit = core.now("mono") + 90e9
  repeat
    local answer = condition()
    if answer then
      return answer
    end
    core.poll({}, 0.02)
  until core.now("mono") > limit
  error(what .. " did not come", 2)
end

local starts = 0

--- Starts a program; its output goes to files.
---@param argv string[]
---@return table started process, out(), err(), wait(), kill(signal)
function guest.start(argv)
  starts = starts + 1
  local path = ("/tmp/start-%d"):format(starts)
  -- exec: the pid is the program's own.
  local process = assert(core.spawn(("exec %s >%s.out 2>%s.err"):format(words(argv), path, path)))
  assert(process:release())
  local started = { process = process }
  function started.out()
    return guest.read(path .. ".out") or ""
  end
  function started.err()
    return guest.read(path .. ".err") or ""
  end
  --- Waits for the end and returns the status as a shell gives it.
  function started.wait()
    guest.wait_until(function()
      return process:wait() ~= nil
    end, "the end of " .. argv[1])
    local how, code = process:wait()
    process:close()
    return how == "signal" and 128 + code or code
  end
  function started.kill(signal)
    assert(process:kill(signal))
  end
  return started
end

--- Runs a load in a session until it has ended and everything that it made has been delivered.
---@param session tracefs.session
---@param ... any words of the load's command line
---@return table stats of the session
---@return string said the load's own line
function guest.run_load(session, ...)
  local process = assert(core.spawn(("exec /spec/load %s >/tmp/load.out"):format(words { ... })))
  session:at_start(function()
    assert(process:release())
  end)
  local fd = process:fileno()
  session:watch(fd, function()
    session:watch(fd, nil)
    session:finish()
  end)
  local stats = session:run { duration = 90 }
  local how, code = process:wait()
  process:close()
  guest.equal("exit", how, "how the load ended")
  guest.equal(0, code, "the load's status")
  return stats, guest.read("/tmp/load.out")
end

guest.SYSCALL = "raw_syscalls:sys_enter"

local used = 0

--- A system call's number that no kernel has and nobody else uses, and the filter for it.
---@return integer nr
---@return string filter
function guest.fresh_nr()
  used = used + 1
  local nr = 0x100000 + used
  return nr, ("id == %d"):format(nr)
end

--- Every counter of the stats fits the others.
---@param stats table of a session that has finished
function guest.balanced(stats)
  local sums = { produced = 0, delivered = 0, lost = 0 }
  for cpu, lane in pairs(stats.per_cpu) do
    guest.equal(lane.produced, lane.delivered + lane.lost, "delivered + lost on CPU " .. cpu)
    guest.equal(lane.lost, lane.overrun + lane.dropped + lane.commit_overrun,
      "overrun + dropped + commit_overrun on CPU " .. cpu)
    for name, sum in pairs(sums) do
      sums[name] = sum + lane[name]
    end
  end
  guest.equal(0, stats.pending, "pending")
  for name, sum in pairs(sums) do
    guest.equal(stats[name], sum, name .. " of all CPUs")
  end
end

return guest
