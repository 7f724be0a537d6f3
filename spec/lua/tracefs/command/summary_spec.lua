local helper = require "spec.support.helper"

-- What is said on standard error for these statistics.
local function said(stats, setup)
  local status, out, err = helper.run_lua(([[
    local report = require "tracefs.command.report"
    %s
    require("tracefs.command.summary").report(%s, {
      get_buffer_kb = function() return 100 end,
    })
  ]]):format(setup or "", stats))
  assert.same({ 0, "" }, { status, out })
  return err
end

local function stats(fields)
  return ("{ produced = 1000, delivered = 900, lost = 0, pending = 0, late = 0, errors = 0,"
    .. " elapsed = 1.5, per_cpu = { [0] = { lost = 0 } }, %s }"):format(fields or "")
end

describe("the summary", function()
  it("is empty when all is well", function()
    assert.equal("", said(stats()))
  end)

  it("says how many of how many were lost, where, and what to do", function()
    local text = said(stats("lost = 100, per_cpu = { [3] = { lost = 99 }, [0] = { lost = 1 },"
      .. " [1] = { lost = 0 } }"))
    assert.equal("luatrace: warning: 100 of 1000 events were lost (CPU 0: 1, CPU 3: 99)."
      .. " The buffer was full before the script took them: try a larger one (-b 400), a filter,"
      .. " or fields instead of records.\n", text)
    text = said(stats("lost = 1, produced = 1, per_cpu = { [0] = { lost = 1 } }"),
      "report.quiet = true")
    assert.matches("1 of 1 event was lost (CPU 0: 1).", text, 1, true)
  end)

  it("says that events were late and that handlers failed", function()
    assert.equal("luatrace: warning: 2 events came late, behind younger ones; ev.common_late marks"
      .. " them\n", said(stats("late = 2")))
    assert.equal("luatrace: warning: 1 error in handlers\n", said(stats("errors = 1")))
  end)

  it("has numbers under -v", function()
    assert.equal("luatrace: 1000 events in 1.500 s: 900 delivered, 0 lost, 0 not read\n",
      said(stats(), "report.verbose = true"))
  end)
end)

describe("reports", function()
  it("are of three kinds, and safe for a terminal", function()
    local status, _, err = helper.run_lua [[
      local report = require "tracefs.command.report"
      report.failure("f\27") report.warning("w") report.note("n") report.detail("no")
      report.quiet, report.verbose = true, true
      report.failure("f") report.warning("w") report.note("no") report.detail("d")
    ]]
    assert.equal(0, status)
    assert.equal("luatrace: f\\x1B\nluatrace: warning: w\nluatrace: n\n"
      .. "luatrace: f\nluatrace: warning: w\nluatrace: d\n", err)
  end)
end)
