-- Every event of this kernel is understood.
local guest = require "harness"
local tracefs = require "tracefs"

guest.check("every event's format is understood, field by field", function()
  local labels = assert(tracefs.events())
  local fields, silent = 0, {}
  for _, label in ipairs(labels) do
    local event = assert(tracefs.event(label))
    guest.equal(label, event:label())
    local text = guest.read(("%s/events/%s/format"):format(guest.dir, label:gsub(":", "/")))
    local names = {}
    for declaration, offset, size in text:gmatch("\tfield:([^;]*);\toffset:(%d+);\tsize:(%d+);") do
      names[#names + 1] = { declaration, tonumber(offset), tonumber(size) }
    end
    local list = event:fields()
    guest.equal(#names, #list, "fields of " .. label)
    for i, field in ipairs(list) do
      local declaration, offset, size = table.unpack(names[i])
      guest.truth(declaration:find(field.name, 1, true), "%s: field %d is %s, not %s", label, i,
        declaration, field.name)
      guest.equal(offset, field.offset, label .. "." .. field.name .. " offset")
      guest.equal(size, field.size, label .. "." .. field.name .. " size")
    end
    fields = fields + #list
    if event:no_text() then
      silent[#silent + 1] = label .. " (" .. event:no_text() .. ")"
    end
  end
  guest.note("%d events, %d fields, %d without a usable print format", #labels, fields, #silent)
  for _, label in ipairs(silent) do
    guest.note("%s", label)
  end
end)
