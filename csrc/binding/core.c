/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "binding.h"

int push_error(lua_State *L, const struct trace_error *error)
{
	lua_pushnil(L);
	lua_pushstring(L, error->message);
	lua_pushinteger(L, error->code);
	return 3;
}

int push_errno(lua_State *L, int err, const char *what)
{
	lua_pushnil(L);
	lua_pushfstring(L, "%s: %s", what, strerror(err));
	lua_pushinteger(L, err);
	return 3;
}

void set_integer(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

int without_finalizers(lua_State *L, lua_CFunction function)
{
	bool was_running = lua_gc(L, LUA_GCISRUNNING);
	int status;

	luaL_checkstack(L, 1, NULL);
	lua_pushcfunction(L, function);
	lua_insert(L, 1);
	lua_gc(L, LUA_GCSTOP);
	status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
	if (was_running)
		lua_gc(L, LUA_GCRESTART);
	return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

void new_class(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta)
{
	luaL_newmetatable(L, name); /* class */
	luaL_setfuncs(L, meta, 0);
	lua_newtable(L); /* class, methods */
	luaL_setfuncs(L, methods, 0);
	lua_setfield(L, -2, "__index"); /* class */
	lua_pop(L, 1);
}

__attribute__((visibility("default"))) int luaopen_tracefs_core(lua_State *L);

int luaopen_tracefs_core(lua_State *L)
{
	static void (*const openers[])(lua_State *) = {
		open_aggregate, open_clock,    open_datacut,   open_datafile, open_dynevent,
		open_event,	open_instance, open_lease,     open_pair,     open_poll,
		open_process,	open_record,   open_recording, open_replace,  open_report,
		open_rights,	open_screen,   open_signals,   open_stream,   open_syscall,
	};

	luaL_checkversion(L);
	lua_newtable(L); /* module */
	for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++)
		openers[i](L);
	return 1;
}
