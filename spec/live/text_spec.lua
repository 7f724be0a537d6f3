-- The same text as the kernel: whatever fires here is recorded, the instance is stopped, its
-- `trace` file is read, then the same records are read through us, and the lines are compared.
local core = require "tracefs.core"
local helper = require "spec.support.helper"
local tracefs = require "tracefs"

-- What differs, and why; `hide` takes the part out of both lines, and the rest must be equal.
local PAGE = {
  reason = "the kernel makes the address of struct page from vmemmap_base, which it shows nobody",
  hide = function(line)
    return (line:gsub("page=%S+", "page=", 1))
  end,
}
local AGE = {
  reason = "the kernel counts the age up to the moment of printing, and we print later",
  hide = function(line)
    return (line:gsub(" age=%d+", " age=", 1))
  end,
}
local DIFFERENT = {
  ["kmem:mm_page_alloc"] = PAGE,
  ["kmem:mm_page_alloc_extfrag"] = PAGE,
  ["kmem:mm_page_alloc_zone_locked"] = PAGE,
  ["kmem:mm_page_free"] = PAGE,
  ["kmem:mm_page_free_batched"] = PAGE,
  ["kmem:mm_page_pcpu_drain"] = PAGE,
  ["writeback:writeback_single_inode"] = AGE,
  ["writeback:writeback_single_inode_start"] = AGE,
}

-- Systems whose events come in floods from every task: recorded for the load alone.
local NOISY = {
  "capability", "exceptions", "kmem", "lock", "maple_tree", "mmap", "mmap_lock", "percpu",
  "raw_syscalls", "rseq", "syscalls", "vmalloc", "x86_fpu",
}

local dir = helper.tracing_dir

-- What saved_cmdlines says; the names in `trace` come from there.
local function saved_names()
  local names = {}
  for pid, name in helper.read_file(dir .. "/saved_cmdlines"):gmatch("(%d+) ([^\n]*)\n") do
    names[pid] = name
  end
  return names
end

-- The kernel forgets names while we look, and for a task that it has no name for we look into
-- /proc, where it prints "<...>": then the name's columns are not compared.
local function hide_changed_name(line, before, after)
  local pid = line:match("^.-%-(%d+) +%[%d+%] ")
  if pid and pid ~= "0" and (not before[pid] or before[pid] ~= after[pid]) then
    return (line:gsub("^.-%-(%d+ +%[%d+%] )", "%1", 1))
  end
  return line
end

local function lines_of(text)
  return (text:gsub("\n?$", "\n")):gmatch("([^\n]*)\n")
end

-- The lines of a `trace` file, without its head and its notes on lost events.
local function kernel_lines(trace)
  local lines = {}
  for line in lines_of(trace) do
    if not line:find("^#") and not line:find("^CPU:%d+ %[LOST ") then
      lines[#lines + 1] = line
    end
  end
  return lines
end

local equal_kinds = {}

-- Compares until the lines run out; returns what differs that is not listed, at most ten lines.
local function compare(kernel, session, before)
  local problems, at = {}, 0
  local ours = {}
  for record in session:events({}) do
    ours[#ours + 1] = { tostring(record), record.common_event }
  end
  local after = saved_names()
  for _, record in ipairs(ours) do
    local kind, is_equal = record[2], true
    for text in lines_of(record[1]) do
      at = at + 1
      local line, theirs = text, kernel[at] or "(end of the trace file)"
      if line ~= theirs then
        line = hide_changed_name(line, before, after)
        theirs = hide_changed_name(theirs, before, after)
        if DIFFERENT[kind] then
          line, theirs = DIFFERENT[kind].hide(line), DIFFERENT[kind].hide(theirs)
        end
        if line ~= theirs then
          is_equal = false
          problems[#problems + 1] = ("%s\n  kernel: %s\n  here:   %s"):format(kind, theirs, line)
          if #problems == 10 then
            return problems
          end
        end
      end
    end
    if is_equal then
      equal_kinds[kind] = true
    end
  end
  if at ~= #kernel then
    problems[#problems + 1] = ("the kernel has %d lines, here are %d"):format(#kernel, at)
  end
  return problems
end

-- Records what `prepare` turns on while the load runs.
local function record(options)
  local session <close> = tracefs.session {
    clock = options.clock or "mono",
    own_events = true,
    -- the start of the load is enough for slow builds
    buffer_kb = helper.short and 512 or 4096,
    overwrite = not helper.short,
  }
  local instance = session.instance
  -- %p shows a hash of the address otherwise
  assert(instance:set_option("hash-ptr", false))
  for _, option in ipairs(options.options or {}) do
    if not instance:has("options/" .. option) then
      return
    end
    assert(instance:set_option(option, true))
  end
  for _, pattern in ipairs(options.patterns) do
    session:enable(pattern)
  end
  local files = helper.tmpdir()
  local load = assert(core.spawn({ helper.program("support/variety"), files }))
  -- the short form may run beside others, who make tasks with names of several lines
  if options.only_load or helper.short then
    assert(instance:set_option("event-fork", true))
    assert(instance:set_event_pids({ load:pid() }))
  end
  session:start()
  assert(session:marker("a marker\n"))
  assert(session:marker("without a newline"))
  assert(instance:marker_raw("\1\0\0\0raw bytes"))
  assert(load:release())
  local how, code
  assert(helper.wait_until(function()
    how, code = load:wait()
    return how
  end, 30))
  assert.equal("exit 0", ("%s %d"):format(how, code))
  assert(instance:trace_off())
  local before = saved_names()
  local kernel = kernel_lines(assert(instance:read("trace")))
  session:finish()
  local problems = compare(kernel, session, before)
  assert.equal("", table.concat(problems, "\n"))
  assert.is_true(#kernel > 0)
end

local function systems()
  local noisy, quiet = {}, {}
  for _, system in ipairs(NOISY) do
    noisy[system] = true
  end
  local seen = {}
  for _, label in ipairs(assert(tracefs.events())) do
    local system = label:match("^[^:]+")
    if not noisy[system] and system ~= "ftrace" and system ~= "uprobes" and not seen[system] then
      seen[system] = true
      quiet[#quiet + 1] = system
    end
  end
  return quiet
end

local function available(names)
  local patterns = {}
  for _, system in ipairs(names) do
    if helper.read_file(("%s/events/%s/filter"):format(dir, system)) then
      patterns[#patterns + 1] = system .. ":*"
    end
  end
  return patterns
end

describe("the text of a record is the kernel's", function()
  it("for everything that the machine does meanwhile", function()
    record { patterns = available(systems()) }
  end)

  it("for system calls, memory and exceptions of the load", function()
    record { patterns = available(NOISY), only_load = true }
  end)

  it("with the stacks behind every event", function()
    record {
      patterns = { "sched:sched_switch", "sched:sched_waking", "signal:*", "task:*", "net:*" },
      options = { "stacktrace", "userstacktrace" },
      only_load = true,
    }
    assert.is_true(equal_kinds["ftrace:kernel_stack"])
    if helper.read_file(dir .. "/options/userstacktrace") then
      assert.is_true(equal_kinds["ftrace:user_stack"])
    end
  end)

  it("with a clock that does not count nanoseconds", function()
    record { patterns = { "sched:*", "irq:*" }, clock = "counter" }
  end)

  it("for markers, text and raw", function()
    record { patterns = { "sched:sched_process_exit" } }
    assert.is_true(equal_kinds["ftrace:print"])
    assert.is_true(equal_kinds["ftrace:raw_data"])
  end)

  describe("for probes", function()
    local group = "luatrace_" .. helper.pid .. "_text"
    local probes = dir .. "/uprobe_events"

    -- with >>, because opening it to write anew would remove everyone's probes
    local function write(line)
      return helper.execute({ "sh", "-c", 'echo "$1" >>"$0"', probes, line }) == 0
    end

    it("of user space with arguments of every type", function()
      local machine = select(2, helper.execute({ "uname", "-m" }))
      if machine ~= "x86_64\n" or not helper.read_file(probes) then
        pending("user probes with the registers of x86-64 are needed")
        return
      end
      local status, out = helper.execute({ helper.program("support/variety"), "--offset" })
      assert.equal(0, status)
      local path, offset = out:match("^(%S+) (%S+)\n$")
      finally(function()
        write("-:" .. group .. "/mark")
        write("-:" .. group .. "/mark_return")
      end)
      local place = ("%s:%s"):format(path, offset)
      assert(write(("p:%s/mark %s n=%%di:s32 u=%%di:u8 x=%%di:x32 hex=%%di:x8 ch=+0(%%si):char "
        .. "text=+0(%%si):string list=+0(%%dx):s32[4] bytes=+0(%%dx):u8[4] words=+0(%%si):x16[3] "
        .. "fault=+0(%%cx):string bits=%%di:b4@2/32 strings=+0(%%si):string[2] "
        .. "comm=$comm"):format(group, place)))
      assert(write(("r:%s/mark_return %s ret=$retval:s32"):format(group, place)))
      record { patterns = { group .. ":*" } }
      assert.is_true(equal_kinds[group .. ":mark"])
      assert.is_true(equal_kinds[group .. ":mark_return"])
    end)
  end)

  it("for more than a hundred kinds of events in all", function()
    if helper.short then
      pending("only the start of the load is recorded here")
      return
    end
    local count = 0
    for kind in pairs(equal_kinds) do
      count = count + (DIFFERENT[kind] and 0 or 1)
    end
    -- busted shows it with --verbose, and anyone who counts can ask for it
    if os.getenv("LUATRACE_VERBOSE") then
      io.stderr:write(("text: %d kinds of events compared\n"):format(count))
    end
    assert.is_true(count > 100, count .. " kinds only")
  end)
end)
