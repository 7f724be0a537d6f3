/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_KEY_H
#define LUATRACE_BINDING_KEY_H

#include <lua.h>

#include "../engine/keymap.h"

/*
 * Makes a key of @count Lua values from index @first on: strings and whole numbers, else an
 * argument error. Strings are borrowed from the stack.
 */
void check_key(lua_State *L, int first, unsigned int count, struct key *key);

/* Pushes one part of a key. */
void push_key_part(lua_State *L, const struct key_part *part);

/* Pushes a key of one part as its value, any other as the list of its parts. */
void push_key(lua_State *L, const struct key *key);

#endif
