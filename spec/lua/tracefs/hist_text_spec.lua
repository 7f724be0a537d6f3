local core = require "tracefs.core"
local globals = require "spec.support.globals"
local hist_text = require "tracefs.hist_text"

-- As much of a kernel's README as is looked at.
local README <const> = [[
  events/<system>/<event>/	- Directory containing control files for
      hist trigger	- If set, event hits are aggregated into a hash table
	    Format: hist:keys=<field1[,field2,...]>
	            [:nohitcount]
	            common_timestamp - to record current timestamp
	            common_cpu - to record the CPU the event happened on
	    can be any field, or the special string 'common_stacktrace'.

	            .hex        display a number as a hex value
	            .sym        display an address as a symbol
	            .sym-offset display an address as a symbol and offset
	            .execname   display a common_pid as a program name
	            .syscall    display a syscall id as a syscall name
	            .log2       display log2 value rather than raw number
	            .buckets=size  display values in groups of size rather than raw number
	            .usecs      display a common_timestamp in microseconds
	            .percent    display a number of percentage value
	            .graph      display a bar-graph of a value
]]

local FORMAT <const> = [[
name: woken
ID: 4242
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t pid;	offset:24;	size:4;	signed:1;
	field:int cpu;	offset:28;	size:4;	signed:1;
	field:unsigned long args[6];	offset:32;	size:48;	signed:0;
	field:u64 id;	offset:80;	size:8;	signed:0;

print fmt: "comm=%s", REC->comm
]]

local event = assert(core.catalog():parse("demo", FORMAT))
local plain = assert(core.catalog():parse("demo", (FORMAT:gsub("int cpu;", "int target;"))))

local function build(options, context)
  local all = { event = event, syntax = hist_text.syntax(README), clock = "mono" }
  for key, value in pairs(context or {}) do
    all[key] = value
  end
  return hist_text.build(options, all)
end

local function text(options, context)
  return build(options, context).text
end

local function refused(options, context)
  local ok, message = pcall(build, options, context)
  assert.is_false(ok)
  assert.matches("^hist: ", message)
  return message
end

describe("tracefs.hist_text", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.hist_text"))
  end)
end)

describe("hist_text.syntax", function()
  it("takes from the kernel's help what there is", function()
    local syntax = hist_text.syntax(README)
    assert.is_true(syntax.nohitcount)
    assert.is_true(syntax.common_stacktrace)
    assert.is_true(syntax.common_cpu)
    for _, name in ipairs {
      "hex", "sym", "sym-offset", "execname", "syscall", "log2", "buckets", "usecs", "percent",
      "graph", "stacktrace",
    } do
      assert.is_true(syntax.modifiers[name], name)
    end
    syntax = hist_text.syntax(README:gsub("[^\n]*percent[^\n]*\n", ""):gsub("common_stacktrace",
      "stacktrace"))
    assert.is_nil(syntax.modifiers.percent)
    assert.is_nil(syntax.modifiers.stacktrace)
    assert.is_false(syntax.common_stacktrace)
    assert.same({ modifiers = {}, nohitcount = false, common_stacktrace = false,
      common_cpu = false }, hist_text.syntax("no such thing"))
  end)
end)

describe("hist_text.build", function()
  it("writes what the table says, in the kernel's order", function()
    assert.equal("hist:keys=pid", text { keys = "pid" })
    assert.equal("hist:keys=common_pid.execname,id.syscall:values=pid,id:"
      .. "sort=id.descending,hitcount:size=4096:name=private_both:nohitcount",
      text({
        keys = { "common_pid.execname", "id.syscall" }, values = { "pid", "id" },
        sort = { "id.descending", "hitcount" }, size = 4096, name = "both", nohitcount = true,
      }, { prefix = "private_" }))
    assert.equal("hist:keys=pid.buckets=10,id.log2,common_stacktrace",
      text { keys = { "pid.buckets=10", "id.log2", "common_stacktrace" } })
  end)

  it("names the clock when times are used, so that the kernel does not choose one", function()
    local command = build { keys = "pid", variables = { ts0 = "common_timestamp" } }
    assert.equal("hist:keys=pid:clock=mono:ts0=common_timestamp", command.text)
    assert.is_true(command.timestamps)
    assert.is_false(build({ keys = "pid" }).timestamps)
    assert.equal("hist:keys=pid:clock=boot:ts0=common_timestamp.usecs", text({
      keys = "pid", variables = { ts0 = "common_timestamp.usecs" },
    }, { clock = "boot" }))
  end)

  it("puts a variable behind those that it is made from", function()
    assert.equal("hist:keys=pid:clock=mono:now=common_timestamp,z=$now-$ts0,a=$z+$now", text {
      keys = "pid", variables = { a = "$z + $now", z = "$now - $ts0", now = "common_timestamp" },
    })
    assert.equal("hist:keys=pid:x=pid,y=sched.sched_waking.$ts0", text {
      keys = "pid", variables = { "y=sched.sched_waking.$ts0", "x=pid" },
    })
    assert.matches("'a' is made from itself", refused {
      keys = "pid", variables = { a = "$b", b = "$a" },
    })
    assert.matches("'a' is there twice", refused { keys = "pid", variables = { "a=pid",
      a = "id" } })
  end)

  it("writes actions", function()
    local asked
    local command = build({
      keys = "pid", variables = { x = "id" },
      actions = {
        { onmatch = "sched:sched_waking", trace = "late", with = { "$x", "pid" } },
        { onmax = "$x", save = { "comm", "pid" } },
        { onchange = "$x", snapshot = true },
      },
    }, { synthetic = function(name, with)
      asked = { name, table.unpack(with) }
      return "private_" .. name
    end })
    assert.same({ "late", "$x", "pid" }, asked)
    assert.equal("hist:keys=pid:x=id:onmatch(sched.sched_waking).trace(private_late,$x,pid):"
      .. "onmax($x).save(comm,pid):onchange($x).snapshot()", command.text)
    assert.is_true(command.snapshots)
  end)

  it("makes a filter one line, but for its strings", function()
    local command = build { keys = "pid", filter = ' pid > 1 &&\n\tcomm == "a\nb" ' }
    assert.equal('pid > 1 &&  comm == "a\nb"', command.filter)
    assert.is_nil(build({ keys = "pid" }).filter)
  end)

  it("spells the stack and the CPU as the kernel does, unless a field is called so", function()
    local old = hist_text.syntax(README:gsub("common_stacktrace", "stacktrace"):gsub("common_cpu",
      "cpu"))
    assert.equal("hist:keys=common_stacktrace,common_cpu",
      text({ keys = { "stacktrace", "cpu" } }, { event = plain }))
    assert.equal("hist:keys=common_stacktrace,cpu", text { keys = { "stacktrace", "cpu" } })
    assert.equal("hist:keys=stacktrace,cpu:sort=cpu",
      text({ keys = { "common_stacktrace", "common_cpu" }, sort = "common_cpu" },
        { event = plain, syntax = old }))
  end)

  it("tells which fields are strings", function()
    local kinds = build({ keys = "pid" }).kinds
    assert.equal("string", kinds.comm)
    assert.equal("int", kinds.pid)
    assert.is_nil(kinds.args)
  end)

  it("refuses fields, modifiers and sort keys that are not there, with those that are", function()
    assert.matches("keys: demo:woken has no field 'nosuch'; it has: common_type, .*comm, pid, cpu",
      refused { keys = "nosuch" })
    assert.matches("values: demo:woken has no field 'nosuch'", refused { keys = "pid",
      values = "nosuch" })
    assert.matches("variables: demo:woken has no field 'nosuch'",
      refused { keys = "pid", variables = { x = "$y-nosuch" } })
    assert.matches("save: demo:woken has no field 'nosuch'", refused {
      keys = "pid", actions = { { onmax = "$x", save = "nosuch" } },
    })
    assert.matches("no modifier %.bogus; this kernel has: buckets, execname, graph, hex, log2",
      refused { keys = "pid.bogus" })
    assert.matches("no modifier %.percent; this kernel has: ", refused({
      keys = "pid", values = "id.percent",
    }, { syntax = hist_text.syntax(README:gsub("[^\n]*percent[^\n]*\n", "")) }))
    assert.matches("sort: 'id' is neither a key nor a value; there are: hitcount, pid",
      refused { keys = "pid", sort = "id" })
    assert.matches("behind the dot there is ascending or descending",
      refused { keys = "pid", sort = "pid.up" })
  end)

  it("refuses modifiers where they mean nothing", function()
    assert.matches("%.execname is for common_pid only, not for 'pid'",
      refused { keys = "pid.execname" })
    assert.matches("%.usecs is for common_timestamp only", refused { keys = "pid.usecs" })
    assert.matches("%.percent is for values, not for keys", refused { keys = "pid.percent" })
    assert.matches("%.log2 is for numbers, and 'comm' is a char%[16%]",
      refused { keys = "comm.log2" })
    assert.matches("needs a width of the buckets from 1, not ''", refused { keys = "pid.buckets" })
    assert.matches("needs a width of the buckets from 1, not '0'",
      refused { keys = "pid.buckets=0" })
    assert.matches("%.hex takes no number", refused { keys = "pid.hex=3" })
    assert.matches("'args' is unsigned long%[6%]: a number or a string is needed",
      refused { keys = "args" })
    assert.matches("'comm' is char%[16%]: a number is needed", refused { keys = "pid",
      values = "comm" })
  end)

  it("refuses what is no option, or not of its kind", function()
    assert.matches("the options must be a table, not nil", refused(nil))
    assert.matches("unknown option 'key'; there are: actions, filter, keys, name, nohitcount, "
      .. "pause, size, sort, values, variables", refused { key = "pid" })
    assert.matches("keys: at least one is needed", refused {})
    assert.matches("keys: at least one is needed", refused { keys = {} })
    assert.matches("keys: a string or a list of strings is needed, not number",
      refused { keys = 1 })
    assert.matches("keys: number 2 is no string but a boolean", refused { keys = { "pid", true } })
    assert.matches("keys: a list is needed, and 'x' is no number of it", refused { keys = { "pid",
      x = 1 } })
    for _, size in ipairs { 64, 131073, "100", 100.5 } do
      assert.matches("size: rows from 65 to 131072", refused { keys = "pid", size = size })
    end
    assert.matches("name: letters, digits and _ are needed", refused { keys = "pid", name = "a:b" })
    assert.matches("pause must be true or false, not 1", refused { keys = "pid", pause = 1 })
    assert.matches("filter: a string in the kernel's filter language", refused { keys = "pid",
      filter = " " })
    assert.matches("actions: a list is needed, not string", refused { keys = "pid", actions = "x" })
    assert.matches("actions: number 1 is no table but a string", refused { keys = "pid",
      actions = { "x" } })
    assert.matches("number 1 has none of: onmatch, onmax, onchange",
      refused { keys = "pid", actions = { { trace = "x" } } })
    assert.matches("number 1 has both trace and save", refused {
      keys = "pid", actions = { { onmax = "$x", trace = "x", save = "pid" } },
    })
    assert.matches("save goes with onmax or onchange", refused {
      keys = "pid", actions = { { onmatch = "a:b", save = "pid" } },
    })
    assert.matches('onmax needs a variable as "$name", not "x"', refused {
      keys = "pid", actions = { { onmax = "x", save = "pid" } },
    })
    assert.matches("unknown 'on'", refused { keys = "pid", actions = { { on = "x" } } })
    assert.matches("variables: 'x' is no expression but a number", refused {
      keys = "pid", variables = { x = 1 },
    })
    assert.matches('is not of the form "name=expression"', refused { keys = "pid",
      variables = { "x" } })
    assert.matches("nohitcount: this kernel does not have it", refused({
      keys = "pid", nohitcount = true,
    }, { syntax = hist_text.syntax "" }))
  end)

  it("lets nothing through that would be another part of the trigger", function()
    for _, word in ipairs {
      "pid:pause", "pid if 1", "pid\npid", "pid,id", "pid;", "pid\0", "!pid", 'pid"',
    } do
      -- blanks go away
      if word ~= "pid if 1" then
        assert.matches("is no field, variable or expression", refused { keys = word })
      else
        refused { keys = word }
      end
    end
    refused { keys = "pid", variables = { x = "pid:pause" } }
    refused { keys = "pid", actions = { { onmatch = "a:b", trace = "x,y):z(" } } }
  end)

  it("refuses a trigger that is longer than the kernel takes", function()
    assert.matches("the trigger has %d+ bytes, and the kernel takes 4095", refused {
      keys = "pid", filter = "pid == 1" .. (" || pid == 1"):rep(400),
    })
  end)
end)

describe("hist_text.info", function()
  it("reads the kernel's line", function()
    local info = assert(hist_text.info(
      'hist:keys=pid:vals=hitcount,len.hex:ts0=common_timestamp.usecs:sort=hitcount:size=2048:'
      .. 'clock=global:onmax($x).save(a,b) if comm=="[active]" [paused]', { pid = "int" }))
    assert.is_true(info.paused)
    assert.equal("int", info.keys[1].kind)
    assert.equal("pid", info.keys[1].field)
    assert.same({ "hitcount", "len" }, { info.values[1].field, info.values[2].field })
    assert.equal("hex", info.values[2].modifier)
    assert.same({ "a", "b" }, info.saved)
    assert.matches('%[active%]"$', info.trigger)
  end)

  it("knows the CPU also where the kernel writes its name twice", function()
    for _, word in ipairs { "common_cpu", "common_cpucommon_cpu", "common_cpucpu" } do
      local info = assert(hist_text.info(
        ("hist:keys=%s:vals=hitcount:sort=hitcount:size=128 [active]"):format(word)))
      assert.equal("common_cpu", info.keys[1].field)
      assert.equal("int", info.keys[1].kind)
    end
  end)

  it("knows what is no histogram", function()
    local info, message = hist_text.info "traceoff:unlimited"
    assert.is_nil(info)
    assert.matches("not the line of a hist trigger", message)
  end)
end)
