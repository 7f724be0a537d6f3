local helper = require "spec.support.helper"
local core = require "tracefs.core"

describe("core.threads", function()
  it("refuses what is no pid and says when there is no such process", function()
    assert.error_matches(function() core.threads(0) end, "not a pid")
    local list, message, errno = core.threads(2147483647)
    assert.is_nil(list)
    assert.equal("there is no process 2147483647", message)
    assert.equal(3, errno)
  end)

  it("has the process itself", function()
    assert.same({ helper.pid }, core.threads(helper.pid))
  end)
end)

describe("core.descendants", function()
  it("is empty for a process without children", function()
    assert.same({}, core.descendants(2147483647))
    assert.error_matches(function() core.descendants(0) end, "not a pid")
  end)

  it("has children and their children, parents first", function()
    local process <close> = assert(core.spawn("sh -c 'sleep 1000; true'; true"))
    process:release()
    local list = helper.wait_until(function()
      local found = core.descendants(process:pid())
      return #found == 2 and found
    end)
    assert.is_truthy(list, "children did not come")
    assert.equal("sh\n", helper.read_file(("/proc/%d/comm"):format(list[1])))
    assert.equal("sleep\n", helper.read_file(("/proc/%d/comm"):format(list[2])))
  end)

  it("is not confused by a name with brackets", function()
    local dir = helper.tmpdir()
    local name = dir .. "/x) S 1 ("
    assert(os.execute(("cp \"$(command -v sleep)\" '%s'"):format(name)))
    local process <close> = assert(core.spawn(("'%s' 1000; true"):format(name)))
    process:release()
    assert.is_truthy(helper.wait_until(function()
      return #core.descendants(process:pid()) == 1
    end))
  end)
end)
