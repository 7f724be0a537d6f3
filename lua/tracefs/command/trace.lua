--- Makes the command's session what a script gets: it starts and watches what the options ask
--- for, prints records that have no handler, and is there under `require "tracefs.script"`.
local core = require "tracefs.core"
local loading = require "tracefs.command.loading"
local methods = require("tracefs.session").methods
local output_events = require "tracefs.output.events"
local report = require "tracefs.command.report"

local trace = {}

-- How often a process is asked whether it has ended where the kernel has no descriptor for it.
local POLL_INTERVAL <const> = 0.05

-- Calls fn once, when has_ended() is true.
local function when_ended(run, process, has_ended, fn)
  local session = run.session
  local fd = process:fileno()
  local timer
  if not fd then
    timer = assert(core.timer(POLL_INTERVAL, true))
    fd = timer:fileno()
  end
  session:watch(fd, function()
    if timer then
      timer:expired()
    end
    if has_ended() then
      session:watch(fd, nil)
      fn()
    end
  end)
end

-- What ends the run: the time, the command, the processes of -p. Called when everything is on.
local function begin(run)
  local session, options = run.session, run.options
  if options.duration and options.input then
    session:_set_duration(options.duration)
  elseif options.duration then
    run.timer = assert(core.timer(options.duration))
    session:watch(run.timer:fileno(), function()
      run.timer:expired()
      session:finish()
    end)
  end
  local left = #run.watched
  for _, process in ipairs(run.watched) do
    when_ended(run, process, function()
      return process:wait() ~= nil
    end, function()
      left = left - 1
      if left == 0 then
        report.detail("the traced process has ended")
        session:finish()
      end
    end)
  end
  if run.child then
    run.child:release()
    when_ended(run, run.child.process, function()
      return run.child:has_ended()
    end, function()
      session:finish()
    end)
  end
end

local function watch_signals(run)
  local session, signals = run.session, run.signals
  session:watch(signals:fileno(), function()
    local number, origin = signals:received()
    if number and not run.signal then
      run.signal = number
      -- A key on the terminal has reached the command already.
      if run.child and origin == "process" then
        run.child:signal(number)
      end
      session:finish()
    end
  end)
end

local function describe(run)
  local options = run.options
  local events = ("%d event%s"):format(run.event_count, run.event_count == 1 and "" or "s")
  if options.input then
    report.detail(("%s of %s, clock %s"):format(events, options.input, run.session._clock))
    return
  end
  if not report.verbose then
    -- Who sits at a terminal and sees nothing should know what to do.
    if not (options.duration or options.command or #options.pid > 0) and core.isatty(io.stderr) then
      report.note(("tracing %s, Ctrl-C ends it"):format(events))
    end
    return
  end
  local instance = run.session.instance
  report.detail(("%s, instance %s, clock %s, %s KB for each CPU"):format(
    events,
    instance:name(),
    instance:get_clock() or "?",
    instance:get_buffer_kb() or "?"
  ))
end

-- What comes behind the fields that were asked for: where they are from.
local FROM <const> = { "common_event", "common_timestamp", "common_cpu" }

-- Prints the fields that were asked for, in their order.
local function values_printer(out, names)
  local count = #names
  return function(...)
    out:values(names, { ... }, select(count + 1, ...))
  end
end

-- What prints an event without a handler, and the selection that it needs.
local function printer(run, selection)
  local out = run.output
  run.prints_records = true
  if type(selection) == "table" and #selection > 0 then
    local wanted, names = {}, {}
    for key, value in pairs(selection) do
      wanted[key] = value
    end
    for i, name in ipairs(selection) do
      names[i] = name
    end
    -- a list with a gap in it is refused as it is
    if #names == #selection then
      table.move(FROM, 1, #FROM, #names + 1, wanted)
    end
    return values_printer(out, names), wanted
  end
  return function(record)
    out:record(record)
  end, selection == nil and {} or selection
end

local HANDLERS <const> = { "on_match", "on_expired", "on_dropped", "on_unmatched", "into" }

-- A pair for which the script has no use prints its matches, as an event without a handler does.
-- Some formats show those of all pairs.
local function shown_pair(run, options)
  local out = run.output
  if type(options) ~= "table" then
    return options
  end
  if out.writer.into and options.into ~= nil then
    out.writer:into(options.into)
  end
  local is_used = out.writer.wants_matches == true
  for _, name in ipairs(HANDLERS) do
    is_used = is_used or options[name] ~= nil
  end
  if not is_used or out.writer.wants_matches then
    run.prints_records = run.prints_records or not is_used
    return out:pair(options, run.session)
  end
  return options
end

-- Setup methods count events and note that the script wants to be called.
local function adapt_setup(run)
  local session = run.session

  -- An error gets the position of the script's call. Returns the count, or what was made for one
  -- event.
  local function count_events(method, ...)
    local ok, result = pcall(method, ...)
    if not ok then
      error(result, type(result) == "string" and 3 or 0)
    end
    run.event_count = run.event_count + (math.type(result) == "integer" and result or 1)
    return result
  end

  function session.on(self, pattern, selection, handler)
    run.has_work = true
    if handler == nil and type(selection) ~= "function" then
      handler, selection = printer(run, selection)
    end
    local count = count_events(methods.on, self, pattern, selection, handler)
    return count
  end

  function session.enable(...)
    local count = count_events(methods.enable, ...)
    return count
  end

  function session.pair(self, options)
    run.has_work = true
    local made = count_events(methods.pair, self, shown_pair(run, options))
    return made
  end

  for _, name in ipairs { "hist", "kernel_latency" } do
    session[name] = function(...)
      run.has_work = true
      local made = count_events(methods[name], ...)
      return made
    end
  end

  -- These raise with the position of their caller, which a tail call leaves to be the script.
  for _, name in ipairs { "every", "at_start", "at_end", "on_lost" } do
    session[name] = function(...)
      run.has_work = true
      return methods[name](...)
    end
  end
end

-- start, and what leads to it.
local function adapt_run(run)
  local session, out = run.session, run.output

  function session.start(self)
    if run.has_started then
      return methods.start(self)
    end
    run.has_started = true
    methods.start(self)
    describe(run)
    begin(run)
  end

  function session.wait(self, seconds)
    local failure = out:flush()
    if failure then
      error(failure, 0)
    end
    return methods.wait(self, seconds)
  end

  for _, name in ipairs { "run", "events", "step" } do
    session[name] = function(...)
      if run.is_in_script then
        run.has_looped = true
      end
      return methods[name](...)
    end
  end

  function session.close(self)
    run.is_closed = true
    return methods.close(self)
  end
end

-- Nothing is traced: loops of the script end at once.
local function adapt_dry_run(run)
  local session = run.session
  function session.start() end
  function session.run(self)
    return self:stats()
  end
  function session.events()
    return function() end
  end
  function session.step()
    return 0, "end"
  end
  function session.wait()
    return false
  end
end

--- Prepares run.session for the script and puts it where require finds it.
---@param run tracefs.command.run
function trace.adapt(run)
  local session, out = run.session, run.output
  session.args = run.options.args
  session.format = out.format
  session.message_handler = loading.message_handler
  function session.print(_, value)
    out:show(value)
  end
  function session.on_write(file, text)
    local line = ("%s << %s"):format(file, text)
    if run.options.dry_run then
      report.note(line)
    else
      report.detail(line)
    end
  end
  local warned = false
  function session.on_warn(message)
    if not warned then
      warned = true
      report.warning("error in a handler (others are only counted): " .. message)
    end
  end

  session.on_notice = report.warning
  session.on_choice = report.detail

  function out.writer.read_stats()
    local ok, stats = pcall(methods.stats, session)
    return ok and run.has_started and stats or nil
  end
  if out.writer.wants_named then
    require("tracefs.aggregate")._on_named = function(made)
      out.writer:aggregate(made)
    end
  end
  if run.options.listen then
    report.note("metrics are at " .. out:listen(session, run.options.listen))
  end
  output_events.describe_with(function(label)
    return session:_describe_label(label)
  end)
  adapt_setup(run)
  if run.options.dry_run then
    adapt_dry_run(run)
  else
    adapt_run(run)
    watch_signals(run)
    methods.on_lost(session, function(lost)
      if out.format ~= "text" or run.prints_records then
        out:lost(lost)
      end
    end)
  end
  package.loaded["tracefs.script"] = session
end

--- The globals of code given with -e: the session's methods, `trace`, and everything else that
--- there is. What the code sets stays in this table.
---@param run tracefs.command.run
---@return table
function trace.environment(run)
  local bound = {}
  return setmetatable({}, {
    __index = function(_, name)
      local value = _G[name]
      if value ~= nil then
        return value
      end
      local session = run.session
      if name == "trace" then
        return session
      end
      local method = bound[name]
      if not method and type(name) == "string" and not name:find("^_") then
        method = session[name]
        if type(method) ~= "function" then
          return nil
        end
        method = function(...)
          return session[name](session, ...)
        end
        bound[name] = method
      end
      return method
    end,
  })
end

return trace
