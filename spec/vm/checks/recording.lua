-- Trace files of this kernel: beside handlers, and straight from the buffers.
local core = require "tracefs.core"
local guest = require "harness"
local tracefs = require "tracefs"

-- The numbers of the markers in a file, in their order.
local function numbers(path)
  local file <close> = assert(core.datafile(path))
  local catalog = assert(file:catalog())
  local event = assert(file:describe(catalog, "ftrace", "print"))
  local stream <close> = assert(file:stream(catalog, {}))
  local list = {}
  stream:select(event:id(), true)
  stream:callbacks(function()
    return event
  end, function()
    return true
  end)
  stream:handle(event:id(), function(text)
    list[#list + 1] = math.tointeger(tonumber(text))
  end, event, { "buf" })
  repeat
    local _, why = stream:step(1000)
  until why == "end"
  guest.equal(nil, file:damage(), "damage")
  return list
end

local function check_numbers(path, count)
  local list = numbers(path)
  guest.equal(count, #list, "records in the file")
  for i, number in ipairs(list) do
    if number ~= i then
      error(("record %d has number %s"):format(i, number))
    end
  end
end

for _, version in ipairs { 6, 7 } do
  guest.check(("what handlers see is in a file of version %d"):format(version), function()
    local session <close> = tracefs.session()
    local seen = 0
    session:on("ftrace:print", function()
      seen = seen + 1
    end)
    session:record("/tmp/recording.dat", { version = version })
    session:start()
    for i = 1, 5003 do
      assert(session:marker(tostring(i)))
    end
    session:finish()
    session:run()
    guest.equal(5003, seen)
    check_numbers("/tmp/recording.dat", 5003)
    os.remove "/tmp/recording.dat"
  end)
end

guest.check("whole sub-buffers and parts of them go straight into a file", function()
  local instance <close> = assert(tracefs.instance_create())
  local recording <close> = assert(core.recording(instance, "/tmp/direct.dat",
    { version = 7, compress = false, own_events = true, kept = {} }))
  assert(recording:direct())
  assert(instance:trace_on())
  for i = 1, 20011 do
    assert(instance:marker(tostring(i)))
    if i % 1000 == 0 then
      assert(recording:pump())
    end
  end
  assert(instance:trace_off())
  assert(recording:drain())
  assert(recording:finish())
  local more, message
  repeat
    more, message = recording:step()
  until not more
  guest.equal(false, more, message)
  recording:close()
  check_numbers("/tmp/direct.dat", 20011)
  os.remove "/tmp/direct.dat"
end)
