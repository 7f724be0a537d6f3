local globals = require "spec.support.globals"
local tracefs = require "tracefs"

local HERE = "^spec/lua/tracefs/functions_spec%.lua:%d+: "

describe("tracefs.functions", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.functions"))
  end)
end)

-- Every refusal names the script's line and leaves the instance as it was.
local function refused(options)
  local session <close> = tracefs.session()
  local ok, message = pcall(function()
    session:functions(options)
  end)
  assert.is_false(ok)
  assert.matches(HERE, message)
  assert.matches("^nop", session.instance:read("current_tracer"))
  message = message:gsub(HERE, "")
  assert.is_nil(message:find("%.lua:%d"), message)
  return message
end

describe("session:functions", function()
  it("says so when it is called with a dot, or on a closed session", function()
    local session = tracefs.session()
    for _, first in ipairs { "vfs_read", 1, {} } do
      local ok, message = pcall(function() session.functions(first) end)
      assert.is_false(ok)
      assert.matches(HERE .. "functions is a method: it is called with a colon, session:functions",
        message)
    end
    session:close()
    local ok, message = pcall(function() session:functions { "vfs_read" } end)
    assert.is_false(ok)
    assert.matches(HERE .. "the session is closed", message)
  end)

  it("wants a table of what it knows", function()
    assert.matches("^functions{...}: a table is needed, not nil", refused(nil))
    assert.matches("^functions{...}: a table is needed, not string", refused("vfs_read"))
    assert.equal("functions: unknown option 'filter'; there are: args, depth, graph, "
      .. "graph_notrace, notrace, retaddr, retval, tracer", refused { filter = "vfs_read" })
    assert.equal('functions: tracer must be "function" or "function_graph", not blk',
      refused { tracer = "blk" })
    assert.equal("functions: args must be true or false, not 1", refused { args = 1 })
    for _, depth in ipairs { 0, 1001, 1.5, "3" } do
      assert.equal("functions: depth must be a whole number from 1 to 1000, not " .. depth,
        refused { depth = depth })
    end
  end)

  it("wants names", function()
    assert.matches('names of functions are strings such as "vfs_%*", not number', refused { 5 })
    assert.matches("notrace must be a name or a list of names, not boolean",
      refused { notrace = true })
    assert.matches("graph is an empty list, which would mean all functions", refused { graph = {} })
    assert.matches("graph must be a list of names; it has the key 'x'",
      refused { graph = { "vfs_read", x = 1 } })
    for name, why in pairs {
      [""] = "it is empty", ["a b"] = "it has a blank", ["a\0"] = "it has a blank or a zero byte",
      ["a\n"] = "it has a blank", ["!vfs_read"] = "what is not to be recorded is given as notrace",
      ["vfs_read:traceoff"] = "only mod: and the name of a module",
      ["*:mod:"] = "behind :mod: the name of one module is needed",
      ["*:mod:a:b"] = "behind :mod: the name of one module is needed",
      ["17"] = "a number is no function",
    } do
      assert.matches(why, refused { "vfs_read", name }, 1, true)
      assert.matches(why, refused { notrace = name }, 1, true)
    end
  end)

  it("takes only what belongs to the tracer", function()
    for name, value in pairs { graph = "vfs_read", graph_notrace = "vfs_read", depth = 3 } do
      assert.equal("functions: graph, graph_notrace and depth belong to the tracer function_graph",
        refused { tracer = "function", [name] = value })
    end
    for _, name in ipairs { "retval", "retaddr" } do
      assert.equal("functions: " .. name .. " belongs to the tracer function_graph",
        refused { tracer = "function", [name] = true })
    end
  end)

  it("says what the kernel lacks, or that it does not allow it", function()
    if tracefs.features().graph_tracer then
      pending("this kernel has function_graph: spec/vm traces with it")
    end
    local message = refused { graph = "vfs_read" }
    assert.matches("^functions: this kernel has ", message)
    assert.matches("function_graph", message)
    assert.matches("nop", message)
  end)

  it("leaves a session that traces events after a refusal", function()
    local session <close> = tracefs.session()
    local seen
    session:on("ftrace:print", function(ev)
      seen = ev.buf
    end)
    assert.is_false(pcall(session.functions, session, { "no_such_function_anywhere" }))
    assert.is_false(pcall(session.functions, session, { "vfs_read", "no_such_function_anywhere" }))
    session:start()
    session:marker("still here\n")
    session:finish()
    session:run()
    assert.equal("still here\n", seen)
  end)
end)
