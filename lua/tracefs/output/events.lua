--- What an output has to know of events: which of their fields are unsigned.
local events = {}

--- Kinds of fields whose values are lists.
---@type table<string, boolean?>
events.LISTS = { array = true, bitmask = true, strings = true }

local function live(label)
  return (require("tracefs").event(label))
end

local finder = live
-- By who describes events, and label: the names of the unsigned fields, false for an unknown event.
local known = setmetatable({}, { __mode = "k" })

--- Asks this from now on what events look like: a recording has its own. nil: the live kernel.
---@param find? fun(label: string): tracefs.event?
function events.describe_with(find)
  finder = find or live
end

--- Who is asked.
---@return fun(label: string): tracefs.event?
function events.finder()
  return finder
end

--- By name, which fields of an event are unsigned numbers or lists of them (true), addresses and
--- other bytes ("bytes"), or other lists ("list"); nil when nobody knows the event.
---@param label string
---@return table<string, boolean|string>?
function events.unsigned(label)
  known[finder] = known[finder] or {}
  local found = known[finder][label]
  if found == nil then
    found = false
    local event = label:find("^[^*?%[]+:[^*?%[]+$") and finder(label)
    if event then
      found = { common_timestamp = true }
      for _, field in ipairs(event:fields()) do
        local is_number = field.kind == "int" or field.kind == "array"
        found[field.name] = field.kind == "bytes" and "bytes" or is_number and not field.signed
          or events.LISTS[field.kind] and "list" or nil
      end
    end
    known[finder][label] = found
  end
  return found or nil
end

return events
