require "spec.support.helper"
local options = require "tracefs.command.options"

local function parse(...)
  return assert(options.parse { ... })
end

-- The message for wrong usage: one line.
local function refused(...)
  local parsed, message = options.parse { ... }
  assert.is_nil(parsed)
  assert.is_nil(message:find("\n"), message)
  return message
end

describe("the command line", function()
  it("takes a script and leaves what is behind it to the script", function()
    local parsed = parse("-d", "3", "script.lua", "-x", "--strict", "-d", "5")
    assert.equal("script.lua", parsed.script)
    assert.same({ "-x", "--strict", "-d", "5" }, parsed.args)
    assert.equal(3, parsed.duration)
    assert.is_false(parsed.strict)
  end)

  it("takes a user for scripts only", function()
    assert.equal("nobody", parse("--user", "nobody", "x.lua").user)
    assert.equal("1:2", parse("--user=1:2", "-i", "f", "x.lua").user)
    assert.equal("--user is empty", refused("--user", "", "x.lua"))
    assert.equal("--user does not go with -l: it is for scripts", refused("--user", "a", "-l"))
    assert.equal("--user does not go with --info: it is for scripts",
      refused("--user", "a", "--info"))
  end)

  it("takes code, several times, and arguments for it", function()
    local parsed = parse("-e", "a = 1", "--eval", "print(a)", "one", "-two")
    assert.same({ "a = 1", "print(a)" }, parsed.eval)
    assert.is_nil(parsed.script)
    assert.same({ "one", "-two" }, parsed.args)
    assert.same({ "-- a comment" }, parse("-e", "-- a comment").eval)
    assert.same({ "x=1" }, parse("-ex=1").eval)
    assert.same({ "x=1" }, parse("--eval=x=1").eval)
  end)

  it("takes - for standard input, and anything behind --", function()
    assert.equal("-", parse("-").script)
    local parsed = parse("-q", "--", "-weird.lua", "--", "x")
    assert.equal("-weird.lua", parsed.script)
    assert.same({ "--", "x" }, parsed.args)
  end)

  it("reads short options together", function()
    local parsed = parse("-qvb64", "s")
    assert.is_true(parsed.quiet)
    assert.is_true(parsed.verbose)
    assert.equal(64, parsed.buffer_kb)
    assert.equal("ls -l", parse("-qc", "ls -l", "s").command)
  end)

  it("reads -l with and without a pattern, -v before, behind and inside", function()
    local cases = {
      { { "-l" }, nil, false },
      { { "-l", "sched:*" }, "sched:*", false },
      { { "-lv" }, nil, true },
      { { "-lv", "sched:*" }, "sched:*", true },
      { { "-vl", "sched:*" }, "sched:*", true },
      { { "-l", "-v", "sched:*" }, "sched:*", true },
      { { "-v", "-l", "sched:*" }, "sched:*", true },
      { { "-l", "sched:*", "-v" }, "sched:*", true },
      { { "--list" }, nil, false },
      { { "--list=sched:*", "-v" }, "sched:*", true },
      { { "--list", "sched:*" }, "sched:*", false },
    }
    for _, case in ipairs(cases) do
      local parsed = parse(table.unpack(case[1]))
      assert.is_true(parsed.list)
      assert.equal(case[2], parsed.pattern)
      assert.equal(case[3], parsed.verbose)
      assert.is_nil(parsed.script)
    end
    assert.is_false(parse("s").list)
  end)

  it("reads times", function()
    local times = { ["5"] = 5, ["0.5"] = 0.5, [".5"] = 0.5, ["10m"] = 600, ["2h"] = 7200,
      ["3s"] = 3, ["1.5m"] = 90 }
    for text, seconds in pairs(times) do
      assert.equal(seconds, parse("-d", text, "s").duration)
    end
    assert.is_true(math.abs(parse("-d", "500ms", "s").duration - 0.5) < 1e-9)
    for _, text in ipairs { "", "x", "5x", "1e3", "0x10", "1:30", "5 s", ".", "nan", "-1" } do
      assert.matches("is no time", refused("-d", text, "s"), 1, true)
    end
    assert.matches("above 0", refused("-d", "0", "s"), 1, true)
  end)

  it("reads pids and sizes", function()
    assert.same({ 12, 13 }, parse("-p", "12", "-p13", "s").pid)
    for _, text in ipairs { "", "0", "x", "1.5", "-1", "99999999999" } do
      assert.matches("is no pid", refused("-p", text, "s"), 1, true)
    end
    assert.equal(8192, parse("-b", "8192", "s").buffer_kb)
    for _, text in ipairs { "", "0", "x", "1.5", "64k" } do
      assert.matches("is no size in KB", refused("-b", text, "s"), 1, true)
    end
  end)

  it("reads the others", function()
    local parsed = parse("-C", "boot", "-o", "out", "-f", "json", "--strict", "--dry-run",
      "-c", "true", "s")
    assert.equal("boot", parsed.clock)
    assert.equal("out", parsed.output)
    assert.equal("json", parsed.format)
    assert.is_true(parsed.strict)
    assert.is_true(parsed.dry_run)
    assert.equal("true", parsed.command)
    assert.equal("text", parse("s").format)
    assert.is_true(parse("--info").info)
    assert.is_true(parse("-V").version)
    assert.is_true(parse("--help", "whatever").help)
    assert.is_true(parse("-v", "-v", "s").verbose)
  end)

  it("refuses what makes no sense, in one line", function()
    assert.matches("no script", refused(), 1, true)
    assert.matches("no script", refused("-v"), 1, true)
    assert.matches("unknown option '-x'", refused("-x", "s"), 1, true)
    assert.matches("unknown option '--durtion', did you mean '--duration'?",
      refused("--durtion=5", "s"), 1, true)
    assert.matches("requires an argument", refused("-d"), 1, true)
    assert.matches("requires an argument", refused("-e"), 1, true)
    assert.matches("must be one of 'text', 'json'", refused("-f", "xml", "s"), 1, true)
    assert.matches("does not take arguments", refused("--strict=1", "s"), 1, true)
    assert.matches("-c is empty", refused("-c", "", "s"), 1, true)
    assert.matches("-o is empty", refused("-o", "", "s"), 1, true)
    assert.matches("-l does not go with 'y'", refused("-l", "x", "y"), 1, true)
    assert.matches("-l does not go with -e", refused("-l", "-e", "x"), 1, true)
    assert.matches("--info does not go with 's'", refused("--info", "s"), 1, true)
    assert.matches("-l and --info", refused("-l", "--info"), 1, true)
    assert.matches("-o is empty", refused("-o", "", "-l"), 1, true)
  end)

  it("refuses with a list what only scripts have a use for", function()
    for _, mode in ipairs { "-l", "--info" } do
      for _, words in ipairs { { "-c", "true" }, { "-p", "1" }, { "-d", "1" }, { "-b", "64" },
        { "-C", "boot" }, { "--listen", "9464" }, { "--strict" }, { "--dry-run" }, { "--top" } } do
        local option = words[1]
        words[#words + 1] = mode
        assert.equal(("%s does not go with %s: it is for scripts"):format(option, mode),
          refused(table.unpack(words)))
      end
      assert.equal(("-f csv does not go with %s, which has text and json"):format(mode),
        refused("-f", "csv", mode))
      assert.equal("json", parse("-f", "json", mode).format)
    end
  end)

  it("explains every option, in lines that fit", function()
    local help = options.help()
    for _, name in ipairs {
      "-e", "-l", "-c", "-p", "-d", "-b", "-C", "-o", "-f", "-q", "-v", "--strict", "--dry-run",
      "--info", "--version", "--help",
    } do
      assert.is_truthy(help:find("%f[-]" .. name:gsub("%-", "%%-") .. "%f[^-%w]"), name)
    end
    for line in help:gmatch("[^\n]+") do
      assert.is_true(#line <= 100, line)
    end
    assert.matches("Examples:", help, 1, true)
  end)
end)
