-- What the kernel measures while the examples measure the same in their handlers, in one session.
local guest = require "harness"
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
  local status, out, err = guest.luatrace("-c", load, "/tmp/both.lua", table.unpack(words))
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
  guest.equal("0 0", unseen .. " " .. voided, "unseen and voided")
  -- One that is woken before it has left its CPU is no wakeup for wakelat; for the kernel it is
  -- one when the task runs again without being woken anew.
  local more = total - tonumber(wakeups)
  guest.truth(more >= 0 and more <= tonumber(running), "the kernel has %d, wakelat %s", total, out)
  guest.equal(more, distance(out, powers), "pairs that are in another line of the histogram")
  guest.truth(total > 100, "%d pairs", total)
  guest.note("%d wakeups, %s of them still running", total, running)
end)
