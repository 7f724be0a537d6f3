/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "binding.h"
#include "pair_state.h"
#include "record.h"

struct lua_pair *check_pair(lua_State *L, int arg)
{
	struct lua_pair *self = luaL_checkudata(L, arg, PAIR_CLASS);

	luaL_argcheck(L, self->pairing != NULL, arg, "the pair is closed");
	return self;
}

bool pair_has_side(const struct lua_pair *self, lua_Integer side)
{
	return side >= 0 && side < (lua_Integer)self->side_count;
}

void pair_push_place(lua_State *L, int pair, int place)
{
	lua_getiuservalue(L, pair, VALUE_PLACES);
	lua_rawgeti(L, -1, place);
	lua_remove(L, -2);
}

void pair_push_event(lua_State *L, int pair, unsigned int side)
{
	pair_push_place(L, pair, check_pair(L, pair)->sides[side].event);
}

int pair_keep(lua_State *L, int pair)
{
	int place;

	lua_getiuservalue(L, pair, VALUE_PLACES); /* value, places */
	place = (int)lua_rawlen(L, -1) + 1;
	lua_insert(L, -2); /* places, value */
	lua_rawseti(L, -2, place);
	lua_pop(L, 1);
	return place;
}

/* ---- what the script asks of one ---- */

/* feed(record): as if the stream had brought it; true when it is an event of the pair */
static int pair_method_feed(lua_State *L)
{
	struct lua_pair *self = check_pair(L, 1);
	const struct event_format *format;
	const struct event *event = check_record_event(L, 2, &format);
	bool is_ours = false;

	lua_settop(L, 2);
	for (unsigned int i = 0; i < self->side_count; i++) {
		if (self->sides[i].format != format)
			continue;
		pair_deliver(L, self, i, event, &pair_argument_caller);
		is_ours = true;
	}
	lua_pushboolean(L, is_ours);
	return 1;
}

static uint64_t optional_field(lua_State *L, const char *name, uint64_t otherwise)
{
	uint64_t value;

	lua_getfield(L, 2, name);
	value = (uint64_t)luaL_optinteger(L, -1, (lua_Integer)otherwise);
	lua_pop(L, 1);
	return value;
}

/* lost(loss): as on_lost gets it */
static int pair_method_lost(lua_State *L)
{
	static const char *const names[] = { "overrun", "dropped", "commit_overrun", "damaged",
					     NULL };
	static const enum loss_why whys[] = { LOSS_OVERRUN, LOSS_DROPPED, LOSS_COMMIT_OVERRUN,
					      LOSS_DAMAGED };
	struct lua_pair *self = check_pair(L, 1);
	struct loss loss = { 0 };

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	loss.cpu = (uint32_t)optional_field(L, "cpu", 0);
	loss.count = optional_field(L, "count", PAGE_LOST_UNKNOWN);
	loss.after_ts = optional_field(L, "after_ts", 0);
	loss.before_ts = optional_field(L, "before_ts", 0);
	lua_getfield(L, 2, "why");
	loss.why = whys[luaL_checkoption(L, -1, "overrun", names)];
	loss.is_placed = loss.why == LOSS_OVERRUN || loss.why == LOSS_DAMAGED;
	pair_lose(self, &loss);
	pair_tell_ends(L, self, &pair_argument_caller, false);
	return 0;
}

/* expire([now]): starts that are older than the timeout; also tells of what a loss has ended */
static int pair_method_expire(lua_State *L)
{
	struct lua_pair *self = check_pair(L, 1);

	if (!lua_isnoneornil(L, 2))
		pairing_expire(self->pairing, (uint64_t)luaL_checkinteger(L, 2));
	pair_tell_ends(L, self, &pair_argument_caller, false);
	return 0;
}

/* counts() */
static int pair_method_counts(lua_State *L)
{
	struct pairing_counts counts;

	pairing_counts(check_pair(L, 1)->pairing, &counts);
	lua_createtable(L, 0, 13);
	set_integer(L, "starts", counts.starts);
	for (int i = 0; i < PAIRING_ENDS; i++)
		set_integer(L, pair_end_names[i], counts.ends[i]);
	set_integer(L, "repeated", counts.repeated);
	set_integer(L, "unmatched", counts.unmatched);
	set_integer(L, "late", counts.late);
	set_integer(L, "doubtful", counts.doubtful);
	set_integer(L, "open", counts.open);
	return 1;
}

/* open(): a list of { key =, values =, since =, cpu = }, the oldest first */
static int list_open(lua_State *L)
{
	struct lua_pair *self = check_pair(L, 1);
	struct pairing_ended start;
	lua_Integer at = 0;

	lua_settop(L, 1);
	lua_newtable(L); /* list */
	for (uint32_t i = pairing_first_open(self->pairing); i != KEYMAP_NONE;
	     i = pairing_next_open(self->pairing, i)) {
		pairing_open(self->pairing, i, &start);
		lua_createtable(L, 0, 4);
		pair_push_key(L, self, i);
		lua_setfield(L, -2, "key");
		pair_push_values(L, self, 1, i);
		lua_setfield(L, -2, "values");
		set_integer(L, "since", start.start_ts);
		set_integer(L, "cpu", start.cpu);
		lua_rawseti(L, -2, ++at);
	}
	return 1;
}

static int pair_method_open(lua_State *L)
{
	return without_finalizers(L, list_open);
}

/* where(): "lua", and why, when there was a choice */
static int pair_method_where(lua_State *L)
{
	check_pair(L, 1);
	lua_pushliteral(L, "lua");
	lua_getiuservalue(L, 1, VALUE_WHY);
	return 2;
}

static int pair__gc(lua_State *L)
{
	struct lua_pair *self = luaL_checkudata(L, 1, PAIR_CLASS);

	pairing_free(self->pairing);
	self->pairing = NULL;
	free(self->sides);
	self->sides = NULL;
	self->side_count = 0;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "counts", pair_method_counts }, { "expire", pair_method_expire },
	{ "feed", pair_method_feed },	  { "lost", pair_method_lost },
	{ "open", pair_method_open },	  { "side", pair_method_side },
	{ "where", pair_method_where },	  { NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", pair__gc },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "pair", core_pair },
	{ NULL, NULL },
};

void open_pair(lua_State *L)
{
	new_class(L, PAIR_CLASS, methods, meta);
	luaL_setfuncs(L, functions, 0);
}
