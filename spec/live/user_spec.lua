-- --user: a script without root's rights, and what is cleaned up behind it.
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local users = require "spec.support.users"

-- A size that nobody else's packets have while this runs, as the two events count it.
local SIZE = loads.SIZE
local ON_IP = SIZE + 28
local ON_ETHERNET = ON_IP + 14

local PACKETS = ([[
  local sent, pairs_seen, queued, received = {}, 0, 0, 0
  local here = '(name == "lo") && (len == %d)'
  on("net:net_dev_queue", { filter = here:format(ON_ETHERNET) }, function(ev)
    queued = queued + 1
    sent[ev.skbaddr] = ev.common_timestamp
  end)
  on("net:netif_receive_skb", { filter = here:format(ON_IP) }, function(ev)
    received = received + 1
    local since = sent[ev.skbaddr]
    if since and ev.common_timestamp > since then
      sent[ev.skbaddr] = nil
      pairs_seen = pairs_seen + 1
    end
  end)
  at_end(function() print(queued, received, pairs_seen, next(sent), stats().lost) end)
]]):gsub("ON_%u+", { ON_ETHERNET = tostring(ON_ETHERNET), ON_IP = tostring(ON_IP) })

local SWITCHES <const> = 'on("sched:sched_switch", function() end)'

-- Starts a run and waits until everything is on.
local function start(words)
  table.insert(words, 1, "-v")
  local run = users.start(words)
  run:expect("KB for each CPU", 20)
  return run
end

describe("a script under --user", function()
  for _, count in ipairs { 23, 10007 } do
    it(("measures what root measures: %d packets"):format(count), function()
      local run = start { "-e", PACKETS }
      loads.run { "udp", count, SIZE }
      run:kill "INT"
      local status, out = run:wait()
      assert.equal(("%d\t%d\t%d\tnil\t0\n"):format(count, count, count), out)
      assert.equal(0, status)
    end)
  end

  it("has that user's rights from its first line on, and cannot get others", function()
    local status, out, err = users.run { "-e", ([[
      print((io.open "/etc/shadow"))
      for _, file in ipairs { "tracing_on", "set_event", "trace_marker", "trace",
        "instances/" .. trace.instance:name() .. "/tracing_on" } do
        print((io.open(%q .. "/" .. file, "w")), (io.open(%q .. "/" .. file)))
      end
      print((os.execute "kill -0 %d 2>/dev/null"))
      for line in io.lines "/proc/self/status" do
        if line:find "^[UG]id" or line:find "^Cap" or line:find "^NoNew" then
          print((line:gsub("%%s+", " ")))
        end
      end
    ]]):format(helper.tracing_dir, helper.tracing_dir, helper.pid) }
    local none = "0000000000000000"
    assert.equal("", err)
    assert.equal("nil\n" .. ("nil\tnil\n"):rep(5) .. "nil\n"
      .. "Uid: 65534 65534 65534 65534\nGid: 65534 65534 65534 65534\n"
      .. ("CapInh: 0\nCapPrm: 0\nCapEff: 0\nCapBnd: 0\nCapAmb: 0\n"):gsub(": 0", ": " .. none)
      .. "NoNewPrivs: 1\n", out)
    assert.equal(0, status)
  end)

  it("can use events, filters, triggers, options and markers", function()
    local status, out, err = users.run { "-d", "0.3", "-e", [[
      on("ftrace:print", { "buf" }, function(text) print(text) end)
      on("sched:sched_process_exec", { filter = "pid == 1" }, function() end)
      print(pcall(on, "sched:sched_process_exit", { filter = "nothing == 1" }, function() end))
      print(enable("raw_syscalls:*", { filter = "id == 0x7ffffff0" }),
        trace:trigger("sched:sched_switch", "traceoff:1 if prev_pid == -9"))
      print(trace.instance:set_option("stacktrace", false))
      at_start(function() trace:marker "here" end)
    ]] }
    assert.equal("", err)
    assert.is_truthy(out:find("Field not found\n", 1, true), out)
    assert.is_truthy(out:find("\n2\t1\ntrue\nhere", 1, true), out)
    assert.equal(0, status)
  end)

  it("is told why the rest is refused", function()
    local status, out, err = users.run { "-d", "0.01", "-e", [[
      for _, pattern in ipairs { "kprobe:do_sys_openat2", "uprobe:/bin/sh:main" } do
        print(pcall(on, pattern, function() end))
      end
      for _, name in ipairs { "functions", "kernel_latency", "record", "synthetic" } do
        print(pcall(trace[name], trace, {}))
      end
      print(pcall(require "tracefs".session))
    ]] }
    assert.equal("", err)
    local lines = 0
    for line in out:gmatch("[^\n]+") do
      assert.is_truthy(line:find("^false\t.*%-%-user"), line)
      lines = lines + 1
    end
    assert.equal(7, lines)
    assert.equal(0, status)
  end)

  it("runs the command of -c as the same user", function()
    local status, out, err = users.run { "-c", "id -u; grep NoNewPrivs /proc/self/status; exit 7",
      "-e", SWITCHES }
    assert.equal("", helper.without_late(err))
    assert.equal("65534\nNoNewPrivs:\t1\n", out)
    assert.equal(7, status)
  end)

  it("can have its output and its trace file where only root may write and read", function()
    local dir = helper.tmpdir()
    local status, _, err = users.run { "-o", dir .. "/out", "-i", "examples/demo.dat",
      "-e", 'n = 0 on("*", function() n = n + 1 end) at_end(function() print(n > 0) end)' }
    assert.equal("", err)
    assert.equal(0, status)
    assert.equal("true\n", helper.read_file(dir .. "/out"))
  end)

  it("gets nothing that luatrace was started with, nor does the command", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/secret", "secret\n")
    local words = { "-o", dir .. "/out", "-c", "{ cat <&7; } 2>/dev/null || echo none",
      "-d", "1", "-e", [[
        print((os.execute "{ cat <&7; } 2>/dev/null"))
        for line in io.lines "/proc/self/status" do
          if line:find "^Groups" then print(line) end
        end
        on("sched:sched_process_exit", {}, function() end)
      ]] }
    local argv = { "sh", "-c", 'exec 7<"$0"; exec "$@"', dir .. "/secret", helper.command,
      "--user", users.NOBODY, env = { ASAN_OPTIONS = users.asan_options } }
    table.move(words, 1, #words, #argv + 1, argv)
    local status, out, err = helper.execute(argv)
    assert.equal("", err)
    assert.equal("none\n", out)
    assert.equal(0, status)
    assert.equal("nil\nGroups:\t65534 \n", helper.read_file(dir .. "/out"))
  end)

  it("is not even parsed as root, and its own modules are loaded as the user", function()
    local dir = helper.tmpdir()
    assert(os.execute("chmod 755 " .. dir))
    helper.write_file(dir .. "/neighbour.lua", [[
      for line in io.lines "/proc/self/status" do
        if line:find "^Uid" then print(line) end
      end
    ]])
    helper.write_file(dir .. "/script.lua", 'require "neighbour"')
    local status, out, err = users.run { dir .. "/script.lua" }
    assert.equal("", err)
    assert.equal("Uid:\t65534\t65534\t65534\t65534\n", out)
    assert.equal(0, status)
    helper.write_file(dir .. "/script.lua", "x = = 1")
    status, out, err = users.run { "-v", dir .. "/script.lua" }
    assert.equal("", out)
    assert.equal(1, status)
    local dropped = err:find("rights are those of", 1, true)
    local wrong = err:find("script.lua:1:", 1, true)
    assert.is_true(dropped and wrong and dropped < wrong, err)
  end)

  it("is not run at all when the user is not to be had", function()
    for name, why in pairs { root = "uid 0", nosuchuser = "no user", ["12:0"] = "root's group",
      ["4294967295:1"] = "no user" } do
      local status, out, err = helper.run { "--user", name, "-e", "print 'ran'" }
      assert.equal("", out)
      assert.is_truthy(err:find(why, 1, true), err)
      assert.equal(1, status)
    end
  end)
end)

describe("behind a run under --user nothing is left", function()
  it("when it is killed", function()
    local run = start { "-e", SWITCHES }
    assert.equal(1, #users.instances(run.pid))
    run:kill "KILL"
    users.assert_gone(run.pid)
    run:wait()
  end)

  it("when the keeper gets every signal that can be caught, before it is killed", function()
    local run = start { "-e", SWITCHES }
    local keeper = users.keeper(run)
    for _, signal in ipairs { "HUP", "INT", "QUIT", "TERM", "USR1", "PIPE", "ALRM" } do
      assert(os.execute(("kill -%s %d"):format(signal, keeper)))
    end
    run:kill "KILL"
    users.assert_gone(run.pid)
    run:wait()
  end)

  it("when the traced command is killed", function()
    local run = start { "-c", "sleep 1000", "-e", SWITCHES }
    local command = helper.wait_until(function()
      local children = helper.read_file(("/proc/%d/task/%d/children"):format(run.pid, run.pid))
      for pid in children:gmatch("%d+") do
        if helper.read_file(("/proc/%s/comm"):format(pid)) == "sleep\n" then
          return pid
        end
      end
    end)
    assert(os.execute("kill -KILL " .. command))
    assert.equal(137, (run:wait()))
    users.assert_gone(run.pid)
  end)

  it("once nobody has a file of the instance open any more", function()
    local run = start { "-e", SWITCHES }
    local path = ("%s/instances/%s/trace"):format(helper.tracing_dir, users.instances(run.pid)[1])
    do
      local held <close> = assert(io.open(path))
      run:kill "KILL"
      run:wait()
      helper.sleep(0.5)
      assert.equal(1, #users.instances(run.pid))
      local on = path:gsub("trace$", "tracing_on")
      assert.equal("0\n", helper.read_file(on))
      assert(held)
    end
    users.assert_gone(run.pid)
  end)

  it("but the instance when the keeper is killed, and the next run removes that", function()
    local run = start { "-e", SWITCHES }
    assert(os.execute(("kill -KILL %d"):format(users.keeper(run))))
    run:kill "INT"
    local status, _, err = run:wait()
    assert.equal(1, status)
    assert.is_truthy(err:find("the helper process that has the right to is gone", 1, true), err)
    -- It may be gone by now: the next run of anybody removes it.
    assert.is_true(#users.instances(run.pid) <= 1)
    assert.equal(0, (helper.run { "-d", "0.01", "-e", SWITCHES }))
    users.assert_gone(run.pid)
  end)
end)
