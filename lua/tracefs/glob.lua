--- Names with `*`, `?` and `[...]` in them, as a shell has them.
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

return glob
