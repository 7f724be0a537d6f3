--- Stacks of a session's events: having the kernel record them, and the stream bring them.
local must = require("tracefs.raising").must

local stacks = {}

local TRIGGER <const> = "stacktrace"
local OPTION <const> = "userstacktrace"
local EEXIST <const> = 17

---@class tracefs.stacks.wanted
---@field kernel boolean
---@field user boolean

--- Which stacks an event is asked for with, by its options or by the fields that have them.
---@param options { stack?: boolean, user_stack?: boolean }
---@param fields string[]
---@return tracefs.stacks.wanted? wanted nil when none
function stacks.wanted(options, fields)
  local wanted = { kernel = options.stack or false, user = options.user_stack or false }
  for _, name in ipairs(fields) do
    wanted.kernel = wanted.kernel or name == "common_stack"
    wanted.user = wanted.user or name == "common_user_stack"
  end
  return (wanted.kernel or wanted.user) and wanted or nil
end

-- A trigger, and not the instance's option: that has the kernel record the stack of every event
-- in the session. It happens whatever the event's filter says, so it gets the same one.
local function set_trigger(session, system, name)
  local label = system .. ":" .. name
  if session._stack_triggers[label] then
    return
  end
  local filter = session._filters[label]
  local text = filter and ("%s if %s"):format(TRIGGER, filter) or TRIGGER
  local ok, message, errno = session.instance:set_trigger(system, name, text)
  if ok then
    session._stack_triggers[label] = text
  elseif errno ~= EEXIST then
    error(("stack: %s"):format(message), 0)
  end
end

local function set_option(session)
  local instance = session.instance
  if not instance:has("options/" .. OPTION) then
    error("user_stack: this kernel does not record the stacks of programs "
      .. "(CONFIG_USER_STACKTRACE_SUPPORT)", 0)
  end
  must(instance:set_option(OPTION, true))
end

--- Has an event that is on come with stacks. Raises when the kernel refuses.
---@param session tracefs.session
---@param event tracefs.events.entry
---@param id integer
---@param wanted tracefs.stacks.wanted
function stacks.join(session, event, id, wanted)
  local stream = session._stream
  if not session._recorded then
    if wanted.kernel then
      set_trigger(session, event.system, event.name)
    end
    if wanted.user then
      set_option(session)
    end
  end
  if not session._has_stacks then
    stream:stacks(session:_describe_label "ftrace:kernel_stack",
      session:_describe_label "ftrace:user_stack")
    session._has_stacks = true
  end
  stream:join(id, wanted.kernel, wanted.user)
end

--- Takes back what join() has set for an event.
---@param session tracefs.session
---@param system string
---@param name string
function stacks.leave(session, system, name)
  local label = system .. ":" .. name
  local text = session._stack_triggers[label]
  if text then
    session.instance:remove_trigger(system, name, text)
    session._stack_triggers[label] = nil
  end
end

return stacks
