/* SPDX-License-Identifier: MIT */
/*
 * A host for Lua that the sanitizers' builds run everything with:
 *
 *   lua [-e CODE]... [SCRIPT [ARGUMENT...]]
 *
 * The sanitizer's runtime has to be in the process before the module is loaded. It is linked
 * into this program, so nothing is preloaded, and what the specs start (shells, loads) runs
 * without it. LUA_INIT is honoured as by the stand-alone interpreter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static int add_traceback(lua_State *L)
{
	const char *message = luaL_tolstring(L, 1, NULL);

	luaL_traceback(L, L, message, 1);
	return 1;
}

/* Calls the chunk on top of the stack with @count arguments beneath the top. */
static int call_chunk(lua_State *L, int count)
{
	int base = lua_gettop(L) - count;
	int status;

	lua_pushcfunction(L, add_traceback);
	lua_insert(L, base);
	status = lua_pcall(L, count, 0, base);
	lua_remove(L, base);
	return status;
}

static int run_code(lua_State *L, const char *code, const char *name)
{
	int status = luaL_loadbuffer(L, code, strlen(code), name);

	return status == LUA_OK ? call_chunk(L, 0) : status;
}

/* As the stand-alone interpreter numbers them: the script is 0, what stands before it negative. */
static void set_arg_table(lua_State *L, int argc, char **argv, int script)
{
	lua_createtable(L, argc - script, script + 1);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - script);
	}
	lua_setglobal(L, "arg");
}

static int run_script(lua_State *L, int argc, char **argv, int script)
{
	int status = luaL_loadfile(L, argv[script]);

	if (status != LUA_OK)
		return status;
	luaL_checkstack(L, argc + 1, "too many arguments");
	for (int i = script + 1; i < argc; i++)
		lua_pushstring(L, argv[i]);
	return call_chunk(L, argc - script - 1);
}

/* Runs protected: what it raises, ends the program with the message. */
static int run_all(lua_State *L)
{
	int argc = (int)lua_tointeger(L, 1);
	char **argv = lua_touserdata(L, 2);
	const char *init = getenv("LUA_INIT");
	int script = 1;

	luaL_openlibs(L);
	while (script + 1 < argc && strcmp(argv[script], "-e") == 0)
		script += 2;
	set_arg_table(L, argc, argv, script);
	if (init && run_code(L, init, "=LUA_INIT") != LUA_OK)
		return lua_error(L);
	for (int i = 1; i < script; i += 2) {
		if (run_code(L, argv[i + 1], "=(command line)") != LUA_OK)
			return lua_error(L);
	}
	if (script < argc && run_script(L, argc, argv, script) != LUA_OK)
		return lua_error(L);
	return 0;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int status;

	if (!L) {
		fputs("lua: no memory\n", stderr);
		return EXIT_FAILURE;
	}
	lua_pushcfunction(L, run_all);
	lua_pushinteger(L, argc);
	lua_pushlightuserdata(L, argv);
	status = lua_pcall(L, 2, 0, 0);
	if (status != LUA_OK)
		fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return status == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
