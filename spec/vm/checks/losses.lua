-- delivered + lost = produced, proved with the sequence numbers of the load.
local guest = require "harness"
local core = require "tracefs.core"
local tracefs = require "tracefs"

local EACH <const> = 20011
local UNKNOWN <const> = math.huge

local function session_of(case)
  local session = tracefs.session {
    buffer_kb = case.buffer_kb,
    subbuf_kb = case.subbuf_kb ~= 4 and case.subbuf_kb or nil,
    overwrite = case.overwrite,
  }
  guest.equal(case.subbuf_kb, session.instance:get_subbuf_kb() or 4, "sub-buffers")
  return session
end

-- Waits until the kernel's buffers of these CPUs have run over.
local function wait_for_losses(session, first, last)
  guest.wait_until(function()
    local counts = session.instance:stats()
    for cpu = first, last do
      if counts[cpu].overrun + counts[cpu].dropped == 0 then
        return false
      end
    end
    return true
  end, "a loss on each CPU")
end

-- Follows the sequence numbers of each CPU and what is told of losses between them.
local function follow(session, filter, overwrite)
  local lanes = {
    [0] = { last = 0, delivered = 0, gaps = 0, told = 0, items = 0, now = 0 },
    { last = 0, delivered = 0, gaps = 0, told = 0, items = 0, now = 0 },
  }
  local calls = 0
  session:on(guest.SYSCALL, { "args", "common_cpu", filter = filter }, function(args, cpu)
    local lane = lanes[cpu]
    local gap = args[1] - lane.last - 1
    guest.truth(gap >= 0, "CPU %d: %d after %d", cpu, args[1], lane.last)
    -- What was not written because the buffer was full is told when the counters are read.
    if overwrite and lane.now ~= gap then
      guest.truth(lane.now == UNKNOWN and gap > 0, "CPU %d: %d lost before %d, told of %s", cpu,
        gap, args[1], lane.now)
    end
    lane.now = 0
    lane.gaps = lane.gaps + gap
    lane.delivered = lane.delivered + 1
    lane.last = args[1]
    -- Far slower than the load.
    calls = calls + 1
    if calls == 1 then
      wait_for_losses(session, 0, 1)
    elseif calls % 200 == 0 then
      core.poll({}, 0.004)
    end
  end)
  session:on_lost(function(lost)
    local lane = lanes[lost.cpu]
    lane.items = lane.items + 1
    lane.now = lane.now + (lost.count or UNKNOWN)
    lane.told = lane.told + (lost.count or UNKNOWN)
  end)
  return lanes
end

for _, subbuf_kb in ipairs { 4, 64 } do
  for _, overwrite in ipairs { true, false } do
    local name = ("%s, sub-buffers of %d KiB"):format(
      overwrite and "overwriting" or "not overwriting", subbuf_kb)

    guest.check("losses are told of exactly: " .. name, function()
      if subbuf_kb ~= 4 and not guest.exists(guest.dir .. "/buffer_subbuf_size_kb") then
        guest.skip("this kernel has sub-buffers of one page only")
      end
      local nr, filter = guest.fresh_nr()
      local session <close> = session_of {
        buffer_kb = 128, subbuf_kb = subbuf_kb, overwrite = overwrite,
      }
      local lanes = follow(session, filter, overwrite)
      local stats = guest.run_load(session, "syscalls", EACH, "--cpu", "all", "--nr", nr)
      for cpu = 0, 1 do
        local lane, counts = lanes[cpu], stats.per_cpu[cpu]
        local tail = EACH - lane.last
        guest.equal(EACH, counts.produced, "produced on CPU " .. cpu)
        guest.equal(lane.delivered, counts.delivered, "delivered on CPU " .. cpu)
        guest.equal(lane.gaps + tail, counts.lost, "lost on CPU " .. cpu)
        guest.truth(lane.items > 0, "CPU %d lost nothing", cpu)
        if lane.told ~= UNKNOWN then
          guest.equal(counts.lost, lane.told, "what was told of CPU " .. cpu)
        end
        if overwrite then
          guest.equal(0, tail, "what is missing at the end of CPU " .. cpu)
          guest.equal(0, counts.dropped, "dropped")
        else
          guest.equal(0, counts.overrun, "overrun")
        end
      end
      guest.equal(2 * EACH, stats.produced, "produced")
      guest.balanced(stats)
    end)
  end
end

-- The calls fill a small page to the last byte, and it has then no room for the number of lost
-- ones. Markers leave that room.
for _, overwrite in ipairs { true, false } do
  local name = overwrite and "overwriting" or "not overwriting"
  guest.check("losses have their number on small pages: " .. name, function()
    local session <close> = session_of { buffer_kb = 64, subbuf_kb = 4, overwrite = overwrite }
    local last, gaps, told, delivered = 0, 0, 0, 0
    session:on("ftrace:print", { "buf" }, function(buf)
      local sequence = math.tointeger(buf:match("^load (%d+)"))
      gaps = gaps + sequence - last - 1
      last = sequence
      delivered = delivered + 1
      if delivered == 1 then
        wait_for_losses(session, 1, 1)
      elseif delivered % 200 == 0 then
        core.poll({}, 0.004)
      end
    end)
    session:on_lost(function(lost)
      told = told + lost.count
    end)
    local stats = guest.run_load(session, "markers", session.instance:dir(), EACH, "--cpu", 1)
    guest.truth(told > 0, "nothing was lost")
    guest.equal(told, stats.lost, "lost")
    guest.equal(gaps + EACH - last, stats.lost, "missing")
    guest.equal(EACH, stats.produced, "produced")
    guest.equal(delivered, stats.delivered, "delivered")
    guest.balanced(stats)
  end)
end

guest.check("no loss is invented: a buffer that is large enough", function()
  local nr, filter = guest.fresh_nr()
  local session <close> = tracefs.session { buffer_kb = 8192 }
  local told = 0
  session:on(guest.SYSCALL, { "id", filter = filter }, function() end)
  session:on_lost(function()
    told = told + 1
  end)
  local stats = guest.run_load(session, "syscalls", EACH, "--cpu", "all", "--nr", nr)
  guest.equal(2 * EACH, stats.delivered, "delivered")
  guest.equal(0, stats.lost, "lost")
  guest.equal(0, told, "losses told of")
  guest.balanced(stats)
end)

guest.check("--strict ends with 3 when events were lost, and says where", function()
  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace("--strict", "-b", "64", "-c",
    ("/spec/load syscalls %d --cpu 1 --nr %d >/dev/null"):format(EACH, nr), "-e", ([[
      on("%s", { "id", filter = "%s" }, function()
        if not waited then
          waited = true
          os.execute("sleep 2")
        end
      end)
      at_end(function()
        local all = stats()
        print(all.produced, all.delivered + all.lost, all.lost > 0)
      end)
    ]]):format(guest.SYSCALL, filter))
  guest.equal(3, status, "exit status: " .. err)
  guest.equal(("%d\t%d\ttrue\n"):format(EACH, EACH), out)
  guest.contains(err, ("of %d events were lost (CPU 1: "):format(EACH))
end)
