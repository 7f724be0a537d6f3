-- Synthetic events, and the times between two events that the kernel measures with them, against
-- what handlers saw of the same events.
local guest = require "harness"
local hists = require "hists"

local new_session = hists.new_session
local need_synthetic = hists.need_synthetic
local syntax = hists.syntax

-- The latencies that handlers see, as wakelat and netlat do: the latest start of a key.
local function pairs_by_handlers(session, start, stop)
  local open, times = {}, {}
  session:on(start.event, { start.key, "common_timestamp", filter = start.filter },
    function(key, ts)
      open[key] = ts
    end)
  session:on(stop.event, { stop.key, "common_timestamp", filter = stop.filter },
    function(key, ts)
      local from = open[key]
      if from then
        open[key] = nil
        times[#times + 1] = ts - from
      end
    end)
  return times
end

-- Each of the kernel's rows has as many of the times as are in its range.
local function agree(times, result)
  local sum = 0
  for _, time in ipairs(times) do
    sum = sum + time
  end
  guest.equal(#times, result.count, "pairs")
  guest.equal(sum, result.sum, "sum")
  for _, row in ipairs(result.rows) do
    local count, row_sum = 0, 0
    for _, time in ipairs(times) do
      if row.low <= time and time <= row.high then
        count, row_sum = count + 1, row_sum + time
      end
    end
    guest.equal(count, row.count, ("from %d to %d ns"):format(row.low, row.high))
    guest.equal(row_sum, row.sum, ("sum from %d to %d ns"):format(row.low, row.high))
  end
end

guest.check("kernel_latency: wakeup to running is what handlers measure", function()
  need_synthetic()
  local session <close> = new_session()
  local start = { event = "sched:sched_waking", key = "pid", filter = 'comm ~ "load*"' }
  local stop = { event = "sched:sched_switch", key = "next_pid", filter = 'next_comm ~ "load*"' }
  local measured = session:kernel_latency {
    start = start.event, stop = stop.event, key = { start = start.key, stop = stop.key },
    start_filter = start.filter, stop_filter = stop.filter, by = "next_comm",
  }
  local times = pairs_by_handlers(session, start, stop)
  -- Handled behind it all: then none of both CPUs' events can come late.
  session:start()
  guest.equal(0, (guest.sh "/spec/load threads 1 211 >/dev/null"))
  session:finish()
  local stats = session:run()
  guest.equal(0, stats.lost, "lost")
  local result = assert(measured:read())
  guest.truth(#times > 100, "%d pairs", #times)
  guest.equal(0, result.dropped, "dropped")
  agree(times, result)
  local sum, names = 0, {}
  for _, group in ipairs(result.groups) do
    sum = sum + group.count
    names[group.by.next_comm] = group.count
  end
  guest.equal(result.count, sum, "the groups' counts")
  -- One that is preempted by the other before it sleeps needs no waking; both cannot be.
  guest.truth(names["load-ping"] or names["load-pong"], "the groups' names")
end)

guest.check("kernel_latency: packets from queue to receive are what handlers measure", function()
  need_synthetic()
  local session <close> = new_session()
  local start = { event = "net:net_dev_queue", key = "skbaddr" }
  local stop = { event = "net:netif_receive_skb", key = "skbaddr" }
  local measured = session:kernel_latency {
    start = start.event, stop = stop.event, key = "skbaddr", buckets = 10000, rows = 4096,
    by = { "name" },
  }
  local times = pairs_by_handlers(session, start, stop)
  local stats = guest.run_load(session, "udp", 211)
  guest.equal(0, stats.lost, "lost")
  local result = assert(measured:read())
  guest.truth(#times >= 211, "%d pairs", #times)
  guest.equal(0, result.dropped, "dropped")
  agree(times, result)
  guest.equal(9999, result.rows[1].high - result.rows[1].low, "width")
  guest.equal(1, #result.groups, "groups")
  guest.equal("lo", result.groups[1].by.name, "the device")
end)

guest.check("synthetic events: their values, and their text is the kernel's", function()
  need_synthetic()
  local session <close> = new_session { own_events = true }
  local label = session:synthetic("woken", { "u64 lat", "pid_t pid", "char comm[16]", "int prio" })
  guest.equal("synthetic:woken", label)
  session:hist("sched:sched_waking", {
    keys = "pid", variables = { t0 = "common_timestamp" }, filter = 'comm == "load-ping"',
  })
  session:hist("sched:sched_switch", {
    keys = "next_pid", variables = { lat = "common_timestamp-$t0" },
    filter = 'next_comm == "load-ping"',
    actions = { { onmatch = "sched:sched_waking", trace = "woken",
      with = { "$lat", "next_pid", "next_comm", "next_prio" } } },
  })
  local times = pairs_by_handlers(session,
    { event = "sched:sched_waking", key = "pid", filter = 'comm == "load-ping"' },
    { event = "sched:sched_switch", key = "next_pid", filter = 'next_comm == "load-ping"' })
  local seen, lines = {}, {}
  session:on(label, function(ev)
    seen[#seen + 1] = ev.lat
    guest.equal("load-ping", ev.comm)
    guest.equal(120, ev.prio)
    lines[#lines + 1] = tostring(ev)
  end)
  -- before the stream takes it, as cat trace would show it
  session:start()
  guest.equal(0, (guest.sh "/spec/load threads 1 53 >/dev/null"))
  local trace = session.instance:read "trace"
  session:finish()
  session:run()
  guest.equal(#times, #seen, "synthetic events")
  table.sort(times)
  table.sort(seen)
  guest.equal(table.concat(times, " "), table.concat(seen, " "), "latencies")
  local wanted = {}
  for line in trace:gmatch "[^\n]+" do
    if line:find("_woken: ", 1, true) then
      wanted[#wanted + 1] = line
    end
  end
  guest.equal(table.concat(wanted, "\n"), table.concat(lines, "\n"), "text")
end)

guest.check("synthetic events: stacks as values, as keys, and as text", function()
  need_synthetic()
  local session <close> = new_session { own_events = true }
  if not syntax().modifiers.stacktrace then
    guest.skip("this kernel keeps no stacks in variables")
  end
  local nr, filter = guest.fresh_nr()
  local label = session:synthetic("called", { "u64 lat", "long[] stack" })
  session:hist("raw_syscalls:sys_enter", {
    keys = "common_pid", filter = filter,
    variables = { t0 = "common_timestamp", st = "common_stacktrace" },
  })
  session:hist("raw_syscalls:sys_exit", {
    keys = "common_pid", filter = filter, variables = { lat = "common_timestamp-$t0", s = "$st" },
    actions = { { onmatch = "raw_syscalls:sys_enter", trace = "called", with = { "$lat", "$s" } } },
  })
  local by_stack = session:hist(label, { keys = "stack.stacktrace", values = "lat" })
  local lines, depth = {}, 0
  session:on(label, function(ev)
    lines[#lines + 1] = tostring(ev)
    depth = #ev.stack
  end)
  session:start()
  guest.equal(0, (guest.sh(("/spec/load syscalls 13 --nr %d >/dev/null"):format(nr))))
  local trace = session.instance:read "trace"
  session:finish()
  session:run()
  guest.equal(13, #lines, "events")
  guest.truth(depth > 0, "no stack")
  local wanted = trace:match "\n([^#\n][^\n]*_called: .*)$"
  guest.equal((wanted:gsub("\n+", "\n"):gsub("\n$", "")), table.concat(lines, "\n"), "text")
  local result = assert(by_stack:read())
  guest.equal(13, result.hits)
  local functions = {}
  for i, frame in ipairs(result.rows[1].keys.stack) do
    functions[i] = frame.symbol
  end
  guest.contains(table.concat(functions, " "), "do_syscall_64")
end)

guest.check("kernel_latency: what is refused leaves nothing that counts", function()
  need_synthetic()
  local session <close> = new_session()
  local ok, err = pcall(session.kernel_latency, session, {
    start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr",
    stop_filter = "nosuch == 1",
  })
  guest.equal(false, ok)
  guest.contains(err, "Field not found", "nosuch == 1")
  guest.equal(0, #session.instance:triggers("net", "net_dev_queue"), "triggers")
  local measured = session:kernel_latency {
    start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr", size = 128,
  }
  guest.equal(1, #session.instance:triggers("net", "net_dev_queue"), "triggers")
  assert(measured:remove())
  guest.equal(0, #session.instance:triggers("net", "net_dev_queue"), "triggers")
  guest.equal(0, #session.instance:triggers("net", "netif_receive_skb"), "triggers")
  guest.equal(false, (pcall(measured.read, measured)))
end)

guest.check("two sessions measure at once, each its own", function()
  need_synthetic()
  local one <close> = new_session()
  local two <close> = new_session()
  local options = {
    start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = "skbaddr", size = 4096,
  }
  local first, second = one:kernel_latency(options), two:kernel_latency(options)
  one:start()
  guest.equal(0, (guest.sh "/spec/load udp 13 >/dev/null"))
  two:start()
  guest.equal(0, (guest.sh "/spec/load udp 17 >/dev/null"))
  one:finish()
  one:run()
  guest.equal(30, assert(first:read()).count, "the first one's")
  one:close()
  guest.equal(0, (guest.sh "/spec/load udp 19 >/dev/null"))
  two:finish()
  two:run()
  guest.equal(36, assert(second:read()).count, "the second one's")
end)

-- ---------------------------------------------------------------------------
-- What is left, and what is refused
-- ---------------------------------------------------------------------------

guest.check("refused synthetic events", function()
  need_synthetic()
  local session <close> = new_session()
  local ok, err = pcall(session.synthetic, session, "bad", "nosuchtype x")
  guest.equal(false, ok)
  guest.contains(err, "Invalid type", "^")
  ok, err = pcall(session.synthetic, session, "twice", "u64 x; u64 x")
  guest.equal(false, ok)
  guest.contains(err, "the field 'x' is there twice")
end)
