--- Names with `*`, `?` and `[...]` in them, as a shell has them; and what is no Lua pattern.
local glob = {}

--- Is it a pattern, or the name itself?
---@param text string
---@return boolean
function glob.has(text)
  return text:find("[*?%[]") ~= nil
end

-- The set that begins behind the "[" at `at`, as a Lua set; nil if it does not end.
local function lua_set(text, at)
  local negated = text:match("^[!^]", at)
  local first = negated and at + 1 or at
  -- A "]" at the first place stands for itself.
  local last = text:find("]", first + 1, true)
  if not last then
    return nil
  end
  local members = text:sub(first, last - 1):gsub("[%%%]%[^]", "%%%0")
  return ("[%s%s]"):format(negated and "^" or "", members), last + 1
end

--- A shell's glob (`*`, `?`, `[a-z]`, `[!a-z]`) as a Lua pattern for the whole text.
---@param text string
---@return string? pattern
---@return string? message why it is none
local function lua_pattern(text)
  local out, at = { "^" }, 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == "*" then
      -- A run of stars means one, and costs much more to match.
      at = text:match("^%*+()", at)
      out[#out + 1] = ".*"
    elseif char == "?" then
      at = at + 1
      out[#out + 1] = "."
    elseif char == "[" then
      local set, behind = lua_set(text, at + 1)
      if not set then
        return nil, 'its "[" has no "]"; "[[]" stands for a "[" itself'
      end
      at = behind
      out[#out + 1] = set
    else
      at = at + 1
      out[#out + 1] = char:gsub("%W", "%%%0")
    end
  end
  out[#out + 1] = "$"
  return table.concat(out)
end

--- Says whether a name matches; anything does when there is no glob.
---@param text? string
---@return (fun(word: string): boolean)? matches
---@return string? message why it is no glob
function glob.matcher(text)
  if not text then
    return function()
      return true
    end
  end
  local pattern, why = lua_pattern(text)
  if not pattern then
    return nil, why
  end
  return function(word)
    return word:find(pattern) ~= nil
  end
end

-- Behind the set that begins at `at`; nil if it does not end.
local function behind_set(pattern, at)
  at = pattern:match("^%[%^?()", at)
  repeat
    if at > #pattern then
      return nil
    end
    -- the first one is a member, whatever it is
    at = at + (pattern:sub(at, at) == "%" and at < #pattern and 2 or 1)
  until pattern:sub(at, at) == "]"
  return at + 1
end

--- What is wrong with a Lua pattern. string.find raises that, too, but only with a text that
--- matches what stands before it.
---@param pattern string
---@return string? mistake nil when it is one
function glob.mistake(pattern)
  local at, open, count, is_closed = pattern:match "^%^?()", {}, 0, {}
  while at and at <= #pattern do
    local char, next_char = pattern:sub(at, at), pattern:sub(at + 1, at + 1)
    if char == "(" then
      count = count + 1
      open[#open + 1] = count
      at = at + 1
    elseif char == ")" then
      local last = table.remove(open)
      if not last then
        return 'a ")" has no "("'
      end
      is_closed[last] = true
      at = at + 1
    elseif char == "%" and next_char == "" then
      return 'it ends with "%"; "%%" stands for a "%" itself'
    elseif char == "%" and next_char == "b" then
      if at + 3 > #pattern then
        return '"%b" takes two characters'
      end
      at = at + 4
    elseif char == "%" and next_char == "f" then
      if pattern:sub(at + 2, at + 2) ~= "[" then
        return '"%f" takes a set in "[]"'
      end
      at = behind_set(pattern, at + 2)
    elseif char == "%" and next_char:find "%d" then
      if not is_closed[tonumber(next_char)] then
        return ('"%%%s" means what stands in no "()" before it'):format(next_char)
      end
      at = at + 2
    elseif char == "[" then
      at = behind_set(pattern, at)
    else
      at = at + (char == "%" and 2 or 1)
    end
  end
  if not at then
    return 'its "[" has no "]"; "%[" stands for a "[" itself'
  elseif #open > 0 then
    return 'its "(" has no ")"; "%(" stands for a "(" itself'
  elseif count > 32 then
    return "it has more than 32 captures"
  end
end

return glob
