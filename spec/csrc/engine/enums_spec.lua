local core = require "tracefs.core"
local decode = require "spec.support.decode"

-- Each case: print format, what the kernel prints, fields.
local function check(cases, options)
  for _, case in ipairs(cases) do
    local text, message = decode.text(case[1], case[3], options)
    assert.equal(case[2], text or message, case[1])
  end
end

describe("enum constants that the kernel has not resolved", function()
  -- BTF with one enum { ALPHA = 1, BETA = -2 } and one 64-bit enum { GAMMA = 1 << 40 }
  local function btf(order, damaged)
    local strings = "\0alpha\0beta\0gamma\0delta\0"
    local function at(name)
      return strings:find("\0" .. name .. "\0", 1, true)
    end
    local types = (order .. "I4I4I4"):pack(0, 1 << 24, 4) .. (order .. "I4"):pack(32) -- an int
      .. (order .. "I4I4I4"):pack(0, 1 << 31 | 6 << 24 | 3, 4)
      .. (order .. "I4i4I4i4I4i4"):pack(at "alpha", 1, at "beta", -2, at "delta", 5)
      .. (order .. "I4I4I4"):pack(0, 4 << 24 | 1, 4) .. (order .. "I4I4I4"):pack(
        0, 1, 0
      ) -- a struct
      .. (order .. "I4I4I4"):pack(0, 19 << 24 | 1, 8) .. (order .. "I4I4I4"):pack(
        at "gamma", 0, 1 << 8
      )
      .. (order .. "I4I4I4"):pack(0, 6 << 24 | 1, 4) .. (order .. "I4i4"):pack(at "delta", 6)
    if damaged then
      types = types:sub(1, -5)
    end
    return (order .. "I2BBI4I4I4I4I4"):pack(
      0xeb9f, 1, 0, 24, 0, #types, #types, #strings
    ) .. types .. strings
  end

  for _, order in ipairs { "<", ">" } do
    it("are taken from BTF (" .. order .. ")", function()
      local catalog = core.catalog()
      assert.is_true(catalog:add_btf(btf(order)))
      check({
        { '"%d %d %llx", alpha, beta, gamma', "1 -2 10000000000" },
        {
          '"%s", __print_symbolic(REC->x, { alpha, "ALPHA" }, { beta, "BETA" })', "BETA",
          { { "int x", "i4", -2 } },
        },
        { '"%s", __print_flags(3, "|", { alpha, "ALPHA" }, { 2, "two" })', "ALPHA|two" },
        -- two enums use this name for different numbers
        { '"%d", delta', "?" },
      }, { catalog = catalog })
    end)
  end

  it("leave the number when nobody knows them", function()
    check {
      {
        '"%s", __print_symbolic(REC->x, { alpha, "ALPHA" }, { 2, "two" })', "0x1",
        { { "int x", "i4", 1 } },
      },
      {
        '"%s", __print_symbolic(REC->x, { alpha, "ALPHA" }, { 2, "two" })', "two",
        { { "int x", "i4", 2 } },
      },
    }
  end)

  it("are refused from damaged BTF, and what could be read stays", function()
    local catalog = core.catalog()
    for _, bytes in ipairs {
      "", "BTF", ("\0"):rep(24), btf("<"):sub(1, 40), btf("<"):sub(1, -2),
    } do
      local ok, message, code = catalog:add_btf(bytes)
      assert.is_nil(ok)
      assert.matches("no BTF", message, 1, true)
      assert.equal("number", type(code))
    end
    assert.is_nil((catalog:add_btf(btf("<", true))))
    check({ { '"%d", alpha', "1" } }, { catalog = catalog })
  end)
end)

describe("the live kernel's enum constants", function()
  it("are known by name", function()
    local file <close> = io.open("/sys/kernel/btf/vmlinux")
    if not file then
      pending("this kernel has no BTF")
      return
    end
    local catalog = core.catalog()
    catalog:set_live(assert(core.tracing_dir()))
    check({
      { '"%d %d", TCP_ESTABLISHED, TCP_LISTEN', "1 10" },
      { '"%s", __print_symbolic(0, { HRTIMER_MODE_ABS, "ABS" })', "ABS" },
      { '"%d", NO_ENUM_HAS_THIS_NAME', "?" },
    }, { catalog = catalog })
  end)
end)
