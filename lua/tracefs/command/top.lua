--- luatrace --top: what the functions of every() print stands on one page of the terminal, which
--- is drawn anew each time. Below it are the last lines of what else is printed.
local core = require "tracefs.core"
local methods = require("tracefs.session").methods
local report = require "tracefs.command.report"

local top = {}

-- Lines that are kept of what is printed outside of every().
local LOG_LINES <const> = 200

-- A session without every() is drawn this often, in seconds.
local OWN_PERIOD <const> = 1

---@class tracefs.command.top
---@field private run tracefs.command.run
---@field private screen tracefs.screen
---@field private panes { text: string }[] of the functions of every(), in their order
---@field private log string[] the last lines
---@field private open string the line that is not complete yet
---@field private target? string[] where what is printed goes: a pane's; nil: the log
local Top = {}
Top.__index = Top

-- ---------------------------------------------------------------------------
-- What is printed
-- ---------------------------------------------------------------------------

function Top:take(shown)
  if self.target then
    self.target[#self.target + 1] = shown
    return
  end
  local text = self.open .. shown
  local from = 1
  for line, to in text:gmatch "([^\n]*)\n()" do
    self.log[#self.log + 1] = line
    from = to
  end
  self.open = text:sub(from)
  if #self.log > 2 * LOG_LINES then
    self.log = table.move(self.log, #self.log - LOG_LINES + 1, #self.log, 1, {})
  end
end

-- The function of every() with a pane for what it prints.
function Top:pane(fn)
  local pane = { text = "" }
  self.panes[#self.panes + 1] = pane
  return function(...)
    local outer, parts = self.target, {}
    self.target = parts
    -- also when it raises, whose traceback is its own
    local _ <close> = setmetatable({}, { __close = function()
      self.target = outer
      pane.text = table.concat(parts)
    end })
    fn(...)
  end
end

-- ---------------------------------------------------------------------------
-- The page
-- ---------------------------------------------------------------------------

local function lines_of(text, list)
  for line in (text:find "\n$" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    list[#list + 1] = line
  end
end

-- A line as the terminal shows it, no wider than it is.
local function fit(line, columns)
  while line:find("\t", 1, true) do
    local before = line:match "^[^\t]*"
    local width = utf8.len(before) or #before
    line = before .. (" "):rep(8 - width % 8) .. line:sub(#before + 2)
  end
  if #line <= columns then
    return line
  end
  local stop = utf8.len(line) and utf8.offset(line, columns + 1) or columns + 1
  return stop and line:sub(1, stop - 1) or line
end

function Top:headline()
  local ok, stats = pcall(methods.stats, self.run.session)
  if not ok or not stats then
    return ""
  end
  return ("luatrace %s  %.0f s  %d events%s%s"):format(self.name, stats.elapsed, stats.delivered,
    stats.lost > 0 and (", %d LOST"):format(stats.lost) or "",
    self.reads_keys and "  (q ends it)" or "")
end

--- The lines of a page of this size.
---@param rows integer
---@param columns integer
---@return string[]
function Top:page(rows, columns)
  local page = { self:headline(), "" }
  for _, pane in ipairs(self.panes) do
    if pane.text ~= "" then
      lines_of(pane.text, page)
    end
  end
  local room = rows - #page - 1
  local log = self.log
  if self.open ~= "" then
    log = table.move(log, 1, #log, 1, {})
    log[#log + 1] = self.open
  end
  if room > 0 and #log > 0 then
    if #self.panes > 0 then
      page[#page + 1] = ""
    end
    table.move(log, math.max(1, #log - room + 1), #log, #page + 1, page)
  elseif #self.panes == 0 then
    page[#page + 1] = "Nothing is printed yet. What the script prints at its end comes then."
  end
  local fitting = {}
  for i = 1, math.min(#page, rows) do
    fitting[i] = fit(page[i], columns)
  end
  return fitting
end

function Top:draw()
  if self.is_over then
    return
  end
  local page = self:page(self.screen:size())
  -- each line over the old one, so that nothing flickers; no line end behind the last row
  local shown, message = self.screen:show("\27[H" .. table.concat(page, "\27[K\r\n")
    .. "\27[K\27[J")
  if shown == nil then
    error(self.run.output:fail(message), 0)
  end
end

--- Gives the terminal back; what is printed from now on is printed as always.
---@param keeps_last? boolean the last page is left on it
function Top:finish(keeps_last)
  if self.is_over then
    return
  end
  self.is_over = true
  self.screen:close()
  self.run.output.write_raw = nil
  report.hold(false)
  if keeps_last then
    for _, pane in ipairs(self.panes) do
      self.run.output:write_raw(pane.text)
    end
  end
end

-- ---------------------------------------------------------------------------
-- The session
-- ---------------------------------------------------------------------------

local function watch(self)
  local session, screen = self.run.session, self.screen
  session:watch(screen:fileno(), function()
    if screen:changed() then
      self:draw()
    end
  end)
  if self.reads_keys then
    session:watch(0, function()
      local keys = screen:keys()
      if not keys then
        session:watch(0, nil)
      elseif keys:find "[qQ]" then
        session:finish()
      end
    end)
  end
end

--- Opens the screen of a run.
---@param run tracefs.command.run
function top.open(run)
  local options = run.options
  -- what is typed belongs to the command of -c, or is the script
  run.reads_keys = not options.command and options.script ~= "-" and core.isatty(io.stdin)
  local screen, why = core.screen(run.reads_keys)
  if not screen then
    error(("--top needs a terminal to show things on (%s)"):format(why), 0)
  end
  run.screen = screen
end

--- Puts the session's output on the screen.
---@param run tracefs.command.run with its session adapted
function top.adapt(run)
  local session, out, options = run.session, run.output, run.options
  local self = setmetatable({
    run = run, screen = run.screen, panes = {}, log = {}, open = "",
    name = options.script and options.script:match "[^/]*$" or "-e",
    reads_keys = run.reads_keys,
  }, Top)
  run.top = self
  function out.write_raw(_, shown)
    self:take(shown)
  end

  function session.every(script, seconds, fn)
    run.has_work = true
    return methods.every(script, seconds, type(fn) == "function" and self:pane(fn) or fn)
  end

  local start = session.start
  function session.start(script)
    if run.has_started then
      return start(script)
    end
    if #self.panes == 0 then
      methods.every(script, OWN_PERIOD, function() end)
    end
    start(script)
    report.hold(true)
    watch(self)
    self:draw()
  end

  function session._run_ticks(script, now)
    methods._run_ticks(script, now)
    if script._stream then
      self:draw()
    end
  end

  function session.run_at_end(script)
    self:finish(#script._end_handlers == 0)
    methods.run_at_end(script)
  end
end

return top
