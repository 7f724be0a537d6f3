--- What the command says on standard error. Everything is made safe for a terminal.
local escape = require "tracefs.escape"

local report = {
  quiet = false,
  verbose = false,
}

local held

local function say(text)
  text = ("luatrace: %s\n"):format(escape.text(text))
  if held then
    held[#held + 1] = text
  else
    io.stderr:write(text)
  end
end

--- Keeps what is said until the terminal, or whatever else it would disturb, is free again.
---@param on boolean
function report.hold(on)
  local texts = held or {}
  held = on and texts or nil
  if not on then
    io.stderr:write(table.concat(texts))
  end
end

--- Why it does not work.
---@param text string
function report.failure(text)
  say(text)
end

--- What is wrong with the data: shown under -q too.
---@param text string
function report.warning(text)
  say("warning: " .. text)
end

--- What is good to know.
---@param text string
function report.note(text)
  if not report.quiet then
    say(text)
  end
end

--- What -v asks for.
---@param text string
function report.detail(text)
  if report.verbose then
    say(text)
  end
end

return report
