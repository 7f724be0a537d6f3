-- Requires a module afresh, together with what it requires of ours, and returns the globals that
-- this has made or changed; the modules are as before then.
return function(module)
  local before, loaded = {}, {}
  for name, value in pairs(_G) do
    before[name] = value
  end
  for name, value in pairs(package.loaded) do
    if name == "tracefs" or name:find("^tracefs%.") then
      loaded[name] = value
      package.loaded[name] = nil
    end
  end
  local ok, message = pcall(require, module)
  for name in pairs(package.loaded) do
    if name == "tracefs" or name:find("^tracefs%.") then
      package.loaded[name] = loaded[name]
    end
  end
  for name, value in pairs(loaded) do
    package.loaded[name] = value
  end
  assert(ok, message)
  local touched = {}
  for name, value in pairs(_G) do
    if before[name] ~= value then
      table.insert(touched, name)
    end
  end
  for name in pairs(before) do
    if _G[name] == nil then
      table.insert(touched, name)
    end
  end
  return touched
end
