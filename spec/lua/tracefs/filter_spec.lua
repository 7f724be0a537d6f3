local helper = require "spec.support.helper"
local tracefs = require "tracefs"

describe("tracefs.filter", function()
  local SWITCH <const> = "sched:sched_switch"

  it("requires without touching globals", function()
    local status, _, err = helper.run_lua [[
      setmetatable(_G, { __newindex = function(_, name) error("global " .. name) end })
      require "tracefs.filter"
    ]]
    assert.same({ 0, "" }, { status, err })
  end)

  -- What each table becomes; all of it is then set in a kernel.
  local CASES <const> = {
    { { prev_pid = 5 }, "prev_pid == 5" },
    { { prev_comm = "tmux: client" }, 'prev_comm == "tmux: client"' },
    { { prev_comm = 'say "a"' }, "prev_comm == 'say \"a\"'" },
    { { prev_comm = "it's" }, "prev_comm == \"it's\"" },
    { { prev_comm = 'x" || prev_pid != 0' }, "prev_comm == 'x\" || prev_pid != 0'" },
    { { prev_comm = "line\none" }, 'prev_comm == "line\none"' },
    { { prev_pid = 7.0 }, "prev_pid == 7" },
    { { prev_pid = -1 }, "prev_pid == -1" },
    { { prev_pid = true }, "prev_pid == 1" },
    { { prev_pid = { 1, 2, 3 } }, "prev_pid == 1 || prev_pid == 2 || prev_pid == 3" },
    { { prev_comm = { "a", "b" }, prev_pid = 1 },
      '(prev_comm == "a" || prev_comm == "b") && prev_pid == 1' },
    { { prev_prio = { [">="] = 1, ["<"] = 100 } }, "prev_prio < 100 && prev_prio >= 1" },
    { { prev_pid = { ["!="] = { 1, 2 } } }, "prev_pid != 1 && prev_pid != 2" },
    { { prev_pid = { ["&"] = 3 } }, "prev_pid & 3" },
    { { prev_comm = { ["~"] = "rcu*" } }, 'prev_comm ~ "rcu*"' },
    { { prev_comm = { ["~"] = { "a*", "b*" } } }, 'prev_comm ~ "a*" || prev_comm ~ "b*"' },
    { { common_cpu = 0, common_comm = "sh", common_pid = 9 },
      'COMM == "sh" && CPU == 0 && common_pid == 9' },
    { { "or", { prev_pid = 1 }, { next_pid = 1 } }, "prev_pid == 1 || next_pid == 1" },
    { { "and", { prev_pid = 1 }, { "or", { next_pid = 1 }, { next_pid = 2, next_prio = 3 } } },
      "prev_pid == 1 && (next_pid == 1 || (next_pid == 2 && next_prio == 3))" },
    { { "not", { prev_pid = 1, next_pid = 2 } }, "!(next_pid == 2 && prev_pid == 1)" },
    { { "not", { prev_pid = 1 } }, "!(prev_pid == 1)" },
    { { prev_pid = 3, { next_pid = 4 } }, "prev_pid == 3 && next_pid == 4" },
  }

  it("turns tables into the kernel's language", function()
    for _, case in ipairs(CASES) do
      assert.equal(case[2], tracefs.filter(case[1]))
      assert.equal(case[2], tracefs.filter(case[1], SWITCH))
    end
  end)

  it("makes what the kernel accepts as it is", function()
    local instance <close> = assert(tracefs.instance_create())
    for _, case in ipairs(CASES) do
      assert(instance:set_filter("sched", "sched_switch", tracefs.filter(case[1], SWITCH)))
      assert.truthy(instance:get_filter("sched", "sched_switch"), case[2])
    end
  end)

  it("writes large unsigned numbers as such", function()
    assert.equal("id == 18446744073709551615 || id == -1", ("%s || %s"):format(
      tracefs.filter({ fd = -1 }, "syscalls:sys_enter_close"):gsub("fd", "id"),
      tracefs.filter({ id = -1 }, "raw_syscalls:sys_enter")))
  end)

  -- What is refused, and a part of what is said.
  for _, case in ipairs {
    { { nosuch = 1 }, "sched:sched_switch has no field 'nosuch'; it has: common_type, " },
    { { prev_pid = "x" }, "prev_pid is a number (pid_t), and \"x\" is a string" },
    { { prev_comm = 5 }, "prev_comm is a string (char[16]), and 5 is a number" },
    { { prev_pid = 1 << 31 }, "prev_pid: 2147483648 is nothing that a signed number of 4 bytes" },
    { { common_flags = 256 }, "256 is nothing that an unsigned number of 1 byte holds" },
    { { common_flags = -1 }, "-1 is nothing that an unsigned number of 1 byte holds" },
    { { prev_pid = 1.5 }, "prev_pid: 1.5 is no whole number" },
    { { prev_pid = {} }, "prev_pid: an empty set of values" },
    { { prev_pid = { ["=~"] = 1 } }, 'prev_pid: unknown operator "=~"; there is: == != < <=' },
    { { prev_pid = { ["~"] = 1 } }, "prev_pid: '~' does not compare numbers" },
    { { prev_comm = { ["<"] = "a" } }, "'<' does not compare strings; there is: == != ~" },
    { { prev_pid = print }, "prev_pid: a number, a string or a boolean is needed, not function" },
    { { prev_comm = "both \" and '" }, "has both kinds of quotes" },
    { { prev_comm = "a\0b" }, "a string with a zero byte" },
    { { prev_comm = ("x"):rep(256) }, "a string of 256 bytes; the kernel compares 255 at most" },
    { {}, "there is no condition in it" },
    { { "or" }, "there is no condition in it" },
    { { "xor", { prev_pid = 1 } }, "number 1 of the conditions: a table is needed" },
    { { ["prev_pid == 1 ||"] = 1 }, 'bad name of a field: "prev_pid == 1 ||"' },
    { { [true] = 1 }, "bad name of a field: true" },
  } do
    it("refuses: " .. case[2]:sub(1, 50), function()
      local ok, message = pcall(tracefs.filter, case[1], SWITCH)
      assert.is_false(ok)
      assert.matches("filter: ", message, 1, true)
      assert.matches(case[2], message, 1, true)
    end)
  end

  it("refuses arrays, which the kernel does not compare", function()
    local ok, message = pcall(tracefs.filter, { args = 1 }, "raw_syscalls:sys_enter")
    assert.is_false(ok)
    assert.matches("args is of type unsigned long[6] in raw_syscalls:sys_enter", message, 1, true)
  end)

  it("raises at its caller, also for an event that is not there", function()
    local _, message = pcall(function()
      tracefs.filter({ nosuch = 1 }, SWITCH)
    end)
    assert.matches("^[^:]*filter_spec.lua:%d+: filter: ", message)
    _, message = pcall(function()
      tracefs.filter({ prev_pid = 1 }, "sched:sched_swich")
    end)
    assert.matches("filter_spec.lua:%d+: no event \"sched:sched_swich\"", message)
    assert.error_matches(function()
      tracefs.filter("x")
    end, "filter: a table of conditions is needed, not string")
  end)

  describe("in a session", function()
    it("lets through what it says", function()
      local session <close> = tracefs.session { buffer_kb = 256 }
      -- a name that nobody else executes
      local mine = helper.tmpdir() .. "/true"
      assert(os.execute(("ln -s /bin/true '%s'"):format(mine)))
      local names = {}
      session:on("sched:sched_process_exec", {
        "filename", filter = { filename = mine },
      }, function(name)
        names[#names + 1] = name
      end)
      session:at_start(function()
        os.execute(("'%s'; /bin/echo >/dev/null; exec '%s'"):format(mine, mine))
        session:finish()
      end)
      session:run()
      assert.same({ mine, mine }, names)
      assert.equal(('filename == "%s"'):format(mine),
        session.instance:get_filter("sched", "sched_process_exec"))
    end)

    it("is refused with the event's fields, and nothing is on then", function()
      local session <close> = tracefs.session { buffer_kb = 64 }
      local ok, message = pcall(function()
        session:on("sched:sched_process_*", { filter = { filename = "/bin/true" } }, print)
      end)
      assert.is_false(ok)
      assert.matches("filter_spec.lua:%d+: filter: sched:sched_process_%w+ has no field 'filename'",
        message)
      assert.equal("", session.instance:read("set_event"))
    end)

    it("is the same filter when it says the same", function()
      local session <close> = tracefs.session { buffer_kb = 64 }
      session:enable(SWITCH, { filter = { prev_pid = 1 } })
      session:on(SWITCH, { filter = "prev_pid == 1" }, function() end)
      local ok, message = pcall(session.on, session, SWITCH, { filter = { prev_pid = 2 } }, print)
      assert.is_false(ok)
      assert.matches("is on already with the filter 'prev_pid == 1'", message, 1, true)
    end)
  end)
end)
