--- What may have been meant by a name that is not there.
local nearest = {}

--- How many letters must be added, removed, replaced or swapped with their neighbour.
---@param a string
---@param b string
---@param limit integer what is more than this may come as any larger number
---@return integer
local function distance(a, b, limit)
  if math.abs(#a - #b) > limit then
    return limit + 1
  end
  local before, above, row = {}, {}, {}
  for j = 0, #b do
    above[j] = j
  end
  for i = 1, #a do
    local letter, least = a:byte(i), i
    row[0] = i
    for j = 1, #b do
      local other = b:byte(j)
      local replaced = above[j - 1] + (letter == other and 0 or 1)
      local cost = math.min(above[j] + 1, row[j - 1] + 1, replaced)
      if i > 1 and j > 1 and letter == b:byte(j - 1) and a:byte(i - 1) == other then
        cost = math.min(cost, before[j - 2] + 1)
      end
      row[j] = cost
      least = math.min(least, cost)
    end
    if least > limit then
      return limit + 1
    end
    before, above, row = above, row, before
  end
  return above[#b]
end

--- How far two words are apart: letters to change, or little when one is a part of the other.
---@param asked string
---@param there string
---@return number? score the less the nearer; nil: another word
function nearest.score(asked, there)
  local limit = math.max(1, #asked // 3)
  local score = distance(asked, there, limit)
  if score > 1 and #asked >= 4 and there:find(asked, 1, true) then
    return 1.5
  end
  return score <= limit and score or nil
end

-- With one letter fewer wrong than there are parts, one of the parts is whole. Among tens of
-- thousands of names this finds out much faster which are far off.
local function parts_of(word)
  local count = math.max(1, #word // 3) + 1
  local parts = {}
  for i = 0, count - 1 do
    local part = word:sub(i * #word // count + 1, (i + 1) * #word // count)
    parts[#parts + 1] = part ~= "" and part or nil
  end
  return parts
end

local function has_part(name, parts)
  for _, part in ipairs(parts) do
    if name:find(part, 1, true) then
      return true
    end
  end
  return #parts == 0
end

--- The first of what was found, the likeliest ahead.
---@param found { name: string, score: number }[] gets sorted
---@param most? integer 3 by default
---@return string[]
function nearest.first(found, most)
  table.sort(found, function(a, b)
    if a.score ~= b.score then
      return a.score < b.score
    end
    return a.name < b.name
  end)
  local first = {}
  for i = 1, math.min(most or 3, #found) do
    first[i] = found[i].name
  end
  return first
end

--- The names of a list that may have been meant, the likeliest first.
---@param names string[]
---@param asked string
---@param most? integer 3 by default
---@return string[]
function nearest.names(names, asked, most)
  local found, parts = {}, parts_of(asked)
  for _, name in ipairs(names) do
    local score = has_part(name, parts) and nearest.score(asked, name)
    if score then
      found[#found + 1] = { name = name, score = score }
    end
  end
  return nearest.first(found, most)
end

return nearest
