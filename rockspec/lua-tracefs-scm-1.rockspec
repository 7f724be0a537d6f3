rockspec_format = "3.0"
package = "lua-tracefs"
version = "scm-1"

source = {
  url = "git+https://github.com/luatrace/lua-tracefs.git",
  branch = "main",
}

description = {
  summary = "Script the Linux kernel tracer: tracefs events as Lua values",
  detailed = [[
Turns kernel trace events on, filters them in the kernel, and hands every record to Lua in time
order, with every loss counted. The module is `tracefs`; the command `luatrace` runs scripts.
It is not the Lua profiler of the name luatrace.]],
  homepage = "https://github.com/luatrace/lua-tracefs",
  license = "MIT",
  labels = { "linux", "tracing", "ftrace", "tracefs", "kernel" },
}

supported_platforms = { "linux" }

dependencies = {
  "lua >= 5.4, < 5.6",
  "argparse >= 0.6.0",
  "dkjson >= 2.5",
}

build = {
  type = "cmake",
  variables = {
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    LUA = "$(LUA)",
    LUA_INCDIR = "$(LUA_INCDIR)",
    LIBDIR = "$(LIBDIR)",
    LUADIR = "$(LUADIR)",
    BINDIR = "$(BINDIR)",
    LUATRACE_ROCK = "ON",
  },
}

test = {
  type = "command",
  command = "make test",
}
