/* SPDX-License-Identifier: MIT */
#include "../engine/clock.h"

#include "binding.h"

/* Upvalue: read once, as a process stays in its time namespace. */
static const struct clock_offsets *offsets(lua_State *L)
{
	return lua_touserdata(L, lua_upvalueindex(1));
}

/* now([clock]): the clock's reading in ns, or nil and why not */
static int core_now(lua_State *L)
{
	const char *name = luaL_optstring(L, 1, "mono");
	struct trace_clock clock = trace_clock_find(name, offsets(L));

	if (!clock.readable) {
		lua_pushnil(L);
		lua_pushfstring(L,
				"the clock '%s' cannot be read outside the kernel: use mono, "
				"boot, mono_raw or tai",
				name);
		return 2;
	}
	lua_pushinteger(L, (lua_Integer)trace_clock_now(&clock));
	return 1;
}

/* clock_info(name): does it count ns, can it be read */
static int core_clock_info(lua_State *L)
{
	struct trace_clock clock = trace_clock_find(luaL_checkstring(L, 1), offsets(L));

	lua_pushboolean(L, clock.in_ns);
	lua_pushboolean(L, clock.readable);
	return 2;
}

static const luaL_Reg functions[] = {
	{ "clock_info", core_clock_info },
	{ "now", core_now },
	{ NULL, NULL },
};

void open_clock(lua_State *L)
{
	struct clock_offsets *offsets = lua_newuserdatauv(L, sizeof(*offsets), 0);

	*offsets = clock_offsets_read(); /* module, offsets */
	luaL_setfuncs(L, functions, 1);
}
