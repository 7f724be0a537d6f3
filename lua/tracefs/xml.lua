--- Text inside of XML, whatever bytes it has.
local escape = require "tracefs.escape"

local xml = {}

local ENTITIES <const> = {
  ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;",
}

--- Any bytes as text of XML, which has no control characters.
---@param value string
---@return string
function xml.text(value)
  value = escape.line(value):gsub("\xEF\xBF[\xBE\xBF]", function(bytes)
    return ("\\xEF\\xBF\\x%02X"):format(bytes:byte(3))
  end)
  return (value:gsub("[&<>\"']", ENTITIES))
end

--- At most so many characters, the last one "…" when some are left out; not yet for XML.
---@param value string
---@param longest integer
---@return string
function xml.cut(value, longest)
  value = escape.line(value)
  local length = utf8.len(value)
  return length > longest and value:sub(1, utf8.offset(value, longest) - 1) .. "…" or value
end

return xml
