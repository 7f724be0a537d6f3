local check = require "spec.support.loops"
local helper = require "spec.support.helper"

describe("examples/hosts/luv.lua", function()
  it("handles two sessions beside a timer and an echo server", function()
    if helper.execute { helper.interpreter, "-e", "require 'luv'" } ~= 0 then
      pending("no luv for this Lua here")
    end
    check("examples/hosts/luv.lua")
  end)
end)
