/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_EMBEDDED_H
#define LUATRACE_EMBEDDED_H

#include <stddef.h>

#include <lua.h>

/* A Lua module inside the program. Lists of them end with a NULL name. */
struct embedded {
	const char *name;
	const char *chunk; /* its name in messages */
	const unsigned char *text;
	size_t size;
};

/* Written by embed.lua: the modules tracefs.*, and what the command needs beside them. */
extern const struct embedded embedded_tracefs[];
extern const struct embedded embedded_others[];

/* Has `require` find these modules without a file; before all that lies in package.path. */
void embedded_preload(lua_State *L, const struct embedded *modules);

#endif
