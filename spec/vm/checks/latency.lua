-- What the kernel measures while the examples measure the same in their handlers, in one session.
local guest = require "harness"
local aggregate = require "tracefs.aggregate"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local EXAMPLES <const> = "/usr/local/share/luatrace/examples/"

local function need_latency()
  local session <close> = tracefs.session { buffer_kb = 64 }
  if not hist.supported(session.instance) or not tracefs.features().synthetic then
    guest.skip("this kernel has no hist triggers, or no synthetic events")
  end
end

-- The example, with a measurement in its session; buckets of 1 ns are every single time.
local SCRIPT <const> = [[
  local trace = require "tracefs.script"
  local measured = trace:kernel_latency {
    start = %q, stop = %q, key = %s, start_filter = %q, stop_filter = %q,
    buckets = 1, rows = 8192, size = 16384,
  }
  dofile(%q)
  trace:at_end(function()
    local result = assert(measured:read())
    print(("kernel dropped %%d"):format(result.dropped))
    for _, row in ipairs(result.rows) do
      assert(row.low == row.high, "a bucket that is wider than 1 ns")
      print(("kernel %%d %%d"):format(row.low, row.count))
    end
  end)
]]

-- Runs it with a load; returns what the example printed, and the kernel's times: how many in each
-- power of two, and in all.
local function run(load, example, words, options)
  guest.write("/tmp/both.lua", SCRIPT:format(options.start, options.stop, options.key,
    options.start_filter, options.stop_filter, EXAMPLES .. example))
  local status, out, err = guest.luatrace_in_time("-c", load, "/tmp/both.lua",
    table.unpack(words))
  guest.equal(0, status, err)
  guest.equal("", err, "stderr")
  guest.contains(out, "kernel dropped 0\n")
  local powers, total = {}, 0
  for ns, count in out:gmatch "\nkernel (%d+) (%d+)" do
    local low = 1 << (64 - 1)
    while low > tonumber(ns) or low < 0 do
      low = low >> 1
    end
    powers[low] = (powers[low] or 0) + tonumber(count)
    total = total + tonumber(count)
  end
  return out, powers, total
end

-- How far the example's histogram is from the kernel's, in pairs.
local function distance(text, powers)
  local left, far, lines = {}, 0, 0
  for low, count in pairs(powers) do
    left[low] = count
  end
  for from, to, pairs_in in text:gmatch "\n *(%d+) %.%. (%d+) +(%d+) |" do
    local low, high, count = tonumber(from), tonumber(to), tonumber(pairs_in)
    guest.equal(2 * low - 1, high, "the upper end")
    far = far + math.abs(count - (left[low] or 0))
    left[low] = nil
    lines = lines + 1
  end
  for _, count in pairs(left) do
    far = far + count
  end
  guest.truth(lines > 0, "no histogram in:\n%s", text)
  return far
end

guest.check("kernel_latency and netlat in one session: the same pairs, the same histogram",
  function()
  need_latency()
  local out, powers, total = run("/spec/load udp 211 >/dev/null", "netlat.lua",
    { "--device", "lo" }, {
      start = "net:net_dev_queue", stop = "net:netif_receive_skb", key = '"skbaddr"',
      start_filter = 'name == "lo"', stop_filter = 'name == "lo"',
    })
  guest.equal(211, total, "the kernel's pairs")
  guest.equal("211", out:match "\nlo +(%d+) ", "netlat's pairs")
  guest.equal(0, distance(out, powers), "pairs that are in another line of the histogram")
end)

guest.check("kernel_latency and wakelat in one session: the same wakeups, the same histogram",
  function()
  need_latency()
  local out, powers, total = run("/spec/load threads 1 211 >/dev/null", "wakelat.lua",
    { "--comm", "load-*" }, {
      start = "sched:sched_waking", stop = "sched:sched_switch",
      key = '{ start = "pid", stop = "next_pid" }', start_filter = 'comm ~ "load-*"',
      stop_filter = 'next_comm ~ "load-*"',
    })
  local wakeups, running, unseen, voided =
    out:match "\n(%d+) wakeups, %d+ repeated, (%d+) still running, (%d+) unseen, (%d+) voided"
  guest.truth(wakeups, "no sums in:\n%s", out)
  guest.equal("0", voided, "voided")
  -- One that is woken before it has left its CPU is no wakeup for wakelat; for the kernel it is
  -- one when the task runs again without being woken anew. A thread that gets its name while it
  -- runs was not seen when it was put on its CPU.
  local more = total - tonumber(wakeups)
  guest.truth(more >= 0 and more <= running + unseen, "the kernel has %d, wakelat %s", total, out)
  guest.equal(more, distance(out, powers), "pairs that are in another line of the histogram")
  guest.truth(total > 100, "%d pairs", total)
  guest.note("%d wakeups, %s of them still running, %s unseen", total, running, unseen)
end)

-- ---------------------------------------------------------------------------
-- session:pair with where = "kernel"
-- ---------------------------------------------------------------------------

-- The same pair of every system call of the load, matched by both in one session. Returns what each
-- told, as a list of lines in the order of the stop's time.
local function match_both(more, calls)
  local session <close> = tracefs.session { buffer_kb = 8192 }
  local nr, filter = guest.fresh_nr()
  local told, pairs_of, sums = {}, {}, {}
  for _, where in ipairs { "lua", "kernel" } do
    local list = {}
    told[where] = list
    sums[where] = {}
    for i, by in ipairs { false, { "id" }, { "id", "common_flags" } } do
      sums[where][i] = aggregate.new { "count", "sum", "minimum", "maximum", by = by or nil }
    end
    local options = {
      where = where, key = "common_pid", carry = { "id", "common_flags" }, into = sums[where],
      start = { event = "raw_syscalls:sys_enter", filter = filter },
      stop = { event = "raw_syscalls:sys_exit", filter = filter },
      on_match = function(delta, key, carried)
        key = type(key) == "table" and table.concat(key, ",") or key
        list[#list + 1] = ("%d ns, %s: %d %d"):format(delta, key, carried.id,
          carried.common_flags)
      end,
    }
    for name, value in pairs(more or {}) do
      options[name] = value
    end
    pairs_of[where] = session:pair(options)
    guest.equal(where, (pairs_of[where]:where()))
  end
  guest.run_load(session, "--nr", nr, "syscalls", calls)
  return told, pairs_of, sums
end

guest.check("a pair in the kernel and here: the same matches, times and counts", function()
  need_latency()
  local told, pairs_of, sums = match_both(nil, 997)
  guest.equal(997, #told.kernel, "the kernel's matches")
  guest.equal(997, #told.lua, "the matches here")
  guest.equal(table.concat(told.lua, "\n"), table.concat(told.kernel, "\n"), "the matches")
  local here, kernel = pairs_of.lua:counts(), pairs_of.kernel:counts()
  for _, name in ipairs { "starts", "matched", "open", "replaced" } do
    guest.equal(here[name], kernel[name], name)
  end
  guest.equal(0, kernel.dropped, "dropped")
  for i, here_too in ipairs(sums.lua) do
    guest.equal(997, here_too:cells()[1].count, "the values of an aggregate")
    guest.equal(tostring(here_too), tostring(sums.kernel[i]), "the aggregates")
  end
end)

guest.check("a pair in the kernel carries strings, and prints itself as one here does", function()
  need_latency()
  local session <close> = tracefs.session { buffer_kb = 1024 }
  local names, matched = {}, 0
  local pair = session:pair {
    where = "kernel", start = { event = "sched:sched_waking", filter = 'comm ~ "load-*"' },
    stop = "sched:sched_switch", key = { start = "pid", stop = "next_pid" }, carry = "comm",
    on_match = function(_, _, carried)
      names[carried.comm] = true
      matched = matched + 1
    end,
  }
  guest.run_load(session, "threads", 1, 101)
  guest.truth(matched > 50, "%d matches", matched)
  guest.equal(matched, pair:counts().matched, "matched")
  for name in pairs(names) do
    guest.contains(name, "load-")
  end

  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace_in_time("-c",
    ("/spec/load --nr %d syscalls 23 >/dev/null"):format(nr), "-e", ([[
      pair { where = "kernel", key = "common_pid", carry = "id",
      start = { event = "raw_syscalls:sys_enter", filter = %q },
      stop = { event = "raw_syscalls:sys_exit", filter = %q } }]]):format(filter, filter))
  guest.equal(0, status, err)
  guest.equal("", err, "stderr")
  local line = ("^%%[%%d+%%] [%%d.]+: sys_enter>sys_exit %%S+ common_pid=%%d+ id=%d$"):format(nr)
  local count = 0
  for text in out:gmatch "[^\n]+" do
    guest.truth(text:find(line), "%s", text)
    count = count + 1
  end
  guest.equal(23, count, "lines")
end)

guest.check("a pair in the kernel by several fields, and what is refused there", function()
  need_latency()
  local told = match_both({ key = { "common_pid", "id" } }, 101)
  guest.equal(101, #told.kernel, "the kernel's matches")
  guest.equal(101, #told.lua, "the matches here")

  local session <close> = tracefs.session { buffer_kb = 64 }
  local said
  session.on_choice = function(message)
    said = message
  end
  local options = {
    start = "raw_syscalls:sys_enter", stop = "raw_syscalls:sys_exit", key = "common_pid",
    where = "auto", into = aggregate.new { "count" },
  }
  local pair = session:pair(options)
  guest.equal("kernel", (pair:where()))
  guest.contains(said, "pair sys_enter>sys_exit: matched in the kernel: ")
  options.carry = "common_comm"
  pair = session:pair(options)
  guest.equal("lua", (pair:where()))
  guest.contains(select(2, pair:where()), "'common_comm' is no field of raw_syscalls:sys_enter")
  options.where = "kernel"
  local ok, message = pcall(session.pair, session, options)
  guest.truth(not ok, "common_comm is carried by the kernel")
  guest.contains(message, "'common_comm' is no field of raw_syscalls:sys_enter")
end)

guest.check("a pair in the kernel knows its starts, and that no stop had their key", function()
  need_latency()
  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace_in_time("-c",
    ("/spec/load --nr %d syscalls 101 >/dev/null"):format(nr), "-e", ([[
      local calls = pair { where = "kernel", key = { start = "id", stop = "ret" },
        start = { event = "raw_syscalls:sys_enter", filter = %q },
        stop = { event = "raw_syscalls:sys_exit", filter = %q } }
      at_end(function()
        local counts = calls:counts()
        print(counts.starts, counts.matched, counts.open, counts.unmatched)
      end)]]):format(filter, filter))
  guest.equal(0, status, err)
  guest.equal("101\t0\t101\tnil\n", out)
  guest.contains(err, "pair sys_enter>sys_exit: 101 starts and no match: no stop came with the key "
    .. "of one")
end)

guest.check("a pair in the kernel says what found no place in its tables", function()
  need_latency()
  if not guest.exists(guest.dir .. "/events/exceptions/page_fault_user/hist") then
    guest.skip("this kernel has no exceptions:page_fault_user")
  end
  local status, out, err = guest.luatrace_in_time("-c", "/spec/load faults 499 >/dev/null", "-e", [[
    local mine = 'comm == "load-faults"'
    local faults = pair { where = "kernel", max = 100, key = "address",
      start = { event = "exceptions:page_fault_user", filter = mine },
      stop = { event = "exceptions:page_fault_kernel", filter = mine },
      on_match = function() end }
    at_end(function()
      local counts = faults:counts()
      print(counts.starts, counts.dropped, counts.matched)
    end)]])
  guest.equal(0, status, err)
  local starts, dropped, matched = out:match "^(%d+)\t(%d+)\t(%d+)\n$"
  guest.truth(starts, "no counts in:\n%s", out)
  -- there is place for 128 addresses; each of the 499 pages has its own
  guest.truth(tonumber(dropped) >= 499 - 128, "%s dropped", dropped)
  guest.truth(tonumber(starts) >= 128, "%s starts", starts)
  guest.equal("0", matched, "matches")
  guest.contains(err, ("page_fault_user>page_fault_kernel: %s starts and stops found no place in "
    .. "the kernel's tables, and are missing: give it a larger max"):format(dropped))
end)
