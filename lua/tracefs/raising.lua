--- From calls that return nil and a message to errors, and from there to the script's line.
local raising = {}

--- The value of a call that may be refused. Raises the message as it is, without a position: it
--- is for the script's author, and at_caller() adds the place in the script.
---@generic T
---@param value T?
---@param message any
---@return T value
function raising.must(value, message)
  if value == nil then
    error(message, 0)
  end
  return value
end

--- Calls a function and raises its error with the position of the script's call. The caller
--- must not tail-call it: the level counts its frame.
---@param level integer as for error(): 2 for the caller of the function that calls this
---@param fn function
---@param ... any
---@return any result the first one
function raising.at_caller(level, fn, ...)
  local ok, result = pcall(fn, ...)
  if not ok then
    error(result, type(result) == "string" and level + 1 or 0)
  end
  return result
end

return raising
