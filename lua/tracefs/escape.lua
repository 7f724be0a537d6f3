--- Text that is safe to show: what a process or a file calls itself must not steer a terminal.
local escape = {}

-- Control bytes other than newline and tab, and everything that may be more than ASCII.
local SUSPECT = "[\0-\8\11-\31\127-\255]"
local CONTROL = "[\0-\8\11-\31\127]"
-- U+0080 to U+009F in UTF-8: control characters, U+009B starts a terminal command.
local C1 = "\xC2([\x80-\x9F])"

local function hex(byte)
  return ("\\x%02X"):format(byte:byte())
end

local function hex_c1(byte)
  return ("\\xC2\\x%02X"):format(byte:byte())
end

--- Calls `bad` for each byte that belongs to no valid UTF-8 sequence and puts its result there.
---@param text string
---@param bad fun(byte: string): string
---@return string
function escape.invalid_bytes(text, bad)
  local length, position = utf8.len(text)
  if length then
    return text
  end
  local parts, start = {}, 1
  while not length do
    parts[#parts + 1] = text:sub(start, position - 1)
    parts[#parts + 1] = bad(text:sub(position, position))
    start = position + 1
    length, position = utf8.len(text, start)
  end
  parts[#parts + 1] = text:sub(start)
  return table.concat(parts)
end

local function character(byte)
  return utf8.char(byte:byte())
end

--- Valid UTF-8: a byte that belongs to none as the character of its number.
---@param text string
---@return string
function escape.utf8(text)
  return escape.invalid_bytes(text, character)
end

--- Control bytes except newline and tab, control characters of Unicode's second block, and bytes
--- that are no UTF-8, as \xNN. Everything else stays as it is.
---@param text string
---@return string
function escape.text(text)
  if not text:find(SUSPECT) then
    return text
  end
  text = escape.invalid_bytes(text, hex)
  return (text:gsub(CONTROL, hex):gsub(C1, hex_c1))
end

--- The same for a message that must stay one line.
---@param text string
---@return string
function escape.line(text)
  return (escape.text(text):gsub("\n", "\\n"):gsub("\t", "\\t"))
end

return escape
