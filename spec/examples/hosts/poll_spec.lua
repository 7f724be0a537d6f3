local check = require "spec.support.loops"
local helper = require "spec.support.helper"

describe("examples/hosts/poll.lua", function()
  it("handles two sessions beside a timer and an echo server", function()
    if helper.execute { helper.interpreter, "-e", "require 'posix.poll'" } ~= 0 then
      pending("no luaposix for this Lua here")
    end
    check("examples/hosts/poll.lua")
  end)
end)
