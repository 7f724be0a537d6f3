--- luatrace -l: which events there are, and with -v what their records hold.
local tracefs = require "tracefs"
local output = require "tracefs.output"
local report = require "tracefs.command.report"

local listing = {}

-- The fields of the event itself; every event has the common ones.
local function fields_of(label)
  local event, message = tracefs.event(label)
  if not event then
    return nil, message
  end
  local fields = {}
  for _, field in ipairs(event:fields()) do
    if not field.common then
      fields[#fields + 1] = { name = field.name, type = field.type }
    end
  end
  return fields
end

local function show(out, label, fields)
  if out.format == "json" then
    out:show { event = label, fields = fields }
    return
  end
  local lines = { label }
  for _, field in ipairs(fields or {}) do
    lines[#lines + 1] = ("    %s %s"):format(field.type, field.name)
  end
  out:write(table.concat(lines, "\n") .. "\n")
end

local function list(options, out)
  local labels, message = tracefs.events(options.pattern)
  if not labels then
    return message
  end
  for _, label in ipairs(labels) do
    local fields
    if options.verbose then
      fields, message = fields_of(label)
      if not fields then
        return message
      end
    end
    show(out, label, fields)
  end
end

---@param options tracefs.command.options
---@return integer status
function listing.run(options)
  local out, message = output.open { path = options.output, format = options.format }
  if not out then
    report.failure(message)
    return 1
  end
  local ok, problem = pcall(list, options, out)
  local failure = out:close()
  if failure or problem then
    report.failure(tostring(failure or problem))
  end
  return ok and not problem and not failure and 0 or 1
end

return listing
