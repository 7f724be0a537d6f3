local glob = require "tracefs.glob"

-- include/linux/sched.h: TASK_COMM_LEN, without the NUL.
local LONGEST <const> = 15

--- For argparse's convert(), of the option --comm: ps and /proc show longer names, by which the
--- kernel's events never match.
---@param text string
---@return string? name nil when no task can have it
---@return string? message what to say instead
return function(text)
  if #text > LONGEST and not glob.has(text) then
    return nil, ("--comm: the kernel keeps %d bytes of a task's name: '%s' is '%s' there"):format(
      LONGEST, text, text:sub(1, LONGEST))
  end
  return text
end
