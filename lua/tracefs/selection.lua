--- How a session's events are chosen: patterns, fields, filters, descriptions.
local core = require "tracefs.core"
local event_patterns = require "tracefs.events"
local filters = require "tracefs.filter"
local probes = require "tracefs.probes"
local raising = require "tracefs.raising"
local samples = require "tracefs.sample"
local stacks = require "tracefs.stacks"
local must = raising.must

---@class tracefs.session
local selection = {}

-- ftrace's own events: they come without being enabled (markers, stacks), so their ids are
-- looked up when the first one arrives
local internal_events = {
  "print",
  "kernel_stack",
  "user_stack",
  "raw_data",
  "bprint",
  "bputs",
  "function",
  "funcgraph_entry",
  "funcgraph_exit",
  "fgraph_retaddr_entry",
  "func_repeats",
  "wakeup",
  "context_switch",
  "hwlat",
  "osnoise",
  "timerlat",
  "mmiotrace_rw",
  "mmiotrace_map",
  "branch",
}

--- The description of an event by its name, parsed when it is first asked for.
function selection:_describe(system, name)
  local label = system .. ":" .. name
  local event = self._descriptions[label]
  if not event then
    local text = must(self.instance:read(("events/%s/%s/format"):format(system, name)))
    -- A probe's group has the process's number in it: it is shown as what was asked for.
    event = must(self._catalog:parse(self._shown_systems[system] or system, text))
    probes.attach(self._dir, event, system)
    self._descriptions[label] = event
  end
  return event
end

--- The description of an event by the label that its records show; nil when it is not there.
function selection:_describe_label(label)
  local shown, name = label:match "^([^:]+):(.+)$"
  local system = shown
  for real, other in pairs(self._shown_systems) do
    system = other == shown and real or system
  end
  local ok, event = pcall(self._describe, self, system, name)
  return ok and event or nil
end

--- Notes the id of an event that the session has not turned on itself.
function selection:_note(system, name)
  local text = self.instance:read(("events/%s/%s/format"):format(system, name))
  local id = text and tonumber(text:match "\nID:%s*(%d+)")
  if id and not self._labels[id] then
    self._labels[id] = { system = system, name = name }
  end
end

--- The description of an id that a record carries; nil when nobody knows it.
function selection:_resolve(id)
  if not self._labels[id] then
    for _, name in ipairs(internal_events) do
      self:_note("ftrace", name)
    end
  end
  if not self._labels[id] then
    -- turned on in the instance, beside the session
    for system, name in (self.instance:read "set_event" or ""):gmatch "([^:\n]+):([^\n]+)" do
      self:_note(system, name)
    end
  end
  local found = self._labels[id]
  return found and self:_describe(found.system, found.name)
end

--- The id of an event. Most of ftrace's own have no file for it.
function selection:_id(system, name)
  local dir = ("events/%s/%s/"):format(system, name)
  if self.instance:has(dir .. "id") then
    return must(tonumber(must(self.instance:read(dir .. "id"))))
  end
  return must(tonumber(must(self.instance:read(dir .. "format")):match "\nID:%s*(%d+)"))
end

-- An event has one sample, as it has one filter. Returns what is new about it.
local function plan_sample(self, label, wanted, event)
  local there = self._samples[label]
  if self._labels[label] and (there and there.text) ~= (wanted and wanted.text) then
    error(("%s is on already with %s: an event has one in a session"):format(event:label(),
      there and ('the sample "%s"'):format(there.text) or "no sample"), 0)
  elseif there or not wanted then
    return nil, there and there.condition
  end
  return samples.plan(wanted, event)
end

local function set_sample(self, id, label, plan, condition, event)
  plan.condition = condition
  self._samples[label] = plan
  self._stream:sample(id, plan.scale, plan.by_kernel or false, plan.field and event or nil,
    plan.field, plan.field and plan.shift or nil)
  if self.on_choice then
    self.on_choice(("%s: a sample of %s"):format(event:label(), samples.tell(plan)))
  end
end

--- Turns one event on and returns its id.
function selection:_enable(system, name, filter, sample)
  local instance = self.instance
  local label = system .. ":" .. name
  if type(filter) == "table" then
    filter = filters.text(filter, self:_describe(system, name))
  end
  local shown = (self._shown_systems[system] or system) .. ":" .. name
  local plan, condition
  if sample or self._samples[label] then
    plan, condition = plan_sample(self, label, sample, self:_describe(system, name))
    filter = samples.join(filter, condition)
  end
  if filter and self._filters[label] ~= filter then
    if self._filters[label] or self._labels[label] then
      error(
        ("%s is on already with %s: an event has one filter in a session; "
          .. "put both conditions into it"):format(
          shown,
          self._filters[label] and ("the filter '%s'"):format(self._filters[label]) or "no filter"
        ),
        0
      )
    end
    must(instance:set_filter(system, name, filter))
    self._filters[label] = filter
  elseif not filter and self._filters[label] then
    error(
      ("%s is on already with the filter '%s': ask for it with the same filter"):format(
        shown,
        self._filters[label]
      ),
      0
    )
  end
  local id = self._labels[label]
  if not id then
    id = self:_id(system, name)
    self._labels[label] = id
    self._labels[id] = { system = system, name = name }
    -- ftrace's own, such as the markers' ftrace:print, come without it
    if instance:has(("events/%s/%s/enable"):format(system, name)) then
      must(instance:enable(system, name))
    end
  end
  if plan then
    set_sample(self, id, label, plan, condition, self:_describe(system, name))
  end
  return id
end

--- Takes back what _enable() has done for an event, or begun.
function selection:_disable(system, name)
  local instance, label = self.instance, system .. ":" .. name
  if instance:has(("events/%s/%s/enable"):format(system, name)) then
    instance:disable(system, name)
  end
  if self._filters[label] then
    instance:clear_filter(system, name)
    self._filters[label] = nil
  end
  stacks.leave(self, system, name)
  self._labels[label] = nil
  self._samples[label] = nil
end

--- What stats() says of samples, by the label of their events; nil when there is none.
function selection:_sample_counts()
  local counts
  for label, plan in pairs(self._samples) do
    local seen, taken = self._stream:sampled(self._labels[label])
    local system, name = label:match "^(.-):(.*)$"
    counts = counts or {}
    counts[(self._shown_systems[system] or system) .. ":" .. name] = {
      scale = plan.scale, where = plan.by_kernel and "kernel" or "reader",
      seen = not plan.by_kernel and seen or nil, taken = taken,
    }
  end
  return counts
end

--- Turns all events on, or none when the kernel refuses one. Returns their ids.
---@param found tracefs.events.entry[]
---@param filter? string|table
---@param sample? tracefs.sample
---@param wanted? tracefs.stacks.wanted which stacks they come with
function selection:_enable_all(found, filter, sample, wanted)
  local ids, new = {}, {}
  for i, event in ipairs(found) do
    local label = event.system .. ":" .. event.name
    new[i] = not self._labels[label]
    local ok, result = pcall(function()
      local id = self:_enable(event.system, event.name, filter, sample)
      if wanted then
        stacks.join(self, event, id, wanted)
      end
      return id
    end)
    if not ok then
      for k = i, 1, -1 do
        if new[k] then
          self:_disable(found[k].system, found[k].name)
        end
      end
      error(result, 0)
    end
    ids[i] = result
  end
  return ids
end

--- Says what is about to be written, to whom wants to see it.
function selection:_announce(file, text)
  if self.on_write then
    self.on_write(file, text)
  end
end

--- What both `on` and `enable` need: the events that a pattern means. A probe is made for it,
--- and can be taken back.
---@return tracefs.events.entry[] found
---@return fun()? undo
function selection:_match(pattern, probe_options)
  probe_options = probe_options or {}
  self:_check_open(0)
  if type(pattern) ~= "string" then
    error(
      ('an event pattern is a string such as "sched:sched_switch", not %s'):format(type(pattern)),
      0
    )
  elseif pattern:find("\0", 1, true) then
    error("bad event pattern: it has a zero byte", 0)
  end
  local kind = probes.kind(pattern)
  if kind and self._recorded then
    error(("probe: %s is a recording; this needs a live kernel"):format(self._recorded), 0)
  elseif kind and core.dropped_rights() then
    error(("probe: root's rights, which making one needs, have been given up for %s (--user)")
      :format(core.dropped_rights()), 0)
  elseif kind then
    return probes.make(self, pattern, probe_options)
  end
  local option = next(probe_options)
  if option then
    error(("%s belongs to a probe, as kprobe:FUNCTION or uprobe:PATH:FUNCTION, not to %s"):format(
      option, pattern), 0)
  end
  local own = self:_find_synthetic(pattern)
  if own then
    return { own }
  end
  local found, message, missing
  if self._recorded then
    found, message, missing = event_patterns.match_in(self.instance:event_list(), pattern,
      self._recorded)
    if missing and self.on_notice then
      self.on_notice(message)
    end
  else
    found, message = event_patterns.match(self.instance, pattern)
  end
  if not found then
    error(message, 0)
  end
  return found
end

local function check_fields(event, fields)
  for _, field in ipairs(fields) do
    if not event:has(field) then
      local names = {}
      for _, known in ipairs(event:fields()) do
        names[#names + 1] = known.name
      end
      error(
        ("%s has no field '%s'; it has: %s, common_timestamp, common_cpu, common_comm, "
          .. "common_event, common_late, common_scale, common_stack, common_user_stack"):format(
          event:label(),
          tostring(field),
          table.concat(names, ", ")
        ),
        0
      )
    end
  end
end

local common_fields = {
  common_stack = true,
  common_user_stack = true,
  common_timestamp = true,
  common_cpu = true,
  common_comm = true,
  common_event = true,
  common_late = true,
  common_scale = true,
}

local MAX_FIELDS <const> = 64

local probe_option_names = { args = true, name = true, maxactive = true }

--- Splits the middle argument of `on` into field names, a filter, and what probes have.
local function parse_choice(choice)
  local fields, filter, count, probe_options, sample, stack_options = {}, nil, 0, {}, nil, {}
  for key, value in pairs(choice) do
    if key == "filter" then
      if type(value) ~= "string" and type(value) ~= "table" then
        error("filter: a string in the kernel's filter language, or a table of conditions, is "
          .. "needed, not " .. type(value), 0)
      elseif type(value) == "string" and value:find("\0", 1, true) then
        error("bad filter: it has a zero byte", 0)
      end
      filter = value
    elseif key == "sample" then
      sample = samples.parse(value)
    elseif key == "stack" or key == "user_stack" then
      if type(value) ~= "boolean" then
        error(("%s: true or false, not %s"):format(key, type(value)), 0)
      end
      stack_options[key] = value
    elseif math.type(key) == "integer" then
      if type(value) ~= "string" then
        error("field names are strings, not " .. type(value), 0)
      end
      fields[key] = value
      count = count + 1
    elseif probe_option_names[key] then
      probe_options[key] = value
    else
      error(("unknown option '%s' of an event; there are: filter, sample, stack, user_stack; and "
        .. "for probes: args, name, maxactive"):format(tostring(key)), 0)
    end
  end
  if count > MAX_FIELDS then
    error(("%d fields: a handler gets at most %d"):format(count, MAX_FIELDS), 0)
  end
  for i = 1, count do
    if not fields[i] then
      error(("the field names must be a list: number %d of %d is missing"):format(i, count), 0)
    end
  end
  return fields, filter, probe_options, sample, stacks.wanted(stack_options, fields)
end

--- The checks that must pass before anything is changed.
function selection:_check_all(found, fields)
  local own = {}
  for _, field in ipairs(fields) do
    if not common_fields[field] then
      own[#own + 1] = field
    end
  end
  if #own == 0 then
    return
  end
  for _, event in ipairs(found) do
    check_fields(self:_describe(event.system, event.name), own)
  end
end

local function check_self(self, name)
  if type(self) ~= "table" or not self._match then
    error(("%s is a method: it is called with a colon, session:%s(...)"):format(name, name), 0)
  end
end

--- The events that a pattern means, turned on. A probe that was made for nothing is removed.
local function turn_on(self, pattern, fields, filter, probe_options, sample, wanted)
  local found, undo = self:_match(pattern, probe_options)
  local ok, result = pcall(function()
    self:_check_all(found, fields)
    return self:_enable_all(found, filter, sample, wanted)
  end)
  if not ok then
    if undo then
      undo()
    end
    error(result, 0)
  end
  return found, result
end

local function on(self, pattern, choice, handler)
  check_self(self, "on")
  if handler == nil then
    choice, handler = {}, choice
  end
  if type(handler) ~= "function" then
    error("on(event, [fields,] handler): the handler must be a function, not " .. type(handler), 0)
  end
  if type(choice) ~= "table" then
    error("on(event, fields, handler): the fields must be a table of names, not "
      .. type(choice), 0)
  end
  local fields, filter, probe_options, sample, wanted = parse_choice(choice)
  local found, ids = turn_on(self, pattern, fields, filter, probe_options, sample, wanted)
  for i, event in ipairs(found) do
    if #fields > 0 then
      self._stream:handle(ids[i], handler, self:_describe(event.system, event.name), fields)
    else
      self._stream:handle(ids[i], handler)
    end
  end
  return #found
end

--- Turns events on and has a handler called for each of their records.
---
--- `on("net:net_dev_queue", function(ev) end)` gets a record;
--- `on("net:net_dev_queue", {"skbaddr", "common_timestamp"}, function(skbaddr, ts) end)` gets
--- values, which is cheaper; `{..., filter = "len > 100"}` sets the kernel's filter, and so does a
--- table of conditions as for tracefs.filter(). `sample = "1/100"` hands out one record in so
--- many: each 100th, or with "1/64 of FIELD" those whose field says so, of which the kernel makes
--- a filter. They have the scale in common_scale.
---
--- `on("kprobe:do_sys_openat2", { args = { name = "+0($arg2):ustring" } }, handler)` makes a
--- probe, which goes with the session. There are kprobe, kretprobe, fprobe, fexit (FUNCTION),
--- uprobe, uretprobe (PATH:FUNCTION, PATH:0xOFFSET), tprobe (TRACEPOINT), eprobe (SYSTEM:EVENT).
---
--- With `stack = true`, or the field common_stack, its records come with the kernel's stack at that
--- moment; with `user_stack = true`, or common_user_stack, with the program's.
---@param pattern string "system:name", with * ? [..] on either side, or a name alone; or a probe
---@param choice? table field names, filter, sample, stack, user_stack; of a probe also args,
--- name, maxactive
---@param handler function
---@return integer count of events that the pattern meant
function selection:on(pattern, choice, handler)
  local count = raising.at_caller(2, on, self, pattern, choice, handler)
  return count
end

local function enable(self, pattern, options)
  check_self(self, "enable")
  if options ~= nil and type(options) ~= "table" then
    error("enable(event, options): the options must be a table, not " .. type(options), 0)
  end
  local fields, filter, probe_options, sample, wanted = parse_choice(options or {})
  if #fields > 0 then
    error("enable(event, options): field names belong to on()", 0)
  end
  local found = turn_on(self, pattern, fields, filter, probe_options, sample, wanted)
  return #found
end

--- Turns events on without a handler, for the loop `for ev in session:events()`.
---@param pattern string as for on()
---@param options? { filter?: string|table, sample?: string, stack?: boolean, user_stack?: boolean,
--- args?: string|table, name?: string, maxactive?: integer }
---@return integer count of events that the pattern meant
function selection:enable(pattern, options)
  local count = raising.at_caller(2, enable, self, pattern, options)
  return count
end

return selection
