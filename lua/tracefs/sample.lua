--- One record in so many: what `sample` of an event means, and who can choose them.
local sample = {}

---@class tracefs.sample
---@field text string as it was asked for
---@field scale integer one record stands for so many
---@field field? string the records are chosen by its value; nil: each scale-th
---@field shift integer bits of the field that are left out
---@field by_kernel? boolean a filter chooses them
---@field why? string it is the reader who does

local LARGEST <const> = 1000000000

local function fail(...)
  error("sample: " .. string.format(...), 0)
end

--- Reads "1/100", "1/64 of pid", "1/64 of skbaddr>>8".
---@param text string
---@return tracefs.sample
function sample.parse(text)
  if type(text) ~= "string" then
    fail('a text such as "1/100" is needed, not %s', type(text))
  end
  local scale, rest = text:match "^%s*1%s*/%s*(%d+)%s*(.-)%s*$"
  local field, shift
  if scale and rest ~= "" then
    field = rest:match "^of%s+([%a_][%w_]*)$"
    if not field then
      field, shift = rest:match "^of%s+([%a_][%w_]*)%s*>>%s*(%d+)$"
    end
  end
  if not scale or (rest ~= "" and not field) then
    fail('%q is none; the forms are "1/100", "1/64 of FIELD", "1/64 of FIELD>>BITS"', text)
  end
  scale = math.tointeger(tonumber(scale))
  if not scale or scale < 2 or scale > LARGEST then
    fail("%q: one in 2 to one in %d records", text, LARGEST)
  elseif shift and tonumber(shift) > 63 then
    fail("%q: a field has at most 64 bits", text)
  end
  return { text = text, scale = scale, field = field, shift = tonumber(shift or 0) }
end

local function find_field(event, name)
  local names = {}
  for _, field in ipairs(event:fields()) do
    if field.name == name then
      return field
    elseif field.kind == "int" then
      names[#names + 1] = field.name
    end
  end
  fail("%s has no field '%s'; of its fields these are numbers: %s", event:label(), name,
    table.concat(names, ", "))
end

--- What it means for one event: who chooses, and the condition that a filter needs for it.
---@param wanted tracefs.sample
---@param event tracefs.event
---@return tracefs.sample
---@return string? condition in the kernel's filter language
function sample.plan(wanted, event)
  local plan = {}
  for key, value in pairs(wanted) do
    plan[key] = value
  end
  if not wanted.field then
    plan.why = "the kernel's filters do not count"
    return plan
  end
  local field = find_field(event, wanted.field)
  if field.kind ~= "int" then
    fail("%s of %s (%s) is no number", field.name, event:label(), field.type)
  elseif field.type:find("*", 1, true) and wanted.shift == 0 then
    fail("%s is an address, whose lowest bits are those of all others: say how many bits to leave "
      .. 'out, as in "1/%d of %s>>8"', field.name, wanted.scale, field.name)
  end
  if wanted.scale & (wanted.scale - 1) ~= 0 then
    plan.why = ("%d is no power of two, and a filter can only look at bits"):format(wanted.scale)
    return plan
  end
  local mask = (wanted.scale - 1) << wanted.shift
  local bits = 8 * field.size
  if mask >> wanted.shift ~= wanted.scale - 1 or (bits < 64 and mask >> bits ~= 0) then
    fail("%s of %s has %d bits: there are no %d of them above the lowest %d", field.name,
      event:label(), bits, wanted.scale, wanted.shift)
  end
  plan.by_kernel = true
  return plan, ("!(%s & 0x%x)"):format(field.name, mask)
end

--- A filter with the condition of a sample in it.
---@param filter? string
---@param condition? string
---@return string?
function sample.join(filter, condition)
  if filter and condition then
    return ("(%s) && %s"):format(filter, condition)
  end
  return condition or filter
end

--- How the records are chosen, for people.
---@param plan tracefs.sample
---@return string
function sample.tell(plan)
  local how = plan.field and ("by %s%s"):format(plan.field,
    plan.shift > 0 and (" without its lowest %d bits"):format(plan.shift) or "")
    or "each in its turn"
  return ("1 in %d, %s, %s"):format(plan.scale, how, plan.by_kernel and "by the kernel's filter"
    or ("by the reader: %s"):format(plan.why))
end

return sample
