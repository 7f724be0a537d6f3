-- Runs luatrace until a run was not disturbed: a machine that stood still has events that come
-- late, and then an example gives up what the load has made.
local helper = require "spec.support.helper"

--- The last of at most three runs, with JSON as its output, and the first that has nothing late and
--- nothing lost.
---@param words table words of the command line
---@param parse fun(out: string): table what it has printed; `stats` among it
---@return table found what parse() makes of it
return function(words, parse)
  local found
  for _ = 1, 3 do
    local status, out, err = helper.run(
      table.move(words, 1, #words, 5, { "-f", "json", "-b", "16384", timeout = 60 }))
    assert(status == 0, err)
    found = parse(out)
    if found.stats.late + found.stats.lost == 0 then
      break
    end
  end
  return found
end
