--- A terminal that can be looked at, resized and typed on, with a shell that has job control: tmux.
local helper = require "spec.support.helper"

local tmux = {}

--- Is tmux(1) there, with a shell for it?
---@return boolean
function tmux.is_there()
  return (helper.execute { "sh", "-c", "tmux -V && bash --version" }) == 0
end

local Terminal = {}
Terminal.__index = Terminal

--- Begins one. It is to be closed: `local terminal <close> = tmux.start(80, 24)`.
---@param columns integer
---@param rows integer
---@return table
function tmux.start(columns, rows)
  local terminal = setmetatable({ socket = helper.tmpdir() .. "/tmux" }, Terminal)
  terminal:ask("new-session", "-d", "-x", columns, "-y", rows,
    ("%s PS1='ready> ' exec bash --norc --noprofile -i"):format(helper.collector_env()))
  terminal.server = terminal:ask("display-message", "-p", "#{pid}")
  local ok, message = pcall(terminal.expect, terminal, "ready>")
  if not ok then
    terminal:__close()
    error(message, 0)
  end
  return terminal
end

-- A command to tmux, and what it says. Cheaper than helper.execute: it is asked often.
function Terminal:ask(...)
  local words = { "timeout 30 tmux -u -f /dev/null -S", helper.quote(self.socket) }
  for _, word in ipairs { ... } do
    words[#words + 1] = helper.quote(tostring(word))
  end
  words[#words + 1] = "2>&1"
  local pipe = assert(io.popen(table.concat(words, " ")))
  local out = pipe:read "a"
  assert(pipe:close(), out)
  return (out:gsub("\n+$", ""))
end

-- Asks until the answer is true, for so many seconds by the clock.
local function wait(condition)
  local limit = os.time() + 20 * helper.slowdown
  repeat
    local answer = condition()
    if answer then
      return answer
    end
    helper.sleep(0.02)
  until os.time() > limit
  return false
end

--- Types a line.
function Terminal:type(line)
  self:ask("send-keys", "-l", line)
  self:ask("send-keys", "Enter")
end

--- Presses a key, by tmux's name for it.
function Terminal:press(key)
  self:ask("send-keys", key)
end

function Terminal:resize(columns, rows)
  self:ask("resize-window", "-x", columns, "-y", rows)
end

--- What it shows, without empty lines at the end.
---@return string
function Terminal:text()
  return self:ask("capture-pane", "-p")
end

--- Waits until programs have left it so, as modes() says it.
function Terminal:expect_modes(modes)
  local last
  local found = wait(function()
    last = self:modes()
    return last == modes
  end)
  return found or error(("the terminal is %s and not %s"):format(last, modes), 2)
end

--- Waits until it shows something.
---@param pattern string
---@return string text
function Terminal:expect(pattern)
  local text
  local found = wait(function()
    text = self:text()
    return text:find(pattern)
  end)
  return found and text
    or error(("the terminal does not show %q but:\n%s"):format(pattern, text), 2)
end

--- How programs have left it: "page cursor wrap", each 1 or 0.
---@return string
function Terminal:modes()
  return self:ask("display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}")
end

function Terminal:__close()
  pcall(self.ask, self, "kill-server")
  assert(wait(function()
    return not helper.read_file(("/proc/%s/stat"):format(self.server))
  end), "tmux does not end")
end

return tmux
