/* SPDX-License-Identifier: MIT */
#include "embedded.h"

#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "lua-tracefs.h"

/* The chunk of a module, compiled, on top of the stack. */
static void load_chunk(lua_State *L, const struct embedded *module)
{
	if (luaL_loadbufferx(L, (const char *)module->text, module->size, module->chunk, "t") !=
	    LUA_OK)
		lua_error(L);
}

/* What `require` calls; upvalue: the module. The second argument of a loader is where it is. */
static int load_module(lua_State *L)
{
	const struct embedded *module = lua_touserdata(L, lua_upvalueindex(1));

	lua_settop(L, 1);
	load_chunk(L, module);
	lua_insert(L, 1);
	lua_pushstring(L, module->chunk + 1);
	lua_call(L, 2, 1);
	return 1;
}

void embedded_preload(lua_State *L, const struct embedded *modules)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	for (; modules->name; modules++) {
		lua_pushlightuserdata(L, (void *)modules);
		lua_pushcclosure(L, load_module, 1);
		lua_setfield(L, -2, modules->name);
	}
	lua_pop(L, 1);
}

__attribute__((visibility("default"))) int luaopen_tracefs(lua_State *L);

int luaopen_tracefs(lua_State *L)
{
	const struct embedded *module = embedded_tracefs;

	luaL_checkversion(L);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	if (lua_getfield(L, -1, LUA_LOADLIBNAME) == LUA_TNIL)
		return luaL_error(L, "luaopen_tracefs: the library 'package' is not open");
	lua_settop(L, 0);

	embedded_preload(L, embedded_tracefs);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	lua_pushcfunction(L, luaopen_tracefs_core);
	lua_setfield(L, -2, "tracefs.core");
	lua_settop(L, 0);

	while (strcmp(module->name, "tracefs") != 0)
		module++;
	load_chunk(L, module);
	lua_pushliteral(L, "tracefs");
	lua_pushstring(L, module->chunk + 1);
	lua_call(L, 2, 1);
	return 1;
}
