--- A session's triggers: what the kernel does by itself when events happen.
local event_patterns = require "tracefs.events"

---@class tracefs.session
local triggers = {}

local function set_all(self, pattern, text)
  self:_check_open(0)
  if type(pattern) ~= "string" or pattern:find("\0", 1, true) then
    error('trigger(event, text): the event is a pattern such as "sched:sched_switch"', 0)
  elseif type(text) ~= "string" or text:find("\0", 1, true) then
    error('trigger(event, text): the text is a string such as "traceoff:1 if pid == 1"', 0)
  end
  local instance = self.instance
  local found, message = event_patterns.match(instance, pattern)
  if not found then
    error(message, 0)
  end
  for i, event in ipairs(found) do
    local ok
    ok, message = instance:set_trigger(event.system, event.name, text)
    if not ok then
      for k = i - 1, 1, -1 do
        instance:remove_trigger(found[k].system, found[k].name, text)
      end
      error(message, 0)
    end
  end
  return #found
end

--- Has the kernel do something whenever one of the events happens, whether it is on or not:
--- COMMAND[:ARGUMENTS][:COUNT] [if FILTER], see instance:set_trigger(). All of the events get it,
--- or none when the kernel refuses one. It goes away with the session.
---@param pattern string as for on()
---@param text string such as "stacktrace:3 if prev_state == 2"
---@return integer count of events that the pattern meant
function triggers:trigger(pattern, text)
  if type(self) ~= "table" or not self._match then
    error("trigger is a method: it is called with a colon, session:trigger(...)", 2)
  end
  local ok, result = pcall(set_all, self, pattern, text)
  if not ok then
    error(result, type(result) == "string" and 2 or 0)
  end
  return result
end

return triggers
