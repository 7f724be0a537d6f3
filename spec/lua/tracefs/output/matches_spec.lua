local helper = require "spec.support.helper"
local matches = require "tracefs.output.matches"
local output = require "tracefs.output"

describe("tracefs.output.matches", function()
  local session = { _counts_ns = function() return true end }

  it("names a pair by its events", function()
    assert.equal("a>b", matches.name { start = "x:a", stop = "y:b" })
    assert.equal("a>b", matches.name {
      start = { { event = "x:a" }, "x:c" }, stop = { event = "b" },
    })
    assert.equal("mine", matches.name { name = "mine", start = "x:a", stop = "y:b" })
  end)

  it("shows a match and calls the script's function", function()
    local called
    local stop = { common_cpu = 1, common_timestamp = -1, common_event = "no:such" }
    for format, expected in pairs {
      text = "[001] 18446744073709551615: a>b 1.50us pid=7 comm=x\n",
      json = '{"type":"pair","name":"a>b","start":18446744073709550115,'
        .. '"stop":18446744073709551615,"delta":1500,"cpu":1,"key":{"pid":7},'
        .. '"values":{"comm":"x"},"stages":[1000,500]}\n',
      csv = "type,name,start,stop,delta,cpu,pid,comm,stages,more\r\n"
        .. "pair,a>b,18446744073709550115,18446744073709551615,1500,1,7,x,\"[1000,500]\",\r\n",
    } do
      local path = helper.tmpdir() .. "/out"
      local out = assert(output.open { path = path, format = format })
      local given = {
        start = "x:a", stop = "y:b", key = { start = "tid", stop = "pid" }, carry = "comm",
        on_match = function(...) called = { ... } end,
      }
      local options = out:pair(given, session)
      assert.not_equal(given.on_match, options.on_match)
      options.on_match(1500, 7, { comm = "x" }, stop, { 1000, 500 })
      assert.same({ 1500, 7, { comm = "x" }, stop, { 1000, 500 } }, called)
      assert.is_nil(out:close())
      assert.equal(expected, helper.read_file(path))
    end
  end)

  it("shows keys of several parts, and those of functions", function()
    local path = helper.tmpdir() .. "/out"
    local out = assert(output.open { path = path, format = "text" })
    local stop = { common_cpu = 1, common_timestamp = 29555936049999, common_event = "no:such" }
    out:pair({ start = "a", stop = "b", key = { "dev", "sector" } }, session)
      .on_match(1, { 8, 9 }, nil, stop, {})
    out:pair({ start = "a", stop = "b", key = function() end }, session)
      .on_match(1, { "k", 9 }, nil, stop, {})
    assert.is_nil(out:close())
    assert.equal("[001] 29555.936050: a>b 1ns dev=8 sector=9\n"
      .. "[001] 29555.936050: a>b 1ns key=k key2=9\n", helper.read_file(path))
  end)
end)
