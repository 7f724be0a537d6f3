-- Writes Lua modules into a C source: `lua embed.lua OUTPUT SYMBOL [NAME=FILE]...`. What comes out
-- defines `const struct embedded SYMBOL[]`, see embedded.h.
local output, symbol = arg[1], arg[2]

local function bytes_of(text)
  local lines = {}
  for at = 1, #text, 20 do
    lines[#lines + 1] = "\t" .. table.concat({ text:byte(at, at + 19) }, ",") .. ","
  end
  return table.concat(lines, "\n")
end

local parts = { '#include "embedded.h"\n' }
local rows = {}
for i = 3, #arg do
  local name, path = arg[i]:match("^([^=]+)=(.+)$")
  local file <close> = assert(io.open(path, "rb"))
  local text = assert(file:read("a"))
  -- What does not compile is found here, not on the machine where it is to run.
  assert(load(text, "@" .. path, "t"))
  parts[#parts + 1] = ("static const unsigned char text_%d[] = {\n%s\n};\n"):format(
    i, bytes_of(text))
  -- Not a path that could be there: a script's own file is never taken for one of these.
  local chunk = "@(luatrace)/" .. name:gsub("%.", "/") .. ".lua"
  rows[#rows + 1] = ('\t{ "%s", "%s", text_%d, sizeof(text_%d) },'):format(name, chunk, i, i)
end
rows[#rows + 1] = "\t{ 0, 0, 0, 0 },"
parts[#parts + 1] = ("const struct embedded %s[] = {\n%s\n};\n"):format(
  symbol, table.concat(rows, "\n"))

local file <close> = assert(io.open(output, "wb"))
assert(file:write(table.concat(parts, "\n")))
assert(file:close())
