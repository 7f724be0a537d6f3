-- What spec/support/memory.c runs: a short session with everything that a program would do, and
-- what must not be left of it.
local aggregate = require "tracefs.aggregate"
local tracefs = require "tracefs"
local core = require "tracefs.core"

local pid
do
  local file <close> = assert(io.open("/proc/self/stat"))
  pid = file:read("n")
end
local own = ("luatrace-%d-"):format(pid)

local function descriptors()
  local count = 0
  -- core.poll knows which are open without opening one
  for fd = 0, 63 do
    if core.poll({ fd }, 0) then
      count = count + 1
    end
  end
  return count
end

local function run()
  local session <close> = tracefs.session { buffer_kb = 64 }
  local seen, records = 0, {}
  session:on("ftrace:print", function(record)
    seen = seen + 1
    records[#records + 1] = record
    local text = tostring(record) .. record.buf .. record.common_comm
    for name, value in pairs(record) do
      text = text .. name .. tostring(value)
    end
  end)
  session:on("sched:sched_process_exec", { "filename", "pid", filter = "pid == 1" }, function() end)
  local between, matched = aggregate.new { "count", "p99", by = { "buf", "common_pid" } }, 0
  session:pair {
    start = "ftrace:print", stop = "ftrace:print", key = { "common_comm", "common_pid" },
    carry = { "buf", "common_pid" }, into = between,
    on_match = function(_, key, values)
      matched = matched + #key // 2
      records[#records + 1] = values.buf
    end,
  }
  session:on_lost(function() end)
  session:every(10, function() end)
  session:at_start(function()
    for i = 1, 3 do
      assert(session:marker("line " .. i))
    end
    session:finish()
  end)
  local stats = session:run()
  if seen ~= 3 or stats.delivered ~= 3 then
    error(("%d markers seen, %d delivered"):format(seen, stats.delivered))
  end
  if matched ~= 2 or #between:rows() ~= 2 then
    error(("%d matches, %d rows"):format(matched, #between:rows()))
  end
  session:events { timeout = 0 }
end

local before

local function check()
  for _, name in ipairs(assert(tracefs.instances())) do
    if name:sub(1, #own) == own then
      error("the instance " .. name)
    end
  end
  local open = descriptors()
  before = before or open
  if open ~= before then
    error(("%d descriptors, at first were %d"):format(open, before))
  end
end

return run, check
