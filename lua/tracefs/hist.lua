--- Histograms that the kernel counts: making them, stopping them, reading them.
local core = require "tracefs.core"
local event_patterns = require "tracefs.events"
local hist_read = require "tracefs.hist_read"
local hist_text = require "tracefs.hist_text"
local must = require("tracefs.raising").must

local hist = {}

--- A histogram of an event in one instance.
---@class tracefs.hist
local Hist = {}
Hist.__index = Hist
Hist.__name = "tracefs.hist"

local syntaxes = {}

--- What this kernel's hist triggers understand.
local function syntax_of(instance)
  local dir = instance:dir():gsub("/instances/[^/]+$", "")
  if not syntaxes[dir] then
    syntaxes[dir] = hist_text.syntax(core.read_file(dir .. "/README") or "")
  end
  return syntaxes[dir]
end

--- Does this kernel have hist triggers at all?
---@param instance tracefs.instance
---@return boolean
function hist.supported(instance)
  for _, file in ipairs { "sched/sched_switch", "raw_syscalls/sys_enter" } do
    if instance:has(("events/%s/hist"):format(file)) then
      return true
    end
  end
  return false
end

local function one_event(instance, label)
  if type(label) ~= "string" then
    error(('hist: an event is a string such as "sched:sched_switch", not %s'):format(type(label)),
      0)
  end
  local found, message = event_patterns.match(instance, label)
  if not found then
    error(message, 0)
  elseif #found > 1 then
    error(("hist: '%s' means %d events; a histogram is of one: %s:%s, ..."):format(
      label, #found, found[1].system, found[1].name), 0)
  end
  return found[1]
end

--- The kernel's line of each of an event's triggers, without what changes.
local function listed(instance, event)
  local lines, message = instance:triggers(event.system, event.name)
  if not lines then
    error(message, 0)
  end
  for i, line in ipairs(lines) do
    lines[i] = line:gsub(" %[%l+%]$", "")
  end
  return lines
end

local function with_filter(text, filter)
  return filter and ("%s if %s"):format(text, filter) or text
end

function Hist:_write(text)
  local event = self._event
  self._tell(("events/%s/%s/trigger"):format(event.system, event.name), text)
  return self._instance:set_trigger(event.system, event.name, text)
end

---@class tracefs.hist.target where a histogram is made
---@field instance tracefs.instance
---@field clock? string by default the instance's
---@field find? fun(label: string): tracefs.events.entry
---@field describe? fun(system: string, name: string): tracefs.event
---@field synthetic? fun(name: string, with: string[]): string
---@field tell? fun(file: string, text: string) gets what is written where
---@field filter? fun(event: tracefs.events.entry): string? a condition beside the user's
---@field check? fun(new: tracefs.hist) may still raise
---@field waits? boolean made paused: _begin() starts it

local function describe(target, event)
  if target.describe then
    return target.describe(event.system, event.name)
  end
  return must(event_patterns.describe(target.instance, event.system .. ":" .. event.name))
end

--- What is wrong with a filter: kernels before 6.2 do not say it for triggers. They say it for
--- events, so an instance that nobody uses is asked.
local function explain_filter(instance, event, filter, message)
  if not filter or message:find("the kernel says:", 1, true) then
    return message
  end
  local other <close> = core.instance_create((instance:dir():gsub("/instances/[^/]+$", "")))
  local ok, why = true, nil
  if other then
    ok, why = other:set_filter(event.system, event.name, filter)
  end
  local says = not ok and why:match "the kernel says:\n.*"
  return says and ("%s; of its filter %s"):format(message, says) or message
end

--- Makes a histogram. Raises what is wrong, with the kernel's reason when the kernel refuses.
---@param target tracefs.hist.target
---@param label string "system:event"
---@param options tracefs.hist.options
---@return tracefs.hist
function hist.add(target, label, options)
  local instance = target.instance
  local event = (target.find or function(name)
    return one_event(instance, name)
  end)(label)
  local dir = ("events/%s/%s"):format(event.system, event.name)
  if not instance:has(dir .. "/hist") then
    error(("hist: this kernel has no histograms for %s: %s/%s/hist is not there%s"):format(
      label, instance:dir(), dir, event.always_on and " (it is one of the tracer's own events)"
        or " (the kernel was built without CONFIG_HIST_TRIGGERS); count in Lua, with on()"), 0)
  end
  local command = hist_text.build(options, {
    event = describe(target, event),
    syntax = syntax_of(instance),
    clock = target.clock or must(instance:get_clock()),
    -- the kernel's names of histograms are those of all instances
    prefix = instance:name():gsub("[^%w_]", "_") .. "_",
    synthetic = target.synthetic,
  })
  local extra = target.filter and target.filter(event)
  local filter = command.filter
  if extra then
    filter = filter and ("(%s) && (%s)"):format(filter, extra) or extra
  end

  local self = setmetatable({
    _instance = instance,
    _event = event,
    _label = label,
    _text = command.text,
    _filter = filter,
    _kinds = command.kinds,
    _has_variables = next(command.variables) ~= nil,
    _tell = target.tell or function() end,
    timestamps = command.timestamps,
  }, Hist)
  if target.check then
    target.check(self)
  end
  -- One with variables cannot be made paused: nothing would ever start it.
  self._waits = target.waits and not self._has_variables and not options.pause
  local text = self._text .. ((options.pause or self._waits) and ":pause" or "")
  local before = {}
  for _, line in ipairs(listed(instance, event)) do
    before[line] = true
  end
  local ok, message = self:_write(with_filter(text, filter))
  if not ok then
    error(explain_filter(instance, event, filter, message), 0)
  end
  for _, line in ipairs(listed(instance, event)) do
    if not before[line] then
      self._trigger = line
    end
  end
  return self
end

--- The label of the event that it is of.
---@return string
function Hist:event()
  return self._label
end

--- The trigger that was written.
---@return string
function Hist:command()
  return with_filter(self._text, self._filter)
end

function Hist:_check()
  if self._is_removed then
    error("the histogram has been removed", 3)
  end
end

--- What has been counted until now.
---@return tracefs.hist.result? result
---@return string? message
---@return integer? errno
function Hist:read()
  self:_check()
  local file = ("events/%s/%s/hist"):format(self._event.system, self._event.name)
  local text, message, errno = self._instance:read(file)
  if not text then
    return nil, message, errno
  end
  local results, why = hist_read.parse(text, self._kinds)
  if not results then
    return nil, ("%s/%s: %s"):format(self._instance:dir(), file, why)
  end
  for _, result in ipairs(results) do
    if result.trigger == self._trigger then
      return result
    end
  end
  return nil, ("%s/%s: the histogram is not there any more: %s"):format(
    self._instance:dir(), file, self:command())
end

--- Writes the trigger once more, with a word that changes the one that is there.
function Hist:_change(word)
  if self._has_variables then
    return nil, ("hist: cannot %s a histogram with variables: the kernel would take them for "
      .. "second ones of their names. Remove it, and make it again"):format(word)
  end
  return self:_write(with_filter(self._text .. ":" .. word, self._filter))
end

--- Stops counting; what has been counted stays.
---@return true?
---@return string? message
---@return integer? errno
function Hist:pause()
  self:_check()
  self._waits = false
  return self:_change "pause"
end

--- Counts again, or for the first time.
---@return true?
---@return string? message
---@return integer? errno
function Hist:continue()
  self:_check()
  self._waits = false
  return self:_change "continue"
end

--- Forgets what has been counted.
---@return true?
---@return string? message
---@return integer? errno
function Hist:clear()
  self:_check()
  return self:_change "clear"
end

--- Takes it away. One whose variables another one uses stays: remove that one first.
---@return true?
---@return string? message
---@return integer? errno
function Hist:remove()
  if self._is_removed then
    return true
  end
  local event, text = self._event, self:command()
  self._tell(("events/%s/%s/trigger"):format(event.system, event.name), "!" .. text)
  local ok, message, errno = self._instance:remove_trigger(event.system, event.name, text)
  if ok then
    self._is_removed = true
  end
  return ok, message, errno
end

--- Starts one that was made to wait. For its session.
function Hist:_begin()
  if self._waits and not self._is_removed then
    must(self:continue())
    self._runs = true
  end
end

--- Stops one that _begin() has started.
function Hist:_finish()
  if self._runs and not self._is_removed then
    self._runs = false
    must(self:pause())
  end
end

function Hist:__tostring()
  return ("tracefs.hist (%s of %s)"):format(self._is_removed and "removed" or "histogram",
    self._label)
end

hist.methods = Hist

return hist
