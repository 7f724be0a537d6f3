-- Functions of programs that the spec builds: where they are in the file, checked by what
-- objdump says is there, and damaged files.
local helper = require "spec.support.helper"
local core = require "tracefs.core"

local ENOENT <const>, EINVAL <const>, ENOEXEC <const> = 2, 22, 8

local SOURCE <const> = [[
int counter;
__attribute__((noinline)) int shown(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 12345;
}
static __attribute__((noinline)) int hidden(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 54321;
}
#ifdef LIBRARY
static int first_choice(int n) { return n; }
static int (*choose(void))(int) { return first_choice; }
int chosen(int n) __attribute__((ifunc("choose")));
int old_version(int n) { return n + 1; }
int new_version(int n) { return n + 2; }
__asm__(".symver old_version, versioned@ONE");
__asm__(".symver new_version, versioned@@TWO");
int both(int n) { return shown(n) + hidden(n); }
#else
int puts(const char *);
int main(int argc, char **argv) { (void)argv; puts(""); return shown(argc) + hidden(argc); }
#endif
]]

local compiler
for _, name in ipairs { "cc", "gcc", "clang" } do
  if not compiler and (helper.execute { "sh", "-c", "command -v " .. name }) == 0 then
    compiler = name
  end
end

describe("functions of programs", function()
  local dir

  local function sh(command)
    local status, out, err = helper.execute { "sh", "-c", "cd " .. dir .. " && " .. command }
    assert(status == 0, command .. ": " .. err)
    return out
  end

  setup(function()
    if not (compiler and core.has_libelf()) then
      return
    end
    dir = helper.tmpdir()
    helper.write_file(dir .. "/source.c", SOURCE)
    helper.write_file(dir .. "/versions", "ONE { local: nothing; }; TWO { } ONE;")
    local cc = compiler .. " -O1 -g0 "
    sh(cc .. "-fpie -pie -rdynamic -o pie source.c")
    sh(cc .. "-fno-pie -no-pie -rdynamic -o fixed source.c")
    -- The code is not at the address that it has in the file plus one number for all segments.
    sh(cc .. "-fno-pie -no-pie -Wl,-z,separate-code -Wl,-Ttext-segment=0x7000000 -o moved source.c")
    sh(cc .. "-DLIBRARY -fpic -shared -Wl,--version-script=versions -o lib.so source.c")
    sh("strip -o stripped pie && strip -o stripped.so lib.so")
    sh(cc .. "-c -o object.o source.c")
  end)

  local it = helper.it_after(it, function()
    if not core.has_libelf() then
      pending("built without libelf")
    elseif not compiler then
      pending("no compiler here")
    end
  end)

  local function refused(file, symbol, delta)
    local offset, message, errno = core.elf_offset(file, symbol, delta)
    assert.is_nil(offset)
    return message, errno
  end

  -- What the file has from the offset on must be the function: its constant is in its code.
  local function code_at(file, offset)
    return helper.read_file(dir .. "/" .. file):sub(offset + 1, offset + 64)
  end
  local constant <const> = { shown = ("<I4"):pack(12345), hidden = ("<I4"):pack(54321) }

  it("are found in position-independent ones, in others, in libraries", function()
    local machine = sh("uname -m")
    for _, file in ipairs { "pie", "fixed", "moved", "lib.so" } do
      for symbol, bytes in pairs(constant) do
        local offset = assert(core.elf_offset(dir .. "/" .. file, symbol))
        if machine:find("86") then
          assert.is_truthy(code_at(file, offset):find(bytes, 1, true), file .. " " .. symbol)
        end
        assert.equal(offset + 1, core.elf_offset(dir .. "/" .. file, symbol, 1))
      end
    end
  end)

  it("are found in stripped files as far as other files can link to them", function()
    assert.equal(core.elf_offset(dir .. "/pie", "shown"),
      core.elf_offset(dir .. "/stripped", "shown"))
    assert.equal(core.elf_offset(dir .. "/lib.so", "both"),
      core.elf_offset(dir .. "/stripped.so", "both"))
    local message, errno = refused(dir .. "/stripped", "hidden")
    assert.equal(ENOENT, errno)
    assert.matches("no function 'hidden' in .*/stripped: the file is stripped", message)
  end)

  it("have the version that is linked to now", function()
    for _, file in ipairs { "lib.so", "stripped.so" } do
      assert.equal(assert(core.elf_offset(dir .. "/lib.so", "new_version")),
        assert(core.elf_offset(dir .. "/" .. file, "versioned")))
    end
  end)

  it("are told from what is none", function()
    local message, errno = refused(dir .. "/pie", "nosuch")
    assert.equal(ENOENT, errno)
    assert.matches("^no function 'nosuch' in .*/pie$", message)
    message = refused(dir .. "/pie", "counter")
    assert.matches("'counter' of .*/pie is data: a uprobe needs a function", message)
    message, errno = refused(dir .. "/pie", "puts")
    assert.equal(ENOENT, errno)
    assert.matches("takes it from one of its libraries: .*libc%.so.*: name that one", message)
    assert.matches("which the loader picks at run time", refused(dir .. "/lib.so", "chosen"))
    message, errno = refused(dir .. "/pie", "shown", 100000)
    assert.equal(EINVAL, errno)
    assert.matches("has %d+ bytes: %+100000 is behind its end", message)
  end)

  it("have a list", function()
    local names = {}
    for _, name in ipairs(assert(core.elf_functions(dir .. "/pie"))) do
      names[name] = true
    end
    assert.is_true(names.shown and names.hidden and names.main)
    assert.is_nil(names.counter)
    assert.is_nil(names.puts)
  end)

  it("are in ELF files that can run only", function()
    helper.write_file(dir .. "/script", "#!/bin/sh\n")
    helper.write_file(dir .. "/text", "text")
    helper.write_file(dir .. "/empty", "")
    sh("mkfifo fifo 2>/dev/null || true")
    for file, why in pairs {
      script = "is a script: it has no functions for a uprobe",
      text = "is not an ELF file",
      empty = "",
      ["object.o"] = "is neither a program nor a shared library",
      [""] = "it is not a file",
      fifo = "it is not a file",
      nosuch = "No such file or directory",
    } do
      local message, errno = refused(dir .. "/" .. file, "shown")
      assert.is_truthy(message:find(why, 1, true), message)
      assert.is_truthy(message:find(dir .. "/" .. file, 1, true), message)
      assert.equal("integer", math.type(errno))
      assert.is_nil((core.elf_functions(dir .. "/" .. file)))
    end
    assert.equal(ENOEXEC, select(2, refused(dir .. "/script", "shown")))
  end)

  it("of damaged files are a message or a number, never more", function()
    local whole = helper.read_file(dir .. "/lib.so")
    local path = dir .. "/damaged"
    local random = 12345
    local function next_random(limit)
      random = (random * 1103515245 + 12345) & 0x7fffffff
      return random % limit
    end
    local function try(content)
      helper.write_file(path, content)
      local offset, message = core.elf_offset(path, "versioned")
      assert.is_truthy(offset or message)
      if offset then
        assert.is_true(math.type(offset) == "integer")
      end
      core.elf_functions(path)
    end
    for _ = 1, 40 do
      try(whole:sub(1, next_random(#whole)))
    end
    -- The header, the program headers, and the section headers at the end.
    local tail = #whole - 64 * 40
    for round = 1, 150 do
      local content = whole
      for _ = 1, 1 + next_random(8) do
        local at = round % 3 == 0 and tail + next_random(#whole - tail)
          or round % 3 == 1 and next_random(1024) or next_random(#whole)
        content = content:sub(1, at) .. string.char(next_random(256)) .. content:sub(at + 2)
      end
      try(content)
    end
  end)
end)

describe("core.elf_offset", function()
  it("checks its arguments", function()
    for _, arguments in ipairs {
      {}, { "/bin/sh" }, { "/bin/sh", "a\0b" }, { "/bin\0/sh", "main" }, { "/bin/sh", "main", -1 },
      { "/bin/sh", "main", "x" },
    } do
      assert.has_error(function()
        core.elf_offset(table.unpack(arguments))
      end)
    end
    assert.has_error(function() core.elf_functions() end)
    assert.has_error(function() core.real_path("a\0") end)
    assert.equal("/", core.real_path("/usr/.."))
    local path, message, errno = core.real_path("/nosuch/file")
    assert.same({ nil, "/nosuch/file: No such file or directory", ENOENT },
      { path, message, errno })
  end)
end)
