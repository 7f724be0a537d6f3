local helper = require "spec.support.helper"

local DEMO = "examples/demo.lua"

local function check(status, out, err, packets)
  assert.equal(0, status, err)
  assert.truthy(out:find(("Tracing %d UDP packets over lo"):format(packets), 1, true), out)
  -- Others may use lo at the same time.
  local pairs_seen = tonumber(out:match("\nlo +(%d+) +[%d.]+[num]?s"))
  assert.is_true(pairs_seen and pairs_seen >= packets, out)
  assert.truthy(out:find("\nlo, ns\n[ %d.]+%d+ |"), out)
  for line in out:gmatch("[^\n]+") do
    assert.is_true(#line < 80, "80 columns or more: " .. line)
  end
end

describe("examples/demo.lua", function()
  it("shows the latency of every packet it sends, within seconds", function()
    local began = os.time()
    local status, out, err = helper.run { DEMO }
    -- Only a build tree has the sender beside the module.
    local has_sender = helper.read_file(helper.core_dir .. "/support/load") ~= nil
    check(status, out, err, has_sender and 10007 or 997)
    assert.is_true(os.time() - began <= 30 * helper.slowdown)
  end)

  it("sends with bash where there is no build tree", function()
    -- An installation has the module, and no support/load beside it.
    local dir = helper.tmpdir()
    assert(os.execute(("mkdir %s/tracefs && cp %s/tracefs/core.so %s/tracefs/"):format(
      dir, helper.core_dir, dir)))
    helper.write_file(dir .. "/demo.lua", ("package.cpath = %q\n"):format(dir .. "/?.so")
      .. helper.read_file(DEMO))
    helper.write_file(dir .. "/netlat.lua", helper.read_file("examples/netlat.lua"))
    local status, out, err = helper.run { dir .. "/demo.lua" }
    check(status, out, err, 997)
  end)

  it("says what to install when nothing can send", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/demo.lua", "package.cpath = ''\nlocal real = os.getenv\n"
      .. "os.getenv = function(name) return name ~= 'PATH' and real(name) or nil end\n"
      .. helper.read_file(DEMO):gsub('local core = require "tracefs.core"', "local core"))
    local status, _, err = helper.run { dir .. "/demo.lua" }
    assert.equal(1, status)
    assert.truthy(err:find("install bash", 1, true), err)
  end)

  it("says why it cannot trace, and what to do", function()
    if not helper.is_root then
      pending("only root can become somebody who may not trace")
      return
    end
    local status, out, err = helper.execute {
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", helper.command, DEMO,
    }
    assert.equal(1, status)
    assert.equal("", out)
    assert.truthy(err:find("[Pp]ermission denied"), err)
    assert.truthy(err:find("root", 1, true), err)

    status, out, err = helper.execute {
      "unshare", "-m", "sh", "-c",
      'umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$@"', "sh",
      helper.command, DEMO,
    }
    assert.equal(1, status)
    assert.equal("", out)
    assert.truthy(err:find("mount -t tracefs", 1, true), err)
  end)

  it("shows a recording where the kernel may not be traced", function()
    if not helper.is_root then
      pending("only root can take tracefs away")
      return
    end
    -- .ci/demo belongs to the tree, not to an installation.
    local status, out, err = helper.execute {
      "unshare", "-m", "sh", "-c",
      'umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec "$@"', "sh",
      ".ci/demo", helper.build,
    }
    assert.equal(0, status, err)
    assert.matches("^The kernel of this machine cannot be traced from here:\n  ", out)
    assert.truthy(out:find("mount -t tracefs", 1, true), out)
    assert.matches("\nlo +211 +[%d.]+[num]?s", out)
    assert.equal("", err)
  end)
end)
