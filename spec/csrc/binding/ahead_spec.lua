-- Pairs with so many open starts that the records to come are looked at ahead: of a made file, in
-- which every pair is known.
local helper = require "spec.support.helper"
local pages = require "spec.support.pages"
local tracedat = require "spec.support.tracedat"
local tracefs = require "tracefs"

local BEGIN <const>, END <const>, OTHER <const> = 300, 301, 302
-- From some thousands on.
local OPEN <const>, PAIRS <const>, CPUS <const> = 12007, 10007, 3
local NS <const> = 10

local FIELDS <const> = "\tfield:u64 address;\toffset:8;\tsize:8;\tsigned:0;\n"
  .. "\tfield:u64 number;\toffset:16;\tsize:8;\tsigned:0;\n"

local layout = pages.layout()

-- The pages of each CPU, of events { id=, cpu=, address=, number= } that come one after the other.
local function bytes_of(events)
  local parts, page, last = {}, {}, {}
  local function turn(cpu)
    if page[cpu] then
      parts[cpu] = parts[cpu] or {}
      table.insert(parts[cpu], layout:page(page[cpu]))
    end
    page[cpu] = nil
  end
  for i, event in ipairs(events) do
    local cpu, ts = event.cpu, i * NS
    if page[cpu] and #page[cpu] == 140 then
      turn(cpu)
    end
    if not page[cpu] then
      page[cpu], last[cpu] = { ts = ts }, ts
    end
    table.insert(page[cpu], layout:short(ts - last[cpu],
      ("<I2I1I1i4I8I8"):pack(event.id, 1, 0, 7, event.address, event.number)))
    last[cpu] = ts
  end
  local bytes = {}
  for cpu = 0, CPUS - 1 do
    turn(cpu)
    bytes[cpu] = table.concat(parts[cpu])
  end
  return bytes
end

describe("a pair with thousands of open starts", function()
  -- What happens, and the matches that a session is to find: those with a start before them.
  local function happenings(take)
    local events, open, at, expected = {}, {}, {}, {}
    local function add(id, address, number)
      events[#events + 1] = {
        id = id, cpu = math.random(0, CPUS - 1), address = address, number = number,
      }
      return #events
    end
    local number = 0
    local function start(address)
      number = number + 1
      at[address] = { number = number, ts = add(BEGIN, address, number) * NS }
      open[#open + 1] = address
    end
    for i = 1, OPEN do
      start(0xffff888100000000 + i * 256)
    end
    for i = 1, PAIRS do
      local address = take(open)
      local ts = add(END, address, 0) * NS
      expected[i] = ("%x %d %d"):format(address, at[address].number, ts - at[address].ts)
      start(math.random() < 0.5 and address or 0xffff888200000000 + i * 256)
      if i % 7 == 0 then
        add(OTHER, address, i)
      elseif i % 101 == 0 then
        add(END, 0xffff888300000000 + i * 256, 0)
      end
    end
    return events, expected
  end

  local function found(events, options, loops)
    local path = helper.tmpdir() .. "/made.dat"
    helper.write_file(path, tracedat.build {
      ftrace = {}, version = 7, buffers = { { name = "", cpus = bytes_of(events) } },
      events = { made = {
        tracedat.format("begins", BEGIN, FIELDS), tracedat.format("ends", END, FIELDS),
        tracedat.format("other", OTHER, FIELDS),
      } },
    })
    local session <close> = tracefs.session { file = path }
    local list, others = {}, 0
    options.start, options.stop, options.carry = "made:begins", "made:ends", "number"
    options.on_match = function(delta, key, started)
      key = type(key) == "table" and key[1] or key
      list[#list + 1] = ("%x %d %d"):format(key, started.number, delta)
    end
    session:on("made:other", { "number" }, function() others = others + 1 end)
    local pair = session:pair(options)
    if loops then
      for _ in session:events() do end
    else
      session:run()
    end
    assert.equal(PAIRS // 7, others)
    local counts = pair:counts()
    assert.equal(OPEN, counts.open)
    assert.equal(0, counts.voided)
    return list
  end

  local function any(open)
    local place = math.random(#open)
    local address = open[place]
    open[place] = open[#open]
    open[#open] = nil
    return address
  end

  it("is right when they end in any order, on any CPU", function()
    math.randomseed(7919)
    local events, expected = happenings(any)
    assert.same(expected, found(events, { key = "address" }))
    assert.same(expected, found(events, { key = "address" }, true))
  end)

  it("is right with keys of several parts", function()
    math.randomseed(104729)
    local events, expected = happenings(any)
    assert.same(expected, found(events, { key = { "address", "common_pid" } }))
    assert.same(expected, found(events, { key = { "address", "common_comm" } }))
  end)

  it("is right when a function says what the key is", function()
    math.randomseed(15485863)
    local events, expected = happenings(any)
    assert.same(expected, found(events, { key = function(ev) return ev.address end }))
  end)
end)
