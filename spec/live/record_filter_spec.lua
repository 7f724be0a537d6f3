-- The kernel's filters against ours: what a filter lets through when the kernel applies it, and
-- when it is applied to a recording of the same events without one.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local EVENT <const> = "raw_syscalls:sys_enter"

-- Without command names: a recording has one for each task, not that of the moment.
local FILTERS <const> = {
  "id == 39",
  "id != 39 && id < 100",
  "!(id >= 60 || id == 0)",
  "id & 1",
  "id & 0x18 && !(id & 0x4)",
  "id > 10 || common_pid == 0",
  "common_flags & 1 || id <= 2",
  "common_pid > 0 && common_preempt_count == 0",
  "CPU == 0",
  "cpu & CPUS{0}",
  "CPU != CPUS{0-3}",
  "common_type != 0 && id < 18446744073709551615",
}

describe("filters of the kernel and of recordings", function()
  if not helper.is_root then
    pending("needs root")
    return
  end

  it("let the same records through", function()
    local child = assert(core.spawn("i=0; while [ $i -lt 40 ]; do i=$((i+1)); "
      .. "cat /proc/self/stat /proc/self/status; done >/dev/null"))
    local options = { pids = { child:pid() }, children = true, buffer_kb = 2048 }
    local all <close> = tracefs.session(options)
    all:enable(EVENT)
    local path = helper.tmpdir() .. "/all.dat"
    all:record(path)
    local sessions, live, refused = {}, {}, {}
    for i, filter in ipairs(FILTERS) do
      sessions[i] = tracefs.session(options)
      live[i] = 0
      -- what an older kernel does not know is left out
      local ok = pcall(sessions[i].on, sessions[i], EVENT, { filter = filter }, function()
        live[i] = live[i] + 1
      end)
      refused[i] = not ok
    end
    all:start()
    for _, session in ipairs(sessions) do
      session:start()
    end
    child:release()
    assert(helper.wait_until(function() return child:wait() end, 60))
    child:close()
    for _, session in ipairs(sessions) do
      session:finish()
      assert.equal(0, session:run().lost)
    end
    all:finish()
    local stats = all:run()
    assert.equal(0, stats.lost)
    assert.is_true(stats.delivered > 1000, stats.delivered)
    all:close()
    local compared, some, most = 0, 0, 0
    for i, filter in ipairs(FILTERS) do
      sessions[i]:close()
      if not refused[i] then
        local replay <close> = tracefs.session { file = path }
        local count = 0
        replay:on(EVENT, { filter = filter }, function() count = count + 1 end)
        replay:run()
        assert.equal(live[i], count, filter)
        compared = compared + 1
        some = some + (count > 0 and 1 or 0)
        most = most + (count < stats.delivered and 1 or 0)
      end
    end
    assert.is_true(compared > 8 and some > 6 and most > 6)
  end)
end)
