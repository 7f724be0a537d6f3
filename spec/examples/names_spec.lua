local helper = require "spec.support.helper"

-- Options whose value stands in a filter of the kernel's, which has no escape for quotes.
local OPTIONS <const> = {
  netlat = "--device", execsnoop = "--file", offcpu = "--comm", opensnoop = "--comm",
  pagefaults = "--comm", runqlat = "--comm", syscount = "--comm", wakelat = "--comm",
  wakers = "--comm",
}

describe("a name that cannot be told to the kernel", function()
  for name, option in pairs(OPTIONS) do
    it("is refused by " .. name, function()
      local status, _, err = helper.run { ("examples/%s.lua"):format(name), option, 'a"b' }
      assert.equal(1, status)
      assert.matches(option .. ": a name with a quote in it", err, 1, true)
    end)
  end
end)

-- ps shows longer names, and an example that waits for one shows nothing, and not why.
describe("a name that is longer than a task's", function()
  for _, name in ipairs {
    "fslat", "offcpu", "opensnoop", "pagefaults", "profile", "runqlat", "sockleak", "syscount",
    "wakelat", "wakers",
  } do
    it("is refused by " .. name, function()
      local status, out, err = helper.run {
        ("examples/%s.lua"):format(name), "--comm", "kube-controller-manager",
      }
      assert.same({ 1, "" }, { status, out })
      assert.matches("is 'kube-controller' there", err, 1, true)
    end)
  end
end)
