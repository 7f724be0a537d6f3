local helper = require "spec.support.helper"

local function check(...)
  local argv = { helper.interpreter, ".ci/docs-check", ... }
  argv.timeout = 200
  argv.env = {
    LUATRACE_BUILD = helper.build,
    LUATRACE_LUA_DIR = helper.lua_dir,
    LUATRACE_CORE_DIR = helper.core_dir,
    LUATRACE_COMMAND = helper.command,
    LUATRACE_INTERPRETER = helper.interpreter,
    LUATRACE_SLOWDOWN = tostring(helper.slowdown),
  }
  return helper.execute(argv)
end

-- A copy of everything that is held against the code, with one thing in it changed.
local function broken(path, pattern, replacement)
  local dir = helper.tmpdir()
  assert(os.execute(("mkdir -p %s/lua/tracefs"):format(dir)))
  assert(os.execute("cp -r README.md LICENSE docs examples " .. dir))
  assert(os.execute(("cp -r lua/tracefs/meta %s/lua/tracefs/"):format(dir)))
  if path then
    local text, count = helper.read_file(dir .. "/" .. path):gsub(pattern, replacement, 1)
    assert(count == 1, pattern .. " is not in " .. path)
    helper.write_file(dir .. "/" .. path, text)
  end
  return dir
end

-- The check must fail, with this complaint.
local function complains(dir, name, complaint)
  local status, out, err = check("--docs", dir, name)
  assert.equal("", err)
  assert.equal(1, status, out)
  assert.truthy(out:find("docs-check: " .. complaint, 1, true), out)
end

describe("the documentation", function()
  for _, name in ipairs { "stubs", "api", "options", "scripts", "examples" } do
    it("is in step with the code: " .. name, function()
      local status, out, err = check(name)
      assert.equal("", err)
      assert.equal(("docs-check: %s: ok\n"):format(name), out)
      assert.equal(0, status)
    end)
  end

  it("has a manual page that mandoc and groff take without a word", function()
    if not os.execute("command -v mandoc >/dev/null") then
      pending("mandoc is not here")
      return
    end
    local status, out = helper.execute {
      "mandoc", "-T", "lint", "-W", "warning", "docs/luatrace.1",
    }
    assert.equal(0, status, out)
    assert.equal("", out)
    if os.execute("command -v groff >/dev/null") then
      local _, _, err = helper.execute { "groff", "-mandoc", "-ww", "-Tutf8", "docs/luatrace.1" }
      assert.equal("", err)
    end
  end)
end)

describe("the check of the documentation", function()
  it("sees a function without a stub", function()
    complains(broken("lua/tracefs/meta/instance.lua", "function instance:marker%(text%) end\n", ""),
      "stubs", "instance:marker is registered and has no stub in lua/tracefs/meta")
    complains(broken("lua/tracefs/meta/poll.lua", "function core%.poll%(fds, seconds%) end\n", ""),
      "stubs", "core.poll is registered and has no stub in lua/tracefs/meta")
  end)

  it("sees a stub without a function", function()
    complains(
      broken("lua/tracefs/meta/instance.lua", "\nfunction instance:marker%(text%) end\n",
        "%0\nfunction instance:explode() end\n"),
      "stubs", "lua/tracefs/meta/instance.lua: the stub instance:explode has no function")
  end)

  it("sees a function without a row", function()
    for row, name in pairs {
      ["| `tracefs%.u64%(integer%)`[^\n]*\n"] = "tracefs.u64",
      ["| `session:every%([^\n]*\n"] = "session:every",
      ["| `instance:clocks%([^\n]*\n"] = "instance:clocks",
      ["| `trace:print%([^\n]*\n"] = "trace:print",
      ["| `aggregate:lines%([^\n]*\n"] = "aggregate:lines",
    } do
      complains(broken("docs/api.md", row, ""), "api",
        name .. " has no row in the table of docs/api.md")
    end
  end)

  it("sees a row without a function", function()
    complains(broken("docs/api.md", "| `session:every%(", "| `session:often()` | | |\n%0"), "api",
      "docs/api.md: the row session:often has no function")
  end)

  it("sees a link that leads nowhere", function()
    complains(broken("README.md", "%(docs/guide%.md%)", "(docs/manual.md)"), "api",
      "README.md: the link docs/manual.md leads nowhere")
    complains(broken("docs/guide.md", "%(#losses%)", "(#winnings)"), "api",
      "docs/guide.md: docs/guide.md has no heading for the link #winnings")
  end)

  it("sees an option that the man page lacks, and one that only the man page has", function()
    complains(broken("docs/luatrace.1", "%.It Fl %-strict\n", ".It Sy strict\n"), "options",
      "the man page lacks the option --strict of luatrace --help")
    complains(broken("docs/luatrace.1", "%.It Fl %-strict\n", ".It Fl -fast\n%0"), "options",
      "luatrace --help lacks the option --fast of the man page")
  end)

  it("sees where the man page and the help of a command differ", function()
    local dir = broken("docs/luatrace.1", "%.It Fl %-duration Ar", ".It Fl -period Ar")
    local path = dir .. "/docs/luatrace.1"
    local page = helper.read_file(path)
    for pattern, text in pairs {
      ["%.It Fl l , Fl %-function"] = ".It Fl l",
      ["%.Fl %-cpu , e ,"] = ".Fl -cpu ,",
      ["%.Ss luatrace stat "] = ".Ss luatrace state ",
    } do
      local count
      page, count = page:gsub(pattern, text, 1)
      assert.equal(1, count, pattern)
    end
    helper.write_file(path, page)
    local status, out = check("--docs", dir, "options")
    assert.equal(1, status)
    for _, complaint in ipairs {
      "the man page lacks the option --duration of luatrace record",
      "luatrace record --help lacks the option --period of the man page",
      "the man page has -l of luatrace record without --function",
      "the man page lacks the option --event of luatrace cut",
      "the man page lacks the command stat", "luatrace lacks the command state of the man page",
    } do
      assert.truthy(out:find("docs-check: " .. complaint .. "\n", 1, true), complaint)
    end
  end)

  it("sees a script without a spec", function()
    local dir = broken("README.md", "examples/netlat%.lua", "%0 examples/new.lua")
    helper.write_file(dir .. "/examples/new.lua", "")
    complains(dir, "scripts", "examples/new.lua has no spec spec/examples/new_spec.lua")
  end)

  -- One document with one block, so that the others need not run again.
  local function document(block)
    local dir = broken()
    for _, path in ipairs { "README.md", "docs/guide.md", "docs/api.md" } do
      helper.write_file(dir .. "/" .. path, "")
    end
    helper.write_file(dir .. "/README.md", "# A page\n\n```sh run\ntrue\n```\n\n" .. block)
    return dir
  end

  it("sees an example that does not run", function()
    complains(document('```lua run\nerror("oops", 0)\n```\n'), "examples",
      "README.md:7: the example ends with 1:")
    complains(
      document('```lua run\nlocal trace = require "tracefs.script"\ntrace:on("no:such")\n```\n'),
      "examples", "README.md:7: the example ends with 1:")
    complains(document("```sh run\nluatrace -l no:such | cat\nluatrace -l no:such\n```\n"),
      "examples", "README.md:7: the example ends with 1:")
  end)

  it("sees Lua that is none, and a mark that means nothing", function()
    complains(document("```lua\nfor do\n```\n"), "examples", "README.md:7: the example is no Lua:")
    complains(document("```lua ran\nx = 1\n```\n"), "examples",
      "README.md:7: a block is marked 'lua ran'; there is: lua run")
  end)

  it("refuses the name of a check that there is not", function()
    local status, _, err = check("spelling")
    assert.equal(2, status)
    assert.truthy(err:find("no check 'spelling'", 1, true), err)
  end)
end)
