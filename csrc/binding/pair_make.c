/* SPDX-License-Identifier: MIT */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "pair_state.h"
#include "stream.h"

static lua_Integer integer_option(lua_State *L, const char *name, lua_Integer least,
				  lua_Integer most)
{
	lua_Integer value;

	lua_getfield(L, 1, name);
	value = luaL_checkinteger(L, -1);
	lua_pop(L, 1);
	if (value < least || value > most)
		luaL_error(L, "%s: from %I to %I, not %I", name, (LUAI_UACINT)least,
			   (LUAI_UACINT)most, (LUAI_UACINT)value);
	return value;
}

static bool boolean_option(lua_State *L, const char *name)
{
	bool value;

	lua_getfield(L, 1, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

/* Keeps the function of this name; 0 when there is none. */
static int function_option(lua_State *L, int pair, const char *name)
{
	if (lua_getfield(L, 1, name) == LUA_TNIL) {
		lua_pop(L, 1);
		return 0;
	}
	luaL_checktype(L, -1, LUA_TFUNCTION);
	return pair_keep(L, pair);
}

/* Does the function of this name take so many arguments? What it does not take is not made. */
static bool takes(lua_State *L, const char *name, int count)
{
	lua_Debug info;

	if (lua_getfield(L, 1, name) == LUA_TNIL) {
		lua_pop(L, 1);
		return false;
	}
	lua_getinfo(L, ">u", &info);
	return info.isvararg || info.nparams >= count;
}

/* into: a list of { aggregate, { numbers of the values that are its key } } */
static void read_into(lua_State *L, struct lua_pair *self, int pair)
{
	lua_getfield(L, 1, "into");
	luaL_checktype(L, -1, LUA_TTABLE);
	for (int i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
		struct into *into = &self->into[self->into_count];

		luaL_argcheck(L, self->into_count < MAX_INTO, 1, "into: too many aggregates");
		luaL_checktype(L, -1, LUA_TTABLE);
		lua_rawgeti(L, -1, 1); /* intos, into, aggregate */
		into->aggregate = check_aggregate(L, -1);
		pair_keep(L, pair);
		lua_rawgeti(L, -1, 2); /* intos, into, numbers */
		luaL_checktype(L, -1, LUA_TTABLE);
		for (unsigned int k = 0; k < into->aggregate->parts; k++) {
			lua_Integer number;

			lua_rawgeti(L, -1, (lua_Integer)k + 1);
			number = luaL_checkinteger(L, -1);
			luaL_argcheck(L, number >= 1 && number <= self->carry, 1, "into: no value");
			into->carried[k] = (uint8_t)(number - 1);
			lua_pop(L, 1);
		}
		lua_pop(L, 2);
		self->into_count++;
	}
	lua_pop(L, 2);
}

/* pair(options): everything in them must be there, see lua/tracefs/pair.lua */
int core_pair(lua_State *L)
{
	struct pairing_options options = { 0 };
	struct lua_pair *self;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	self = lua_newuserdatauv(L, sizeof(*self), VALUE_PLACES_COUNT); /* options, pair */
	memset(self, 0, sizeof(*self));
	luaL_setmetatable(L, PAIR_CLASS);
	lua_newtable(L);
	lua_setiuservalue(L, 2, VALUE_PLACES);
	lua_getfield(L, 1, "why");
	lua_setiuservalue(L, 2, VALUE_WHY);

	/* one part of the key is the CPU's when both are on one */
	self->parts = (unsigned int)integer_option(L, "parts", 1, KEYMAP_MAX_PARTS - 1);
	self->carry = (unsigned int)integer_option(L, "carry", 0, PAIRING_MAX_CARRY);
	self->report = (unsigned int)integer_option(L, "report", 0, self->carry);
	self->stages = (unsigned int)integer_option(L, "stages", 0, PAIRING_MAX_STAGES);
	self->on_match = function_option(L, 2, "on_match");
	self->on_expired = function_option(L, 2, "on_expired");
	self->on_dropped = function_option(L, 2, "on_dropped");
	self->on_unmatched = function_option(L, 2, "on_unmatched");
	self->match_takes_record = takes(L, "on_match", 4);
	self->match_takes_stages = takes(L, "on_match", 5);
	self->dropped_takes_record = takes(L, "on_dropped", 4);
	lua_getfield(L, 1, "names");
	luaL_checktype(L, -1, LUA_TTABLE);
	self->names = pair_keep(L, 2);
	read_into(L, self, 2);

	options.parts = self->parts;
	options.carry = self->carry;
	options.stages = self->stages;
	options.max = (uint32_t)integer_option(L, "max", 1, 100000000);
	options.timeout = (uint64_t)integer_option(L, "timeout", 0, INT64_MAX);
	options.same_cpu = boolean_option(L, "same_cpu");
	options.keep_first = boolean_option(L, "keep_first");
	options.wants_dropped = self->on_dropped != 0;
	options.wants_expired = self->on_expired != 0;
	self->pairing = pairing_create(&options);
	if (!self->pairing)
		return luaL_error(L, "not enough memory");
	return 1;
}

/* Compiles what the list on top of the stack names; only numbers and strings can be kept. */
static void compile_list(lua_State *L, const struct event_format *format, unsigned int count,
			 struct getter *getters)
{
	luaL_checktype(L, -1, LUA_TTABLE);
	for (unsigned int i = 0; i < count; i++) {
		const char *name;

		lua_rawgeti(L, -1, (lua_Integer)i + 1);
		name = luaL_checkstring(L, -1);
		compile_getter(L, format, name, &getters[i]);
		if (getters[i].kind == GET_FIELD && getters[i].field->kind != FIELD_INT &&
		    getters[i].field->kind != FIELD_STRING && getters[i].field->kind != FIELD_BYTES)
			luaL_error(L, "%s: '%s' is a list; a pair keeps numbers and strings",
				   format->label, name);
		lua_pop(L, 1);
	}
}

/*
 * side(role, event, options): options.key is a list of fields or a function, options.next_key a
 * list or nil, options.carry the list of the fields to keep, options.stage counts from 0. Returns
 * the number of the side.
 */
int pair_method_side(lua_State *L)
{
	static const char *const roles[] = { "cancel", "stop", "through", "start", NULL };
	struct lua_pair *self = check_pair(L, 1);
	enum role role = (enum role)luaL_checkoption(L, 2, NULL, roles);
	const struct event_format *format = check_event(L, 3);
	struct side side = { .role = role, .format = format };
	struct side *sides;

	luaL_checktype(L, 4, LUA_TTABLE);
	lua_settop(L, 4);
	lua_getfield(L, 4, "stage");
	side.stage = (unsigned int)luaL_optinteger(L, -1, 0);
	luaL_argcheck(L, role != ROLE_PASS || side.stage < self->stages, 4, "no such stage");
	if (lua_getfield(L, 4, "key") == LUA_TFUNCTION)
		side.key_function = pair_keep(L, 1);
	else
		compile_list(L, format, self->parts, side.key);
	if (lua_getfield(L, 4, "next_key") != LUA_TNIL) {
		compile_list(L, format, self->parts, side.next_key);
		side.rekeys = true;
	}
	if (role == ROLE_START) {
		lua_getfield(L, 4, "carry");
		compile_list(L, format, self->carry, side.carry);
	}
	lua_pushvalue(L, 3);
	side.event = pair_keep(L, 1);
	sides = realloc(self->sides, (self->side_count + 1) * sizeof(*sides));
	if (!sides)
		return luaL_error(L, "not enough memory");
	self->sides = sides;
	sides[self->side_count] = side;
	lua_pushinteger(L, self->side_count++);
	return 1;
}
