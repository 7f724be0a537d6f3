/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_RIGHTS_H
#define LUATRACE_BINDING_RIGHTS_H

#include <lauxlib.h>
#include <lua.h>

#include "../engine/user.h"

/* The user at @arg, as user() made it, or an argument error. */
const struct user *check_user(lua_State *L, int arg);

#endif
