/* SPDX-License-Identifier: MIT */
#ifndef LUA_TRACEFS_H
#define LUA_TRACEFS_H

#include <lua.h>

/*
 * luatrace as a static library: liblua-tracefs.a, `pkg-config --static --libs lua-tracefs`. It has
 * the C core and the Lua layer, and leaves the choice of the Lua library to the host.
 *
 *	luaL_openlibs(L);
 *	luaL_requiref(L, "tracefs", luaopen_tracefs, 0);
 *	lua_pop(L, 1);
 *
 * From then on `require "tracefs"` works in this state, and no file is looked for.
 */
#ifdef __cplusplus
extern "C" {
#endif

/*
 * The module tracefs; all others of the Lua layer are put into package.preload. Needs the library
 * `package` to be open. Raises as every Lua function does.
 */
int luaopen_tracefs(lua_State *L);

/* The C core alone. */
int luaopen_tracefs_core(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
