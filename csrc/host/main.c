/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

#include "embedded.h"
#include "lua-tracefs.h"
#include "machine.h"

/* The command luatrace with Lua, the module and all it needs inside: see `make static`. */

/*
 * Relative places go: a tool that runs as root must not load a file because it lies in the current
 * directory. A script's own folder is added by the command.
 */
static const char run[] = "for _, name in ipairs { 'path', 'cpath' } do\n"
			  "  local entries = {}\n"
			  "  for entry in package[name]:gmatch('[^;]+') do\n"
			  "    entries[#entries + 1] = entry:sub(1, 1) == '/' and entry or nil\n"
			  "  end\n"
			  "  package[name] = table.concat(entries, ';')\n"
			  "end\n"
			  "return require('tracefs.command').main(arg)\n";

/* Arguments: argc, argv. Returns the exit status. */
static int run_command(lua_State *L)
{
	int argc = (int)lua_tointeger(L, 1);
	char **argv = lua_touserdata(L, 2);

	luaL_openlibs(L);
	luaL_requiref(L, "tracefs", luaopen_tracefs, 0);
	embedded_preload(L, embedded_others);

	lua_createtable(L, argc, 1);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
	lua_setglobal(L, "arg");
	if (luaL_loadbufferx(L, run, sizeof(run) - 1, "=luatrace", "t") != LUA_OK)
		return lua_error(L);
	lua_call(L, 0, 1);
	return 1;
}

int main(int argc, char **argv)
{
	bool is_machine = machine_begin();
	lua_State *L = luaL_newstate();
	int status = EXIT_FAILURE;

	if (!L) {
		fprintf(stderr, "luatrace: not enough memory\n");
	} else {
		lua_pushcfunction(L, run_command);
		lua_pushinteger(L, argc);
		lua_pushlightuserdata(L, argv);
		if (lua_pcall(L, 2, 1, 0) == LUA_OK)
			status = (int)lua_tointeger(L, -1);
		else
			fprintf(stderr, "luatrace: %s\n", luaL_tolstring(L, -1, NULL));
		lua_close(L);
	}
	if (is_machine)
		machine_end();
	return status;
}
