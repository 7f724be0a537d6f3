-- Makes the inputs that the fuzzers start from: pages, format files with records, and trace.dat
-- files of both versions and byte orders, with what they may be compressed with, all of them whole
-- and right.
--
--   lua spec/fuzz/seed.lua FOLDER       writes FOLDER/page, FOLDER/format, FOLDER/datafile
local folder = assert(arg[1], "seed.lua FOLDER")

local function write(kind, name, bytes)
  local path = ("%s/%s"):format(folder, kind)
  assert(os.execute(("mkdir -p '%s'"):format(path)))
  local file <close> = assert(io.open(path .. "/" .. name, "wb"))
  assert(file:write(bytes))
end

local FORMAT <const> = [[
name: sent
ID: 77
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:u64 skbaddr;	offset:8;	size:8;	signed:0;
	field:unsigned int len;	offset:16;	size:4;	signed:0;
	field:__data_loc char[] name;	offset:20;	size:4;	signed:0;
	field:u8 saddr[4];	offset:24;	size:4;	signed:0;
	field:int ret;	offset:28;	size:4;	signed:1;

print fmt: "dev=%s skbaddr=0x%llx len=%u from=%pI4 flags=%s state=%s", ]]
  .. [[__get_str(name), REC->skbaddr, REC->len, REC->saddr, ]]
  .. [[REC->ret ? __print_flags(REC->ret, "|", { 1, "A" }, { 2, "B" }) : "none", ]]
  .. [[__print_symbolic(REC->len & 3, { 0, "R" }, { 1, "S" })
]]

local function sized(order, size, text)
  return (order .. "I" .. size):pack(#text) .. text
end

local function record(order)
  return (order .. "I2BBi4I8I4I4"):pack(77, 0, 0, 4711, 0xffff888012345678, 1500, 3 << 16 | 32)
    .. "\127\0\0\1" .. (order .. "i4"):pack(3) .. "lo\0\0"
end

local function page(order, long, size)
  local data = record(order)
  local function header(kind, delta)
    return (order .. "I4"):pack(order == "<" and delta << 5 | kind or kind << 27 | delta)
  end
  local body = header(#data // 4, 0) .. data .. header(30, 5) .. (order .. "I4"):pack(1)
    .. header(#data // 4, 700) .. data .. header(0, 9) .. (order .. "I4"):pack(132)
    .. ("x"):rep(128)
  local bytes = (order .. "I8I" .. long):pack(1000000, #body) .. body
  return bytes .. ("\0"):rep(size - #bytes)
end

local function header_page(long, size)
  return ("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    .. "\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n"
    .. "\tfield: char data;\toffset:%d;\tsize:%d;\tsigned:0;\n"):format(long, 8 + long,
    size - 8 - long)
end

local SIZE <const> = 4096

local function start(version, order, long)
  return "\x17\x08\x44tracing" .. version .. "\0" .. (order == ">" and "\1" or "\0")
    .. string.char(long) .. (order .. "I4"):pack(SIZE)
end

local function parts(order, long)
  local header = "header_page\0" .. sized(order, 8, header_page(long, SIZE))
    .. "header_event\0" .. sized(order, 8, "# compressed entry header\n")
  local ftrace = (order .. "I4"):pack(1) .. sized(order, 8, (FORMAT:gsub("sent\nID: 77",
    "print\nID: 5")))
  local events = (order .. "I4"):pack(1) .. "net\0" .. (order .. "I4"):pack(1)
    .. sized(order, 8, FORMAT)
  return header, ftrace, events, sized(order, 4, "ffffffff81000000 T _text\n"),
    sized(order, 4, '0xffffffff82000000 : "hello"\n'), sized(order, 8, "4711 sender\n")
end

local function version_6(order, long)
  local header, ftrace, events, kallsyms, printk, names = parts(order, long)
  local head = start("6", order, long) .. header .. ftrace .. events .. kallsyms .. printk .. names
    .. (order .. "I4"):pack(1) .. "options  \0" .. (order .. "I2"):pack(4)
    .. sized(order, 4, "[mono]\0") .. (order .. "I2"):pack(0) .. "flyrecord\0"
  local clock = sized(order, 8, "[mono]")
  local at = (#head + 16 + #clock + SIZE - 1) // SIZE * SIZE
  head = head .. (order .. "I8I8"):pack(at, SIZE) .. clock
  return head .. ("\0"):rep(at - #head) .. page(order, long, SIZE)
end

local function latency_6(order, long)
  local header, ftrace, events, kallsyms, printk, names = parts(order, long)
  return start("6", order, long) .. header .. ftrace .. events .. kallsyms .. printk .. names
    .. (order .. "I4"):pack(1) .. "latency  \0" .. "# tracer: wakeup\n"
end

local function adler32(bytes)
  local a, b = 1, 0
  for i = 1, #bytes do
    a = (a + bytes:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b << 16 | a
end

-- What the two make of bytes that they cannot make shorter: one block that holds them as they are.
local STORED <const> = {
  zlib = function(bytes)
    return "\x78\x01\1" .. ("<I2I2"):pack(#bytes, ~#bytes & 0xffff) .. bytes
      .. (">I4"):pack(adler32(bytes))
  end,
  zstd = function(bytes)
    return "\x28\xb5\x2f\xfd\xa0" .. ("<I4I3"):pack(#bytes, #bytes << 3 | 1) .. bytes
  end,
}

local function packed_7(order, long, codec, has_text)
  local header, ftrace, events, kallsyms, printk, names = parts(order, long)
  local head = start("7", order, long) .. codec .. "\0" .. "1\0"
  local at = #head + 8
  local sections, options = "", ""
  local function pack(bytes)
    local packed = STORED[codec](bytes)
    return (order .. "I4I4"):pack(#packed, #bytes) .. packed
  end
  local function section(id, content)
    local offset = at + #sections
    sections = sections .. (order .. "I2I2I4I8"):pack(id, 1, 0, #content) .. content
    return offset
  end
  for i, content in ipairs { header, ftrace, events, kallsyms, printk, names } do
    options = options .. (order .. "I2I4I8"):pack(15 + i, 8, section(15 + i, pack(content)))
  end
  local chunks = (order .. "I4"):pack(1) .. pack(has_text and "# tracer: wakeup\n"
    or page(order, long, SIZE))
  if has_text then
    options = options .. (order .. "I2I4I8"):pack(22, 14, section(22, chunks)) .. "\0mono\0"
  else
    local offset = section(3, chunks)
    options = options .. (order .. "I2I4I8"):pack(3, 42, offset) .. "\0mono\0"
      .. (order .. "I4I4I4I8I8"):pack(SIZE, 1, 0, offset + 16, #chunks)
  end
  options = options .. (order .. "I2I4I8"):pack(0, 8, 0)
  return head .. (order .. "I8"):pack(section(0, pack(options))) .. sections
end

local function version_7(order, long)
  local header, ftrace, events, kallsyms, printk, names = parts(order, long)
  local head = start("7", order, long) .. "none\0\0"
  local at = #head + 8
  local sections, options = "", ""
  local function section(id, content)
    options = options .. (order .. "I2I4I8"):pack(id, 8, at + #sections)
    sections = sections .. (order .. "I2I2I4I8"):pack(id, 0, 0, #content) .. content
  end
  section(16, header)
  section(17, ftrace)
  section(18, events)
  section(19, kallsyms)
  section(20, printk)
  section(21, names)
  options = options .. (order .. "I2I4I4"):pack(8, 4, 1)
  sections = sections .. (order .. "I2I2I4I8"):pack(15, 0, 0, 1) .. "\0"
  local buffer_size = 8 + 1 + 5 + 4 + 4 + 20
  local length = #options + 6 + buffer_size + 14
  local buffer_at = at + #sections + 16 + length
  local data_at = (buffer_at + 16 + SIZE - 1) // SIZE * SIZE
  local rest = (order .. "I2I2I4I8"):pack(0, 0, 0, length) .. options
    .. (order .. "I2I4I8"):pack(3, buffer_size, buffer_at) .. "\0mono\0"
    .. (order .. "I4I4I4I8I8"):pack(SIZE, 1, 0, data_at, SIZE) .. (order .. "I2I4I8"):pack(0, 8, 0)
    .. (order .. "I2I2I4I8"):pack(3, 0, 0, data_at + SIZE - buffer_at - 16)
  local bytes = head .. (order .. "I8"):pack(at + #sections) .. sections .. rest
  return bytes .. ("\0"):rep(data_at - #bytes) .. page(order, long, SIZE)
end

for name, case in pairs {
  little = { "<", 8, 0 }, big = { ">", 8, 1 }, little_32 = { "<", 4, 2 }, big_32 = { ">", 4, 3 },
} do
  write("page", name, string.char(case[3]) .. page(case[1], case[2], SIZE):sub(1, 512))
  write("datafile", name .. "_6", version_6(case[1], case[2]))
  write("datafile", name .. "_7", version_7(case[1], case[2]))
  for codec in pairs(STORED) do
    write("datafile", name .. "_" .. codec, packed_7(case[1], case[2], codec))
  end
end
for _, codec in ipairs { "zlib", "zstd" } do
  write("datafile", "text_" .. codec, packed_7("<", 8, codec, true))
end
write("datafile", "text_6", latency_6("<", 8))
local bytes = record "<"
write("format", "sent", (">I2"):pack(#bytes) .. bytes .. FORMAT)
write("format", "empty", "\0\0")
