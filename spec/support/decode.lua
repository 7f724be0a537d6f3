--- Event formats and records made by hand, for specs that decode without a kernel, and the
--- format files of real kernels.
local core = require "tracefs.core"
local helper = require "spec.support.helper"

local decode = {}

local COMMON = {
  { "unsigned short common_type", "I2" },
  { "unsigned char common_flags", "B" },
  { "unsigned char common_preempt_count", "B" },
  { "int common_pid", "i4" },
}

local function place_fields(list, offset, lines)
  local signed = { i = 1, b = 1 }
  for _, field in ipairs(list) do
    local declaration, packing = field[1], field[2]
    local size = field.size
    if not size then
      size = (packing == "data_loc" or packing == "rel_loc") and 4
        or packing == "tail" and 0
        or string.packsize(packing)
    end
    offset = field.offset or offset
    table.insert(lines, ("\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;"):format(
      declaration, offset, size, field.signed or signed[packing:sub(1, 1)] or 0))
    field.at = offset
    offset = offset + size
  end
  return offset
end

--- The text of a format file. A field is { declaration, packing [, value] }, its packing that of
--- string.pack, or "data_loc", "rel_loc", "tail".
---@param options { name?: string, id?: integer, print?: string, fields?: table[] }
---@return string text
---@return integer size of the fixed part of a record
function decode.format(options)
  local lines = {
    "name: " .. (options.name or "thing"),
    "ID: " .. (options.id or 500),
    "format:",
  }
  local common = {}
  for i, field in ipairs(COMMON) do
    common[i] = { field[1], field[2] }
  end
  local offset = place_fields(common, 0, lines)
  table.insert(lines, "")
  offset = place_fields(options.fields or {}, offset, lines)
  table.insert(lines, "")
  table.insert(lines, "print fmt: " .. (options.print or '""'))
  return table.concat(lines, "\n") .. "\n", offset
end

--- A record of these fields with their values (third in each field).
---@param fields table[] as decode.format() has placed them
---@param size integer of the fixed part
---@param options? table id, flags, preempt, pid: of the common fields; order: "<" or ">"
---@return string bytes
function decode.bytes(fields, size, options)
  options = options or {}
  local order = options.order or "<"
  local parts = { { 0, (order .. "I2BBi4"):pack(
    options.id or 500, options.flags or 0, options.preempt or 0, options.pid or 1) } }
  local tail = ""
  for _, field in ipairs(fields) do
    local packing, value = field[2], field[3]
    if packing == "data_loc" or packing == "rel_loc" then
      local from = packing == "rel_loc" and field.at + 4 or 0
      table.insert(parts, { field.at, (order .. "I4"):pack(#value << 16 | (size + #tail - from)) })
      tail = tail .. value
    elseif packing == "tail" then
      tail = tail .. value
    else
      table.insert(parts, { field.at, (order .. packing):pack(value) })
    end
  end
  local bytes = ("\0"):rep(size)
  for _, part in ipairs(parts) do
    bytes = bytes:sub(1, part[1]) .. part[2] .. bytes:sub(part[1] + #part[2] + 1)
  end
  return bytes .. tail
end

--- An event and a record of it.
---@param options table as for both, and: catalog, system, common_timestamp, common_cpu
---@return any record
---@return tracefs.event event
function decode.record(options)
  local catalog = options.catalog or core.catalog(options.order == ">", options.long_size or 8)
  local text, size = decode.format(options)
  local event = assert(catalog:parse(options.system or "made", text))
  local record = event:record(decode.bytes(options.fields or {}, size, options), {
    common_timestamp = options.common_timestamp,
    common_cpu = options.common_cpu,
  })
  return record, event
end

--- The text that a print format makes of these fields; nil and the reason when it is no good.
---@param print_fmt string
---@param fields? table[]
---@param options? table as for record()
---@return string? text
---@return string? message
function decode.text(print_fmt, fields, options)
  local all = { print = print_fmt, fields = fields or {} }
  for key, value in pairs(options or {}) do
    all[key] = value
  end
  return core.text((decode.record(all)))
end

local archives = helper.root .. "/../shared/inputs/formats/"

--- Every format file of a kernel whose tree was packed: { system =, name =, text = }. Nil when the
--- archive is not there.
---@param name string such as "linux-6.18-x86_64"
---@return table[]?
function decode.archive(name)
  local path = archives .. name .. ".tar.xz"
  if not helper.read_file(path) then
    return nil
  end
  local dir = helper.tmpdir()
  assert(helper.execute { "tar", "xJf", path, "-C", dir } == 0)
  local _, list = helper.execute { "find", dir, "-name", "format", "-path", "*/events/*" }
  local formats = {}
  for file in list:gmatch("[^\n]+") do
    local system, event = file:match("([^/]+)/([^/]+)/format$")
    table.insert(formats, { system = system, name = event, text = helper.read_file(file) })
  end
  return formats
end

return decode
