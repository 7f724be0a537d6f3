--- The script: from a file, standard input or -e, into a function; and its errors, for people.
local escape = require "tracefs.escape"

local loading = {}

-- The folder of the modules of tracefs: its frames say nothing to who wrote the script.
local OWN = debug.getinfo(1, "S").source:match("^(.*/)command/[^/]*$")

--- Reads the script that the options name.
---@param options tracefs.command.options
---@return string? text
---@return string name of the chunk, or the message when there is no text
function loading.read(options)
  if #options.eval > 0 then
    return table.concat(options.eval, "\n"), "=-e"
  end
  local path = options.script
  if path == "-" then
    local text, message = io.stdin:read("a")
    if not text then
      return nil, "cannot read the script from standard input: " .. message
    end
    return text, "=stdin"
  end
  local file <close>, message = io.open(path, "rb")
  if not file then
    return nil, ("cannot read the script %s"):format(message)
  end
  local text
  text, message = file:read("a")
  if not text then
    return nil, ("cannot read the script %s: %s"):format(path, message)
  end
  return text, "@" .. path
end

--- Compiles the script with env as its globals.
---@param text string
---@param name string
---@param env table
---@return function? chunk
---@return string? message with file and line
function loading.compile(text, name, env)
  if text:sub(1, 4) == "\27Lua" then
    return nil, ("%s is a binary chunk (luac): luatrace runs Lua source"):format(name:sub(2))
  end
  -- "#!": the line stays, for the numbers of those behind it.
  text = text:gsub("^\xEF\xBB\xBF", ""):gsub("^#", "--#")
  return load(text, name, "t", env)
end

--- Where `require` looks for the script's own modules: in its folder, and never in the current
--- one, which may belong to anybody when root runs the command.
---@param options tracefs.command.options
---@param is_ours? boolean what runs is still the command itself: not in the script's folder either
function loading.set_path(options, is_ours)
  local function absolute(path)
    local entries = {}
    for entry in path:gmatch("[^;]+") do
      if entry:sub(1, 1) == "/" then
        entries[#entries + 1] = entry
      end
    end
    return entries
  end

  local entries = absolute(package.path)
  if not is_ours and #options.eval == 0 and options.script ~= "-" then
    local dir = options.script:match("^(.*/)") or "./"
    entries[#entries + 1] = dir .. "?.lua"
    entries[#entries + 1] = dir .. "?/init.lua"
  end
  package.path = table.concat(entries, ";")
  package.cpath = table.concat(absolute(package.cpath), ";")
end

local function frame_text(info)
  local where = ("  %s:%d: in "):format(info.short_src, info.currentline)
  if info.what == "main" then
    return where .. "the main chunk"
  elseif info.name then
    return ("%sfunction '%s'"):format(where, info.name)
  end
  return ("%sfunction <line %d>"):format(where, info.linedefined)
end

-- The script's frames between the error and where the command called it.
local function frames(level)
  local lines = {}
  while true do
    local info = debug.getinfo(level, "Slnf")
    if not info or info.func == loading.boundary then
      return lines
    end
    if info.what ~= "C" and info.source:sub(1, #OWN) ~= OWN then
      lines[#lines + 1] = frame_text(info)
    end
    level = level + 1
  end
end

--- Message handler: the error's text, and behind it the frames of the script when there are
--- several. A value that knows how to show itself stays what it is.
---@param err any
---@return any
function loading.message_handler(err)
  if type(err) ~= "string" then
    local meta = getmetatable(err)
    if type(meta) == "table" and meta.__tostring then
      return err
    end
    return loading.message_handler(
      type(err) == "number" and tostring(err) or ("error object is a %s value"):format(type(err))
    )
  end
  local lines = frames(3)
  if #lines < 2 then
    return err
  end
  return err .. "\n" .. table.concat(lines, "\n")
end

-- Is the file, as Lua names it in a message, one of ours? Of a long path Lua shows the end only.
local function is_own(file)
  local folder = OWN:sub(2)
  local tail = file:match("^%.%.%.(.*)$")
  if not tail then
    return file:sub(1, #folder) == folder
  end
  for length = math.min(#folder, #tail), #"/tracefs/", -1 do
    if folder:sub(-length) == tail:sub(1, length) then
      return true
    end
  end
  return false
end

--- An error's text without the position of code of ours.
---@param err any
---@return any
function loading.without_position(err)
  local file, rest = tostring(err):match("^([^:]*):%d+: (.*)$")
  if type(err) == "string" and file and is_own(file) then
    return rest
  end
  return err
end

--- An error value as text that a terminal can be given.
---@param err any
---@return string
function loading.error_text(err)
  return escape.text(tostring(err))
end

return loading
