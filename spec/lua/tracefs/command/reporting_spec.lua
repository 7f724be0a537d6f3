local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"

describe("luatrace report", function()
  if not inputs.are_there then
    pending("../shared/inputs is not there")
    return
  end

  local function report(...)
    local status, out, err = helper.run { "report", ... }
    assert.equal(0, status, err)
    return out, err
  end

  local function lines_of(text)
    local lines = {}
    for line in text:gmatch("([^\n]*)\n") do
      lines[#lines + 1] = line
    end
    return lines
  end

  -- What stands before the event's text: task, CPU, time, event.
  local function heads_of(text)
    local heads = {}
    for _, line in ipairs(lines_of(text)) do
      local head = line:match("^%s*%S.- %[%d+%] +%d+%.?%d*: [%w_%-]+:") or line:match("^CPU:.*$")
        or line:match("^cpus=%d+$")
      heads[#heads + 1] = head
    end
    return heads
  end

  it("gives the same records as trace-cmd, in the same order and layout", function()
    local seen = 0
    for _, input in ipairs(inputs.list()) do
      if input.status == 0 and input.count > 0 and input.count < 3000 then
        local heads = heads_of((report("-t", input.path)))
        local theirs = heads_of(inputs.report(input.name))
        for i = 1, math.max(#heads, #theirs) do
          -- trace-cmd's plugin for sched_switch learns names from the records before
          if heads[i]:find("^ +<%.%.%.>%-") then
            assert.equal(theirs[i]:match "%-%d+ .*", heads[i]:match "%-%d+ .*", input.name)
          else
            assert.equal(theirs[i], heads[i], input.name)
          end
        end
        assert.is_true(#heads > input.count, input.name)
        seen = seen + 1
      end
    end
    assert.is_true(seen > 25)
  end)

  -- Where the text differs from that of trace-cmd 3.1.6 without its plugins, it is the kernel's:
  --   %p          without 0x, and with all its digits        net:*
  --   function    "callee <-caller", stacks as "=> name"     ftrace:function, kernel_stack
  --   probes      symbol+offset/size, or 0xADDRESS           kprobes, uprobes
  --   synthetic   blanks between the fields                  wakeup_latency
  --   system calls as "sys_openat(dfd: 0xffffff9c, ...)"     syscalls:*
  --   control bytes and broken UTF-8 as \xNN                 markers
  -- and libtraceevent cannot print arrays of numbers and lists of CPUs ("[FAILED TO PARSE]").
  it("gives the kernel's text where trace-cmd has one of its own", function()
    local text = report("-t", inputs.path "arm/trappy-trace-1c2171e6.dat")
    assert.is_nil(text:find("FAILED TO PARSE", 1, true))
    assert.matches("cpumask=4-7 freq=1900000 raw_cpu_power=1259 load={2,3,2,3} load_len=4", text,
      1, true)
    text = report(inputs.path "kernel-6.12/rec_func.dat")
    assert.matches("function: +udp_sendmsg <%-__sys_sendto\n", text)
    text = report(inputs.path "arm/trappy-trace-3c2dac83.dat")
    assert.matches("bprint: +0xc03e53c4: cluster=1 freq=1900000 raw_cpu_power=1313 load0=2", text)
  end)

  it("is the same text as trace-cmd's, byte for byte, where that is the kernel's", function()
    if not os.execute "command -v trace-cmd >/dev/null" then
      pending("trace-cmd is not installed")
      return
    end
    for _, name in ipairs {
      "arm/trappy-trace_idle.dat", "kernel-6.12/rec_counter.dat", "kernel-6.12/rec_hotplug.dat",
      "kernel-6.18/block_sched.dat", "kernel-6.18/lost_nooverwrite.dat",
    } do
      local status, theirs = helper.execute { "trace-cmd", "report", "-N", "-t", inputs.path(name) }
      assert.equal(0, status)
      assert.is_true(theirs == report("-t", inputs.path(name)), name)
    end
  end)

  it("rounds the time to microseconds", function()
    assert.matches("%[001%]  1542%.146098: net_dev_start_xmit: ",
      report(inputs.path "kernel-6.18/net_lo.dat"))
  end)

  it("takes CPUs, events, filters and a range of time", function()
    local file = inputs.path "kernel-6.18/block_sched.dat"
    local all = lines_of(report("-t", file))
    local function count(pattern)
      local n = 0
      for _, line in ipairs(all) do
        n = n + (line:find(pattern) and 1 or 0)
      end
      return n
    end
    local function number(...)
      return #lines_of((report("-t", file, ...))) - 1
    end
    assert.equal(count "%[000%]", number("--cpu", "0"))
    assert.equal(count "%[000%]" + count "%[001%]", number("--cpu", "0-1"))
    assert.equal(count ": block_", number("-e", "block:*"))
    assert.equal(count ": block_rq_issue:" + count ": sched_switch:",
      number("-e", "block:block_rq_issue", "--event", "sched_switch"))
    assert.equal(count "next_pid=0 ", number("-F", "next_pid == 0"))
    assert.equal(count "next_pid=0 ", number("-F", "sched_switch:next_pid == 0"))
    assert.equal(count "next_pid=0 " + count "prev_pid=0 ",
      number("-F", "sched/sched_switch:next_pid == 0", "-F", "sched_switch:prev_pid == 0"))
    local first = all[11]:match "(%d+%.%d+):"
    local last = all[31]:match "(%d+%.%d+):"
    local inside = lines_of((report("-t", file, "--ts-range", first .. "," .. last)))
    assert.same({ all[11], all[31] }, { inside[2], inside[#inside] })
    assert.equal(number("--ts-range", first .. ","), #all - 10)
  end)

  it("puts the buffer's name before the lines of several", function()
    local file = inputs.path "kernel-6.12/rec_multibuf.dat"
    local text = report(file)
    assert.truthy(text:find("\nsysbuf: +%S+%-%d+ "))
    assert.equal(101, #lines_of((report("-B", "netbuf", file))))
  end)

  it("tells of losses where they were, and at the end", function()
    local text, err = report(inputs.path "kernel-6.18/lost_overwrite.dat")
    assert.equal("CPU:1 [42701 EVENTS DROPPED]", lines_of(text)[2])
    assert.matches("warning: 42701 of 42802 events were lost (CPU 1: 42701). They were lost when "
      .. "it was recorded.", err, 1, true)
  end)

  it("writes JSON and CSV", function()
    local file = inputs.path "kernel-6.18/net_lo.dat"
    local json = lines_of((report("-f", "json", file)))
    assert.equal(500, #json)
    assert.matches('^{"type":"event","common_event":"net:net_dev_queue"', json[1])
    local csv = lines_of((report("-f", "csv", file)))
    assert.equal(501, #csv)
    assert.equal("timestamp,cpu,pid,comm,event,text", csv[1])
    assert.matches('^1542146093949,1,3908,"python3",net:net_dev_queue,"dev=lo skbaddr=%x+ '
      .. 'len=106"$', csv[2])
  end)

  it("writes into a file", function()
    local path = helper.tmpdir() .. "/out.txt"
    assert.equal("", report("-o", path, inputs.path "kernel-6.18/net_lo.dat"))
    assert.equal(501, #lines_of(helper.read_file(path)))
  end)

  it("of a damaged file gives what is there and fails, or warns", function()
    local file = inputs.path "kernel-6.18/trunc_in_data_v6.dat"
    local status, out, err = helper.run { "report", file }
    assert.equal(1, status)
    assert.is_true(#lines_of(out) > 90)
    assert.matches("^luatrace: .*at byte 270000 of 270000\n$", err)
    local text, warning = report("--partial", file)
    assert.equal(out, text)
    assert.matches("^luatrace: warning: .*at byte 270000 of 270000\n$", warning)
  end)

  it("says what is wrong with its words", function()
    local file = inputs.path "kernel-6.18/net_lo.dat"
    for message, list in pairs {
      ["which FILE?"] = {},
      ["one FILE, not 2"] = { file, file },
      ["'x' is no list of CPUs"] = { "--cpu", "x", file },
      ["'3' is no range of time"] = { "--ts-range", "3", file },
      ["'xml' is none of: text, json, csv"] = { "-f", "xml", file },
    } do
      local status, out, err = helper.run { "report", table.unpack(list) }
      assert.same({ 2, "" }, { status, out })
      assert.matches(message, err, 1, true)
    end
    local status, _, err = helper.run { "report", "-F", "nosuch == 1", file }
    assert.equal(1, status)
    assert.matches("Field not found", err, 1, true)
    status, _, err = helper.run { "report", "/nonexistent" }
    assert.same({ 1, "luatrace: cannot open /nonexistent: No such file or directory\n" },
      { status, err })
  end)
end)

-- On a file that comes with the examples.
describe("luatrace report", function()
  local path

  before_each(function()
    path = helper.tmpdir() .. "/trace.dat"
    helper.write_file(path, helper.read_file(helper.root .. "/examples/demo.dat"))
  end)

  local function times(...)
    local status, out, err = helper.run { "report", ... }
    assert.equal(0, status, err)
    local list = {}
    for time in out:gmatch("%] +(%d+%.%d+): ") do
      table.insert(list, time)
    end
    return list
  end

  it("does not write into what it reads, nor empties a file for nothing", function()
    local content = helper.read_file(path)
    local other = path .. ".same"
    assert.equal(0, (helper.execute { "ln", path, other }))
    for _, list in ipairs {
      { "report", "-o", path, path },
      { "report", "-o", other, path },
      { "-i", path, "-o", path, "-e", "" },
    } do
      local status, out, err = helper.run(list)
      assert.same({ 1, "" }, { status, out })
      assert.matches("it is the recording that is read", err, 1, true)
      assert.equal(content, helper.read_file(path))
    end
    helper.write_file(other, "a report")
    assert.equal(1, (helper.run { "report", "-o", other, "/nonexistent" }))
    assert.equal("a report", helper.read_file(other))
  end)

  it("takes times as it shows them", function()
    local all = times(path)
    assert.is_true(#all > 20)
    local from, to = 5, 10
    local found = times("--ts-range", all[from] .. "," .. all[to], path)
    assert.equal(all[from], found[1])
    assert.equal(all[to], found[#found])
    assert.is_true(#found >= to - from + 1)
  end)

  it("refuses times that no clock reaches", function()
    for _, range in ipairs { "0,18446744074", "0,99999999999999999999" } do
      local status, out, err = helper.run { "report", "--ts-range", range, path }
      assert.same({ 2, "" }, { status, out })
      assert.is_true(err:find("no range of time", 1, true) ~= nil
        or err:find("no clock goes", 1, true) ~= nil, err)
      assert.is_nil(err:find("traceback", 1, true))
    end
  end)

  it("says what became of the output", function()
    for _, format in ipairs { "text", "json", "csv" } do
      local status, _, err = helper.run { "report", "-f", format, "-o", "/dev/full", path }
      assert.equal(1, status)
      assert.matches("No space left on device", err, 1, true)
    end
  end)

  it("has no traceback for a damaged file in any format", function()
    helper.write_file(path, helper.read_file(path):sub(1, -2000))
    for _, format in ipairs { "text", "json", "csv" } do
      local status, _, err = helper.run { "report", "-f", format, path }
      assert.equal(1, status)
      assert.matches("^luatrace: [^\n]*\n$", err)
    end
  end)
end)
