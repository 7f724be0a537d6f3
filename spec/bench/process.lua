--- Commands of the benchmark, and what they say of themselves in lines of key=value.
local process = {}

---@param text string
---@return string word for the shell
function process.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

---@param ... any its words
---@return string line for the shell
function process.command(...)
  local words = table.pack(...)
  for i = 1, words.n do
    words[i] = process.quote(tostring(words[i]))
  end
  return table.concat(words, " ")
end

---@param line string?
---@return table<string, integer|number|string>
function process.parse(line)
  local values = {}
  for key, value in (line or ""):gmatch("([%w_]+)=(%S+)") do
    values[key] = math.tointeger(value) or tonumber(value) or value
  end
  return values
end

---@param path string
---@return string? text nil when it cannot be read
function process.read_file(path)
  local file <close> = io.open(path)
  return file and file:read("a")
end

--- Runs a shell command.
---@param text string
---@return table? values of its last line; nil when it failed
---@return string first its first line
function process.run(text)
  local pipe = assert(io.popen(text .. " 2>&1"))
  local output = pipe:read("a")
  local ok = pipe:close()
  local first = output:match("[^\n]+") or "it failed without a word"
  return ok and process.parse(output:match("([^\n]*)\n?$")) or nil, first
end

--- Runs a program to its end.
---@param measure string the path of measure
---@param out string a file to work with
---@param ... any the program and its arguments
---@return table? result wall_ns, user_ns, sys_ns, peak_kb
---@return string? why
function process.measure(measure, out, ...)
  local _, said = process.run(process.command(measure, out, ...))
  local result = process.parse(process.read_file(out))
  os.remove(out)
  if result.status ~= 0 then
    return nil, ("exit status %s: %s"):format(result.status, said)
  end
  return result
end

return process
