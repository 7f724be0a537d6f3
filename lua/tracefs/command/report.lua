--- What the command says on standard error. Everything is made safe for a terminal.
local escape = require "tracefs.escape"

local report = {
  quiet = false,
  verbose = false,
}

local function say(text)
  io.stderr:write("luatrace: ", escape.text(text), "\n")
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
