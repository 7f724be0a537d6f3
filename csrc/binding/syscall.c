/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "../engine/syscall.h"
#include "binding.h"

/* syscall(number [, machine]): its name, or nil; of another machine there is none */
static int core_syscall(lua_State *L)
{
	lua_Integer number = luaL_checkinteger(L, 1);
	const char *machine = luaL_optstring(L, 2, NULL);
	const char *name = NULL;

	if (!machine || (syscall_machine() && strcmp(machine, syscall_machine()) == 0))
		name = syscall_name(number);
	if (name)
		lua_pushfstring(L, "sys_%s", name);
	else
		lua_pushnil(L);
	return 1;
}

static const luaL_Reg functions[] = {
	{ "syscall", core_syscall },
	{ NULL, NULL },
};

void open_syscall(lua_State *L)
{
	luaL_setfuncs(L, functions, 0);
}
