-- Every packet over the loopback device is seen, at both ends.
local guest = require "harness"
local tracefs = require "tracefs"

-- A size that nobody else's packets have, as the two events count it.
local SIZE <const> = 1021
local ON_IP <const> = SIZE + 28
local ON_ETHERNET <const> = ON_IP + 14

local SCRIPT <const> = ([[
local sent, queued, received, matched, positive = {}, 0, 0, 0, 0
on("net:net_dev_queue", { filter = 'name == "lo" && len == ON_ETHERNET' }, function(ev)
  queued = queued + 1
  sent[ev.skbaddr] = ev.common_timestamp
end)
on("net:netif_receive_skb", { filter = 'name == "lo" && len == ON_IP' }, function(ev)
  received = received + 1
  local since = sent[ev.skbaddr]
  if since then
    sent[ev.skbaddr] = nil
    matched = matched + 1
    positive = positive + (ev.common_timestamp > since and 1 or 0)
  end
end)
at_end(function()
  print(queued, received, matched, positive, next(sent), stats().lost, stats().late)
end)
]]):gsub("ON_%u+", { ON_ETHERNET = tostring(ON_ETHERNET), ON_IP = tostring(ON_IP) })

guest.check("23 packets over lo are 23 pairs in a session", function()
  local session <close> = tracefs.session {}
  local said
  local environment = setmetatable({
    print = function(...)
      said = table.concat({ ... }, " ", 1, 4)
    end,
  }, {
    __index = function(_, name)
      local method = session[name]
      return method and function(...)
        return method(session, ...)
      end or _G[name]
    end,
  })
  assert(load(SCRIPT, "=script", "t", environment))()
  local stats, load_said = guest.run_load(session, "udp", 23, SIZE)
  guest.equal("packets=23 size=1021\n", load_said)
  guest.equal("23 23 23 23", said, "queued, received, pairs, positive")
  guest.equal(46, stats.delivered, "delivered")
  guest.equal(46, stats.produced, "produced")
  guest.equal(0, stats.lost, "lost")
  guest.equal(0, stats.late, "late")
  guest.balanced(stats)
end)

for _, packets in ipairs { 23, 1009 } do
  local name = ("%d packets over lo are %d pairs under luatrace -c"):format(packets, packets)
  guest.check(name, function()
    local status, out, err = guest.luatrace("-c",
      ("/spec/load udp %d %d >&2"):format(packets, SIZE), "-e", SCRIPT)
    guest.equal(0, status, "exit status: " .. err)
    guest.contains(err, ("packets=%d size=%d\n"):format(packets, SIZE))
    guest.equal(("%d\t%d\t%d\t%d\tnil\t0\t0\n"):format(packets, packets, packets, packets), out)
  end)
end

guest.check("a loop over events gets each record once, fields included", function()
  local nr, filter = guest.fresh_nr()
  local session <close> = tracefs.session {}
  session:enable(guest.SYSCALL, { filter = filter })
  session:start()
  guest.equal(0, (guest.sh(("/spec/load syscalls 53 --cpu 1 --nr %d"):format(nr))))
  session:finish()
  local seen = 0
  for ev in session:events { timeout = 5 } do
    seen = seen + 1
    guest.equal(seen, ev.args[1], "sequence number")
    guest.equal(1, ev.args[2], "the CPU it says")
    guest.equal(1, ev.common_cpu, "the CPU it was on")
    guest.equal(nr, ev.id, "number of the call")
    guest.equal("raw_syscalls:sys_enter", ev.common_event)
    guest.equal(nil, ev.nosuch, "a field that is not there")
  end
  guest.equal(53, seen, "records")
  guest.equal(53, session:stats().delivered)
end)

guest.check("JSON lines are one object a record", function()
  local nr, filter = guest.fresh_nr()
  local status, out, err = guest.luatrace("-f", "json", "-c",
    ("/spec/load syscalls 29 --nr %d >/dev/null"):format(nr), "-e",
    ("on('%s', { filter = '%s' })"):format(guest.SYSCALL, filter))
  guest.equal(0, status, "exit status: " .. err)
  local json = require "dkjson"
  local events, last = 0, nil
  for line in out:gmatch("[^\n]+") do
    local object = assert(json.decode(line), line)
    if object.type == "event" then
      events = events + 1
      guest.equal(nr, object.fields.id, "id")
      guest.equal(events, object.fields.args[1], "sequence number")
    end
    last = object
  end
  guest.equal(29, events, "events")
  guest.equal("stats", last.type, "the last line's type")
  guest.equal(29, last.delivered, "delivered")
end)

guest.check("markers come with their text", function()
  local session <close> = tracefs.session {}
  local seen = {}
  session:on("ftrace:print", { "buf" }, function(buf)
    seen[#seen + 1] = buf
  end)
  session:start()
  guest.equal(5, session:marker("short"))
  local long = ("x"):rep(900) .. "end"
  guest.equal(#long, session:marker(long))
  session:finish()
  session:run()
  guest.equal(2, #seen)
  guest.equal("short", (seen[1]:gsub("\n$", "")))
  guest.equal(long, (seen[2]:gsub("\n$", "")))
end)

guest.check("a sample by a field is chosen by the kernel's filter, one in its turn by the reader",
  function()
  for _, case in ipairs {
    { "1/4 of id", "kernel", true }, { "1/4 of id", "kernel", false },
    { "1/3 of id", "reader", true }, { "1/3 of id", "reader", false },
    { "1/10", "reader" }, { "1/4 of common_pid>>40", "refused" },
  } do
    local text, where, is_chosen = case[1], case[2], case[3]
    local scale = tonumber(text:match "^1/(%d+)")
    local session <close> = tracefs.session { buffer_kb = 1024 }
    local nr, filter
    repeat
      nr, filter = guest.fresh_nr()
    until is_chosen == nil or is_chosen == (nr % scale == 0)
    local options = { filter = filter, sample = text }
    local seen = 0
    local ok, message = pcall(session.on, session, guest.SYSCALL, options, function(ev)
      seen = seen + 1
      guest.equal(scale, ev.common_scale, "the scale")
    end)
    if where == "refused" then
      guest.truth(not ok and message:find("has 32 bits", 1, true), "%s", message)
    else
      guest.truth(ok, "%s", message)
      local stats = guest.run_load(session, "--nr", nr, "syscalls", 101)
      local expected = 101 // scale
      if is_chosen ~= nil then
        expected = is_chosen and 101 or 0
      end
      guest.equal(expected, seen, text)
      guest.equal(where, stats.samples[guest.SYSCALL].where, text)
      guest.equal(where == "kernel" and 0 or 101 - expected, stats.skipped, text)
      guest.balanced(stats)
    end
  end
end)
