-- Recordings of other machines and what trace-cmd says about them: ../shared/inputs, where a
-- working copy has that folder beside it.
local helper = require "spec.support.helper"

local inputs = {}

local DIR <const> = helper.root .. "/../shared/inputs"

--- Is the folder there?
inputs.are_there = io.open(DIR .. "/index.tsv") ~= nil

--- Of a file by its name in the folder.
---@param name string
---@return string path
function inputs.path(name)
  return DIR .. "/" .. name
end

---@class spec.input
---@field name string
---@field path string
---@field version integer
---@field status integer of trace-cmd report
---@field count integer records
---@field cpus? integer

--- All recordings.
---@return spec.input[]
function inputs.list()
  local list = {}
  if not inputs.are_there then
    return list
  end
  local file <close> = assert(io.open(DIR .. "/index.tsv"))
  for line in file:lines() do
    local words = {}
    for word in (line .. "\t"):gmatch("([^\t]*)\t") do
      words[#words + 1] = word
    end
    if words[1]:find("%.dat$") then
      list[#list + 1] = {
        name = words[1],
        path = inputs.path(words[1]),
        version = tonumber(words[4]),
        cpus = tonumber(words[8]),
        status = tonumber(words[9]),
        count = tonumber(words[10]),
      }
    end
  end
  return list
end

--- The lines of trace-cmd's report of one.
---@param name string
---@return string
function inputs.report(name)
  local pipe <close> = assert(io.popen(("gzip -dc %s"):format(helper.quote(
    DIR .. "/reports/" .. name:gsub("/", "@") .. ".txt.gz"))))
  return pipe:read("a")
end

return inputs
