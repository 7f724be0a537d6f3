--- A run: the script, the session it gets, the command of -c, and the end of it all.
local core = require "tracefs.core"
local tracefs = require "tracefs"
local child = require "tracefs.command.child"
local loading = require "tracefs.command.loading"
local output = require "tracefs.output"
local report = require "tracefs.command.report"
local rights = require "tracefs.command.rights"
local summary = require "tracefs.command.summary"
local trace = require "tracefs.command.trace"

local running = {}

---@class tracefs.command.run
---@field options tracefs.command.options
---@field signals tracefs.signals
---@field output? tracefs.output
---@field session? tracefs.script
---@field screen? tracefs.screen of --top
---@field top? tracefs.command.top
---@field user? tracefs.user of --user
---@field child? tracefs.command.child
---@field watched tracefs.process[] of -p
---@field signal? integer the first signal, when it has been acted on
---@field exit_status? integer of os.exit
---@field has_work boolean the script wants to be called
---@field has_started boolean
---@field is_in_script boolean the script's main chunk runs
---@field has_looped boolean it has called run, events or step itself
---@field is_closed boolean the script has closed the session
---@field event_count integer events that on and enable have found
local Run = {}
Run.__index = Run

-- The session raises setup errors with the position of the call, which is here for what the
-- options ask for.
local function make_session(options)
  local ok, session = pcall(tracefs.session, options.input and {
    file = options.input,
    buffer = options.instance,
    partial = options.partial,
  } or {
    clock = options.clock,
    buffer_kb = options.buffer_kb,
  })
  if not ok then
    error(loading.without_position(session), 0)
  end
  return session
end

-- With --user the script may not run before root's rights have been given up.
local function asks_for_help(options)
  for _, word in ipairs(options.script and not options.user and options.args or {}) do
    if word == "--help" or word == "-h" then
      return true
    end
  end
  return false
end

-- A script can tell of itself where nothing can be traced. All that it wants beyond the words
-- behind its name raises why.
local function put_words_only(options, why)
  package.loaded["tracefs.script"] = setmetatable({ args = options.args }, {
    __index = function()
      error(why, 0)
    end,
  })
end

function Run:open()
  local options = self.options
  if options.user then
    self.user = rights.find(options.user)
  end
  local instances, events
  if not options.input then
    instances, events = tracefs.remove_stale()
  end
  for what, count in pairs { instance = instances, ["dynamic event"] = instances and events } do
    if count and count > 0 then
      report.detail(("removed %d %s%s of luatrace processes that are gone"):format(
        count, what, count == 1 and "" or "s"))
    end
  end
  -- Before anything else is open, so that the command gets no descriptor of ours.
  if options.command and not options.dry_run then
    self.child = child.start(options.command, self.user)
  end
  if options.top then
    require("tracefs.command.top").open(self)
  end
  local out, message = output.open { path = options.output, format = options.format,
    input = options.input }
  if not out then
    error(message, 0)
  end
  self.output = out
  out:install()

  local ok, session = pcall(make_session, options)
  if not ok and asks_for_help(options) then
    put_words_only(options, session)
    return
  elseif not ok then
    error(session, 0)
  end
  self.session = session
  if options.clock and not select(2, core.clock_info(options.clock)) then
    report.note(("nobody but the kernel can read the clock %s: the order of events of different"
      .. " CPUs is best effort"):format(options.clock))
  end
  if not self.session:_counts_ns() then
    report.note(("the clock %s does not count ns: a time that is shown is a number of its counts")
      :format(self.session._clock))
  end
  if #options.pid > 0 then
    self.watched = require("tracefs.command.pids").restrict(self.session.instance, options.pid)
  end
  trace.adapt(self)
  if options.top then
    require("tracefs.command.top").adapt(self)
  end
end

-- What a second signal does, for os.exit: an error that a pcall of the script cannot keep.
function Run:install_exit()
  rawset(os, "exit", function(status)
    if status == nil or status == true then
      status = 0
    elseif status == false then
      status = 1
    end
    self.exit_status = math.tointeger(status) or 1
    self.signals:stop()
    error("exit", 0)
  end)
end

---@param compile fun(): function?, string?
---@param chunk? function the script, where it could be compiled with the rights there are
function Run:execute(compile, chunk)
  local options = self.options
  self:open()
  if self.user then
    rights.drop(self.user, self.session, options, self.output)
    loading.set_path(options)
    local message
    chunk, message = compile()
    if not chunk then
      error(message, 0)
    end
  end
  self:install_exit()
  self.signals:track(coroutine)

  local args = options.args
  _G.arg = table.move(args, 1, #args, 1, { [0] = options.script or "-e" })
  self.is_in_script = true
  local ok, err = xpcall(chunk, loading.message_handler, table.unpack(args))
  self.is_in_script = false
  if not ok then
    -- A loop that the script owns has not run them.
    if self.has_started and not self.is_closed then
      pcall(self.session.run_at_end, self.session)
    end
    error(err, 0)
  end
  self:drive()
end

-- What is left to do when the script has returned.
function Run:drive()
  local session = self.session
  if not session then
    return
  elseif self.options.dry_run then
    self.output:print(("%d event%s, fields and filters are accepted; nothing was traced"):format(
      self.event_count, self.event_count == 1 and "" or "s"))
  elseif self.is_closed then
    return
  elseif self.has_looped then
    session:run_at_end()
  elseif self.has_work or self.child then
    session:run()
  end
end

-- What happened, once nothing can interrupt any more. Returns the session's statistics.
function Run:close_session(failed)
  local session, out = self.session, self.output
  if not session then
    return nil
  end
  local ok, stats = pcall(session.stats, session)
  stats = ok and self.has_started and stats or nil
  if stats and not self.signals:second() then
    local source = session.instance
    if self.options.input then
      source = self.options.input
    elseif self.is_closed then
      source = nil
    end
    summary.report(stats, source)
    if self.options.partial and session:damage() then
      report.warning(session:damage())
    end
  end
  if not out.failure then
    pcall(function()
      if failed then
        out.writer:failed(failed)
      end
      if stats then
        out.writer:stats(stats)
      end
    end)
  end
  local closed, message
  ok, closed, message = pcall(session.close, session)
  if not ok or closed == nil then
    report.warning(tostring(not ok and closed or message))
  end
  return stats
end

function Run:close(ok, err)
  local signals = self.signals
  -- Everything that is said from now on is said on the terminal as it was.
  if self.top then
    pcall(self.top.finish, self.top)
  elseif self.screen then
    self.screen:close()
  end
  -- A second signal and os.exit end the script by an error, too.
  local failed = not ok and not signals:second() and not self.exit_status
    and loading.error_text(err) or nil
  if failed then
    report.failure(failed)
  end
  local stats = self:close_session(failed)
  local child_status
  if self.child then
    child_status = self.child:finish(signals, self.signal ~= nil)
  end
  for _, process in ipairs(self.watched) do
    process:close()
  end
  if self.timer then
    self.timer:close()
  end
  local failure = self.output and self.output:close()
  if failure and not failed then
    report.failure(tostring(failure))
  end

  if signals:second() then
    report.note("interrupted")
    return 128 + signals:second()
  elseif self.exit_status then
    return failure and 1 or self.exit_status
  elseif failed or failure then
    return 1
  elseif self.options.strict and stats and stats.lost > 0 then
    return 3
  end
  return child_status or 0
end

--- Runs the script of the options to the end.
---@param options tracefs.command.options
---@return integer status
function running.run(options)
  local text, name = loading.read(options)
  if not text then
    report.failure(name)
    return 1
  end
  loading.set_path(options, options.user ~= nil)
  local run = setmetatable({
    options = options,
    watched = {},
    event_count = 0,
    has_work = false,
    has_started = false,
    is_in_script = false,
    has_looped = false,
    is_closed = false,
  }, Run)
  local env = #options.eval > 0 and trace.environment(run) or _G
  local function compile()
    return loading.compile(text, name, env)
  end
  -- What an ordinary user may have written, root does not even parse.
  local chunk
  if not options.user then
    local message
    chunk, message = compile()
    if not chunk then
      report.failure(message)
      return 1
    end
  end

  local signals <close> = assert(core.signals())
  run.signals = signals
  local function main()
    run:execute(compile, chunk)
  end
  loading.boundary = main
  return run:close(signals:guard(main, loading.message_handler))
end

return running
