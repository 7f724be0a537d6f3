-- Sessions on markers for the specs of running: what goes in and comes out is numbers.
local assert = require "luassert"
local tracefs = require "tracefs"

local markers = {}

-- Markers are records that a test can make itself, one by one, also from inside a handler.
function markers.mark(session, from, to)
  for i = from, to or from do
    assert(session:marker(tostring(i)))
  end
end

function markers.number(ev)
  return math.tointeger(tonumber(ev.buf))
end

-- A session with markers 1 to count in its buffer, and a list that its handler fills.
function markers.marked(count, options)
  local session = tracefs.session(options)
  local seen = {}
  session:on("ftrace:print", function(ev)
    seen[#seen + 1] = markers.number(ev)
  end)
  session:start()
  markers.mark(session, 1, count)
  return session, seen
end

function markers.list(from, to)
  local numbers = {}
  for i = from, to do
    numbers[#numbers + 1] = i
  end
  return numbers
end

function markers.check_identity(stats)
  assert.equal(stats.produced, stats.delivered + stats.lost + stats.pending)
end

-- Has fn raise; returns the message.
function markers.message_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok, "nothing was raised")
  return message
end

return markers
