-- Makes sub-buffers byte by byte and hands them to build/support/pages, which prints what page.c
-- and merge.c make of them.
local helper = require "spec.support.helper"
helper.usual_collector()

local pages = {}

local PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
local DELTA_MASK = (1 << 27) - 1
local LOST, LOST_STORED = 1 << 31, 1 << 30

local Layout = {}
Layout.__index = Layout

--- The text of a header_page file.
---@param options { long_size: integer, data_size: integer }
---@return string
function pages.header(options)
  local long = options.long_size
  return ("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    .. "\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n"
    .. "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    .. "\tfield: char data;\toffset:%d;\tsize:%d;\tsigned:0;\n"):format(
    long, 8 + long, options.data_size)
end

--- How the pages of a kernel look.
---@param options? { endian?: "little"|"big", long_size?: 4|8, data_size?: integer }
function pages.layout(options)
  options = options or {}
  local endian = options.endian or "little"
  return setmetatable({
    endian = endian,
    order = endian == "big" and ">" or "<",
    long_size = options.long_size or 8,
    data_size = options.data_size or 4080,
  }, Layout)
end

---@param bytes string
---@return string
function pages.hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

---@param hex string
---@return string
function pages.bytes(hex)
  return (hex:gsub("..", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

--- The line that tells the program of the layout.
function Layout:command()
  return ("header %s %s"):format(self.endian, pages.hex(pages.header(self)))
end

function Layout:word(type, delta)
  assert(delta >= 0 and delta <= DELTA_MASK)
  local bits = self.endian == "big" and (type << 27 | delta) or (delta << 5 | type)
  return (self.order .. "I4"):pack(bits)
end

--- A record with its length in the header, where that is possible: up to 112 bytes.
function Layout:short(delta, data)
  assert(#data % 4 == 0 and #data >= 4 and #data <= 112)
  return self:word(#data // 4, delta) .. data
end

--- A record with its length in a word of its own; `length` claims another one.
function Layout:long(delta, data, length)
  return self:word(0, delta) .. (self.order .. "I4"):pack(length or #data + 4) .. data
end

--- The end of the page.
function Layout:padding()
  return self:word(PADDING, 0)
end

--- What a record that was thrown away leaves: `size` bytes behind its header.
function Layout:discarded(delta, size, length)
  return self:word(PADDING, delta) .. (self.order
    .. "I4"):pack(length or size) .. ("\xdd"):rep(size - 4)
end

function Layout:extend(delta)
  return self:word(TIME_EXTEND, delta & DELTA_MASK) .. (self.order .. "I4"):pack(delta >> 27)
end

--- An absolute time: the low 59 bits are stored.
function Layout:stamp(ts)
  ts = ts & (1 << 59) - 1
  return self:word(TIME_STAMP, ts & DELTA_MASK) .. (self.order .. "I4"):pack(ts >> 27)
end

--- A whole page. Beside its records (a list of strings): `ts`, `lost` (a count, or "unknown"),
--- `sign_extended` as some kernels write the flags, `commit` instead of the true size, `count_room`
--- false leaves no bytes behind the records, `length` cuts what was read.
function Layout:page(options)
  local data = table.concat(options)
  local commit = options.commit or #data
  local tail = ""
  if options.lost == "unknown" then
    commit = commit | LOST
  elseif options.lost then
    commit = commit | LOST | LOST_STORED
    tail = (self.order .. "I" .. self.long_size):pack(options.lost)
  end
  if options.sign_extended then
    commit = commit | -1 << 32
  end
  if self.long_size == 4 then
    commit = commit & 0xffffffff
  end
  local head = (self.order .. "I8"):pack(options.ts or 0) .. (self.order .. "i"
    .. self.long_size):pack(
    self.long_size == 4 and string.unpack("<i4", string.pack("<I4", commit)) or commit)
  local size = self.long_size + 8 + self.data_size
  local page = head .. data .. (options.count_room == false and "" or tail)
  page = page .. ("\0"):rep(size - #page)
  return page:sub(1, options.length or size)
end

--- Runs commands; returns what they print, line by line.
---@param commands string[]
---@return string[]
function pages.run(commands)
  local input = os.tmpname()
  helper.write_file(input, table.concat(commands, "\n") .. "\n")
  -- Straight to a pipe: a spec does this some hundred times.
  local pipe = assert(io.popen(("timeout -k 5 %g %s <%s 2>&1"):format(
    120 * helper.slowdown, helper.quote(helper.program("support/pages")), input)))
  local lines = {}
  for line in pipe:lines() do
    lines[#lines + 1] = line
  end
  local ok, how, status = pipe:close()
  os.remove(input)
  assert(ok,
    ("pages: %s %s: %s"):format(how, status, table.concat(lines, "\n", math.max(1, #lines - 40))))
  return lines
end

--- What a walk over one page prints, without the line of the layout.
---@return string[]
function Layout:walk(page)
  local lines = pages.run({ self:command(), "walk " .. pages.hex(page) })
  table.remove(lines, 1)
  return lines
end

return pages
