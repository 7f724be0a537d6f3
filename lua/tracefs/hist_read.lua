--- The text of a `hist` file as tables. No kernel is needed for it.
local hist_text = require "tracefs.hist_text"

local hist_read = {}

---@class tracefs.hist.frame a function of a stack
---@field text string as the kernel writes it
---@field symbol? string nil when the kernel knows no name for the address
---@field offset? integer bytes behind the function's begin
---@field size? integer of the function
---@field module? string

---@class tracefs.hist.row
---@field keys table<string, any> by the field's name; what a value is depends on the modifier
---@field values table<string, integer|number> sums; "hitcount" unless nohitcount
---@field max? integer of the action onmax
---@field changed? integer of the action onchange
---@field saved? table<string, integer|string> of the action save

---@class tracefs.hist.result
---@field rows tracefs.hist.row[] in the order of the kernel, which is that of `sort`
---@field hits integer events that the histogram has counted
---@field entries integer rows that the kernel says there are
---@field dropped integer events that found no place: `size` is too small for the keys
---@field unreadable integer rows that could not be told apart from the text around them
---@field trigger string the trigger as the kernel writes it
---@field name? string
---@field paused boolean
---@field snapshot? string what the action snapshot says about the one that it took

--- Digits of an unsigned number as an integer with the same 64 bits.
local function unsigned(digits)
  local value = 0
  for digit in digits:gmatch "%d" do
    value = value * 10 + (digit:byte() - 48)
  end
  return value
end

local function hexadecimal(digits)
  local value = 0
  for digit in digits:gmatch "%x" do
    value = value << 4 | tonumber(digit, 16)
  end
  return value
end

-- ---------------------------------------------------------------------------
-- Keys
-- ---------------------------------------------------------------------------

-- A reader gets the text and a place in it, and yields what may stand there, each with the place
-- behind it: where a string comes from outside it can hold what looks like the rest of the line,
-- so the first reading with which the whole row fits is taken.
---@alias tracefs.hist.reader fun(text: string, at: integer): (fun(): any, integer)

local function one(value, next)
  local given = value == nil
  return function()
    if not given then
      given = true
      return value, next
    end
  end
end

local function nothing()
  return nil
end

local function by_pattern(pattern, convert)
  return function(text, at)
    local _, last, a, b, c = text:find(pattern, at)
    if not last then
      return nothing
    end
    return one(convert(a, b, c), last + 1)
  end
end

-- The longest string that a histogram keeps.
local LONGEST <const> = 256

--- A string that is padded to a width: exactly that wide, or longer and up to any of the places
-- where a row could go on.
local function padded(width)
  return function(text, at)
    local place = at + width - 1
    if place > #text then
      return nothing
    end
    local first = true
    return function()
      if not first then
        repeat
          place = place + 1
          local behind = text:byte(place + 1)
          if not behind or place - at >= LONGEST then
            return nil
          end
          -- a comma, a blank or a line's end follows in any row
        until behind == 44 or behind == 32 or behind == 10
      end
      first = false
      return (text:sub(at, place):gsub(" +$", "")), place + 1
    end
  end
end

--- A number is set right in ten columns, a string left in fifty: tells them apart where the
-- event's fields are not known.
local function plain(width)
  local string_reader = padded(width)
  return function(text, at)
    local digits = text:match("^ *%d+", at)
    local strings = string_reader(text, at)
    local tried_number = not digits or #digits < 10 or #digits > 20
    return function()
      if not tried_number then
        tried_number = true
        return unsigned(digits), at + #digits
      end
      return strings()
    end
  end
end

local function parse_frame(line)
  local symbol, offset, size, rest = line:match "^(%S+)%+0x(%x+)/0x(%x+)(.*)$"
  return {
    text = line,
    symbol = symbol,
    offset = offset and hexadecimal(offset),
    size = size and hexadecimal(size),
    module = rest and rest:match "^ %[([^%s%]]+)",
  }
end

local function read_stack(text, at)
  local frames = {}
  while true do
    local _, last, line = text:find("^ +([^\n]+)\n", at)
    if not last then
      return one(frames, at)
    end
    frames[#frames + 1] = parse_frame(line)
    at = last + 1
  end
end

local readers = {
  int = by_pattern("^ *(%d+)", unsigned),
  hex = by_pattern("^ *(%x+)", hexadecimal),
  usecs = by_pattern("^ *(%d+)", unsigned),
  string = padded(50),
  plain = plain(50),
  stacktrace = read_stack,
  sym = by_pattern("^%[(%x+)%] ([^\n]-) *%f[,}\0]", function(address, name)
    return { address = hexadecimal(address), symbol = name:match "^%S+",
      module = name:match "%[([^%]]+)%]$" }
  end),
  ["sym-offset"] = by_pattern("^%[(%x+)%] ([^\n]-) *%f[,}\0]", function(address, name)
    local frame = parse_frame(name)
    frame.address = hexadecimal(address)
    return frame
  end),
  syscall = by_pattern("^([%w_]+) *%[ *(%d+)%]", function(name, number)
    return { name = name ~= "unknown_syscall" and name or nil, id = unsigned(number) }
  end),
  log2 = by_pattern("^~ 2%^(%d+) *", function(digits)
    local n = unsigned(digits)
    return { low = n == 0 and 0 or (1 << (n - 1)) + 1, high = 1 << n, log2 = n }
  end),
  buckets = by_pattern("^~ (%d+)%-(%d+)", function(low, high)
    return { low = unsigned(low), high = unsigned(high) }
  end),
}

-- A command's name has 15 bytes, any bytes, and is padded to 16: the number's bracket is behind.
function readers.execname(text, at)
  local _, last, pid = text:find("^%[ *(%d+)%]", at + 16)
  if not last then
    return nothing
  end
  return one({ comm = text:sub(at, at + 15):gsub(" +$", ""), pid = unsigned(pid) }, last + 1)
end

-- ---------------------------------------------------------------------------
-- Rows
-- ---------------------------------------------------------------------------

local function read_value(text, at, value)
  local last, name, digits, _
  if value.modifier == "percent" then
    _, last, name, digits = text:find("^ +(%S+) %(%%%): *(%d+%.%d+)", at)
    if last then
      return name .. ".percent", tonumber(digits), last + 1
    end
    _, last, name = text:find("^ +(%S+) %(%%%):%[ERROR%]", at)
    if last then
      return name .. ".percent", 0 / 0, last + 1
    end
  elseif value.modifier == "graph" then
    _, last, name = text:find("^ +(%S-): ", at)
    if last then
      local bar = text:sub(last + 1, last + 20)
      return name .. ".graph", #bar:gsub("[^#]", ""), last + 21
    end
  elseif value.modifier == "hex" then
    _, last, name, digits = text:find("^ +(%S-): +(%x+)", at)
    if last then
      return name, hexadecimal(digits), last + 1
    end
  else
    _, last, name, digits = text:find("^ +(%S-): +(%d+)", at)
    if last then
      return name, unsigned(digits), last + 1
    end
  end
end

local read_saved_string = plain(32)

--- What save() has kept, in the order of its arguments: all of it or nothing.
local function read_saved(text, at, names, i, saved)
  local name = names[i]
  if not name then
    return at
  end
  local head = ("  %s: "):format(name)
  if text:sub(at, at + #head - 1) ~= head then
    -- a save() of another action
    return at
  end
  for value, next in read_saved_string(text, at + #head) do
    local behind = text:byte(next)
    if behind == 10 or text:find("^  [%w_]+: ", next) then
      local last = read_saved(text, next, names, i + 1, saved)
      if last then
        -- a string that was never kept
        saved[name] = value ~= "(null)" and value or nil
        return last
      end
    end
  end
end

local function read_actions(text, at, info, row)
  while true do
    local _, last, what, digits = text:find("^\n\t(%l+): +(%d+)", at)
    if not last then
      return at
    end
    row[what] = unsigned(digits)
    at = last + 1
    if #info.saved > 0 then
      row.saved = row.saved or {}
      at = read_saved(text, at, info.saved, 1, row.saved)
      if not at then
        return nil
      end
    end
  end
end

--- What stands behind the keys, up to the line's end.
local function read_rest(text, at, info)
  local _, last = text:find("^ ?}", at)
  if not last then
    return nil
  end
  at = last + 1
  local row = { values = {} }
  for _, value in ipairs(info.values) do
    local name, number, next = read_value(text, at, value)
    if not name then
      return nil
    end
    row.values[name] = number
    at = next
  end
  at = read_actions(text, at, info, row)
  if not at or text:byte(at) ~= 10 then
    return nil
  end
  return row, at + 1
end

--- A key's name and the place of its last byte. It is known but for expressions, and for the CPU,
--- which goes by two names.
local function read_name(text, at, key)
  local _, last, name
  if key.kind == "stacktrace" then
    _, last, name = text:find("^([%w_]+)[%w_.]*:?\n?", at)
  elseif not key.field or key.field == "common_cpu" then
    _, last, name = text:find("^([%w_.$%-+*/()]+): ", at)
  else
    name, last = key.field, at + #key.field + 1
    if text:sub(at, last) ~= name .. ": " then
      return nil
    end
  end
  return name, last
end

--- The key number i and all that follows; nil when no reading fits.
local function read_keys(text, at, info, i, keys)
  local key = info.keys[i]
  if not key then
    return read_rest(text, at, info)
  end
  if i > 1 then
    if text:sub(at, at + 1) ~= ", " then
      return nil
    end
    at = at + 2
  end
  local name, last = read_name(text, at, key)
  if not name then
    return nil
  end
  for value, next in readers[key.kind](text, last + 1) do
    local row, behind = read_keys(text, next, info, i + 1, keys)
    if row then
      keys[i] = { name = key.field or name, value = value }
      return row, behind
    end
  end
end

local function read_row(text, at, info)
  if text:sub(at, at + 1) ~= "{ " then
    return nil
  end
  local keys = {}
  local row, next = read_keys(text, at + 2, info, 1, keys)
  if not row then
    return nil
  end
  row.keys = {}
  for _, key in ipairs(keys) do
    row.keys[key.name] = key.value
  end
  return row, next
end

-- ---------------------------------------------------------------------------
-- Histograms
-- ---------------------------------------------------------------------------

local HEAD <const> = "# event histogram\n#\n# trigger info: "
local TOTALS <const> = "^\nTotals:\n    Hits: (%d+)\n    Entries: (%d+)\n    Dropped: (%d+)\n"

--- The rows of one histogram from a place on; the place behind them.
local function read_rows(text, at, info)
  local rows, unreadable, totals = {}, 0, 0
  while text:sub(at, at + 1) == "{ " do
    local row, next = read_row(text, at, info)
    if row then
      rows[#rows + 1] = row
    else
      unreadable = unreadable + 1
      if totals < at then
        totals = text:find("\n\nTotals:\n", at, true) or #text
      end
      local row_at = text:find("\n{ ", at, true)
      next = (row_at and row_at < totals and row_at or totals) + 1
    end
    at = next
  end
  return rows, unreadable, at
end

--- Keys of which no one knows whether they are numbers or strings are strings as soon as one of
--- them is no number.
local function settle_plain_keys(info, rows)
  local changed = false
  for _, key in ipairs(info.keys) do
    if key.kind == "plain" then
      for _, row in ipairs(rows) do
        if type(row.keys[key.field]) == "string" then
          key.kind = "string"
          changed = true
          break
        end
      end
    end
  end
  return changed
end

local function read_one(text, at, kinds)
  local line_end = text:find("\n", at, true) or #text + 1
  local trigger = text:sub(at, line_end - 1)
  local info, why = hist_text.info(trigger, kinds)
  if not info then
    return nil, why
  end
  local _, body = text:find("^#\n\n", line_end + 1)
  if not body then
    return nil, "a histogram has no head: " .. trigger
  end
  local rows, unreadable, behind = read_rows(text, body + 1, info)
  if settle_plain_keys(info, rows) then
    rows, unreadable, behind = read_rows(text, body + 1, info)
  end
  local result = {
    rows = rows,
    unreadable = unreadable,
    trigger = info.trigger,
    name = info.name,
    paused = info.paused,
  }
  local _, last = text:find("^\nSnapshot taken[^\n]*\n", behind)
  local totals = last and text:find("\nTotals:\n", last, true)
  if totals then
    result.snapshot = text:sub(last + 1, totals - 1):gsub("\n+$", "")
    behind = totals
  end
  local hits, entries, dropped
  _, last, hits, entries, dropped = text:find(TOTALS, behind)
  if not last then
    return nil, "a histogram has no totals: " .. trigger
  end
  result.hits, result.entries, result.dropped =
    unsigned(hits), unsigned(entries), unsigned(dropped)
  return result, last + 1
end

--- All histograms of the text of a `hist` file.
---@param text string
---@param kinds? table<string, "int"|"string"> of the event's fields; guessed where it is not given
---@return tracefs.hist.result[]? results
---@return string? message
function hist_read.parse(text, kinds)
  local results, at = {}, text:find(HEAD, 1, true)
  while at do
    local result, behind = read_one(text, at + #HEAD, kinds)
    if not result then
      return nil, "cannot read a histogram: " .. behind
    end
    results[#results + 1] = result
    at = text:find(HEAD, behind, true)
  end
  return results
end

return hist_read
