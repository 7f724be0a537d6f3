/* SPDX-License-Identifier: MIT */
#include <lauxlib.h>
#include <string.h>

#include "../engine/comm.h"
#include "../engine/value.h"
#include "binding.h"
#include "key.h"
#include "pair_state.h"
#include "value.h"

/* A value that is carried is a number or a string. */
#define NO_STACK "[no stack]"

/* Reads one part of a key; false when the record does not have it. */
static bool read_part(const struct event_format *format, const struct getter *getter,
		      const struct event *event, struct key_part *part)
{
	const struct strbuf *stack;
	struct value value;
	const char *text;

	part->bytes = NULL;
	if (getter_read_integer(getter, event, &part->number))
		return true;
	if (getter->kind == GET_COMMON) {
		switch (getter->common) {
		case COMMON_COMM:
			text = comm_lookup(catalog_comms(format->catalog),
					   catalog_record_pid(format->catalog, event->data,
							      event->size));
			break;
		case COMMON_EVENT:
			text = format->label;
			break;
		case COMMON_SCALE:
			part->number = event->scale ? event->scale : 1;
			return true;
		case COMMON_STACK:
		case COMMON_USER_STACK:
			if (!wants_common_stack(getter->common, event))
				return false;
			stack = common_stack(format, getter->common, event);
			part->bytes = stack ? stack->text : NO_STACK;
			part->length = (uint32_t)(stack ? stack->length : strlen(NO_STACK));
			return true;
		default:
			part->number = event->late;
			return true;
		}
		part->bytes = text;
		part->length = (uint32_t)strlen(text);
		return true;
	}
	if (getter->kind != GET_FIELD ||
	    value_read(format, getter->field, event->data, event->size, &value) < 0)
		return false;
	if (value.kind == FIELD_INT) {
		part->number = value.number;
		return true;
	}
	part->bytes = value.bytes;
	part->length = value.length;
	return true;
}

static bool read_key(const struct lua_pair *self, const struct event_format *format,
		     const struct getter *getters, const struct event *event, struct key *key)
{
	key->count = self->parts;
	for (unsigned int i = 0; i < self->parts; i++) {
		if (!read_part(format, &getters[i], event, &key->parts[i]))
			return false;
	}
	return true;
}

/*
 * Asks the script's function for the key, which borrows what is left on the stack. False when it
 * says that the record is none of the pair's.
 */
static bool ask_key(lua_State *L, const struct lua_pair *self, int function,
		    const struct pair_caller *caller, struct key *key)
{
	int top = lua_gettop(L);

	luaL_checkstack(L, KEYMAP_MAX_PARTS + LUA_MINSTACK, NULL);
	caller->push_pair(L, caller);
	pair_push_place(L, -1, function);
	lua_replace(L, top + 1);
	caller->push_record(L, caller);
	lua_call(L, 1, (int)self->parts);
	for (unsigned int i = 0; i < self->parts; i++) {
		int type = lua_type(L, top + 1 + (int)i);

		if (type == LUA_TNIL)
			return false;
		if (type != LUA_TSTRING && !lua_isinteger(L, top + 1 + (int)i))
			luaL_error(L,
				   "the function for the key of a pair returned a %s: it returns "
				   "strings and whole numbers, or nil",
				   luaL_typename(L, top + 1 + (int)i));
	}
	check_key(L, top + 1, self->parts, key);
	return true;
}

static void read_carried(const struct lua_pair *self, const struct side *side,
			 const struct event *event, struct carried *values)
{
	for (unsigned int i = 0; i < self->carry; i++) {
		struct key_part part;

		if (!read_part(side->format, &side->carry[i], event, &part)) {
			values[i].kind = CARRIED_NONE;
		} else if (part.bytes) {
			values[i].kind = CARRIED_BYTES;
			values[i].bytes = part.bytes;
			values[i].length = part.length;
		} else {
			values[i].kind = CARRIED_NUMBER;
			values[i].number = part.number;
		}
	}
}

/* Adds the time of a match to the aggregates; false when memory is short. */
static bool add_into(const struct lua_pair *self, const struct pairing_ended *match)
{
	bool ok = true;

	for (unsigned int i = 0; i < self->into_count; i++) {
		const struct into *into = &self->into[i];
		struct key key = { .count = into->aggregate->parts };

		for (unsigned int k = 0; k < key.count; k++) {
			struct key_part *part = &key.parts[k];
			struct carried value;

			pairing_carried(self->pairing, match->number, into->carried[k], &value);
			part->bytes = NULL;
			part->number = value.kind == CARRIED_NONE ? 0 : value.number;
			if (value.kind == CARRIED_BYTES) {
				part->bytes = value.bytes ? value.bytes : "";
				part->length = value.length;
			}
		}
		ok &= aggregate_add(into->aggregate, &key,
				    (int64_t)(match->stop_ts - match->start_ts));
	}
	return ok;
}

void pair_push_values(lua_State *L, const struct lua_pair *self, int pair, uint32_t number)
{
	if (!self->report) {
		lua_pushnil(L);
		return;
	}
	lua_createtable(L, 0, (int)self->report); /* values */
	pair_push_place(L, pair, self->names);	  /* values, names */
	for (unsigned int i = 0; i < self->report; i++) {
		struct carried value;

		pairing_carried(self->pairing, number, i, &value);
		if (value.kind == CARRIED_NONE)
			continue;
		lua_rawgeti(L, -1, (lua_Integer)i + 1); /* values, names, name */
		if (value.kind == CARRIED_BYTES)
			lua_pushlstring(L, value.bytes, value.length);
		else
			lua_pushinteger(L, value.number);
		lua_rawset(L, -4);
	}
	lua_pop(L, 1);
}

void pair_push_key(lua_State *L, const struct lua_pair *self, uint32_t number)
{
	struct key key;

	pairing_key(self->pairing, number, &key);
	push_key(L, &key);
}

/* Pushes how long each stage has taken, from the one before it. */
static void push_stages(lua_State *L, const struct lua_pair *self,
			const struct pairing_ended *match)
{
	uint64_t before = match->start_ts;

	lua_createtable(L, (int)self->stages + 1, 0);
	for (unsigned int i = 0; i < self->stages; i++) {
		uint64_t ts = pairing_stage_ts(self->pairing, match->number, i);

		lua_pushinteger(L, (lua_Integer)(ts - before));
		lua_rawseti(L, -2, (lua_Integer)i + 1);
		before = ts;
	}
	lua_pushinteger(L, (lua_Integer)(match->stop_ts - before));
	lua_rawseti(L, -2, (lua_Integer)self->stages + 1);
}

/*
 * on_match(delta, key, values, record, stages). The start is taken already: what is made here may
 * run a finalizer that brings the pair events. It is given back before the function is called,
 * which may raise.
 */
static void call_match(lua_State *L, struct lua_pair *self, const struct pairing_ended *match,
		       const struct pair_caller *caller)
{
	int pair;

	caller->push_pair(L, caller);
	pair = lua_gettop(L);
	pair_push_place(L, pair, self->on_match);
	lua_pushinteger(L, (lua_Integer)(match->stop_ts - match->start_ts));
	pair_push_key(L, self, match->number);
	pair_push_values(L, self, pair, match->number);
	if (self->match_takes_record)
		caller->push_record(L, caller);
	else
		lua_pushnil(L);
	if (self->match_takes_stages)
		push_stages(L, self, match);
	else
		lua_pushnil(L);
	pairing_release(self->pairing, match->number);
	lua_call(L, 5, 0);
	lua_settop(L, pair - 1);
}

const char *const pair_end_names[PAIRING_ENDS] = {
	[PAIRING_MATCHED] = "matched",	   [PAIRING_REPLACED] = "replaced",
	[PAIRING_CANCELLED] = "cancelled", [PAIRING_INCOMPLETE] = "incomplete",
	[PAIRING_EXPIRED] = "expired",	   [PAIRING_EVICTED] = "evicted",
	[PAIRING_VOIDED] = "voided",
};

void pair_tell_ends(lua_State *L, struct lua_pair *self, const struct pair_caller *caller,
		    bool has_record)
{
	struct pairing_ended ended;

	while (self->pairing && pairing_take_ended(self->pairing, &ended)) {
		bool expired = ended.how == PAIRING_EXPIRED;
		int pair;

		caller->push_pair(L, caller);
		pair = lua_gettop(L);
		pair_push_place(L, pair, expired ? self->on_expired : self->on_dropped);
		if (!expired)
			lua_pushstring(L, pair_end_names[ended.how]);
		pair_push_key(L, self, ended.number);
		pair_push_values(L, self, pair, ended.number);
		if (!expired && has_record && self->dropped_takes_record)
			caller->push_record(L, caller);
		else
			lua_pushnil(L);
		pairing_release(self->pairing, ended.number);
		lua_call(L, expired ? 3 : 4, 0);
		lua_settop(L, pair - 1);
	}
}

static void push_first(lua_State *L, const struct pair_caller *caller)
{
	(void)caller;
	lua_pushvalue(L, 1);
}

static void push_second(lua_State *L, const struct pair_caller *caller)
{
	(void)caller;
	lua_pushvalue(L, 2);
}

const struct pair_caller pair_argument_caller = { push_first, push_second };

/* tell(pair) */
static int tell(lua_State *L)
{
	pair_tell_ends(L, check_pair(L, 1), &pair_argument_caller, false);
	return 0;
}

/*
 * Tells what has ended before an event does anything. An error has to wait until the event has
 * counted, as a stop that is passed over makes a false match of the next one: it is left on the
 * stack then, the first one if there are several. True when there is one.
 */
static bool tell_before(lua_State *L, const struct lua_pair *self, const struct pair_caller *caller)
{
	bool failed = false;

	while (self->pairing && pairing_has_ended(self->pairing)) {
		int status;

		lua_pushcfunction(L, tell);
		caller->push_pair(L, caller);
		status = lua_pcall(L, 1, 0, 0);
		if (status == LUA_OK)
			continue;
		if (status != LUA_ERRRUN)
			lua_error(L);
		if (failed)
			lua_pop(L, 1);
		failed = true;
	}
	return failed;
}

static void call_unmatched(lua_State *L, struct lua_pair *self, const struct key *key,
			   const struct pair_caller *caller)
{
	int pair;

	caller->push_pair(L, caller);
	pair = lua_gettop(L);
	pair_push_place(L, pair, self->on_unmatched);
	push_key(L, key);
	caller->push_record(L, caller);
	lua_call(L, 2, 0);
	lua_settop(L, pair - 1);
}

static void stop_of(lua_State *L, struct lua_pair *self, struct key *key, const struct event *event,
		    const struct pair_caller *caller)
{
	struct pairing_ended match;
	bool added;

	if (!pairing_stop(self->pairing, key, event)) {
		key->count = self->parts;
		if (self->on_unmatched)
			call_unmatched(L, self, key, caller);
		return;
	}
	pairing_take_ended(self->pairing, &match);
	added = add_into(self, &match);
	if (self->on_match && added)
		call_match(L, self, &match, caller);
	else
		pairing_release(self->pairing, match.number);
	if (!added)
		luaL_error(L, "not enough memory");
}

static bool start_of(struct lua_pair *self, const struct side *side, unsigned int number,
		     struct key *key, const struct event *event)
{
	struct carried values[PAIRING_MAX_CARRY];

	read_carried(self, side, event, values);
	return pairing_start(self->pairing, key, event, number, values);
}

static bool pass_of(struct lua_pair *self, const struct side *side, struct key *key,
		    const struct event *event)
{
	struct key next;

	if (!side->rekeys)
		return pairing_pass(self->pairing, key, event, side->stage, NULL);
	return !read_key(self, side->format, side->next_key, event, &next) ||
	       pairing_pass(self->pairing, key, event, side->stage, &next);
}

/* The event itself, under its key. False when memory is short. */
static bool count_event(lua_State *L, struct lua_pair *self, unsigned int number, struct key *key,
			const struct event *event, const struct pair_caller *caller)
{
	const struct side *side = &self->sides[number];

	switch (side->role) {
	case ROLE_CANCEL:
		pairing_cancel(self->pairing, key, event);
		break;
	case ROLE_STOP:
		stop_of(L, self, key, event, caller);
		break;
	case ROLE_PASS:
		return pass_of(self, side, key, event);
	case ROLE_START:
		return start_of(self, side, number, key, event);
	}
	return true;
}

void pair_deliver(lua_State *L, struct lua_pair *self, unsigned int number,
		  const struct event *event, const struct pair_caller *caller)
{
	int top = lua_gettop(L);
	bool has_key = true;
	bool failed;
	bool ok = true;
	struct key key;
	int function;

	/* collected: somebody's finalizer steps a stream that is garbage, too */
	if (!self->pairing)
		return;
	pairing_see(self->pairing, event);
	function = self->sides[number].key_function;
	if (function)
		has_key = ask_key(L, self, function, caller, &key);
	failed = tell_before(L, self, caller);
	/* behind the script's functions: they may have added sides, and it borrows */
	if (!function)
		has_key = read_key(self, self->sides[number].format, self->sides[number].key, event,
				   &key);
	if (has_key)
		ok = count_event(L, self, number, &key, event, caller);
	pair_tell_ends(L, self, caller, true);
	if (!ok)
		luaL_error(L, "not enough memory");
	if (failed)
		lua_error(L);
	lua_settop(L, top);
}

bool pair_is_large(const struct lua_pair *self)
{
	return self->pairing && pairing_is_large(self->pairing);
}

bool pair_hash(const struct lua_pair *self, unsigned int side, const struct event *event,
	       uint32_t *hash)
{
	const struct side *of = &self->sides[side];
	struct key key = { .count = self->parts };

	if (!pair_is_large(self) || of->key_function)
		return false;
	for (unsigned int i = 0; i < self->parts; i++) {
		if (!getter_read_integer(&of->key[i], event, &key.parts[i].number))
			return false;
	}
	*hash = pairing_hash(self->pairing, &key, event->cpu);
	return true;
}

void pair_fetch(const struct lua_pair *self, uint32_t hash, enum keymap_fetch step)
{
	if (self->pairing)
		pairing_fetch(self->pairing, hash, step);
}

void pair_lose(struct lua_pair *self, const struct loss *loss)
{
	if (self->pairing)
		pairing_lose(self->pairing, loss);
}
