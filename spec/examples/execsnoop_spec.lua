local helper = require "spec.support.helper"

local EXECSNOOP <const> = "examples/execsnoop.lua"

-- A program under a name that nobody else starts: links to true.
local function programs()
  local dir = helper.tmpdir()
  local status, _, err = helper.execute {
    "sh", "-c", 'ln -s /bin/true "$1/one" && ln -s /bin/true "$1/$2"',
    "sh", dir, "t\027wo",
  }
  assert.equal(0, status, err)
  return dir
end

local function run(dir, shell, ...)
  local status, out, err = helper.run {
    "-c", ("cd %s && %s"):format(helper.quote(dir), shell), EXECSNOOP, timeout = 60, ...,
  }
  return status, out, err
end

-- So many forks, each of which starts the program.
local function ones(count)
  return ("i=0; while [ $i -lt %d ]; do ./one; i=$((i+1)); done"):format(count)
end

describe("examples/execsnoop.lua", function()
  it("shows each of 499 programs once, with who started it", function()
    local status, out, err = run(programs(), ones(499))
    assert.equal(0, status, err)
    local count, parent = 0, nil
    for found in out:gmatch("\n +[%d.]+ +%d+ +(%d+) %./one%f[\n]") do
      count = count + 1
      parent = parent or found
      assert.equal(parent, found)
    end
    assert.equal(499, count, out)
    assert.matches("\n +[%d.]+ +" .. parent .. " +%S+ /bin/sh\n", "\n" .. out)
    assert.matches("\n%d+ programs started\n$", out)
  end)

  it("adds up by file, only what was asked for, and ignores what could not be started", function()
    local status, out, err = run(programs(), ones(23) .. "; ./none 2>/dev/null; true",
      "--summary", "--file", "./one")
    assert.equal(0, status, err)
    assert.matches("\n%./one +23\n\n23 programs started\n$", out)
    assert.is_nil(out:find("/bin/sh", 1, true), out)
  end)

  it("prints objects, and no control characters of names", function()
    local dir = programs()
    local status, out, err = helper.run {
      "-f", "json", "-c", ("cd %s && ./one; true"):format(helper.quote(dir)), EXECSNOOP,
      "--file", "./one", timeout = 60,
    }
    assert.equal(0, status, err)
    local json = require "dkjson"
    local objects = {}
    for line in out:gmatch("[^\n]+") do
      local object = assert(json.decode(line))
      assert.is_nil(objects[object.type])
      objects[object.type] = object
    end
    local exec = objects.exec
    assert.equal("./one", exec.file)
    assert.is_true(exec.parent > 0 and exec.pid > 0 and exec.time_ns > 0)
    assert.equal(1, objects.total.starts)

    status, out, err = run(dir, "./t*", "--file", "./t*")
    assert.equal(0, status, err)
    assert.is_nil(out:find("\027", 1, true))
    assert.truthy(out:find(" ./t\\x1Bwo\n", 1, true), out)
  end)

  it("is instants, metrics and bars, too", function()
    local function in_format(format)
      local status, out, err = helper.run {
        "-f", format, "-c", ("cd %s && %s"):format(helper.quote(programs()), ones(23)), EXECSNOOP,
        "--file", "./one", timeout = 60,
      }
      assert.equal(0, status, err)
      assert.matches("\n?23 programs started\n$", err)
      return out
    end
    assert.equal(23, select(2, in_format("perfetto")
      :gsub('\n{"name":"exec","cat":"exec","ph":"i"[^\n]*"file":"%./one"', "")))
    assert.matches('\nluatrace_programs_started_total{file="./one"} 23\n', in_format "prometheus",
      1, true)
    assert.matches("<title>./one: 23</title>", in_format "svg", 1, true)
  end)

  it("is a table, whoever started the first", function()
    local status, out, err = helper.run {
      "-f", "csv", "-c", ("cd %s && ./one; ./one"):format(helper.quote(programs())), EXECSNOOP,
      "--file", "./one", timeout = 60,
    }
    assert.same({ 0, "" }, { status, err })
    assert.matches("^type,file,parent,pid,time_ns,more\r\n"
      .. "exec,./one,%d*,%d+,%d+,\r\nexec,./one,%d*,%d+,%d+,\r\n$", out)
  end)
end)
