local core = require "tracefs.core"

-- The names that the messages of trigger commands, options and tracers offer.
describe("the nearest names", function()
  local instance

  before_each(function()
    instance = assert(core.instance_create(assert(core.tracing_dir())))
  end)

  after_each(function()
    assert(instance:destroy())
  end)

  local function offered(command)
    local _, message = instance:set_trigger("sched", "sched_waking", command)
    return message:match("Did you mean ([^?]*)%?")
  end

  it("differ by few letters, the likeliest first", function()
    assert.equal("traceon or traceoff", offered("traceo"))
    assert.equal("traceoff or traceon", offered("traceofff"))
    assert.equal("enable_event or disable_event", offered("enable-event"))
    assert.equal("stacktrace", offered("Stacktrace"))
  end)

  it("have the word in them", function()
    assert.equal("enable_event or disable_event", offered("event"))
  end)

  it("are none when no name is like it", function()
    assert.is_nil(offered("zzz"))
    assert.is_nil(offered(("x"):rep(300)))
  end)
end)
