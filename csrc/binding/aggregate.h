/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_AGGREGATE_H
#define LUATRACE_BINDING_AGGREGATE_H

#include <lua.h>

#include "../engine/aggregate.h"

#define AGGREGATE_CLASS "tracefs.aggregate"

/* The aggregate at @arg, or an argument error. It lives as long as its Lua value. */
struct aggregate *check_aggregate(lua_State *L, int arg);

#endif
