--- Options of the subcommands, in the order in which they stand: for some of them (an event and
--- the filter behind it) the order is what connects them.
local words = {}

---@class tracefs.command.option
---@field short? string "-e"
---@field long string "--event"
---@field value? string name of its value in the help; without one it is a flag
---@field help string
---@field convert? fun(text: string): any, string? the value, or nil and what is wrong
---@field name? string what the result calls it; default: the long name, "_" for "-"

---@class tracefs.command.given
---@field name string
---@field value any true for a flag

local function name_of(option)
  return option.name or (option.long:gsub("^%-%-", ""):gsub("%-", "_"))
end

local function find(options, word)
  for _, option in ipairs(options) do
    if option.short == word or option.long == word then
      return option
    end
  end
end

local function add(given, option, text)
  local value = true
  if option.value then
    value = text
    if option.convert then
      local message
      value, message = option.convert(text)
      if value == nil then
        return nil, message
      end
    end
  end
  given[#given + 1] = { name = name_of(option), value = value }
  return true
end

-- "--name" and "--name=value". Returns whether the next word belongs to it, or nil.
local function add_long(options, given, word, next_word)
  local name, text = word:match("^(%-%-[^=]+)=(.*)$")
  local option = find(options, name or word)
  if not option then
    return nil, ("unknown option '%s'"):format(name or word)
  elseif not option.value and text then
    return nil, ("option '%s' takes no value"):format(name)
  end
  local takes_next = option.value and not text
  if takes_next and not next_word then
    return nil, ("option '%s' needs a value: %s"):format(word, option.value)
  end
  local ok, message = add(given, option, text or next_word)
  if not ok then
    return nil, message
  end
  return takes_next and true or false
end

-- "-abc": flags, the last of them with its value behind it or as the next word.
local function add_short(options, given, word, next_word)
  for at = 2, #word do
    local option = find(options, "-" .. word:sub(at, at))
    if not option then
      return nil, ("unknown option '-%s'"):format(word:sub(at, at))
    end
    local joined = word:sub(at + 1)
    if option.value and joined == "" and not next_word then
      return nil, ("option '%s' needs a value: %s"):format(option.short, option.value)
    end
    local ok, message = add(given, option, joined ~= "" and joined or next_word)
    if not ok then
      return nil, message
    elseif option.value then
      return joined == ""
    end
  end
  return false
end

--- Splits the words of a subcommand. `-` is a plain word; behind `--` all are.
---@param options tracefs.command.option[]
---@param list string[]
---@param stop_at_plain? boolean what follows the first plain word belongs to it (a command to run)
---@return tracefs.command.given[]? given in their order; nil with a message
---@return string[]|string plain the words that are no options, or the message
function words.split(options, list, stop_at_plain)
  local given, plain, i = {}, {}, 1
  while i <= #list do
    local word = list[i]
    if word == "--" then
      table.move(list, i + 1, #list, #plain + 1, plain)
      break
    elseif word == "-" or word:sub(1, 1) ~= "-" then
      if stop_at_plain then
        table.move(list, i, #list, #plain + 1, plain)
        break
      end
      plain[#plain + 1] = word
    else
      local add_word = word:sub(1, 2) == "--" and add_long or add_short
      local takes_next, message = add_word(options, given, word, list[i + 1])
      if takes_next == nil then
        return nil, message
      elseif takes_next then
        i = i + 1
      end
    end
    i = i + 1
  end
  return given, plain
end

--- Raises what the command shows as wrong usage.
---@param format string
---@param ... any
function words.wrong(format, ...)
  error({ usage = format:format(...) }, 0)
end

--- split() for those who need no order: a table by name, in which options named in `many` are
--- lists. Raises wrong usage.
---@param options tracefs.command.option[]
---@param list string[]
---@param many? table<string, boolean>
---@return table<string, any> by_name
---@return string[] plain
function words.parse(options, list, many)
  local given, plain = words.split(options, list)
  if not given then
    words.wrong("%s", plain)
  end
  local by_name = {}
  for name in pairs(many or {}) do
    by_name[name] = {}
  end
  for _, one in ipairs(given) do
    if many and many[one.name] then
      table.insert(by_name[one.name], one.value)
    else
      by_name[one.name] = one.value
    end
  end
  return by_name, plain
end

--- parse() for subcommands that take nothing but options.
---@param options tracefs.command.option[]
---@param list string[]
---@return table<string, any> by_name
function words.parse_options(options, list)
  local by_name, plain = words.parse(options, list)
  if plain[1] then
    words.wrong("'%s' is no option", plain[1])
  end
  return by_name
end

--- The lines about options in a help text.
---@param options tracefs.command.option[]
---@return string
function words.help(options)
  local lines = {}
  for _, option in ipairs(options) do
    local names = (option.short and option.short .. ", " or "    ") .. option.long
      .. (option.value and " " .. option.value or "")
    lines[#lines + 1] = ("  %-26s %s"):format(names, option.help)
  end
  return table.concat(lines, "\n")
end

return words
