/* SPDX-License-Identifier: MIT */
#include "../engine/replace.h"

#include <lauxlib.h>

#include "binding.h"

/* replace(path, text): true, or nil and why not */
static int core_replace(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct trace_error error;
	size_t length;
	const char *text = luaL_checklstring(L, 2, &length);

	if (file_replace(path, text, length, &error) < 0)
		return push_error(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

static const luaL_Reg functions[] = {
	{ "replace", core_replace },
	{ NULL, NULL },
};

void open_replace(lua_State *L)
{
	luaL_setfuncs(L, functions, 0);
}
