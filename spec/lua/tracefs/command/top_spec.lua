local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"
local tmux = require "spec.support.tmux"

local HAS_TMUX <const> = tmux.is_there()

-- What no program has touched: the first page, a cursor, lines that go on.
local UNTOUCHED <const> = "0 1 1"
local TAKEN <const> = "1 0 0"

local dir

-- A script that says which process it is, and does what the file "do" in the folder says.
local function write_script(code)
  dir = helper.tmpdir()
  helper.write_file(dir .. "/top.lua", ([[
    local trace = require "tracefs.script"
    local own = io.open "/proc/self/stat"
    local pid = own:read "n"
    own:close()
    local ticks = 0
    trace:on("sched:sched_process_fork", function() end)
    trace:every(0.05, function()
      ticks = ticks + 1
      print("tick " .. ticks .. " of " .. pid)
      local file = io.open "%s/do"
      if file then
        local what = file:read "a"
        file:close()
        os.remove "%s/do"
        assert(load(what, "=what", "t", setmetatable({ trace = trace }, { __index = _G })))()
      end
    end)
    %s
  ]]):format(dir, dir, code or ""))
  return dir .. "/top.lua"
end

local function have_it_do(code)
  helper.write_file(dir .. "/do.new", code)
  assert(os.rename(dir .. "/do.new", dir .. "/do"))
end

-- Types the command, and waits for its page. Returns the command's pid.
local function begin(terminal, script, options)
  terminal:type(('clear; before=$(stty -g); %s --top %s %s; echo "status=$?"; test "$(stty -g)" '
    .. '= "$before" && echo "modes=same"'):format(helper.quote(helper.command), options or "",
    helper.quote(script)))
  local text = terminal:expect "luatrace top%.lua +%d+ s +%d+ events.*\n\ntick [1-9]%d* of %d+"
  assert.equal(TAKEN, terminal:modes())
  return text:match "tick %d+ of (%d+)"
end

-- The command has ended so, and its terminal is as it was.
local function ended(terminal, status)
  local text = terminal:expect("status=" .. status .. "\nmodes=same")
  assert.equal(UNTOUCHED, terminal:modes())
  return text
end

describe("luatrace --top", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.command.top"))
  end)

  it("is refused where it means nothing", function()
    for options, message in pairs {
      ["-f json"] = "%-%-top shows text on a terminal and does not go with %-f json",
      ["-o x"] = "%-%-top shows text on a terminal and does not go with %-o",
      ["-i x"] = "%-%-top needs a live kernel and does not go with %-i",
      ["--dry-run"] = "%-%-top does not go with %-%-dry%-run",
    } do
      local words = { "--top", "-e", "on('sched:sched_switch')" }
      for word in options:gmatch "%S+" do
        table.insert(words, 1, word)
      end
      if options:find " " then
        words[1], words[2] = words[2], words[1]
      end
      local status, out, err = helper.run(words)
      assert.same({ 2, "" }, { status, out })
      assert.matches(message, err)
    end
    assert.matches("%-%-top does not go with %-l", select(3, helper.run { "--top", "-l" }))
  end)

  it("is refused when standard output is no terminal", function()
    local status, out, err = helper.run { "--top", "-d", "1", "-e", "on('sched:sched_switch')" }
    assert.same({ 1, "" }, { status, out })
    assert.equal("luatrace: --top needs a terminal to show things on (standard output:"
      .. " Inappropriate ioctl for device)\n", err)
  end)

  local it_on_terminal = HAS_TMUX and it or function(name)
    it(name, function()
      pending "tmux or bash is not there"
    end)
  end

  it_on_terminal("gives the terminal back whatever ends it", function()
    local terminal <close> = tmux.start(70, 12)
    local script = write_script()
    for _, case in ipairs {
      { function() terminal:press "q" end, 0, "tick %d+ of %d+\nstatus" },
      { function(pid) os.execute("kill -TERM " .. pid) end, 0, "tick %d+ of %d+\nstatus" },
      { function() terminal:press "C-\\" end, 128 + 3 },
      { function() have_it_do "os.exit(5)" end, 5 },
      { function() have_it_do "error 'no more'" end, 1, "luatrace: .*no more" },
      -- held until the page is gone
      { function()
        have_it_do "require('tracefs.command.report').warning 'be careful' trace:finish()"
      end, 0, "warning: be careful" },
    } do
      local pid = begin(terminal, script)
      case[1](pid)
      local text = ended(terminal, case[2])
      assert.matches(case[3] or "", text)
    end
  end)

  it_on_terminal("gives the terminal back when it is killed by what nobody can catch", function()
    local terminal <close> = tmux.start(120, 12)
    local script = write_script()
    local pid = begin(terminal, script)
    assert(os.execute("kill -KILL " .. pid))
    terminal:expect_modes(UNTOUCHED)
    terminal:type 'clear; test "$(stty -g)" = "$before" && echo "modes=same"'
    terminal:expect "modes=same"
    -- below a shell that leaves the terminal's modes as they are
    terminal:type(([[clear; sh -c '%s --top %s; read -r line; stty -g; echo end'; echo "$before"]])
      :format(helper.command, script))
    local text = terminal:expect "^luatrace top%.lua .*tick [1-9]%d* of %d+"
    assert(os.execute("kill -KILL " .. text:match "tick %d+ of (%d+)"))
    terminal:expect_modes(UNTOUCHED)
    terminal:type ""
    text = terminal:expect "\nend\n"
    local modes, before = text:match "\n([%x:]+)\nend\n([%x:]+)\n"
    assert.equal(before, modes, text)
  end)

  it_on_terminal("can be ended while its terminal takes nothing", function()
    local terminal <close> = tmux.start(70, 12)
    local script = write_script('trace:every(0.05, function() print(("x"):rep(2000)) end)')
    local function is_there(pid)
      return not (helper.read_file(("/proc/%s/stat"):format(pid)) or ") Z"):find "%) [ZX]"
    end
    for _, signal in ipairs { "TERM", "QUIT", "KILL" } do
      local pid = begin(terminal, script)
      terminal:press "C-s"
      -- it goes on all the same
      have_it_do(("io.open(%q, 'w'):close()"):format(dir .. "/gone-on"))
      assert.is_true(helper.wait_until(function()
        return helper.read_file(dir .. "/gone-on")
      end, 20) ~= nil)
      os.remove(dir .. "/gone-on")
      helper.sleep(0.1)
      local has_ended = helper.wait_until(function()
        os.execute(("kill -%s %s 2>/dev/null"):format(signal, pid))
        return not is_there(pid)
      end, 20)
      assert.is_true(has_ended)
      terminal:press "C-q"
      terminal:expect_modes(UNTOUCHED)
      terminal:type 'clear; test "$(stty -g)" = "$before" && echo "modes=same"'
      terminal:expect "modes=same"
    end
  end)

  it_on_terminal("says so when the script prints at its end alone", function()
    local terminal <close> = tmux.start(70, 12)
    local script = helper.tmpdir() .. "/end.lua"
    helper.write_file(script, [[
      local trace = require "tracefs.script"
      trace:on("sched:sched_process_fork", function() end)
      trace:at_end(function() print "the end" end)
    ]])
    terminal:type(("clear; %s --top %s"):format(helper.quote(helper.command), helper.quote(script)))
    terminal:expect "^luatrace end%.lua .*\n\nNothing is printed yet%..* comes then%.$"
    terminal:press "q"
    terminal:expect "\nthe end\n"
  end)

  it_on_terminal("gives the terminal back while it is stopped, and takes its new size", function()
    local terminal <close> = tmux.start(70, 12)
    begin(terminal, write_script())
    for i = 1, 2 do
      terminal:press "C-z"
      terminal:expect "Stopped"
      assert.equal(UNTOUCHED, terminal:modes())
      terminal:type(('test "$(stty -g)" = "$before" && echo "modes=same%d"'):format(i))
      terminal:expect("modes=same" .. i)
      terminal:type "clear; fg"
      terminal:expect "^luatrace top%.lua .*\n\ntick"
      assert.equal(TAKEN, terminal:modes())
    end
    terminal:resize(24, 3)
    -- the line is cut, and so is the page, without a tick
    terminal:expect "^luatrace top%.lua  %d+ s[ %d]*\n\ntick %d+ of %d+$"
    terminal:resize(70, 12)
    terminal:expect "^luatrace top%.lua  %d+ s  %d+ events  %(q ends it%)\n\ntick"
    terminal:press "q"
    terminal:expect_modes(UNTOUCHED)
    terminal:type 'test "$(stty -g)" = "$before" && echo "modes=same3"'
    terminal:expect "modes=same3"
    assert.equal(UNTOUCHED, terminal:modes())
  end)

  it_on_terminal("shows each function's last output, and the last lines of all else", function()
    local terminal <close> = tmux.start(60, 10)
    local nr, filter = loads.fresh_nr()
    local pid = begin(terminal, write_script(([[
      trace:every(0.2, function()
        print("slow\ttable", ticks // 1000)
        io.write("half a ", "line")
      end)
      trace:every(0.05, function() if ticks == 1 then print "only once" end end)
      trace:on("raw_syscalls:sys_enter", { "args", filter = %q }, function(args)
        print("call " .. args[1] .. "\27[31m")
      end)
      trace:at_end(function() print("the end") end)
    ]]):format(filter)))
    loads.run { "--nr", nr, "syscalls", 499 }
    -- the middle one's last output is none
    local calls = {}
    for i = 496, 499 do
      calls[#calls + 1] = ("\ncall %d\\x1B%%[31m"):format(i)
    end
    terminal:expect("^luatrace top%.lua +%d+ s +%d+ events  %(q ends it%)\n\ntick %d+ of %d+\n"
      .. "slow    table   0\nhalf a line\n" .. table.concat(calls) .. "$")
    assert(os.execute("kill -INT " .. pid))
    local text = ended(terminal, 0)
    assert.matches("the end\nstatus", text)
    assert.is_nil(text:find "tick")
  end)

  it_on_terminal("leaves the keys to the command of -c", function()
    local terminal <close> = tmux.start(70, 12)
    local got = helper.tmpdir() .. "/got"
    begin(terminal, write_script(), ("-c 'read -r line; echo $line >%s'"):format(got))
    terminal:type "quit"
    ended(terminal, 0)
    assert.equal("quit\n", helper.read_file(got))
  end)
end)
