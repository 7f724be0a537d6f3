/* SPDX-License-Identifier: MIT */
#include "key.h"

#include <lauxlib.h>

void check_key(lua_State *L, int first, unsigned int count, struct key *key)
{
	key->count = count;
	for (unsigned int i = 0; i < count; i++) {
		struct key_part *part = &key->parts[i];
		int arg = first + (int)i;
		size_t length;
		int is_integer;

		if (lua_type(L, arg) == LUA_TSTRING) {
			part->bytes = lua_tolstring(L, arg, &length);
			luaL_argcheck(L, length < UINT32_MAX / KEYMAP_MAX_PARTS, arg, "too long");
			part->length = (uint32_t)length;
			continue;
		}
		part->bytes = NULL;
		part->number = lua_tointegerx(L, arg, &is_integer);
		if (!is_integer)
			luaL_argerror(L, arg, "a key is made of strings and whole numbers");
	}
}

void push_key_part(lua_State *L, const struct key_part *part)
{
	if (part->bytes)
		lua_pushlstring(L, part->bytes, part->length);
	else
		lua_pushinteger(L, part->number);
}

void push_key(lua_State *L, const struct key *key)
{
	if (key->count == 1) {
		push_key_part(L, &key->parts[0]);
		return;
	}
	lua_createtable(L, (int)key->count, 0);
	for (unsigned int i = 0; i < key->count; i++) {
		push_key_part(L, &key->parts[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
}
