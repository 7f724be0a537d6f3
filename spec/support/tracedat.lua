-- Makes trace.dat files byte by byte, of any version, byte order, size of a long and page size.
local helper = require "spec.support.helper"
local pages = require "spec.support.pages"

local tracedat = {}

local MAGIC <const> = "\x17\x08\x44tracing"

-- Options, and sections of version 7.
local BUFFER <const>, TRACECLOCK <const>, CPUCOUNT <const> = 3, 4, 8
local SECTIONS <const> = { header = 16, ftrace = 17, formats = 18, kallsyms = 19, printk = 20,
  cmdlines = 21, text = 22 }

local FORMAT <const> = [[
name: %s
ID: %d
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

%s
print fmt: "%%d", REC->common_pid
]]

--- The text of an event's format file.
---@param name string
---@param id integer
---@param fields string lines of its own fields
---@return string
function tracedat.format(name, id, fields)
  return FORMAT:format(name, id, fields)
end

---@class spec.tracedat
---@field version? 6|7
---@field endian? "little"|"big"
---@field long_size? 4|8
---@field page_size? integer
---@field ftrace? string[] texts of format files
---@field events? table<string, string[]> by system
---@field cmdlines? string
---@field kallsyms? string
---@field printk? string
---@field options? { id: integer, data: string }[]
---@field clock? string
---@field compression? "zlib" of version 7
---@field buffers? { name: string, cpus?: table<integer, string>, text?: string }[] top one first

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local Writer = {}
Writer.__index = Writer

function Writer:number(format, value)
  return (self.order .. format):pack(value)
end

function Writer:sized(format, text)
  return self:number(format, #text) .. text
end

function Writer:header_info()
  local page = pages.header {
    long_size = self.file.long_size,
    data_size = self.file.page_size - 8 - self.file.long_size,
  }
  return "header_page\0" .. self:sized("I8", page) .. "header_event\0" .. self:sized("I8", "# x\n")
end

function Writer:ftrace()
  local texts = { self:number("I4", #self.file.ftrace) }
  for _, text in ipairs(self.file.ftrace) do
    texts[#texts + 1] = self:sized("I8", text)
  end
  return table.concat(texts)
end

function Writer:formats()
  local systems = sorted_keys(self.file.events)
  local texts = { self:number("I4", #systems) }
  for _, system in ipairs(systems) do
    local list = self.file.events[system]
    texts[#texts + 1] = system .. "\0" .. self:number("I4", #list)
    for _, text in ipairs(list) do
      texts[#texts + 1] = self:sized("I8", text)
    end
  end
  return table.concat(texts)
end

function Writer:option(id, data)
  return self:number("I2", id) .. self:sized("I4", data)
end

function Writer:custom_options()
  local parts = {}
  for _, option in ipairs(self.file.options) do
    parts[#parts + 1] = self:option(option.id, option.data)
  end
  return table.concat(parts)
end

local function adler32(bytes)
  local a, b = 1, 0
  for i = 1, #bytes do
    a = (a + bytes:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b << 16 | a
end

-- gzip's deflated bytes, with a head and a sum as zlib has them.
local function zlib(bytes)
  local path = os.tmpname()
  helper.write_file(path, bytes)
  local pipe <close> = assert(io.popen("gzip -nc " .. path))
  local deflated = pipe:read("a"):sub(11, -9)
  os.remove(path)
  return "\x78\x9c" .. deflated .. (">I4"):pack(adler32(bytes))
end

function Writer:packed(bytes)
  local packed = zlib(bytes)
  return self:number("I4", #packed) .. self:number("I4", #bytes) .. packed
end

-- Records, or text, in chunks of so many pages.
local CHUNK_PAGES <const> = 10

function Writer:chunks(bytes)
  if not self.file.compression then
    return bytes
  end
  local size, parts = CHUNK_PAGES * self.file.page_size, {}
  for at = 1, #bytes, size do
    parts[#parts + 1] = self:packed(bytes:sub(at, at + size - 1))
  end
  return self:number("I4", #parts) .. table.concat(parts)
end

-- Appends the records of each CPU at a page's boundary; returns their places.
function Writer:data(out, cpus)
  local places = {}
  for _, cpu in ipairs(sorted_keys(cpus)) do
    out = out .. ("\0"):rep(-#out % self.file.page_size)
    local bytes = self:chunks(cpus[cpu])
    places[#places + 1] = { cpu = cpu, offset = #out, size = #bytes }
    out = out .. bytes
  end
  return out, places
end

-- Version 6: everything in its order; the places stand before what they tell of.
function Writer:version6(start)
  local file = self.file
  local count = 0
  for _, buffer in ipairs(file.buffers) do
    for cpu in pairs(buffer.cpus or {}) do
      count = math.max(count, cpu + 1)
    end
  end
  local head = start .. self:header_info() .. self:ftrace() .. self:formats()
    .. self:sized("I4", file.kallsyms) .. self:sized("I4", file.printk)
    .. self:sized("I8", file.cmdlines) .. self:number("I4", count)
  local top = file.buffers[1]
  if top.text then
    return head .. "latency  \0" .. top.text
  end
  local function table_of(places)
    local parts, by_cpu = {}, {}
    for _, place in ipairs(places) do
      by_cpu[place.cpu] = place
    end
    for cpu = 0, count - 1 do
      local place = by_cpu[cpu] or { offset = 0, size = 0 }
      parts[#parts + 1] = self:number("I8", place.offset) .. self:number("I8", place.size)
    end
    return table.concat(parts)
  end
  -- with the right numbers the second time: their size is known
  local places, tables, out = {}, {}, nil
  for _ = 1, 2 do
    local options = self:custom_options()
    for i = 2, #file.buffers do
      options = options .. self:option(BUFFER, self:number("I8", tables[i] or 0)
        .. file.buffers[i].name .. "\0")
    end
    if file.clock then
      options = options .. self:option(TRACECLOCK, "")
    end
    out = head .. "options  \0" .. options .. self:number("I2", 0) .. "flyrecord\0"
      .. table_of(places[1] or {})
    if file.clock then
      out = out .. self:sized("I8", "[" .. file.clock .. "] other\0")
    end
    for i = 2, #file.buffers do
      tables[i] = #out
      out = out .. "flyrecord\0" .. table_of(places[i] or {})
    end
    for i, buffer in ipairs(file.buffers) do
      out, places[i] = self:data(out, buffer.cpus)
    end
  end
  return out
end

function Writer:version7(start)
  local file = self.file
  local compression = (file.compression or "none") .. "\0" .. (file.compression and "1" or "")
    .. "\0"
  local out = start .. compression .. ("\0"):rep(8)
  local options = self:custom_options()
  -- the content as it is written
  local function section(id, content)
    local at = #out
    out = out .. self:number("I2", id) .. self:number("I2", file.compression and 1 or 0)
      .. self:number("I4", 0) .. self:sized("I8", content)
    return at
  end
  local function whole(content)
    return file.compression and self:packed(content) or content
  end
  for _, part in ipairs {
    { "header", self:header_info() }, { "ftrace", self:ftrace() }, { "formats", self:formats() },
    { "kallsyms", self:sized("I4", file.kallsyms) }, { "printk", self:sized("I4", file.printk) },
    { "cmdlines", self:sized("I8", file.cmdlines) },
  } do
    local id = SECTIONS[part[1]]
    options = options .. self:option(id, self:number("I8", section(id, whole(part[2]))))
  end
  for _, buffer in ipairs(file.buffers) do
    local name = buffer.name .. "\0" .. (file.clock or "local") .. "\0"
    if buffer.text then
      options = options .. self:option(SECTIONS.text,
        self:number("I8", section(SECTIONS.text, self:chunks(buffer.text))) .. name)
    else
      local at = section(BUFFER, "")
      local places
      out, places = self:data(out, buffer.cpus)
      local data = self:number("I8", at) .. name .. self:number("I4", file.page_size)
        .. self:number("I4", #places)
      for _, place in ipairs(places) do
        data = data .. self:number("I4", place.cpu) .. self:number("I8", place.offset)
          .. self:number("I8", place.size)
      end
      options = options .. self:option(BUFFER, data)
    end
  end
  local at = section(0, whole(options .. self:option(0, self:number("I8", 0))))
  local where = #start + #compression
  return out:sub(1, where) .. self:number("I8", at) .. out:sub(where + 9)
end

--- The bytes of a file.
---@param file spec.tracedat
---@return string
function tracedat.build(file)
  local defaults = {
    version = 7, endian = "little", long_size = 8, page_size = 4096, ftrace = {}, events = {},
    cmdlines = "", kallsyms = "", printk = "", options = {}, buffers = { { name = "", cpus = {} } },
  }
  local whole = setmetatable(file, { __index = defaults })
  local writer = setmetatable({
    file = whole,
    order = whole.endian == "big" and ">" or "<",
  }, Writer)
  local start = MAGIC .. whole.version .. "\0" .. (whole.endian == "big" and "\1" or "\0")
    .. string.char(whole.long_size) .. writer:number("I4", whole.page_size)
  return whole.version == 6 and writer:version6(start) or writer:version7(start)
end

--- The option with the number of the machine's CPUs.
function tracedat.cpu_count(order, count)
  return { id = CPUCOUNT, data = (order .. "I4"):pack(count) }
end

return tracedat
