local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

-- A size that nobody else's packets have while this runs, as the two events count it.
local SIZE = loads.SIZE
local ON_IP = SIZE + 28
local ON_ETHERNET = ON_IP + 14

local SCRIPT = ([[
local sent, pairs_seen, positive, queued, received = {}, 0, 0, 0, 0
local here = '(name == "lo") && (len == %d)'
on("net:net_dev_queue", { filter = here:format(ON_ETHERNET) }, function(ev)
  queued = queued + 1
  sent[ev.skbaddr] = ev.common_timestamp
end)
on("net:netif_receive_skb", { filter = here:format(ON_IP) }, function(ev)
  received = received + 1
  local since = sent[ev.skbaddr]
  if since then
    sent[ev.skbaddr] = nil
    pairs_seen = pairs_seen + 1
    if ev.common_timestamp > since then
      positive = positive + 1
    end
  end
end)
at_end(function()
  print(queued, received, pairs_seen, positive, next(sent), stats().lost)
end)
]]):gsub("ON_%u+", { ON_ETHERNET = tostring(ON_ETHERNET), ON_IP = tostring(ON_IP) })

describe("every packet over the loopback device", function()
  for _, count in ipairs({ 23, 10007 }) do
    local expected = ("%d\t%d\t%d\t%d\tnil\t0\n"):format(count, count, count, count)

    it(("is seen in its place: %d pairs in a session"):format(count), function()
      local tracefs = require "tracefs"
      local session <close> = tracefs.session({})
      local said
      local environment = setmetatable({
        on = function(...) return session:on(...) end,
        at_end = function(...) return session:at_end(...) end,
        stats = function() return session:stats() end,
        print = function(...)
          local words = table.pack(...)
          for i = 1, words.n do
            words[i] = tostring(words[i])
          end
          said = table.concat(words, "\t") .. "\n"
        end,
      }, { __index = _G })
      assert(load(SCRIPT, "=script", "t", environment))()
      local result, stats = loads.run_session(session, { "udp", count, SIZE })
      assert.equal(count, result.packets)
      assert.equal(expected, said)
      assert.equal(2 * count, stats.delivered)
      assert.equal(2 * count, stats.produced)
      assert.equal(0, stats.late)
    end)

    it(("is seen in its place: %d pairs under luatrace -c"):format(count), function()
      local command = ("%s udp %d %d >&2"):format(
        helper.quote(helper.program("support/load")), count, SIZE)
      local status, out, err = helper.run({ "-e", SCRIPT, "-c", command, timeout = 60 })
      assert.equal(0, status, err)
      assert.truthy(err:find(("packets=%d size=%d"):format(count, SIZE), 1, true), err)
      assert.equal(expected, out)
    end)
  end
end)
