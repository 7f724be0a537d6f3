-- What each thread of build/support/threads runs under the thread sanitizer: a session of its own
-- with all that a record goes through, formats parsed and text made at the same time in all.
local tracefs = require "tracefs"

local number = ...
local session <close> = tracefs.session { buffer_kb = 512 }
local records, values = 0, 0

session:on("sched:*", function(ev)
  records = records + 1
  local text = tostring(ev)
  assert(text:find(ev.common_event:match(":(.*)"), 1, true), text)
  for name in pairs(ev) do
    assert(tracefs.text(ev, name))
  end
end)
session:on("raw_syscalls:sys_enter", { "id", "common_timestamp" }, function(id, ts)
  values = values + 1
  assert(math.type(id) == "integer" and math.type(ts) == "integer")
end)
session:run { duration = 1 }

assert(records > 0, ("thread %d saw no record"):format(number))
assert(values > 0, ("thread %d saw no system call"):format(number))
