local globals = require "spec.support.globals"
local task_name = require "tracefs.task_name"

describe("tracefs.task_name", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.task_name"))
  end)

  it("takes what a task may be called, and globs", function()
    for _, name in ipairs { "", "sh", "fifteen-letters", "kworker/*-events_unbound" } do
      assert.equal(name, task_name(name))
    end
  end)

  it("says what a longer name is called in the kernel", function()
    local name, why = task_name "kube-controller-manager"
    assert.is_nil(name)
    assert.matches("'kube-controller-manager' is 'kube-controller' there", why, 1, true)
  end)
end)
