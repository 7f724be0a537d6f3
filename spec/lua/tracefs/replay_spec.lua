local helper = require "spec.support.helper"
local inputs = require "spec.support.inputs"
local tracefs = require "tracefs"

describe("a session on a file", function()
  if not inputs.are_there then
    pending("../shared/inputs is not there")
    return
  end

  local function open(name, options)
    options = options or {}
    options.file = inputs.path(name)
    return tracefs.session(options)
  end

  -- An independent program's pairs and nanoseconds stand beside the recordings.
  local LATENCIES <const> = {
    { "kernel-6.18/net_lo.dat", 100, 621, 25949, 102620 },
    { "kernel-6.18/net_lo_v6.dat", 100, 621, 25949, 102620 },
    { "kernel-6.18/net_lo_zstd.dat", 100, 621, 25949, 102620 },
    { "kernel-6.18/filtered.dat", 91, 490, 1432, 47309 },
    { "kernel-6.18/clock_counter.dat", 20, 1, 1, 20 },
    { "s390x/be_v7_none.dat", 30, 12062, 112883, 669174 },
    { "s390x/be_v6.dat", 30, 12062, 112883, 669174 },
  }

  it("gives the same pairs and times as another program finds", function()
    for _, expected in ipairs(LATENCIES) do
      local session <close> = open(expected[1])
      local sent, pairs_seen, least, most, sum = {}, 0, math.maxinteger, 0, 0
      session:on("net:net_dev_queue", { "skbaddr", "common_timestamp" }, function(address, ts)
        sent[address] = ts
      end)
      session:on("net:netif_receive_skb", function(ev)
        local start = sent[ev.skbaddr]
        if start then
          sent[ev.skbaddr] = nil
          local ns = ev.common_timestamp - start
          pairs_seen, sum = pairs_seen + 1, sum + ns
          least, most = math.min(least, ns), math.max(most, ns)
        end
      end)
      local stats = session:run()
      assert.same(expected, { expected[1], pairs_seen, least, most, sum })
      assert.equal(stats.produced, stats.delivered + stats.lost)
      assert.equal(0, stats.pending)
    end
  end)

  -- The same by session:pair: { pairs, least, median, most, sum } in ns, and its counts.
  local function pair(name, options)
    local session <close> = open(name)
    local found, sum = {}, 0
    options.on_match = function(ns)
      found[#found + 1] = ns
      sum = sum + ns
    end
    local made = session:pair(options)
    session:run()
    table.sort(found)
    local median = (found[(#found + 1) // 2] + found[#found // 2 + 1]) // 2
    return { #found, found[1], median, found[#found], sum }, made:counts()
  end

  it("gives them with session:pair too", function()
    local MEDIANS <const> = {
      ["kernel-6.18/net_lo.dat"] = 642, ["kernel-6.18/filtered.dat"] = 510,
      ["kernel-6.18/clock_counter.dat"] = 1, ["s390x/be_v7_none.dat"] = 15634,
    }
    for _, expected in ipairs(LATENCIES) do
      local name, count, least, most, sum = table.unpack(expected)
      local figures, counts = pair(name, {
        start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr",
      })
      assert.same({ count, least, MEDIANS[name] or figures[3], most, sum }, figures, name)
      assert.equal(0, counts.unmatched, name)
    end
    local figures, counts = pair("kernel-6.18/block_sched.dat", {
      start = "block:block_rq_issue", stop = "block:block_rq_complete", key = { "dev", "sector" },
    })
    assert.same({ 73, 61447, 106061, 662315, 9063126 }, figures)
    assert.equal(20, counts.unmatched)
  end)

  it("finds how long tasks wait from their wakeup until they run", function()
    local figures, counts = pair("kernel-6.18/block_sched.dat", {
      start = "sched:sched_wakeup",
      stop = { event = "sched:sched_switch", filter = "next_pid != 0" },
      key = { start = "pid", stop = "next_pid" },
    })
    assert.same({ 141, 672, 2945, 3998362, 11027094 }, figures)
    assert.same({ 37, 10 }, { counts.unmatched, counts.open })
  end)

  it("finds the blocks that another program finds, by device and sector", function()
    local session <close> = open "kernel-6.18/block_sched.dat"
    local issued, count, least, most, sum, alone = {}, 0, math.maxinteger, 0, 0, 0
    session:on("block:block_rq_issue", function(ev)
      issued[ev.dev .. ":" .. ev.sector] = ev.common_timestamp
    end)
    session:on("block:block_rq_complete", function(ev)
      local key = ev.dev .. ":" .. ev.sector
      if not issued[key] then
        alone = alone + 1
        return
      end
      local ns = ev.common_timestamp - issued[key]
      issued[key] = nil
      count, sum, least, most = count + 1, sum + ns, math.min(least, ns), math.max(most, ns)
    end)
    session:run()
    assert.same({ 73, 61447, 662315, 9063126, 20 }, { count, least, most, sum, alone })
  end)

  it("has the file's command names and the text of its kernel", function()
    local session <close> = open "kernel-6.18/net_lo.dat"
    session:enable "net:net_dev_queue"
    local count = 0
    for ev in session:events() do
      count = count + 1
      assert.equal("python3", ev.common_comm)
      assert.matches("^ +python3%-%d+ +%[001%] %S+ +%d+%.%d+: net_dev_queue: dev=lo skbaddr=",
        tostring(ev))
    end
    assert.equal(100, count)
    assert.equal(100, session:stats().delivered)
  end)

  it("counts what is still to come, before, in the middle and at the end", function()
    local session <close> = open "kernel-6.18/net_lo.dat"
    session:on("net:net_dev_queue", { filter = "len < 130" }, function() end)
    local all = session:stats()
    assert.equal(0, all.delivered)
    assert.is_true(all.pending > 0 and all.pending < 100, all.pending)
    session:step(3)
    local middle = session:stats()
    assert.same({ 3, all.pending - 3, all.produced },
      { middle.delivered, middle.pending, middle.produced })
    local stats = session:run()
    assert.same({ all.pending, 0, all.produced },
      { stats.delivered, stats.pending, stats.produced })
  end)

  it("gives two buffers' records in the order of time, and one buffer's alone", function()
    local last, count = 0, 0
    do
      local session <close> = open "kernel-6.12/rec_multibuf.dat"
      session:on("*:*", function(ev)
        assert.is_true(ev.common_timestamp >= last)
        last, count = ev.common_timestamp, count + 1
      end)
      session:run()
    end
    assert.equal(2164, count)
    local session <close> = open("kernel-6.12/rec_multibuf.dat", { buffer = "netbuf" })
    session:on("*:*", function() end)
    assert.equal(100, session:run().delivered)
    assert.has_error(function()
      open("kernel-6.12/rec_multibuf.dat", { buffer = "nosuch" })
    end)
  end)

  it("ticks in the file's time, before the records that are later", function()
    local session <close> = open "kernel-6.18/block_sched.dat"
    local last, ticks = 0, {}
    session:on("sched:*", function(ev)
      last = ev.common_timestamp
      for _, ts in ipairs(ticks) do
        assert.is_true(ts <= last)
      end
    end)
    session:every(0.01, function(ts)
      assert.is_true(last <= ts)
      ticks[#ticks + 1] = ts
    end)
    session:run()
    assert.is_true(#ticks > 10, #ticks)
    for i = 2, #ticks do
      assert.equal(10000000, ticks[i] - ticks[i - 1])
    end
  end)

  it("ends after a duration of the file's time", function()
    local session <close> = open "kernel-6.18/block_sched.dat"
    local first, last
    session:on("sched:*", { "common_timestamp" }, function(ts)
      first, last = first or ts, ts
    end)
    local stats = session:run { duration = 0.05 }
    assert.is_true(last - first <= 50000000)
    assert.is_true(stats.delivered > 10 and stats.delivered < 1000)
  end)

  it("tells of losses, in the stream and in the counts", function()
    local session <close> = open "kernel-6.18/lost_overwrite.dat"
    local lost
    session:on("*:*", function() end)
    session:on_lost(function(loss)
      lost = loss
    end)
    local stats = session:run()
    assert.same({ 1, 42701, "overrun" }, { lost.cpu, lost.count, lost.why })
    assert.same({ 42802, 101, 42701 }, { stats.produced, stats.delivered, stats.lost })
  end)

  it("says which event the file does not have, and goes on", function()
    local session <close> = open "kernel-6.18/net_lo.dat"
    local notices = {}
    session.on_notice = function(message)
      notices[#notices + 1] = message
    end
    assert.equal(0, session:on("net:net_dev_quue", function() end))
    assert.equal(1, session:on("net:net_dev_queue", function() end))
    assert.equal(1, #notices)
    assert.matches('no event "net:net_dev_quue" in .*net_lo%.dat: did you mean net:net_dev_queue',
      notices[1])
    assert.equal(100, session:run().delivered)
  end)

  it("refuses by name what only a live kernel can do", function()
    local session <close> = open "kernel-6.18/net_lo.dat"
    for name, call in pairs {
      marker = function() session:marker "x" end,
      set_clock = function() session.instance:set_clock "boot" end,
      set_buffer_kb = function() session.instance:set_buffer_kb(4) end,
      trigger = function() session:trigger("net:net_dev_queue", "stacktrace") end,
      hist = function() session:hist("net:net_dev_queue", { keys = { "len" } }) end,
      functions = function() session:functions { "vfs_*" } end,
      probe = function() session:on("kprobe:do_sys_open", function() end) end,
    } do
      local ok, message = pcall(call)
      assert.is_false(ok)
      assert.matches(name .. ": .*net_lo%.dat is a recording; this needs a live kernel", message)
    end
    for _, options in ipairs { { clock = "boot" }, { buffer_kb = 4 }, { own_events = true } } do
      options.file = inputs.path "kernel-6.18/net_lo.dat"
      local ok, message = pcall(tracefs.session, options)
      assert.is_false(ok)
      assert.matches("is a recording; this needs a live kernel", message, 1, true)
    end
    local ok, message = pcall(tracefs.session, { partial = true })
    assert.is_false(ok)
    assert.matches("session: partial belongs to a file", message, 1, true)
  end)

  it("that is cut gives what is there, then an error; or a warning, if that is wanted", function()
    local cut = "kernel-6.18/trunc_in_data_v6.dat"
    local count, ended = 0, false
    local session <close> = open(cut)
    session:on("*:*", function() count = count + 1 end)
    session:at_end(function() ended = true end)
    local ok, message = pcall(session.run, session)
    assert.is_false(ok)
    assert.matches("bytes of records (CPU 1) are missing, at byte 270000", message, 1, true)
    assert.is_true(ended and count > 90)

    local partial <close> = open(cut, { partial = true })
    partial:on("*:*", function() end)
    assert.equal(count, partial:run().delivered)
    assert.matches("at byte 270000", partial:damage(), 1, true)

    local status, out, err = helper.run {
      "-i", inputs.path(cut), "--partial", "-e", "on('*:*', function() end)",
    }
    assert.same({ 0, "" }, { status, out })
    assert.matches("^luatrace: warning: .* at byte 270000 of 270000\n$", err)
    status, out, err = helper.run { "-i", inputs.path(cut), "-e", "on('*:*', function() end)" }
    assert.same({ 1, "" }, { status, out })
    assert.matches("at byte 270000 of 270000", err, 1, true)
  end)

  it("runs scripts unchanged, without root", function()
    for _, file in ipairs { "net_lo", "net_lo_zstd" } do
      local status, out, err = helper.run {
        "-i", inputs.path("kernel-6.18/" .. file .. ".dat"), "examples/netlat.lua",
      }
      assert.equal(0, status, err)
      assert.matches('^luatrace: warning: no event "skb:consume_skb" in ', err)
      assert.matches("\nlo +100 +621ns +1%.03us", out)
    end
    local status, out, err = helper.run {
      "-i", inputs.path "kernel-6.18/block_sched.dat", "examples/wakelat.lua",
    }
    assert.equal(0, status, err)
    assert.is_true(#out > 100)
  end)

  it("does not go with options of a live run", function()
    local file = inputs.path "kernel-6.18/net_lo.dat"
    for option, words in pairs {
      ["-c"] = { "-c", "true" }, ["-p"] = { "-p", "1" }, ["-b"] = { "-b", "64" },
      ["-C"] = { "-C", "boot" },
    } do
      local status, _, err = helper.run { "-i", file, words[1], words[2], "-e", "x = 1" }
      assert.equal(2, status)
      assert.matches(option .. " needs a live kernel and does not go with -i", err, 1, true)
    end
    local status, _, err = helper.run { "--partial", "-e", "x = 1" }
    assert.equal(2, status)
    assert.matches("--partial belongs to -i FILE", err, 1, true)
  end)
end)
