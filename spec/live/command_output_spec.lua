-- What the command writes, where, and what happens when it cannot.
local helper = require "spec.support.helper"
local dkjson = require "dkjson"
local loads = require "spec.support.loads"
local terminal = require "spec.support.terminal"

local SYSCALL <const> = loads.SYSCALL

local function load_command(nr, count)
  return ("%s --nr %d syscalls %d >/dev/null"):format(
    helper.quote(helper.program("support/load")), nr, count)
end

local function lines(text)
  local list = {}
  for line in text:gmatch("([^\n]*)\n") do
    list[#list + 1] = line
  end
  return list
end

-- The name of the load's task; the kernel forgets names when many tasks are traced at a time.
local NAMES <const> = { ["load-calls"] = true, ["<...>"] = true }

-- Every line as a value; fails when one is no JSON.
local function objects(text)
  local list = {}
  for i, line in ipairs(lines(text)) do
    local value, _, message = dkjson.decode(line)
    assert.is_nil(message, line)
    assert.is_table(value)
    list[i] = value
  end
  return list
end

-- A program with this file name, which is also what its process is called. It does nothing.
local function named_program(name)
  local path = helper.tmpdir() .. "/" .. name
  assert(os.execute("cp /bin/true " .. helper.quote(path)))
  return path
end

describe("text output", function()
  it("is the kernel's line for each record of an event without a handler", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-c", load_command(nr, 23), "-e", ("on(%q, { filter = %q })"):format(SYSCALL, filter),
    }
    assert.same({ 0, "" }, { status, err })
    local list = lines(out)
    assert.equal(23, #list)
    for i, line in ipairs(list) do
      local name = line:match("^ *(%S+)%-%d+ +%[%d%d%d%] %S+ +%d+%.%d+: sys_enter: ")
      assert.is_true(NAMES[name], line)
      assert.matches((": sys_enter: NR %d (%x, "):format(nr, i), line, 1, true)
    end
  end)

  it("is name=value for the fields that were asked for", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-c", load_command(nr, 2), "-e",
      ('on(%q, { "id", "common_event", "common_comm", filter = %q })'):format(SYSCALL, filter),
    }
    assert.same({ 0, "" }, { status, err })
    local list = lines(out)
    assert.equal(2, #list)
    for _, line in ipairs(list) do
      local id, name = line:match(
        "^id=(%d+) common_event=raw_syscalls:sys_enter common_comm=\"?([^\" ]+)\"?$")
      assert.equal(tostring(nr), id, line)
      assert.is_true(NAMES[name], line)
    end
  end)

  it("of trace:print is a line, whatever is printed", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-c", load_command(nr, 1), "-e", ([[
        trace:print("text")
        trace:print(12)
        trace:print(nil)
        trace:print { b = 2, a = "two words", 7, "x", c = { 1, 2 }, d = "", e = 'a="b"' }
        print(trace.format)
        on(%q, { filter = %q }, function(ev) trace:print(ev) print(ev) end)
      ]]):format(SYSCALL, filter),
    }
    assert.same({ 0, "" }, { status, err })
    local list = lines(out)
    assert.same({ "text", "12", "nil", '7 x a="two words" b=2 c=[1,2] d="" e="a=\\"b\\""', "text" },
      table.move(list, 1, 5, 1, {}))
    assert.equal(7, #list)
    assert.matches("sys_enter: NR", list[6], 1, true)
    assert.equal(list[6], list[7])
  end)

  it("goes to the file of -o: print, io.write and records", function()
    local nr, filter = loads.fresh_nr()
    local path = helper.tmpdir() .. "/out"
    helper.write_file(path, "what was there before\n")
    local status, out, err = helper.run {
      "-o", path, "-c", "echo the command; " .. load_command(nr, 3), "-e", ([[
        print "printed"
        io.write("written", 1, "\n")
        on(%q, { filter = %q })
        at_end(function() print "at_end" end)
      ]]):format(SYSCALL, filter),
    }
    assert.same({ 0, "the command\n", "" }, { status, out, err })
    local list = lines(helper.read_file(path))
    assert.equal(6, #list)
    assert.same({ "printed", "written1", "at_end" }, { list[1], list[2], list[6] })
  end)

  it("comes while the run lasts, to a pipe too", function()
    local run = helper.start_luatrace {
      "-e", 'print "first" on("sched:sched_switch", function()'
        .. ' if not seen then seen = true print "second" end end)',
    }
    run:expect("first\nsecond\n", 10)
    run:kill "INT"
    assert.equal(0, (run:wait()))
  end)

  it("has lost events in it where records are printed", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-b", "64", "-c", load_command(nr, 20011), "-e", ([[
        on(%q, { "id", filter = %q })
        on(%q, { "id", filter = %q }, function()
          if not seen then
            seen = true
            local t = os.clock() + 1 while os.clock() < t do end
          end
        end)
      ]]):format(SYSCALL, filter, SYSCALL, filter),
    }
    assert.equal(0, status)
    local lost, unknown, printed = 0, 0, 0
    for _, line in ipairs(lines(out)) do
      local count = line:match("^CPU:%d+ %[LOST (%d+) EVENTS%]$")
      lost = lost + (count or 0)
      unknown = unknown + (line:find("^CPU:%d+ %[LOST EVENTS%]$") and 1 or 0)
      printed = printed + (line:find("^id=") and 1 or 0)
    end
    local warned = err:match("warning: (%d+) of 20011 events were lost %(CPU ")
    assert.is_truthy(warned, err)
    assert.equal(20011, printed + warned)
    assert.is_true(lost + unknown > 0)
    -- The kernel does not always say how many.
    assert.is_true(unknown > 0 and lost <= tonumber(warned) or lost == tonumber(warned))
    assert.matches("try a larger one %(%-b %d+%)", err)
  end)
end)

describe("json output", function()
  it("has an object for each record, with exact numbers", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-f", "json", "-c", load_command(nr, 3), "-e",
      ("on(%q, { filter = %q })"):format(SYSCALL, filter),
    }
    assert.same({ 0, "" }, { status, err })
    local list = objects(out)
    assert.equal(4, #list)
    for i = 1, 3 do
      local event = list[i]
      assert.equal("event", event.type)
      assert.equal(SYSCALL, event.common_event)
      assert.is_true(NAMES[event.common_comm], event.common_comm)
      assert.equal("integer", math.type(event.common_timestamp))
      assert.equal("integer", math.type(event.common_pid))
      assert.equal("integer", math.type(event.common_cpu))
      assert.equal(nr, event.fields.id)
      assert.equal(i, event.fields.args[1])
      assert.is_nil(event.fields.common_pid)
    end
    assert.equal("stats", list[4].type)
    assert.equal(list[4].produced, list[4].delivered + list[4].lost + list[4].pending)
    local sum = 0
    for _, cpu in ipairs(list[4].per_cpu) do
      sum = sum + cpu.delivered
    end
    assert.equal(list[4].delivered, sum)
  end)

  it("is valid whatever bytes a process calls itself", function()
    for _, name in ipairs { 'q"uo\\te', "new\nline", "e\27[31msc", "b\1\xff\xfe", "gr\xc3\xbc\xc3",
      "c1\xc2\x9b" } do
      local path = named_program(name)
      local status, out, err = helper.run {
        "-f", "json", "-c", helper.quote(path), "-e",
        ([[on("sched:sched_process_exec", { filter = 'filename ~ "%s/*"' })]]):format(
          path:match("^(.*)/" )),
      }
      assert.same({ 0, "" }, { status, err })
      assert.is_nil(out:find("[%z\1-\9\11-\31\127]"), "control bytes")
      assert.is_truthy(utf8.len(out), "no UTF-8")
      local event = objects(out)[1]
      -- What is no UTF-8 came as the character of the same number.
      local expected = utf8.len(name) and name or name:gsub("[\x80-\xff]", function(byte)
        return utf8.char(byte:byte())
      end)
      if name == "gr\xc3\xbc\xc3" then
        expected = "gr\xc3\xbc\xc3\x83"
      end
      assert.equal(expected, event.fields.filename:match("[^/]*$"))
    end
  end)

  it("has objects for print, tables, values and errors", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-f", "json", "-c", load_command(nr, 1), "-e", ([[
        print("a", 1)
        trace:print { big = math.mininteger, list = { 1, 2 } }
        trace:print "text"
        on(%q, { "id", filter = %q })
        on(%q, { filter = %q }, function(ev) trace:print { record = ev } error("on \27purpose") end)
      ]]):format(SYSCALL, filter, SYSCALL, filter),
    }
    assert.equal(1, status)
    assert.matches("on \\x1Bpurpose", err, 1, true)
    local list = objects(out)
    assert.same({ type = "print", text = "a\t1" }, list[1])
    assert.same({ big = math.mininteger, list = { 1, 2 } }, list[2])
    assert.same({ type = "print", text = "text" }, list[3])
    assert.same({ type = "values", common_event = SYSCALL, fields = { id = nr } }, list[4])
    assert.equal(nr, list[5].record.fields.id)
    assert.equal("error", list[6].type)
    assert.matches("^%-e:5: on \\x1Bpurpose\nwhile handling: ", list[6].message)
    assert.equal("stats", list[7].type)
    assert.is_nil(list[8])
  end)

  it("has an object for each gap, and they add up", function()
    local nr, filter = loads.fresh_nr()
    local status, out, err = helper.run {
      "-f", "json", "-b", "64", "--strict", "-c", load_command(nr, 30011), "-e", ([[
        n = 0
        on(%q, { "id", filter = %q }, function()
          n = n + 1
          if n == 1 then local t = os.clock() + 1 while os.clock() < t do end end
        end)
        at_end(function() trace:print { type = "mine", n = n } end)
      ]]):format(SYSCALL, filter),
    }
    assert.equal(3, status)
    local lost, unknown, mine, stats = 0, 0, nil, nil
    for _, object in ipairs(objects(out)) do
      if object.type == "lost" then
        lost = lost + (object.count or 0)
        unknown = unknown + (object.count and 0 or 1)
        assert.equal("integer", math.type(object.cpu))
        assert.is_string(object.why)
      elseif object.type == "mine" then
        mine = object
      else
        stats = object
      end
    end
    assert.is_true(lost + unknown > 0)
    -- The kernel does not always say how many.
    assert.is_true(unknown > 0 and lost <= stats.lost or lost == stats.lost)
    assert.equal(30011, stats.produced)
    assert.equal(30011, stats.delivered + stats.lost)
    assert.equal(mine.n, stats.delivered)
    assert.matches(("warning: %d of 30011 events were lost"):format(stats.lost), err, 1, true)
  end)

  it("leaves io.write to the script", function()
    local status, out = helper.run { "-f", "json", "-e", 'io.write("a,b\\n")' }
    assert.same({ 0, "a,b\n" }, { status, out })
  end)
end)

describe("output that cannot be written", function()
  local FLOOD <const> = 'on("sched:sched_switch")'

  it("to a full disk ends the run with a message", function()
    local status, _, err = helper.run {
      "-o", "/dev/full", "-c", "sleep 100", "-e", FLOOD .. " at_end(function() print(1) end)",
      timeout = 20,
    }
    assert.equal(1, status)
    assert.matches("luatrace: cannot write to '/dev/full': No space left on device\n", err, 1, true)
  end)

  it("to a file above the limit of its size ends the run with a message", function()
    local path = helper.tmpdir() .. "/out"
    local status, _, err = helper.execute {
      "sh", "-c", 'ulimit -f 8; exec "$@"', "sh", helper.command,
      "-o", path, "-c", "sleep 100", "-e", FLOOD, timeout = 20,
    }
    assert.equal(1, status)
    assert.matches(("luatrace: cannot write to '%s': File too large\n"):format(path), err, 1, true)
  end)

  it("is noticed for what little there is at the end", function()
    local status, _, err = helper.run { "-o", "/dev/full", "-e", "print(1)" }
    assert.same({ 1, "luatrace: cannot write to '/dev/full': No space left on device\n" },
      { status, err })
    status, _, err = helper.run { "-e", "print(1)", stdout = "/dev/full" }
    assert.same({ 1, "luatrace: cannot write to standard output: No space left on device\n" },
      { status, err })
    status, _, err = helper.run { "-l", "sched:*", stdout = "/dev/full" }
    assert.same({ 1, "luatrace: cannot write to standard output: No space left on device\n" },
      { status, err })
  end)

  it("to a closed pipe ends the run with a message", function()
    local dir = helper.tmpdir()
    local status, out, err = helper.execute {
      "sh", "-c", ("{ %s -v -e %s; echo $? >%s/status; } | head -n 2"):format(
        helper.command, helper.quote(FLOOD), dir),
      timeout = 20,
    }
    assert.equal(0, status)
    assert.equal(2, #lines(out))
    assert.equal("1\n", helper.read_file(dir .. "/status"))
    assert.matches("luatrace: cannot write to standard output: Broken pipe\n", err, 1, true)
    local name = err:match("instance (luatrace%-[^,]*),")
    assert.is_nil(helper.read_file(helper.tracing_dir .. "/instances/" .. name .. "/trace"))
  end)

  it("is noticed although the handler catches errors and the session counts them", function()
    local status, _, err = helper.run {
      "-o", "/dev/full", "-e", 'trace.on_error = "warn" on("sched:sched_switch", function(ev)'
        .. " pcall(print, ev) end)",
      timeout = 20,
    }
    assert.equal(1, status)
    assert.matches("No space left on device", err, 1, true)
  end)

  it("to a folder that is not there is said before anything runs", function()
    local dir = helper.tmpdir()
    local path = dir .. "/no/out"
    local status, _, err = helper.run { "-o", path, "-c", "touch " .. dir .. "/made", "-e", FLOOD }
    assert.equal(1, status)
    assert.equal(("luatrace: cannot write to %s: No such file or directory\n"):format(path), err)
    assert.is_nil(helper.read_file(dir .. "/made"))
  end)
end)

describe("output to a terminal", function()
  local path

  before_each(function()
    path = named_program("e\27[31mvil")
  end)

  -- Again where the kernel had given up the task's name for another one's.
  local function named(run)
    local status, out
    for _ = 1, 5 do
      status, out = run()
      if not out:find("<...>", 1, true) then
        break
      end
    end
    return status, out
  end

  local function on_terminal(code)
    local script = helper.tmpdir() .. "/script.lua"
    helper.write_file(script, "local trace = require 'tracefs.script'\n"
      .. ("local DIR = %q\n"):format(path:match("^(.*)/")) .. code)
    return named(function()
      return terminal.run(("%s -c %s %s 2>&1"):format(
        helper.command, helper.quote(helper.quote(path)):gsub("^'(.*)'$", "'%1'"), script))
    end)
  end

  it("has no control bytes of the kernel's strings, unless asked to", function()
    if not terminal.is_there() then
      pending("script is not installed")
      return
    end
    local status, out = on_terminal [[
      trace:on("sched:sched_process_exec", { filter = 'filename ~ "' .. DIR .. '/*"' }, function(ev)
        print("P " .. ev.common_comm)
        io.write("W ", ev.common_comm, "\n")
        trace:print("T " .. ev.common_comm)
        trace:print { comm = ev.common_comm }
        trace:print(ev)
        print("tab\tstays", "Grüße")
        io.stdout:write("RAW \27[0m\n")
        error("E " .. ev.common_comm)
      end)
    ]]
    assert.equal(1, status)
    assert.equal(1, select(2, out:gsub("\27", "")), out)
    for _, line in ipairs { "P e\\x1B[31mvil\n", "W e\\x1B[31mvil\n", "T e\\x1B[31mvil\n",
      "comm=e\\x1B[31mvil\n", "tab\tstays\tGrüße\n", "RAW \27[0m\n" } do
      assert.is_truthy(out:find(line, 1, true), out)
    end
    assert.matches(": E e\\x1B[31mvil\n", out, 1, true)
  end)

  it("keeps the bytes when it goes to a file", function()
    local status, out = named(function()
      return helper.run {
        "-c", helper.quote(path), "-e", ([[
          on("sched:sched_process_exec", { filter = 'filename ~ "%s/*"' }, function(ev)
            print(ev.common_comm)
          end)
        ]]):format(path:match("^(.*)/")),
      }
    end)
    assert.same({ 0, "e\27[31mvil\n" }, { status, out })
  end)
end)

describe("notes", function()
  it("say on a terminal how to end", function()
    if not terminal.is_there() then
      pending("script is not installed")
      return
    end
    local status, out = terminal.run(
      ("%s -e 'on(\"sched:sched_switch\", function() end) at_end(function() print \"end\" end)'")
        :format(helper.command), { after = "Ctrl-C", keys = "\\003" })
    assert.equal(0, status)
    assert.matches("luatrace: tracing 1 event, Ctrl-C ends it\n", out, 1, true)
    assert.matches("end\n$", out)
  end)

  it("are silenced by -q, warnings are not", function()
    local nr, filter = loads.fresh_nr()
    local code = ([[
      n = 0
      on(%q, { "id", filter = %q }, function()
        n = n + 1
        if n == 1 then local t = os.clock() + 1 while os.clock() < t do end end
      end)
    ]]):format(SYSCALL, filter)
    local status, _, err = helper.run {
      "-q", "-b", "64", "-c", load_command(nr, 30011), "-e", code,
    }
    assert.equal(0, status)
    assert.matches("^luatrace: warning: %d+ of 30011 events were lost [^\n]*\n$", err)

    status, _, err = helper.run {
      "-q", "-d", "0.3", "-c", "sleep 100", "-e", 'on("sched:sched_switch", function() end)',
    }
    assert.same({ 0, "" }, { status, err })
  end)
end)
