-- Starts busted with the Lua that runs this file, however busted was installed: its own start
-- script names no Lua version, or another one.
require("busted.runner")({ standalone = false })
