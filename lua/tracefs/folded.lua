--- Counts by stack: the folded text that flame graph tools read, and a flame graph.
local escape = require "tracefs.escape"
local units = require "tracefs.units"

---@class tracefs.folded
---@field package picture tracefs.folded.picture
local Folded = {}
Folded.__index = Folded
Folded.__name = "tracefs.folded"

local folded = {}

local NO_STACK <const> = "[no stack]"
local OTHER <const> = "[other stacks]"
local DEFAULT_MAX <const> = 100000

-- A name is one frame, whatever is in it.
local function frame(name)
  return (escape.line(tostring(name)):gsub(";", ":"))
end

-- What stands in a stack's text stays one line; an empty stack is none.
local function stack_text(stack)
  if not stack then
    return NO_STACK
  elseif type(stack) ~= "string" then
    error("add(stack, count): a stack is a string such as \"main;work\", or a list of them, not "
      .. type(stack), 4)
  end
  return (stack:gsub("%c", "?"))
end

local function joined(stack, ...)
  local parts = {}
  for i = 1, select("#", ...) do
    parts[i] = frame((select(i, ...)))
  end
  if type(stack) == "table" then
    for _, one in ipairs(stack) do
      parts[#parts + 1] = stack_text(one)
    end
  else
    parts[#parts + 1] = stack_text(stack)
  end
  local texts = {}
  for _, part in ipairs(parts) do
    if part ~= "" then
      texts[#texts + 1] = part
    end
  end
  return #texts > 0 and table.concat(texts, ";") or NO_STACK
end

--- Adds to the count of a stack.
---@param stack string|false|nil|table the names of its functions with ";" between them, the
---  outermost first, as in ev.common_stack; false or nil when there is none; or a list of those,
---  the outer one first: { ev.common_user_stack, ev.common_stack }
---@param count? integer default 1
---@param ... string|integer names that stand before the stack, such as the task's
function Folded:add(stack, count, ...)
  count = count or 1
  if math.type(count) ~= "integer" or count < 0 then
    error("add(stack, count): a whole number from 0 is needed, not " .. tostring(count), 2)
  end
  local key = joined(stack, ...)
  local before = self._counts[key]
  if not before then
    if self._size >= self._max and key ~= OTHER then
      key = OTHER
      before = self._counts[key]
    end
    self._size = before and self._size or self._size + 1
  end
  self._counts[key] = (before or 0) + count
  self._total = self._total + count
end

--- What has been added in all.
---@return integer
function Folded:total()
  return self._total
end

--- The stacks with their counts, sorted by the stack, or the greatest counts first.
---@param options? { sort?: "stack"|"count", top?: integer }
---@return { stack: string, count: integer }[]
function Folded:rows(options)
  options = options or {}
  local list = {}
  for stack, count in pairs(self._counts) do
    list[#list + 1] = { stack = stack, count = count }
  end
  table.sort(list, function(a, b)
    if options.sort == "count" and a.count ~= b.count then
      return a.count > b.count
    end
    return a.stack < b.stack
  end)
  if options.top then
    list = table.move(list, 1, math.min(options.top, #list), 1, {})
  end
  return list
end

--- A line "a;b;c COUNT" for each stack, sorted.
---@return string
function Folded:text()
  local lines = {}
  for i, row in ipairs(self:rows()) do
    lines[i] = ("%s %d\n"):format(row.stack, row.count)
  end
  return table.concat(lines)
end

Folded.__tostring = Folded.text

function Folded:__len()
  return self._size
end

--- A flame graph of it as the text of one SVG file, which needs nothing else.
---@param options? tracefs.folded.picture default: what the counts were made with
---@return string
function Folded:flame(options)
  return require("tracefs.flame").svg(self, options or self.picture)
end

---@class tracefs.folded.picture what a flame graph says of its counts
---@field title? string
---@field unit? tracefs.unit of the counts
---@field what? string what the counts are, without a unit; default "samples"

---@class tracefs.folded.options: tracefs.folded.picture
---@field max? integer different stacks that are kept apart (100000); what comes for others is
---  counted as "[other stacks]"

local OPTIONS <const> = { max = true, title = true, unit = true, what = true }

local function check_options(options)
  if type(options) ~= "table" then
    error("folded: the options must be a table, not " .. type(options), 4)
  end
  for name, value in pairs(options) do
    if not OPTIONS[name] then
      error(("folded: unknown option '%s'; there are: max, title, unit, what"):format(
        tostring(name)), 4)
    elseif name ~= "max" and type(value) ~= "string" then
      error(("folded: %s: a string is needed, not %s"):format(name, type(value)), 4)
    elseif name == "unit" and not units.known(value) then
      error(("folded: unknown unit '%s'"):format(value), 4)
    end
  end
end

--- Counts by stack, empty.
---@param options? tracefs.folded.options
---@return tracefs.folded
function folded.new(options)
  options = options or {}
  check_options(options)
  local max = options.max or DEFAULT_MAX
  if math.type(max) ~= "integer" or max < 1 then
    error("folded: max: a whole number from 1 is needed, not " .. tostring(max), 3)
  end
  return setmetatable({
    _counts = {}, _size = 0, _total = 0, _max = max,
    picture = { title = options.title, unit = options.unit, what = options.what },
  }, Folded)
end

--- Are these counts by stack?
---@param value any
---@return boolean
function folded.is(value)
  return getmetatable(value) == Folded
end

return folded
