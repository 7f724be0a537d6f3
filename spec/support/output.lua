--- busted's plain output with the time of each spec file, so that a log says where the time went,
--- and which file a run that was ended from outside had come to.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.plainTerminal"(options)

  busted.subscribe({ "file", "end" }, function(file)
    io.write((" %s %.1f s\n"):format(file.name, file.duration))
    io.flush()
    return nil, true
  end)

  return handler
end
