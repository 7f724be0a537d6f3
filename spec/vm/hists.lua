--- What the checks of histograms and synthetic events share.
local guest = require "harness"
local hist = require "tracefs.hist"
local tracefs = require "tracefs"

local hists = {}

-- A session on a kernel that has all of it.
function hists.new_session(options)
  local session = tracefs.session(options or { buffer_kb = 2048 })
  if not hist.supported(session.instance) then
    session:close()
    guest.skip("this kernel has no hist triggers")
  end
  return session
end

function hists.need_synthetic()
  if not guest.exists(guest.dir .. "/synthetic_events") then
    guest.skip("this kernel has no synthetic events")
  end
end

-- What this kernel has of what came with Linux 6.3: shown by the kernel's own help.
function hists.syntax()
  return require("tracefs.hist_text").syntax(guest.read(guest.dir .. "/README"))
end

return hists
