local inputs = require "spec.support.inputs"
local tracefs = require "tracefs"

describe("the kernel's filters on recorded records", function()
  if not inputs.are_there then
    pending("../shared/inputs is not there")
    return
  end

  local function records(file, event, filter)
    local session <close> = tracefs.session { file = inputs.path(file) }
    local list = {}
    session:on(event, { filter = filter }, function(ev)
      list[#list + 1] = ev
    end)
    session:run()
    return list
  end

  -- Each filter with what it means, in Lua.
  local CASES <const> = {
    { "net:net_dev_queue", "len > 150 && len <= 180", function(ev)
      return ev.len > 150 and ev.len <= 180
    end },
    { "net:net_dev_queue", "!(len < 110) && (len & 1 || len == 112)", function(ev)
      return ev.len >= 110 and (ev.len & 1 ~= 0 or ev.len == 112)
    end },
    { "net:net_dev_queue", 'name == "lo" && common_pid != 0', function(ev)
      return ev.name == "lo" and ev.common_pid ~= 0
    end },
    { "net:net_dev_queue", "name ~ 'l*' && CPU == 1", function(ev)
      return ev.name:sub(1, 1) == "l" and ev.common_cpu == 1
    end },
    { "net:net_dev_queue", 'COMM ~ "pyt*" && len < 0x80', function(ev)
      return ev.common_comm:sub(1, 3) == "pyt" and ev.len < 128
    end },
    { "net:net_dev_queue", "CPU & CPUS{0,2-5}", function(ev)
      return ev.common_cpu ~= 1
    end },
    { "sched:sched_switch", "prev_state == 0 || next_pid == 0", function(ev)
      return ev.prev_state == 0 or ev.next_pid == 0
    end },
    { "sched:sched_switch", "prev_comm ~ '*/?:*' && next_comm != \"swapper/0\"", function(ev)
      return ev.prev_comm:find("/.:") ~= nil and ev.next_comm ~= "swapper/0"
    end },
    { "sched:sched_switch", "next_comm ~ '[a-r]*[0-9]'", function(ev)
      return ev.next_comm:find("^[a-r].*[0-9]$") ~= nil
    end },
    { "sched:sched_switch", "prev_prio < 100 && prev_prio >= -1", function(ev)
      return ev.prev_prio < 100
    end },
    { "block:block_rq_issue", "nr_sector > 8 && rwbs ~ '*W*'", function(ev)
      return ev.nr_sector > 8 and ev.rwbs:find("W") ~= nil
    end },
    { "block:block_rq_complete", "sector == 0xffffffffffffffff", function(ev)
      return ev.sector == -1
    end },
    { "block:block_rq_complete", "sector > 9223372036854775807", function(ev)
      return ev.sector < 0
    end },
  }

  it("let the same records through as their meaning in Lua", function()
    local passed, held = 0, 0
    for _, case in ipairs(CASES) do
      local event, filter, meaning = case[1], case[2], case[3]
      local file = event:find("^net:") and "kernel-6.18/net_lo.dat" or "kernel-6.18/block_sched.dat"
      local wanted = {}
      local all = records(file, event, "0")
      for _, ev in ipairs(all) do
        if meaning(ev) then
          wanted[#wanted + 1] = tostring(ev)
        end
      end
      local found = records(file, event, filter)
      for i, ev in ipairs(found) do
        found[i] = tostring(ev)
      end
      assert.same(wanted, found, filter)
      passed, held = passed + #found, held + #all - #found
    end
    assert.is_true(passed > 500 and held > 500)
  end)

  it("mean the same on a big-endian machine's", function()
    local all = records("s390x/be_v6.dat", "sched:sched_switch", "0")
    local count = 0
    for _, ev in ipairs(all) do
      count = count + (ev.next_pid > 50 and ev.prev_comm == "swapper/1" and 1 or 0)
    end
    assert.is_true(count > 0)
    assert.equal(count, #records("s390x/be_v6.dat", "sched:sched_switch",
      "next_pid > 50 && prev_comm == 'swapper/1'"))
  end)

  it("are refused with a caret below what is wrong", function()
    local session <close> = tracefs.session {
      file = inputs.path "kernel-6.18/syscalls_strings.dat",
    }
    for filter, message in pairs {
      ["nosuch == 1"] = "Field not found\n  nosuch == 1\n  ^",
      ["dfd"] = "Invalid operator\n  dfd\n     ^",
      ["dfd == x"] = "Invalid value (did you forget quotes)?\n  dfd == x\n         ^",
      ["dfd ~ 'x'"] = "Illegal operation for field type",
      ["dfd == 1 &&"] = "No field",
      ["(dfd == 1"] = "Missing parenthesis",
      ["dfd == 1)"] = "Too many ')'",
      ["dfd == 1 dfd == 2"] = "Missing && or ||",
      ["dfd == -1"] = "Illegal integer value",
      ["COMM == 'x"] = "Missing closing quote",
      ["COMM > 'x'"] = "Illegal operation for field type",
      ["CPU & CPUS{3-1}"] = "Invalid cpulist",
      ["filename.ustring ~ '/etc*'"] = "in a process's memory, which is not recorded",
      ["filename == 'x'"] = "the string is behind a pointer",
      ["stacktrace == 1"] = "the stack of the moment is not recorded",
      [("("):rep(100) .. "dfd == 1" .. (")"):rep(100)] = "Too many levels",
      [("dfd == 1 || "):rep(400) .. "dfd == 2"] = "more than 4095 bytes",
    } do
      local ok, why = pcall(session.on, session, "syscalls:sys_enter_openat", { filter = filter },
        function() end)
      assert.is_false(ok, filter)
      assert.matches(message, why, 1, true)
    end
  end)
end)
