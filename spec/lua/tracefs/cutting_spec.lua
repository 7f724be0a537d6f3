local core = require "tracefs.core"
local globals = require "spec.support.globals"
local helper = require "spec.support.helper"
local tracefs = require "tracefs"

local DEMO <const> = helper.root .. "/examples/demo.dat"

describe("session:record of a session on a file", function()
  local function open(path)
    return tracefs.session { file = path or DEMO }
  end

  -- What a file has, in order.
  local function texts(path)
    local session <close> = open(path)
    local list = {}
    session:on("*:*", function(ev)
      list[#list + 1] = tostring(ev)
    end)
    session:run()
    return list
  end

  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.cutting"))
  end)

  it("writes what the handlers get", function()
    local path, seen = helper.tmpdir() .. "/cut.dat", {}
    local session <close> = open()
    session:on("net:netif_receive_skb", { filter = "len < 1000" }, function(ev)
      seen[#seen + 1] = tostring(ev)
    end)
    session:record(path)
    session:run()
    assert.is_true(#seen > 10)
    assert.same(seen, texts(path))
    local file <close> = assert(core.datafile(path))
    assert.same({ 7, core.can_compress() and "zstd" or "none" },
      { file:info().version, file:info().compression })
  end)

  it("writes as far as the run came, also when it is closed in a handler", function()
    for _, ends in ipairs { "stop", "close", "step" } do
      local path, seen = helper.tmpdir() .. "/cut.dat", {}
      local session = open()
      session:on("net:*", function(ev)
        seen[#seen + 1] = tostring(ev)
        if #seen == 7 and ends ~= "step" then
          session[ends](session)
        end
      end)
      session:record(path, { version = 6 })
      if ends == "step" then
        session:step(7)
      else
        session:run()
      end
      assert.is_nil(ends ~= "close" and helper.read_file(path) or nil)
      assert.is_true(session:close())
      assert.equal(7, #seen)
      assert.same(seen, texts(path))
    end
  end)

  it("writes enabled events without handlers, and everything that is left of a cut", function()
    local dir = helper.tmpdir()
    do
      local session <close> = open()
      session:enable "net:net_dev_queue"
      session:record(dir .. "/one.dat")
      for _ in session:events() do
        -- nothing is done with it
      end
    end
    local all = texts(dir .. "/one.dat")
    assert.is_true(#all > 10)
    do
      local session <close> = open(dir .. "/one.dat")
      session:enable "*:*"
      session:record(dir .. "/two.dat", { compress = false })
      session:run()
    end
    assert.same(all, texts(dir .. "/two.dat"))
  end)

  it("refuses what cannot be, and says when the file cannot be written", function()
    local session <close> = open()
    for message, arguments in pairs {
      ["the name of a file is needed, not nil"] = {},
      ["has a zero byte"] = { "a\0b" },
      ["version must be 6 or 7, not 8"] = { "x", { version = 8 } },
    } do
      local ok, problem = pcall(session.record, session, table.unpack(arguments))
      assert.is_false(ok)
      assert.matches(message, problem, 1, true)
    end
    session:record("/nonexistent/cut.dat")
    local ok, problem = pcall(session.record, session, "other.dat")
    assert.is_false(ok)
    assert.matches("recorded already, into /nonexistent/cut.dat", problem, 1, true)
    session:enable "net:net_dev_queue"
    ok, problem = pcall(session.run, session)
    assert.is_false(ok)
    assert.matches("cannot create /nonexistent/cut.dat: No such file", problem, 1, true)
    local self <close> = open()
    self:record(DEMO)
    local closed, why = self:close()
    assert.is_nil(closed)
    assert.matches("demo.dat: it is the file that is read; give another name", why, 1, true)
  end)
end)

describe("a cut", function()
  local function stream()
    local file <close> = assert(core.datafile(DEMO))
    local catalog = assert(file:catalog())
    return assert(file:stream(catalog, {})), catalog
  end

  it("is nothing until its last step, and nothing is left when it is closed before", function()
    local from, path = stream(), helper.tmpdir() .. "/cut.dat"
    from:select(1, true)
    local cut = assert(from:cut(path, { version = 7 }))
    assert.equal(path, cut:path())
    assert.matches("^tracefs.cut %(.*cut%.dat%)$", tostring(cut))
    assert.same({ 0, 0 }, { cut:records(), (cut:progress()) })
    cut:close()
    cut:close()
    assert.equal("tracefs.cut (closed)", tostring(cut))
    assert.has_error(function() cut:step() end, "calling 'step' on bad self (cut is closed)")
    local pipe <close> = assert(io.popen("ls -a " .. path:match "^(.*)/"))
    assert.equal(".\n..\n", pipe:read "a")
  end)

  it("is left alone by a child of its process", function()
    local dir = helper.tmpdir()
    helper.write_file(dir .. "/fork.lua", ([[
      package.cpath = %q
      local core = require "tracefs.core"
      local file = assert(core.datafile(%q))
      local stream = assert(file:stream(assert(file:catalog()), {}))
      for _, event in ipairs(file:events()) do
        stream:select(event.id, true)
      end
      local cut = assert(stream:cut(%q, { version = 7 }))
      local child = fork()
      if child == 0 then
        print((select(2, cut:step())))
        return
      end
      assert(wait(child) == 0)
      local more
      repeat
        more = cut:step()
      until not more
      assert(more == false)
      print(cut:records() > 0)
    ]]):format(package.cpath, DEMO, dir .. "/cut.dat"))
    local status, out, err = helper.execute { helper.program "support/fork", dir .. "/fork.lua" }
    assert.same({ 0, "" }, { status, err })
    assert.equal(("cannot write %s: this process is a child of the one that writes it\ntrue\n")
      :format(dir .. "/cut.dat"), out)
    local pipe <close> = assert(io.popen("ls " .. dir))
    assert.equal("cut.dat\nfork.lua\n", pipe:read "a")
  end)

  it("ends with its stream", function()
    local from, path = stream(), helper.tmpdir() .. "/cut.dat"
    local cut <close> = assert(from:cut(path, {}))
    from:close()
    assert.has_error(function() cut:step() end,
      "calling 'step' on bad self (the cut's stream is closed)")
    assert.has_error(function() from:cut(path, {}) end)
  end)
end)
