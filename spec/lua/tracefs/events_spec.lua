local helper = require "spec.support.helper"
local core = require "tracefs.core"
local events = require "tracefs.events"

local ENOENT, EINVAL = 2, 22

describe("tracefs.events", function()
  local dir = assert(core.tracing_dir())

  local function labels(list)
    local out = {}
    for i, entry in ipairs(list) do
      out[i] = entry.system .. ":" .. entry.name
    end
    return out
  end

  -- What the shell makes of a glob below events/, as labels.
  local function shell(glob)
    local _, out = helper.execute {
      "bash", "-c", ("cd %s/events && LC_ALL=C ls -d %s"):format(dir, glob),
    }
    local list = {}
    for system, name in out:gmatch("([^/\n]+)/([^/\n]+)/enable\n") do
      list[#list + 1] = system .. ":" .. name
    end
    return list
  end

  local function refused(pattern)
    local found, message, errno = events.match(dir, pattern)
    assert.is_nil(found)
    return message, errno
  end

  it("is loaded without touching globals", function()
    local before = {}
    for name in pairs(_G) do
      before[name] = true
    end
    package.loaded["tracefs.events"] = nil
    local again = require "tracefs.events"
    package.loaded["tracefs.events"] = events
    assert.is_function(again.match)
    for name in pairs(_G) do
      assert.is_true(before[name], name)
    end
  end)

  describe("lists", function()
    it("all events that can be enabled", function()
      local found = labels(assert(events.list(dir)))
      local there = shell("*/*/enable")
      table.sort(there)
      table.sort(found)
      assert.is_true(#found > 100)
      assert.same(there, found)
    end)

    it("them sorted, from an instance too", function()
      local instance <close> = assert(core.instance_create(dir))
      local list = assert(events.list(instance))
      assert.same(assert(events.list(dir)), list)
      for i = 2, #list do
        local a, b = list[i - 1], list[i]
        assert.is_true(a.system < b.system or a.system == b.system and a.name < b.name)
      end
    end)

    it("nothing where there is no tracefs", function()
      local list, message, errno = events.list("/tmp")
      assert.is_nil(list)
      assert.equal(ENOENT, errno)
      assert.equal("cannot list the events: /tmp/available_events: No such file or directory "
        .. "(is tracefs mounted there?)", message)
    end)
  end)

  describe("matches", function()
    for pattern, glob in pairs {
      ["sched:sched_switch"] = "sched/sched_switch/enable",
      ["sched:*"] = "sched/*/enable",
      ["sched:"] = "sched/*/enable",
      ["sched:sched_w*"] = "sched/sched_w*/enable",
      ["sched:**_switch"] = "sched/*_switch/enable",
      ["irq:softirq_e????"] = "irq/softirq_e????/enable",
      ["irq:[st]*"] = "irq/[st]*/enable",
      ["irq:[!st]*"] = "irq/[!st]*/enable",
      ["irq:[^a-s]*"] = "irq/[^a-s]*/enable",
      ["[r-t]*:*_e[nx][ti]*"] = "[r-t]*/*_e[nx][ti]*/enable",
      ["*:sched_switch"] = "*/sched_switch/enable",
      [":sched_switch"] = "*/sched_switch/enable",
      ["sched_switch"] = "*/sched_switch/enable",
      ["irq"] = "irq/*/enable",
      ["*"] = "*/*/enable",
      ["*:*"] = "*/*/enable",
    } do
      it(pattern .. " as the shell does", function()
        local there = shell(glob)
        assert.is_true(#there > 0)
        table.sort(there)
        local found = labels(assert(events.match(dir, pattern)))
        table.sort(found)
        assert.same(there, found)
      end)
    end

    it("a word alone against names and systems, as set_event does", function()
      local instance <close> = assert(core.instance_create(dir))
      for _, word in ipairs { "irq", "sched_switch", "net" } do
        assert(instance:write("set_event", word))
        local there = {}
        for label in instance:read("set_event"):gmatch("[^\n]+") do
          table.insert(there, label)
        end
        local found = labels(assert(events.match(instance, word)))
        table.sort(there)
        table.sort(found)
        assert.same(there, found)
      end
    end)

    it("every character but the wildcards as itself", function()
      for _, pattern in ipairs {
        "sched:sched.switch", "sched:%a+", "sched:sched-switch", "^sched",
      } do
        assert.equal(ENOENT, select(2, refused(pattern)))
      end
    end)

    it("one event without reading the list", function()
      local place = helper.tmpdir()
      assert(os.execute(("mkdir -p %s/events/sys/ev && touch %s/events/sys/ev/enable"):format(
        place, place)))
      assert.same({ { system = "sys", name = "ev" } }, events.match(place, "sys:ev"))
    end)

    it("ftrace's own events by name, which are on by themselves", function()
      assert.same({ { system = "ftrace", name = "print", always_on = true } },
        events.match(dir, "ftrace:print"))
      local message, errno = refused("ftrace:*")
      assert.equal(ENOENT, errno)
      assert.truthy(message:find("are named one by one, as ftrace:print", 1, true), message)
    end)

    it("no path", function()
      for _, pattern in ipairs {
        "sched:../irq/softirq_entry", "../sched:sched_switch", "..:x", "sched:..", "sched:enable",
        "/:/",
      } do
        assert.equal(ENOENT, select(2, refused(pattern)))
      end
    end)
  end)

  describe("refuses", function()
    for pattern, why in pairs {
      ["["] = 'its "[" has no "]"; "[[]" stands for a "[" itself',
      ["sched:[a-"] = 'its "[" has no "]"',
      ["[]"] = 'its "[" has no "]"',
      ["[sched:*"] = 'its "[" has no "]"',
      [""] = 'it is empty; "*" means all events',
      [":"] = 'it names nothing; "*" means all events',
      ["a:b:c"] = "it has more than one colon; the form is system:name",
    } do
      it(("%q, and says why"):format(pattern), function()
        local message, errno = refused(pattern)
        assert.equal(EINVAL, errno)
        assert.truthy(message:find(("bad event pattern %q: %s"):format(pattern, why), 1, true),
          message)
      end)
    end

    it("what is no text, as a misuse", function()
      for _, wrong in ipairs { 1, {}, true } do
        assert.error_matches(function()
          events.match(dir, wrong)
        end, "event pattern: string expected, got " .. type(wrong))
      end
      assert.error_matches(function()
        events.match(dir, nil)
      end, "event pattern: string expected, got nil")
    end)
  end)

  describe("says what may have been meant by", function()
    for pattern, meant in pairs {
      ["sched:sched_swich"] = "sched:sched_switch",
      ["sched:sched_swtich"] = "sched:sched_switch",
      ["shced:sched_switch"] = "sched:sched_switch",
      ["sched:switch"] = "sched:sched_switch",
      ["sched:sched_switch "] = "sched:sched_switch",
      ["sched_swich"] = "sched:sched_switch",
      ["syscall:sys_enter_read"] = "syscalls:sys_enter_read",
      ["skb:net_dev_queue"] = "net:net_dev_queue",
      ["netif_recieve_skb"] = "net:netif_receive_skb",
      ["shced"] = "sched:*",
      ["shced:*"] = "sched:*",
      ["sched:sched_swich*"] = "sched:sched_switch",
    } do
      it(("%q"):format(pattern), function()
        local message, errno = refused(pattern)
        assert.equal(ENOENT, errno)
        assert.truthy(message:find(("no event %q in %s/events. Did you mean "):format(pattern, dir),
          1, true), message)
        local first = message:match("Did you mean ([^,?]+)[,?]")
        assert.equal(meant, first)
        assert.truthy(message:find("tracefs.events() lists all", 1, true), message)
      end)
    end

    it("a name that is like no other: nothing", function()
      local message = refused("xyzzy:quuxly")
      assert.falsy(message:find("Did you mean", 1, true), message)
      assert.truthy(message:find("No name is like it (a module's events are there when it is", 1,
        true), message)
    end)

    it("control bytes, shown safely", function()
      local message = refused("a\27[2Jb\n")
      assert.falsy(message:find("%c"), message)
    end)

    it("with no more names than asked for", function()
      local list = assert(events.list(dir))
      assert.equal(1, #events.nearest(list, "sys_enter_opan", 1))
      assert.equal(5, #events.nearest(list, "syscalls:sys_enter_opan", 5))
      assert.same({}, events.nearest(list, "a:b:c"))
    end)
  end)

  describe("describes", function()
    it("an event by its name, from a directory or an instance", function()
      local event = assert(events.describe(dir, "sched:sched_switch"))
      assert.equal("sched:sched_switch", event:label())
      assert.is_true(event:has("prev_comm"))
      local instance <close> = assert(core.instance_create(dir))
      assert.equal(event:id(), assert(events.describe(instance, "sched:sched_switch")):id())
      assert.equal("ftrace:print", assert(events.describe(dir, "ftrace:print")):label())
    end)

    it("one event only", function()
      local event, message, errno = events.describe(dir, "sched:*")
      assert.is_nil(event)
      assert.equal(EINVAL, errno)
      assert.truthy(message:find(
        '^"sched:%*" means %d+ events, from sched:%S+ to sched:%S+: name one$'), message)
      event, message, errno = events.describe(dir, "sched:nosuch")
      assert.is_nil(event)
      assert.equal(ENOENT, errno)
      assert.truthy(message:find('no event "sched:nosuch"', 1, true), message)
    end)
  end)
end)
