local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local hist_read = require "tracefs.hist_read"

local KERNEL_FILES <const> = helper.root .. "/../shared/inputs/kernel-6.12/"

-- A trigger without a state is an active one, sorted by its hits.
local function histogram(trigger, body, hits, entries, dropped)
  if not trigger:find "%]$" then
    trigger = trigger .. ":sort=hitcount:size=2048 [active]"
  end
  return ("# event histogram\n#\n# trigger info: %s\n#\n\n%s\nTotals:\n    Hits: %d\n"
    .. "    Entries: %d\n    Dropped: %d\n"):format(trigger, body, hits or 0, entries or 0,
    dropped or 0)
end

local function only(text, kinds)
  local results = assert(hist_read.parse(text, kinds))
  assert.equal(1, #results)
  return results[1]
end

local function execname(comm, pid)
  return ("common_pid: %-16s[%10d]"):format(comm, pid)
end

local function text_key(name, value)
  return ("%s: %-50s"):format(name, value)
end

describe("tracefs.hist_read", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.hist_read"))
  end)
end)

describe("hist_read.parse", function()
  it("reads numbers with all their 64 bits", function()
    local result = only(histogram(
      "hist:keys=pid,x.hex:vals=hitcount,len:sort=len:size=2048 [active]",
      "{ pid:        158, x: ffffffffffffffff } hitcount:          1  len:       6525\n"
      .. "{ pid: 18446744073709551615, x: 0 } hitcount: 18446744073709551614  len:          0\n",
      2, 2))
    assert.same({ pid = 158, x = -1 }, result.rows[1].keys)
    assert.same({ hitcount = 1, len = 6525 }, result.rows[1].values)
    assert.same({ pid = -1, x = 0 }, result.rows[2].keys)
    assert.same({ hitcount = -2, len = 0 }, result.rows[2].values)
    assert.equal(2, result.hits)
    assert.equal(2, result.entries)
    assert.equal(0, result.dropped)
    assert.equal(0, result.unreadable)
    assert.is_false(result.paused)
    assert.equal("hist:keys=pid,x.hex:vals=hitcount,len:sort=len:size=2048", result.trigger)
  end)

  it("reads processes, calls, symbols, buckets", function()
    local result = only(histogram(
      "hist:keys=common_pid.execname,id.syscall:vals=hitcount:sort=hitcount:size=2048 [paused]",
      "{ " .. execname("trace-cmd", 151) .. ", id: sys_read                      [  0] } "
      .. "hitcount:       3534\n"
      .. "{ " .. execname("a b", 7) .. ", id: unknown_syscall               [1048577] } "
      .. "hitcount:          1\n", 3535, 2))
    assert.same({ comm = "trace-cmd", pid = 151 }, result.rows[1].keys.common_pid)
    assert.same({ name = "sys_read", id = 0 }, result.rows[1].keys.id)
    assert.same({ comm = "a b", pid = 7 }, result.rows[2].keys.common_pid)
    assert.same({ id = 1048577 }, result.rows[2].keys.id)
    assert.is_true(result.paused)

    result = only(histogram("hist:keys=a.sym,b.sym-offset:vals=hitcount",
      ("{ a: [ffffffff8de290a4] %-45s, b: [ffffffffc0123456] %-55s } hitcount:     5\n"):format(
        "tracing_map_init", "br_handle+0x2c9/0x900 [bridge]"), 5, 1))
    assert.same({ address = 0xffffffff8de290a4, symbol = "tracing_map_init" },
      result.rows[1].keys.a)
    assert.same({ address = 0xffffffffc0123456, symbol = "br_handle", offset = 0x2c9, size = 0x900,
      module = "bridge", text = "br_handle+0x2c9/0x900 [bridge]" }, result.rows[1].keys.b)

    result = only(histogram("hist:keys=l.log2,b.buckets=100:vals=hitcount",
      "{ l: ~ 2^10, b: ~ 100-199 } hitcount:          4\n"
      .. "{ l: ~ 2^0 , b: ~ 0-99 } hitcount:          1\n"
      .. "{ l: ~ 2^1 , b: ~ 0-99 } hitcount:          1\n", 6, 3))
    assert.same({ low = 513, high = 1024, log2 = 10 }, result.rows[1].keys.l)
    assert.same({ low = 100, high = 199 }, result.rows[1].keys.b)
    assert.same({ low = 0, high = 1, log2 = 0 }, result.rows[2].keys.l)
    assert.same({ low = 2, high = 2, log2 = 1 }, result.rows[3].keys.l)
  end)

  it("reads stacks wherever they stand among the keys", function()
    local stack = "common_stacktrace:\n         seq_read_iter+0x375/0x470\n"
      .. "         nf_hook+0x1/0x2 [nf_tables]\n         0xffffffffc0000000\n"
    local frames = {
      { text = "seq_read_iter+0x375/0x470", symbol = "seq_read_iter", offset = 0x375,
        size = 0x470 },
      { text = "nf_hook+0x1/0x2 [nf_tables]", symbol = "nf_hook", offset = 1, size = 2,
        module = "nf_tables" },
      { text = "0xffffffffc0000000" },
    }
    local result = only(histogram("hist:keys=common_stacktrace:vals=hitcount",
      "{ " .. stack .. "} hitcount:         73\n{ common_stacktrace:\n} hitcount:          1\n",
        74, 2))
    assert.same(frames, result.rows[1].keys.common_stacktrace)
    assert.same({}, result.rows[2].keys.common_stacktrace)

    result = only(histogram("hist:keys=common_cpu,stacktrace,pid:vals=hitcount",
      "{ cpu:          1, stacktrace:\n         f+0x1/0x2\n, pid:          9} "
      .. "hitcount:          2\n", 2, 1))
    assert.same({ common_cpu = 1, pid = 9, common_stacktrace = {
      { text = "f+0x1/0x2", symbol = "f", offset = 1, size = 2 },
    } }, result.rows[1].keys)
  end)

  it("knows strings from numbers by the event's fields, or by how they are set", function()
    local trigger = "hist:keys=comm,pid:vals=hitcount"
    local body = "{ " .. text_key("comm", "1234567890")
      .. ", pid:          5 } hitcount:          1\n"
      .. "{ " .. text_key("comm", "sh") .. ", pid:          6 } hitcount:          2\n"
    for _, kinds in ipairs { { comm = "string", pid = "int" }, {} } do
      local result = only(histogram(trigger, body, 3, 2), kinds)
      assert.equal("1234567890", result.rows[1].keys.comm)
      assert.equal(5, result.rows[1].keys.pid)
      assert.equal("sh", result.rows[2].keys.comm)
    end
  end)

  it("is not confused by names that look like what is around them", function()
    local hostile = { "a], id: x } ", "} hitcount: 9\n{", "\n\nTotals:\n", "  [  1], ", "{ \n",
      "~ 2^1 ", "" }
    for _, comm in ipairs(hostile) do
      assert(#comm < 16)
      local result = only(histogram(
        "hist:keys=common_pid.execname,comm,id.syscall:vals=hitcount",
        ("{ %s, %s, id: sys_read                      [  0] } hitcount:          3\n"):format(
          execname(comm, 12), text_key("comm", comm)):rep(2), 6, 2))
      assert.equal(2, #result.rows, comm)
      assert.equal(0, result.unreadable)
      for _, row in ipairs(result.rows) do
        -- blanks at a name's end are the kernel's own
        assert.same({ comm = comm:gsub(" +$", ""), pid = 12 }, row.keys.common_pid)
        assert.equal((comm:gsub(" +$", "")), row.keys.comm)
        assert.same({ name = "sys_read", id = 0 }, row.keys.id)
      end
    end
  end)

  it("reads strings that are longer than their column", function()
    for _, name in ipairs {
      "/usr/lib/" .. ("x"):rep(80), ("y, z: "):rep(20), ("} hitcount:"):rep(9) .. "\n\n{",
      ("b"):rep(50), ("b"):rep(51),
    } do
      local result = only(histogram("hist:keys=filename,pid:vals=hitcount",
        ("{ %s, pid:          5 } hitcount:          1\n"):format(text_key("filename",
          name)):rep(3), 3,
        3), { filename = "string", pid = "int" })
      assert.equal(3, #result.rows)
      assert.equal(0, result.unreadable)
      assert.equal((name:gsub(" +$", "")), result.rows[3].keys.filename)
    end
  end)

  it("counts rows that it cannot read, and reads those behind", function()
    local result = only(histogram("hist:keys=pid:vals=hitcount",
      "{ pid:          1 } hitcount:          1\n{ something new\n"
      .. "{ pid:          2 } hitcount:          2\n",
      3, 3))
    assert.equal(1, result.unreadable)
    assert.equal(2, #result.rows)
    assert.equal(3, result.entries)
    result = only(histogram("hist:keys=pid:vals=hitcount",
      "{ pid: x\n", 3, 1))
    assert.equal(1, result.unreadable)
    assert.equal(0, #result.rows)
    assert.equal(3, result.hits)
  end)

  it("counts many rows that it cannot read", function()
    local body = ("{ pid: something new that is not known here, and goes on\n"):rep(997)
    local result = only(histogram("hist:keys=pid:vals=hitcount", body, 5, 997))
    assert.equal(997, result.unreadable)
    assert.equal(5, result.hits)
  end)

  it("reads keys that are expressions under the name that the kernel gives them", function()
    local result = only(histogram("hist:keys=pid,common_timestamp.usecs-$ts0:vals=hitcount",
      "{ pid:          1, common_timestamp.usecs-$ts0:          7 } hitcount:          4\n", 4, 1))
    assert.same({ pid = 1, ["common_timestamp.usecs-$ts0"] = 7 }, result.rows[1].keys)
  end)

  it("reads percentages, bars and hexadecimal sums", function()
    local result = only(histogram(
      "hist:keys=pid:vals=hitcount,a.percent,b.graph,c.hex",
      "{ pid:          1 } hitcount:          4  a (%):  50.91  b: ####                "
      .. "  c:      88000\n"















































      .. "{ pid:          2 } hitcount:          4  a (%):[ERROR]  b:                     "
      .. "  c:          f\n",
      8, 2))
    assert.same({ hitcount = 4, ["a.percent"] = 50.91, ["b.graph"] = 4, c = 0x88000 },
      result.rows[1].values)
    assert.equal(0, result.rows[2].values["b.graph"])
    assert.equal(15, result.rows[2].values.c)
    local nan = result.rows[2].values["a.percent"]
    assert.is_true(nan ~= nan)
  end)

  it("reads what actions keep beside a row", function()
    local result = only(histogram(
      "hist:keys=prev_pid:vals=hitcount:x=prev_prio:sort=hitcount:size=2048"
      .. ":onmax($x).save(next_comm,next_pid) [active]",
      "{ prev_pid:         39 } hitcount:          1\n"
      .. "\tmax:        120  next_comm: a  next_pid: 7                    next_pid:        158\n"
      .. "{ prev_pid:         21 } hitcount:          1\n"
      .. "\tmax:          0  next_comm: (null)                            next_pid:          0\n",
        2, 2))
    assert.equal(0, result.unreadable)
    assert.equal(120, result.rows[1].max)
    assert.same({ next_comm = "a  next_pid: 7", next_pid = 158 }, result.rows[1].saved)
    assert.same({ next_pid = 0 }, result.rows[2].saved)
    result = only(histogram("hist:keys=a:vals=hitcount:y=b:sort=hitcount:size=2048"
      .. ":onchange($y).trace(ev,$y) [active]",
      "{ a:         39 } hitcount:          1\n\tchanged:        120\n", 1, 1))
    assert.equal(120, result.rows[1].changed)
  end)

  it("reads what is said about a snapshot", function()
    local result = only(histogram("hist:keys=id:vals=hitcount:x=id:sort=hitcount:size=2048"
      .. ":onmax($x).snapshot() [active]",
      "{ id:         39 } hitcount:          1\n\tmax:         39\n\n"
      .. "Snapshot taken (see tracing/snapshot)."
      .. "  Details:\n\ttriggering value { onmax($x) }:         39\n"
      .. "\ttriggered by event with key: { id:         39 }\n", 1, 1))
    assert.matches("triggered by event with key: { id:         39 }$", result.snapshot)
    assert.equal(39, result.rows[1].max)
    assert.equal(1, result.hits)
  end)

  it("reads all histograms of an event, empty ones and named ones among them", function()
    local results = assert(hist_read.parse(
      histogram("hist:keys=pid:vals=hitcount", "") .. "\n\n"















































      .. histogram(
        "hist:name=both:keys=pid:vals=hitcount:sort=hitcount:size=128 if pid > 1 [active]",
        "{ pid:          2 } hitcount:          2\n", 2, 1, 9) .. "\n\n"
      .. histogram("hist:old:keys=pid:vals=hitcount:sort=hitcount:size=128 [active]", "")))
    assert.equal(3, #results)
    assert.same({}, results[1].rows)
    assert.equal("both", results[2].name)
    assert.equal(9, results[2].dropped)
    assert.equal("hist:name=both:keys=pid:vals=hitcount:sort=hitcount:size=128 if pid > 1",
      results[2].trigger)
    assert.equal("old", results[3].name)
    assert.same({}, assert(hist_read.parse("")))
    assert.same({}, assert(hist_read.parse("# Available triggers:\n# traceon\n")))
  end)

  it("says what is missing of a histogram that is cut off", function()
    local whole = histogram("hist:keys=pid:vals=hitcount",
      "{ pid:          2 } hitcount:          2\n", 2, 1)
    for length = #"# event histogram\n#\n# trigger info: ", #whole - 1 do
      local results, message = hist_read.parse(whole:sub(1, length))
      assert.is_nil(results)
      assert.matches("^cannot read a histogram: ", message)
    end
    assert.is_nil((hist_read.parse("# event histogram\n#\n# trigger info: something\n#\n\n")))
  end)

  it("loses nothing of what a kernel has written", function()
    local files = 0
    for _, name in ipairs {
      "kmem_kmalloc", "net_net_dev_queue", "raw_syscalls_sys_enter", "sched_sched_waking",
      "synthetic_wakeup_latency",
    } do
      local text = helper.read_file(KERNEL_FILES .. "hist_" .. name .. ".txt")
      if text then
        files = files + 1
        local triggers = helper.read_file(KERNEL_FILES .. "trigger_" .. name .. ".txt")
        for _, result in ipairs(assert(hist_read.parse(text))) do
          local sum = 0
          for _, row in ipairs(result.rows) do
            sum = sum + row.values.hitcount
          end
          assert.equal(result.entries, #result.rows, name)
          assert.equal(result.hits, sum, name)
          assert.equal(0, result.unreadable, name)
          assert.is_truthy(triggers:find(result.trigger, 1, true), name)
        end
      end
    end
    if files == 0 then
      pending("there are no files of a kernel in " .. KERNEL_FILES)
    end
  end)
end)
