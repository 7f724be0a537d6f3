--- What a format makes of what is put out: the file that it writes.
local assert = require "luassert"
local helper = require "spec.support.helper"
local output = require "tracefs.output"

---@param format tracefs.output.format
---@param fill fun(out: tracefs.output)
---@return string content
---@return string path of the file
return function(format, fill)
  local path = helper.tmpdir() .. "/out"
  local out = assert(output.open { path = path, format = format })
  fill(out)
  assert.is_nil(out:close())
  return helper.read_file(path), path
end
