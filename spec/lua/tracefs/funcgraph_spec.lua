local core = require "tracefs.core"
local decode = require "spec.support.decode"
local funcgraph = require "tracefs.funcgraph"
local globals = require "spec.support.globals"

local catalog = core.catalog()
assert(catalog:add_kallsyms [[
ffffffff81000000 T _stext
ffffffff81000100 T outer
ffffffff81000200 T inner
ffffffff81000300 T other
ffffffff82000000 T _etext
]])
catalog:set_comm(7, "cat")
catalog:set_comm(8, "a-long-name")

local ADDRESS <const> = {
  outer = 0xffffffff81000100, inner = 0xffffffff81000200, other = 0xffffffff81000300,
}

local function entry(cpu, pid, name, depth)
  return (decode.record {
    catalog = catalog, system = "ftrace", name = "funcgraph_entry", id = 11, pid = pid,
    common_cpu = cpu,
    fields = { { "unsigned long func", "I8", ADDRESS[name] }, { "int depth", "i4", depth } },
  })
end

local function exit(cpu, pid, name, depth, ns, retval)
  local fields = {
    { "unsigned long func", "I8", ADDRESS[name] }, { "int depth", "i4", depth },
    { "unsigned long long calltime", "I8", 0 }, { "unsigned long long rettime", "I8", ns },
  }
  if retval then
    table.insert(fields, { "unsigned long retval", "I8", retval })
  end
  return (decode.record {
    catalog = catalog, system = "ftrace", name = "funcgraph_exit", id = retval and 12 or 10,
    pid = pid, common_cpu = cpu, fields = fields,
  })
end

local function event(cpu, pid, x)
  return (decode.record {
    catalog = catalog, system = "made", name = "thing", id = 500, pid = pid, common_cpu = cpu,
    print = '"x=%d", REC->x', fields = { { "int x", "i4", x } },
  })
end

-- The lines without the width that this machine's CPU numbers have.
local function lines_of(records)
  local lines = {}
  local graph = funcgraph.new(function(line)
    lines[#lines + 1] = line:gsub("^ +(%d+%))", " %1")
  end)
  for _, record in ipairs(records) do
    if type(record) == "table" then
      graph:lost(record)
    else
      graph:add(record)
    end
  end
  graph:finish()
  return table.concat(lines, "\n")
end

describe("tracefs.funcgraph", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.funcgraph"))
  end)

  it("wants a function for the lines", function()
    local ok, message = pcall(function() funcgraph.new() end)
    assert.is_false(ok)
    assert.matches("^spec/lua/tracefs/funcgraph_spec%.lua:%d+: funcgraph%.new", message)
  end)

  it("puts a call that calls nothing on one line", function()
    assert.equal([[
 0)               |  outer() {
 0)   1.500 us    |    inner();
 0) + 12.000 us   |  }]], lines_of {
      entry(0, 7, "outer", 0), entry(0, 7, "inner", 1), exit(0, 7, "inner", 1, 1500),
      exit(0, 7, "outer", 0, 12000),
    })
  end)

  it("names an end whose beginning was not on its CPU", function()
    assert.equal([[
 0)               |  outer() {
 1)   2.000 us    |    } /* inner */
 1)   3.000 us    |  } /* outer */
 0)   3.000 us    |  } /* other */]], lines_of {
      entry(0, 7, "outer", 0), exit(1, 7, "inner", 1, 2000), exit(1, 7, "outer", 0, 3000),
      exit(0, 7, "other", 0, 3000),
    })
  end)

  it("keeps the order of all CPUs while one of them waits for what its call is", function()
    assert.equal([[
 0)   1.000 us    |  outer();
 1)               |  other() {
 1)   2.000 us    |    inner();
 1)   9.000 us    |  }]], lines_of {
      entry(0, 7, "outer", 0), entry(1, 8, "other", 0), entry(1, 8, "inner", 1),
      exit(1, 8, "inner", 1, 2000), exit(0, 7, "outer", 0, 1000), exit(1, 8, "other", 0, 9000),
    })
  end)

  it("parts the tasks of a CPU", function()
    assert.equal(([[
 0)   1.000 us    |  outer();
 ------------------------------------------
 0)     cat-7      =>   a-long--8   $
 ------------------------------------------

 0)   2.000 us    |  other();]]):gsub("%$", ""), lines_of {
      entry(0, 7, "outer", 0), exit(0, 7, "outer", 0, 1000),
      entry(0, 8, "other", 0), exit(0, 8, "other", 0, 2000),
    })
  end)

  it("shows other events as comments, as deep as the call that they came in", function()
    assert.equal([[
 0)               |  /* thing: x=1 */
 0)               |  outer() {
 0)               |    inner() {
 0)               |      /* thing: x=2 */
 0)   1.000 us    |    }
 0)   2.000 us    |  }]], lines_of {
      event(0, 7, 1), entry(0, 7, "outer", 0), entry(0, 7, "inner", 1), event(0, 7, 2),
      exit(0, 7, "inner", 1, 1000), exit(0, 7, "outer", 0, 2000),
    })
  end)

  it("tells of gaps where they are, and makes no leaf across one", function()
    assert.equal([[
 0)               |  outer() {
CPU:0 [LOST 17 EVENTS]
 0)   1.000 us    |  }
CPU:1 [LOST EVENTS] ]], lines_of {
      entry(0, 7, "outer", 0), { cpu = 0, count = 17 }, exit(0, 7, "outer", 0, 1000), { cpu = 1 },
    } .. " ")
  end)

  it("shows what a function returned", function()
    assert.equal([[
 0)               |  outer() {
 0)   1.000 us    |    inner(); /* = -2 */
 0)   2.000 us    |  } /* outer = 0x5 */]], lines_of {
      entry(0, 7, "outer", 0), entry(0, 7, "inner", 1), exit(0, 7, "inner", 1, 1000, -2),
      exit(0, 7, "outer", 0, 2000, 5),
    })
  end)

  it("does not wait for ever for a CPU that records nothing any more", function()
    local count = 0
    local graph = funcgraph.new(function()
      count = count + 1
    end)
    graph:add(entry(0, 7, "outer", 0))
    for i = 1, 5000 do
      graph:add(event(1, 7, i))
    end
    assert.is_true(count > 4000)
    graph:add(exit(0, 7, "outer", 0, 1000))
    graph:finish()
    assert.equal(5002, count)
  end)
end)
