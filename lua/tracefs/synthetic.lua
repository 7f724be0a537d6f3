--- Synthetic events: what they are made of, and their names.
local synthetic = {}

local function refuse(...)
  error("synthetic: " .. (...):format(select(2, ...)), 0)
end

-- The kernel's longest name of an event is shorter than this.
local LONGEST_NAME <const> = 63

--- Reads "u64 lat", "char comm[16]", "char[] name".
local function parse_field(text)
  local declared, name, array = text:match "^%s*(%a[%w_ ]-[%s%]]?)%s+([%a_][%w_]*)%s*(%b[])%s*$"
  if not declared then
    declared, array, name = text:match "^%s*(%a[%w_ ]-)%s*(%[%d*%])%s+([%a_][%w_]*)%s*$"
  end
  if not declared then
    declared, name = text:match "^%s*(%a[%w_ ]*[%w_])%s+([%a_][%w_]*)%s*$"
  end
  if not declared then
    refuse('"%s" is no field: a type and a name are needed, as in "u64 lat" or "char comm[16]"',
      text)
  end
  return { name = name, type = declared:gsub("%s+$", "") .. (array or ""), text = text }
end

--- The fields of an event, from a string or a list of strings.
---@param fields string|string[] "u64 lat; char comm[16]", or { "u64 lat", "char comm[16]" }
---@return { name: string, type: string }[]
function synthetic.fields(fields)
  local list = {}
  if type(fields) == "string" then
    for text in fields:gmatch "[^;]+" do
      if text:find "%S" then
        list[#list + 1] = text
      end
    end
  elseif type(fields) == "table" then
    for i, text in ipairs(fields) do
      if type(text) ~= "string" then
        refuse("field number %d is no string but a %s", i, type(text))
      end
      list[i] = text
    end
  else
    refuse("the fields are a list of strings, not %s", type(fields))
  end
  if #list == 0 then
    refuse("an event needs a field, for example { \"u64 lat\" }")
  end
  local seen = {}
  for i, text in ipairs(list) do
    local field = parse_field(text)
    if seen[field.name] then
      -- kernels take this
      refuse("the field '%s' is there twice", field.name)
    elseif field.name:find "^common_" then
      refuse("a field cannot be called '%s': all events have the common_ ones", field.name)
    end
    seen[field.name] = true
    list[i] = field
  end
  return list
end

--- The command that makes an event.
---@param full string the kernel's name for it
---@param name string ours
---@param fields { name: string, type: string }[]
---@return string
function synthetic.command(full, name, fields)
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" then
    refuse("a name is of letters, digits and _, and not '%s'", tostring(name))
  elseif #full > LONGEST_NAME then
    refuse("'%s' is too long by %d bytes for the kernel, which gets it as %s", name,
      #full - LONGEST_NAME, full)
  end
  local parts = {}
  for i, field in ipairs(fields) do
    parts[i] = field.type .. " " .. field.name
  end
  return ("s:%s %s"):format(full, table.concat(parts, "; "))
end

-- The kernel compares the names of types first. Where they differ sizes must be equal, and the
-- value of a field then counts as unsigned.
local SAME <const> = {
  s64 = true, u64 = true, s32 = true, u32 = true, s16 = true, u16 = true, s8 = true, u8 = true,
  char = true, ["unsigned char"] = true, int = true, ["unsigned int"] = true, long = true,
  ["unsigned long"] = true, bool = true, pid_t = true, gfp_t = true,
}

--- A type of a synthetic event's field that holds a field of another event.
---@param field table of event:fields()
---@return string
function synthetic.type_for(field)
  if field.kind == "string" then
    return field.place == "fixed" and ("char[%d]"):format(field.size) or "char[]"
  elseif field.kind == "int" and SAME[field.type] then
    return field.type
  elseif field.kind == "int" and (field.size == 1 or field.size == 2 or field.size == 4
      or field.size == 8) then
    return ("u%d"):format(field.size * 8)
  end
  refuse("'%s' (%s) is neither a number nor a string", field.name, field.type)
end

return synthetic
