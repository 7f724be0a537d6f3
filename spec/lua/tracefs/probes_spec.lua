-- Probes that a session makes. uprobes run here on the live kernel; of the other kinds, which it
-- may not have, the commands are looked at.
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local core = require "tracefs.core"
local probes = require "tracefs.probes"
local tracefs = require "tracefs"

local HERE <const> = "^spec/lua/tracefs/probes_spec%.lua:%d+: "
local dir = assert(tracefs.tracing_dir())
local has = tracefs.features()

local function nothing() end

local function listed(text)
  return (helper.read_file(dir .. "/dynamic_events") or ""):find(text, 1, true) ~= nil
end

describe("tracefs.probes", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.probes"))
  end)

  it("tells probes from events", function()
    assert.same({ "kprobe", "a" }, { probes.kind("kprobe:a") })
    assert.same({ "uprobe", "/a:b" }, { probes.kind("uprobe:/a:b") })
    for _, pattern in ipairs { "kprobes:a", "sched:sched_switch", "kprobe", "", "*", "KPROBE:a" } do
      assert.is_nil((probes.kind(pattern)))
    end
  end)
end)

-- A session as far as probes need one, whose commands go nowhere; all kinds are there.
local function paper_session()
  local top = helper.tmpdir()
  for _, file in ipairs { "kprobe_events", "uprobe_events", "dynamic_events" } do
    helper.write_file(top .. "/" .. file, "")
  end
  helper.write_file(top .. "/README", "\t  f[:[<group>/]\n\t  t[:[<group>/]\n\t  e[:[<group>/]\n")
  local session = {
    _dir = top, _probes = {}, _probe_groups = {}, _shown_systems = {}, commands = {},
    instance = top,
  }
  local count = 0
  session._dynevents = {
    name = function()
      count = count + 1
      return "group" .. count
    end,
    add = function()
      return true
    end,
  }
  function session:_announce(file, text)
    assert(file == "dynamic_events")
    table.insert(self.commands, text)
  end
  return session
end

local function command(pattern, options)
  local session = paper_session()
  probes.make(session, pattern, options or {})
  return session.commands[1]
end

describe("the command of", function()
  it("a kprobe, a kretprobe", function()
    assert.equal("p:group1/vfs_read vfs_read", command("kprobe:vfs_read"))
    assert.equal("p:group1/vfs_read_0x10 vfs_read+0x10", command("kprobe:vfs_read+0x10"))
    assert.equal("p:group1/f mod:f", command("kprobe:mod:f"))
    assert.equal("p:group1/_0xffffffff81000000 0xffffffff81000000",
      command("kprobe:0xffffffff81000000"))
    assert.equal("p:group1/f_isra_0 f.isra.0", command("kprobe:f.isra.0"))
    assert.equal("r:group1/vfs_read vfs_read ret=$retval:s64",
      command("kretprobe:vfs_read", { args = "ret=$retval:s64" }))
    assert.equal("r16:group1/vfs_read vfs_read", command("kretprobe:vfs_read", { maxactive = 16 }))
    assert.equal("p:group1/mine vfs_read", command("kprobe:vfs_read", { name = "mine" }))
  end)

  it("an fprobe, the exit of one, a tracepoint probe", function()
    assert.equal("f:group1/vfs_read vfs_read $arg*", command("fprobe:vfs_read", { args = "$arg*" }))
    assert.equal("f:group1/vfs_read vfs_read%return", command("fexit:vfs_read"))
    assert.equal("t:group1/sched_switch sched_switch", command("tprobe:sched_switch"))
  end)

  it("a probe at a place in a file", function()
    local sh = assert(core.real_path("/bin/sh"))
    local base = sh:match("[^/]+$")
    assert.equal(("p:group1/%s_0x40 %s:0x40"):format(base, sh), command("uprobe:/bin/sh:0x40"))
    assert.equal(("r:group1/%s_0x40 %s:0x40(0x20)"):format(base, sh),
      command("uretprobe:/bin/sh:0x40(0x20)"))
    assert.equal(("p:group1/%s_0x40 %s:0x40"):format(base, sh), command("uprobe:sh:0x40"))
  end)

  it("has its fetch expressions in the order of a list, then of their names", function()
    local function args(value)
      return command("kprobe:f", { args = value }):match("^p:group1/f f(.*)$")
    end
    assert.equal("", args(nil))
    assert.equal("", args(""))
    assert.equal(" a=%di b=+0(%si):string", args("  a=%di\tb=+0(%si):string "))
    assert.equal(" a=%ax b=%bx", args { b = "%bx", a = "%ax" })
    assert.equal(" $arg1 z=%di a=%ax", args { "$arg1", "z=%di", a = "%ax" })
    assert.equal(" list=+0(%si):s32[4]", args { list = "+0(%si):s32[4]" })
  end)

  it("is the same probe when it is asked for again, another one with other arguments", function()
    local session = paper_session()
    local first, undo = probes.make(session, "kprobe:f", {})
    assert.is_function(undo)
    local again, no_undo = probes.make(session, "kprobe:f", {})
    assert.is_nil(no_undo)
    assert.equal(first[1], again[1])
    probes.make(session, "kprobe:f", { args = "$arg1" })
    probes.make(session, "kretprobe:f", {})
    assert.same({ "p:group1/f f", "p:group1/f_2 f $arg1", "r:group2/f f" }, session.commands)
    assert.same({ group1 = "kprobe", group2 = "kretprobe" }, session._shown_systems)
    assert.has_error(function() probes.make(session, "kprobe:g", { name = "f" }) end,
      "there is a kprobe with the name f in this session already")
  end)

  it("is not made of what is no command", function()
    local function refused(pattern, options)
      local ok, message = pcall(command, pattern, options)
      assert.is_false(ok)
      return message
    end
    assert.matches("a probe is at one place", refused("kprobe:vfs_*"))
    assert.matches("a probe is at one place", refused("uprobe:/bin/*:main"))
    assert.matches("names no place", refused("kprobe:"))
    for _, bad in ipairs { "kprobe:a b", "kprobe:a#b", "kprobe:a\nb", "tprobe:a b" } do
      assert.matches("which the kernel's commands cannot have", refused(bad))
    end
    assert.matches("the form is uprobe:PATH:FUNCTION", refused("uprobe:main"))
    assert.matches("the form is eprobe:SYSTEM:EVENT", refused("eprobe:sched_switch"))
    for args, why in pairs {
      ["a=%di #b"] = "which the kernel's commands cannot have",
      [5] = "args of a kprobe: a string or a table, not number",
      [{ a = 5 }] = "fetch expressions are strings, not number",
      [{ a = "b c" }] = "which the kernel's commands cannot have",
      [{ "a\nb" }] = "which the kernel's commands cannot have",
      [{ ["a b"] = "%di" }] = '"a b" is no name of a field',
      [{ ["1a"] = "%di" }] = "is no name of a field",
      [{ [2] = "%di" }] = "a list, or a table of names",
      [{ [true] = "%di" }] = "a list, or a table of names",
    } do
      assert.is_truthy(refused("kprobe:f", { args = args }):find(why, 1, true))
    end
    for _, name in ipairs { "1a", "a-b", "", ("a"):rep(49), 5 } do
      assert.matches("name of a kprobe: letters, digits and _",
        refused("kprobe:f", { name = name }))
    end
    assert.matches("maxactive belongs to kretprobe and fexit, not to kprobe",
      refused("kprobe:f", { maxactive = 5 }))
    for _, value in ipairs { 0, -1, 4097, "5", 1.5 } do
      assert.matches("a whole number from 1 to 4096", refused("fexit:f", { maxactive = value }))
    end
    local folder = helper.tmpdir() .. "/a b"
    assert.equal(0, (helper.execute { "mkdir", folder }))
    assert.equal(0, (helper.execute { "cp", "/bin/sh", folder .. "/sh" }))
    assert.matches("has a blank, a control character", refused("uprobe:" .. folder .. "/sh:0x40"))
  end)
end)

describe("a kind of probe that the kernel lacks", function()
  it("is refused by its name", function()
    local session <close> = tracefs.session()
    for kind, id in pairs { kprobe = "kprobe", fprobe = "fprobe", tprobe = "tprobe" } do
      if not has[id] then
        local ok, message = pcall(function() session:on(kind .. ":vfs_read", nothing) end)
        assert.is_false(ok)
        assert.matches(HERE .. "this kernel has no " .. kind .. "s: it is built without CONFIG_",
          message)
      end
    end
  end)
end)

describe("a uprobe", function()
  local program = helper.program("support/probed")

  before_each(function()
    if not has.uprobe then
      pending("this kernel has no uprobes")
    elseif not core.has_libelf() then
      pending("built without libelf")
    end
  end)

  local function refused(...)
    local session <close> = tracefs.session()
    local arguments = table.pack(...)
    local ok, message = pcall(function()
      session:on(table.unpack(arguments, 1, arguments.n))
    end)
    assert.is_false(ok)
    assert.matches(HERE, message)
    assert.equal("", session.instance:read("set_event"))
    assert.same({}, session._dynevents:commands())
    return (message:gsub(HERE, ""))
  end

  it("delivers what it fetches, and its return 23 results", function()
    local session <close> = tracefs.session()
    local calls, results, loop = 0, {}, {}
    local work = ("uprobe:%s:probed_work"):format(program)
    local args = { list = "+8($arg2):s32[4]", n = "$arg1:s32", name = "+0(+0($arg2)):ustring" }
    local machine = helper.read_file("/proc/self/exe"):sub(19, 19):byte()
    if machine == 62 then
      args = { list = "+8(%si):s32[4]", n = "%di:s32", name = "+0(+0(%si)):ustring" }
    end
    session:on(work, { args = args }, function(ev)
      calls = calls + 1
      assert(ev.n == calls, "n")
      assert(table.concat(ev.list, " ") == "1 -2 3 4", "list")
      assert(ev.name == "a name", "name")
      loop[ev.common_event] = true
    end)
    -- Asked for again, it is the same one.
    session:on(work, { "n", args = args, filter = nil }, function(n)
      assert(n == calls)
    end)
    session:on(("uretprobe:%s:probed_work"):format(program), {
      "result", args = "result=$retval:s32",
    }, function(result)
      results[#results + 1] = result
    end)
    assert.equal(2, #session._dynevents:commands())
    local group = session._dynevents:commands()[1]:match(":([^/]+)/")
    assert.is_true(listed(group))
    session:start()
    assert.equal(0, (helper.execute { program, "23" }))
    session:finish()
    session:run()
    assert.equal(23, calls)
    local expected = {}
    for n = 1, 23 do
      expected[n] = 3 * n - 4
    end
    assert.same(expected, results)
    assert.same({ ["uprobe:probed_work"] = true }, loop)
    session:close()
    assert.is_false(listed(group))
  end)

  it("has the kernel's filter, and its text is the kernel's", function()
    local session <close> = tracefs.session { own_events = true }
    local ours, theirs = {}, {}
    session:on(("uprobe:%s:probed_tail"):format(program), {
      args = { comm = "$comm", n = "%di:s32", x = "%di:x16", bits = "%di:b4@1/32" },
      filter = "n > 10",
    }, function(ev)
      ours[#ours + 1] = tostring(ev)
    end)
    session:start()
    assert.equal(0, (helper.execute { program, "11" }))
    assert(session.instance:trace_off())
    for line in assert(session.instance:read("trace")):gmatch("[^\n]+") do
      theirs[#theirs + 1] = line:sub(1, 1) ~= "#" and line or nil
    end
    session:finish()
    session:run()
    -- 3 * n - 4 for n from 5 on.
    assert.equal(7, #ours)
    assert.same(theirs, ours)
  end)

  it("is found by name in the loader's way, and within a function", function()
    local session <close> = tracefs.session()
    local counts = { 0, 0 }
    session:on("uprobe:libc.so.6:getppid", { filter = 'COMM == "probed"' }, function()
      counts[1] = counts[1] + 1
    end)
    session:on(("uprobe:%s:0x%x"):format(program,
      assert(core.elf_offset(program, "probed_tail"))), function()
      counts[2] = counts[2] + 1
    end)
    session:start()
    assert.equal(0, (helper.execute { program, "7" }))
    session:finish()
    session:run()
    assert.same({ 1, 7 }, counts)
  end)

  it("that cannot be is refused, and nothing is left of it", function()
    local work = ("uprobe:%s:probed_work"):format(program)
    assert.matches("^no function 'probed_wrk' in .*/probed%. Did you mean probed_work%?$",
      refused(("uprobe:%s:probed_wrk"):format(program), nothing))
    assert.matches("^uprobe:/nosuch:main: /nosuch: No such file",
      refused("uprobe:/nosuch:main", nothing))
    local message = refused(work, { args = "a=%nosuch" }, nothing)
    assert.is_truthy(message:find("the kernel says:\ntrace_uprobe: error: Invalid register name\n",
      1, true), message)
    local line, blanks = message:match("\n(  Command: [^\n]*)\n( *)%^")
    assert.equal("nosuch", line:sub(#blanks + 2, #blanks + 7))
    assert.is_truthy(message:find("\nregisters are: %", 1, true), message)
    message = refused(work, { args = "a=%di:u7" }, nothing)
    assert.is_truthy(message:find("Unknown type is specified", 1, true), message)
    assert.is_nil(message:find("register", 1, true))
    assert.matches("^uprobe:probed_work has no field 'nosuch'; it has: .*__probe_ip, n, ",
      refused(work, { "nosuch", args = { n = "%di:s32" } }, nothing))
    assert.matches("the kernel says:\n.*Field not found",
      refused(work, { filter = "nosuch == 1" }, nothing))
    assert.matches("a return probe is at a function's start",
      refused(("uretprobe:%s:probed_work+3"):format(program), nothing))
    assert.matches("the place is a function, function%+BYTES",
      refused(("uprobe:%s:probed_work+x"):format(program), nothing))
    assert.matches("^args belongs to a probe, as kprobe:FUNCTION or uprobe:PATH:FUNCTION, not to "
      .. "sched:sched_switch", refused("sched:sched_switch", { args = "a" }, nothing))
    message = refused("sched:sched_switch", { nosuch = 1 }, nothing)
    assert.matches("unknown option 'nosuch' of an event; there are: filter, sample, stack, "
      .. "user_stack; and for probes: args", message)
  end)

  it("of another session is another one, and stays", function()
    local first <close> = tracefs.session()
    local second <close> = tracefs.session()
    local pattern = ("uprobe:%s:probed_work"):format(program)
    first:enable(pattern)
    second:enable(pattern, { args = "n=%di:s32" })
    local other = second._dynevents:commands()[1]:match(":([^/]+/%S+)")
    assert.is_true(listed(other))
    local own = {}
    for _, event in ipairs(assert(tracefs.dynamic_events())) do
      if event.system .. "/" .. event.name == other then
        own = event
      end
    end
    assert.equal("p", own.command)
    assert.is_true(own.own)
    assert.matches("n=%%di:s32$", own.definition)
    assert.equal(1, own.definition:find(assert(core.real_path(program)), 1, true))
    first:close()
    assert.is_true(listed(other))
    second:close()
    assert.is_false(listed(other))
  end)

  it("shows its command to who asks", function()
    local code = ("on('uprobe:%s:probed_work', { args = 'n=%%di:s32' }, print)"):format(program)
    for _, option in ipairs { "--dry-run", "-v" } do
      local status, _, err = helper.run { option, "-d", "0.1", "-e", code }
      assert.equal(0, status, err)
      assert.matches("\nluatrace: dynamic_events << p:luatrace_%d+_%d+_1/probed_work /%S+:0x%x+ "
        .. "n=%%di:s32\n", "\n" .. err)
    end
    local status, _, err = helper.run { "-d", "0.1", "-e", code }
    assert.same({ 0, "" }, { status, err })
  end)

  it("is taken away after an error, a signal, and SIGKILL", function()
    local code = ("on('uprobe:%s:probed_work', function() end)"):format(program)
    local function ends(how, status)
      local process = helper.start_luatrace {
        "-e", code .. " at_start(function() print('on') io.stdout:flush() end)",
      }
      process:expect("on\n")
      local group = ("luatrace_%d_"):format(process.pid)
      assert.is_true(listed(group))
      process:kill(how)
      assert.equal(status, (process:wait()))
      return group
    end
    assert.is_false(listed(ends("INT", 0)))
    assert.is_false(listed(ends("TERM", 0)))
    local group = ends("KILL", 137)
    -- Somebody else's session may have come first.
    tracefs.remove_stale()
    assert.is_false(listed(group))
    local process = helper.start_luatrace { "-e", code .. " error('stop')" }
    assert.equal(1, (process:wait()))
    assert.is_false(listed(("luatrace_%d_"):format(process.pid)))
  end)
end)

describe("tracefs.dynamic_events", function()
  it("lists what is in the file, whoever made it", function()
    local top = helper.tmpdir()
    helper.write_file(top .. "/dynamic_events", "p:kprobes/mine do_sys_openat2 a=%di:u64\n"
      .. "r16:luatrace_1_2_3/f vfs_read\ns:synthetic/lat\tu64 lat; pid_t pid\nu:test u32 a\n")
    assert.same({
      {
        command = "p", system = "kprobes", name = "mine", definition = "do_sys_openat2 a=%di:u64",
        own = false,
      },
      { command = "r16", system = "luatrace_1_2_3", name = "f", definition = "vfs_read",
        own = true },
      { command = "s", system = "synthetic", name = "lat", definition = "u64 lat; pid_t pid",
        own = false },
      { command = "u", system = "user_events", name = "test", definition = "u32 a", own = false },
    }, probes.list(top))
    assert.same({}, probes.list(helper.tmpdir()))
    assert.is_table(tracefs.dynamic_events())
  end)
end)
