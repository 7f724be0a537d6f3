/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_PAIR_H
#define LUATRACE_BINDING_PAIR_H

#include <stdbool.h>

#include <lua.h>

#include "../engine/event.h"
#include "../engine/keymap.h"
#include "../engine/merge.h"

#define PAIR_CLASS "tracefs.pair"

struct lua_pair;

/* Who brings events to a pair gives it what it needs only when it has a Lua function to call. */
struct pair_caller {
	void (*push_pair)(lua_State *L, const struct pair_caller *caller);
	void (*push_record)(lua_State *L, const struct pair_caller *caller);
};

/* The pair at @arg, or an argument error. */
struct lua_pair *check_pair(lua_State *L, int arg);

bool pair_has_side(const struct lua_pair *self, lua_Integer side);

/* Pushes the event description of a side of the pair at index @pair. */
void pair_push_event(lua_State *L, int pair, unsigned int side);

/* An event of one side. Leaves the stack as it was; raises what the script's functions raise. */
void pair_deliver(lua_State *L, struct lua_pair *self, unsigned int side, const struct event *event,
		  const struct pair_caller *caller);

/* Has the pair so many open starts that it is worth the while to look ahead? */
bool pair_is_large(const struct lua_pair *self);

/*
 * The hash of an event that is to come, for pair_fetch(). False when the pair is not large, or when
 * the key is not of whole numbers that lie in the record.
 */
bool pair_hash(const struct lua_pair *self, unsigned int side, const struct event *event,
	       uint32_t *hash);
void pair_fetch(const struct lua_pair *self, uint32_t hash, enum keymap_fetch step);

/* A loss at its place in the stream. Calls nothing: what it ends is told by the next call. */
void pair_lose(struct lua_pair *self, const struct loss *loss);

#endif
