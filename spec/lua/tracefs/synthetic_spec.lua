local globals = require "spec.support.globals"
local synthetic = require "tracefs.synthetic"

local function refused(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.matches("^synthetic: ", message)
  return message
end

describe("tracefs.synthetic", function()
  it("requires without touching globals", function()
    assert.same({}, globals("tracefs.synthetic"))
  end)

  it("reads fields as the kernel writes them, and as C does", function()
    for text, expected in pairs {
      ["u64 lat"] = "u64 lat",
      [" u64  lat ;"] = "u64 lat",
      ["char comm[16]"] = "char[16] comm",
      ["char[16] comm"] = "char[16] comm",
      ["char name[]"] = "char[] name",
      ["unsigned long x; long[] stack"] = "unsigned long x; long[] stack",
      ["u64 lat; pid_t pid"] = "u64 lat; pid_t pid",
    } do
      assert.equal("s:own_x " .. expected,
        synthetic.command("own_x", "x", synthetic.fields(text)), text)
    end
    assert.equal("s:own_x u64 lat; pid_t pid",
      synthetic.command("own_x", "x", synthetic.fields { "u64 lat", "pid_t pid" }))
  end)

  it("refuses what the kernel takes and what it does not explain", function()
    assert.matches("the field 'x' is there twice", refused(synthetic.fields, "u64 x; u64 x"))
    assert.matches("a field cannot be called 'common_pid'", refused(synthetic.fields,
      "u64 common_pid"))
    assert.matches('"u64" is no field: a type and a name are needed', refused(synthetic.fields,
      "u64"))
    assert.matches("is no field", refused(synthetic.fields, "u64 a\nx u64 b"))
    assert.matches("an event needs a field", refused(synthetic.fields, ""))
    assert.matches("an event needs a field", refused(synthetic.fields, {}))
    assert.matches("field number 1 is no string but a number", refused(synthetic.fields, { 1 }))
    assert.matches("the fields are a list of strings, not nil", refused(synthetic.fields, nil))
    local fields = synthetic.fields "u64 x"
    assert.matches("not 'a%-b'", refused(synthetic.command, "own_a-b", "a-b", fields))
    assert.matches("too long by 2 bytes", refused(synthetic.command, ("x"):rep(65), "x", fields))
  end)

  it("finds the type that holds a field", function()
    local function type_for(kind, type, size, place)
      return synthetic.type_for { name = "f", kind = kind, type = type, size = size, place = place }
    end
    assert.equal("pid_t", type_for("int", "pid_t", 4, "fixed"))
    assert.equal("unsigned long", type_for("int", "unsigned long", 8, "fixed"))
    assert.equal("u8", type_for("int", "unsigned short", 1, "fixed"))
    assert.equal("u64", type_for("int", "void *", 8, "fixed"))
    assert.equal("char[16]", type_for("string", "char[16]", 16, "fixed"))
    assert.equal("char[]", type_for("string", "char[]", 4, "data_loc"))
    assert.matches("'f' %(u8%[6%]%) is neither a number nor a string",
      refused(type_for, "bytes", "u8[6]", 6, "fixed"))
  end)
end)
