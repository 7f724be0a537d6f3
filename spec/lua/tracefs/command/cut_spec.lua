local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local tracecmd = require "spec.support.tracecmd"

local DEMO <const> = helper.root .. "/examples/demo.dat"

describe("luatrace cut", function()
  local function report(file, ...)
    local status, out, err = helper.run { "report", "-t", file, ... }
    assert.equal(0, status, err)
    return out, err
  end

  local function cut(file, ...)
    local path = helper.tmpdir() .. "/cut.dat"
    local status, out, err = helper.run { "cut", "-o", path, file, ... }
    assert.same({ 0, "" }, { status, out }, err)
    return path, err
  end

  local demo
  local function report_of_demo()
    demo = demo or report(DEMO)
    return demo
  end

  -- The lines of trace-cmd but for losses, of which some versions tell in a line of their own.
  local function same_as_tracecmd(path, text)
    local lines, status, err = tracecmd.report(path, "-t")
    assert.equal(0, status, err)
    local count, ours = 0, 0
    for _, line in ipairs(lines) do
      count = count + (line:find " %[%d+%] " and 1 or 0)
    end
    for _ in text:gmatch " %[%d+%] " do
      ours = ours + 1
    end
    assert.equal(ours, count, path)
  end

  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.command.cut"))
  end)

  it("of everything is the same file, in both versions", function()
    local text = report_of_demo()
    for _, version in ipairs { "6", "7" } do
      local path, err = cut(DEMO, "--file-version", version)
      assert.matches("^luatrace: .*/cut%.dat: %d+ events\n$", err)
      assert.is_true(report(path) == text)
      if tracecmd.is_there() then
        same_as_tracecmd(path, text)
      end
    end
  end)

  it("takes what the report takes", function()
    local all = {}
    for line in report_of_demo():gmatch "[^\n]+" do
      all[#all + 1] = line
    end
    local function time(line)
      return line:match " (%d+%.%d+): "
    end
    local first, last = time(all[#all // 3]), time(all[#all // 2])
    assert.is_true(tonumber(first) < tonumber(last))
    for _, options in ipairs {
      { "-e", "net:netif_receive_skb" },
      { "--cpu", "0" },
      { "--ts-range", first .. "," .. last },
      { "-F", "len > 100", "--ts-range", "," .. last },
    } do
      local text = report(DEMO, table.unpack(options))
      assert.is_true(#text < #report_of_demo() or options[1] == "--cpu", options[1])
      assert.equal(text, report((cut(DEMO, table.unpack(options)))))
    end
  end)

  it("can be cut again, and be empty", function()
    local path = cut(DEMO, "-e", "net:net_dev_queue")
    local text = report(path)
    assert.equal(text, report((cut(path))))
    local empty, err = cut(path, "-e", "net:netif_receive_skb")
    assert.matches(": 0 events", err)
    assert.matches("^cpus=%d+\n$", report(empty))
    if tracecmd.is_there() then
      same_as_tracecmd(empty, "")
    end
  end)

  it("refuses places that a file cannot be in, and leaves what is there", function()
    local dir = helper.tmpdir()
    local copy = dir .. "/copy.dat"
    helper.write_file(copy, helper.read_file(DEMO))
    os.execute(("ln -s copy.dat %s/link.dat; mkfifo %s/pipe"):format(dir, dir))
    for place, message in pairs {
      [copy] = "it is the file that is read",
      [dir .. "/link.dat"] = "it is the file that is read",
      [dir .. "/pipe"] = "no regular file",
      [dir] = "no regular file",
      ["/nonexistent/x"] = "cannot create /nonexistent/x: No such file or directory",
    } do
      local status, out, err = helper.run { "cut", "-o", place, copy }
      assert.same({ 1, "" }, { status, out })
      assert.matches(message, err, 1, true)
    end
    assert.is_true(helper.read_file(copy) == helper.read_file(DEMO))
    for message, words in pairs {
      ["which FILE?"] = { "-o", "x" },
      ["one FILE, not 2"] = { "-o", "x", DEMO, DEMO },
      ["where to? -o FILE"] = { DEMO },
      ["version 6 or 7, not '5'"] = { "--file-version", "5", DEMO },
    } do
      local status, out, err = helper.run { "cut", table.unpack(words) }
      assert.same({ 2, "" }, { status, out })
      assert.matches(message, err, 1, true)
    end
  end)

  it("replaces a file behind a link, and leaves nothing of one that cannot be written", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/old.dat", "what was there")
    os.execute(("ln -s old.dat %s/link.dat"):format(dir))
    local status, _, err = helper.execute {
      "sh", "-c", 'ulimit -f 4; exec "$@"', "sh", helper.program "luatrace", "cut", "-o",
      dir .. "/link.dat", DEMO,
    }
    assert.equal(1, status)
    assert.matches("more than the limit for files", err, 1, true)
    assert.equal("what was there", helper.read_file(dir .. "/old.dat"))
    assert.equal(0, (helper.run { "cut", "-q", "-o", dir .. "/link.dat", DEMO }))
    assert.is_true(report(dir .. "/old.dat") == report_of_demo())
    local pipe <close> = assert(io.popen("ls " .. dir))
    assert.equal("link.dat\nold.dat\n", pipe:read "a")
  end)

  describe("of recordings", function()
    if not inputs.are_there then
      pending("../shared/inputs is not there")
      return
    end

    it("of other machines is the same file, in the other version", function()
      for name, version in pairs {
        ["arm/trappy-trace_idle.dat"] = "7",
        ["kernel-6.12/rec_multibuf.dat"] = "6",
        ["kernel-6.12/rec_counter.dat"] = "6",
        ["kernel-6.18/lost_overwrite.dat"] = "7",
        ["s390x/be_v6.dat"] = "7",
        ["s390x/be_v7_none.dat"] = "6",
      } do
        local text, err = report(inputs.path(name))
        local path = cut(inputs.path(name), "-q", "--file-version", version)
        local again, told = report(path)
        assert.is_true(again == text, name)
        assert.equal(err, told, name)
        if tracecmd.is_there() then
          same_as_tracecmd(path, text)
        end
      end
    end)

    it("keeps losses at their place, and only those of its time", function()
      local file = inputs.path "kernel-6.18/lost_overwrite.dat"
      local text, err = report(file)
      assert.matches("42701 of 42802 events were lost", err)
      local first, second = text:match "DROPPED%]\n[^\n]- (%d+%.%d+): [^\n]*\n[^\n]- (%d+%.%d+): "
      -- the loss comes before the first record, also when that is left out
      local path = cut(file, "--ts-range", first .. ",", "-F", "common_pid != 0")
      assert.matches("^cpus=%d+\nCPU:1 %[42701 EVENTS DROPPED%]\n", (report(path)))
      local rest, told = report((cut(file, "--ts-range", second .. ",")))
      assert.is_nil(rest:find("DROPPED", 1, true))
      assert.equal("", told)
      -- nothing is left that it could stand before
      local none, warning = report((cut(file, "-F", "common_pid == 1234567")))
      assert.matches("^cpus=%d+\n$", none)
      assert.matches("42701 of 42701 events were lost", warning)
    end)

    it("takes one of several buffers", function()
      local file = inputs.path "kernel-6.12/rec_multibuf.dat"
      for _, version in ipairs { "6", "7" } do
        local path, err = cut(file, "-B", "netbuf", "--file-version", version)
        assert.matches(": 100 events", err)
        assert.equal(report(file, "-B", "netbuf"), report(path, "-B", "netbuf"))
      end
    end)

    it("makes no file of a damaged one, or with --partial one of what can be read", function()
      local file = inputs.path "kernel-6.18/trunc_in_data_v6.dat"
      local path = helper.tmpdir() .. "/cut.dat"
      local status, _, err = helper.run { "cut", "-o", path, file }
      assert.equal(1, status)
      assert.matches("at byte 270000 of 270000; --partial keeps what can be read", err, 1, true)
      assert.is_nil(helper.read_file(path))
      path, err = cut(file, "--partial")
      assert.matches("warning: .*at byte 270000 of 270000\n", err)
      assert.equal((report(file, "--partial")), (report(path)))
    end)
  end)
end)
