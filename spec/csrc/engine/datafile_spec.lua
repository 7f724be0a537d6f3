local core = require "tracefs.core"
local inputs = require "spec.support.inputs"

-- Hands out all records; returns how many, and the losses.
local function drain(file, options)
  options = options or {}
  options.partial = true
  local catalog = assert(file:catalog())
  local stream = assert(file:stream(catalog, options))
  for _, event in ipairs(file:events()) do
    stream:select(event.id, true)
  end
  local count, losses, unknown = 0, {}, 0
  stream:callbacks(function(id)
    local event = file:describe(catalog, id)
    unknown = unknown + (event and 0 or 1)
    return event
  end, function()
    return true
  end)
  repeat
    local n, why, what = stream:step(1000)
    count = count + n
    losses[#losses + 1] = why == "lost" and what or nil
  until why == "end"
  assert.equal(0, unknown)
  local per_cpu, late = stream:counts()
  assert.equal(0, late)
  return count, losses, per_cpu
end

describe("trace.dat files of other machines", function()
  if not inputs.are_there then
    pending("../shared/inputs is not there")
    return
  end

  it("are read, every record of them", function()
    local seen = 0
    for _, input in ipairs(inputs.list()) do
      if input.status == 0 and input.count > 0 then
        local file <close> = assert(core.datafile(input.path))
        local count, _, per_cpu = drain(file)
        assert.equal(input.count, count, input.name)
        assert.is_nil(file:damage(), input.name)
        local info = file:info()
        assert.equal(input.version, info.version, input.name)
        assert.equal(input.name:find("^s390x/") ~= nil, info.big_endian, input.name)
        local delivered = 0
        for _, counts in pairs(per_cpu) do
          delivered = delivered + counts.delivered
          assert.equal(counts.produced, counts.delivered + counts.lost + counts.pending)
        end
        assert.equal(count, delivered, input.name)
        seen = seen + 1
      end
    end
    assert.is_true(seen > 25)
  end)

  it("have several buffers, which can be read one by one", function()
    local file <close> = assert(core.datafile(inputs.path "kernel-6.12/rec_multibuf.dat"))
    local counts, names = {}, {}
    for i, buffer in ipairs(file:buffers()) do
      names[i] = buffer.name
      counts[buffer.name] = drain(file, { buffer = buffer.name })
      assert.equal("global", buffer.clock)
      assert.is_true(buffer.clock_in_ns)
    end
    assert.same({ "", "sysbuf", "netbuf" }, names)
    assert.same({ [""] = 464, sysbuf = 1600, netbuf = 100 }, counts)
    local stream, message = file:stream(file:catalog(), { buffer = "nosuch" })
    assert.is_nil(stream)
    assert.matches('has no buffer "nosuch" with records', message, 1, true)
  end)

  it("tell of losses where they were", function()
    local file <close> = assert(core.datafile(inputs.path "kernel-6.18/lost_overwrite.dat"))
    local count, losses, per_cpu = drain(file)
    assert.equal(101, count)
    assert.equal(1, #losses)
    assert.same({ 1, 42701, "overrun" }, { losses[1].cpu, losses[1].count, losses[1].why })
    assert.equal(42802, per_cpu[1].produced)
  end)

  it("that are cut give what is there, and say where they end", function()
    local file <close> = assert(core.datafile(inputs.path "kernel-6.18/trunc_in_data_v6.dat"))
    local count = drain(file)
    assert.is_true(count > 90 and count < 500, count)
    assert.matches("truncated or still being written: 16720 of 24576 bytes of records %(CPU 1%) are"
      .. " missing, at byte 270000 of 270000", file:damage())
    for name, message in pairs {
      ["kernel-6.18/trunc_11.dat"] = "it ends within its first bytes",
      ["kernel-6.18/trunc_in_header_v6.dat"] = "of 200000, so no record of it can be read",
    } do
      local bad, why = core.datafile(inputs.path(name))
      assert.is_nil(bad)
      assert.matches(message, why, 1, true)
    end
  end)
end)

describe("a file that is none", function()
  it("is refused with the reason", function()
    for path, message in pairs {
      ["/nonexistent/trace.dat"] = "cannot open /nonexistent/trace.dat: No such file or directory",
      ["/etc"] = "/etc is no regular file",
      ["/dev/null"] = "/dev/null is no regular file",
      ["/etc/passwd"] = "/etc/passwd is no trace.dat file: it does not begin like one",
    } do
      local file, why, errno = core.datafile(path)
      assert.is_nil(file)
      assert.matches(message, why, 1, true)
      assert.equal("integer", math.type(errno))
    end
  end)
end)
