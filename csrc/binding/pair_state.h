/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_PAIR_STATE_H
#define LUATRACE_BINDING_PAIR_STATE_H

#include "../engine/pairing.h"
#include "aggregate.h"
#include "pair.h"
#include "route.h"

/* What pair.c, pair_make.c and pair_deliver.c share of a pair. */

#define MAX_INTO 8

/* What an event does; also the order in which one event does several. */
enum role {
	ROLE_CANCEL,
	ROLE_STOP,
	ROLE_PASS,
	ROLE_START,
};

struct side {
	enum role role;
	unsigned int stage;
	const struct event_format *format;
	int event;	  /* place of its description */
	int key_function; /* place, or 0 */
	bool rekeys;
	struct getter key[KEYMAP_MAX_PARTS];
	struct getter next_key[KEYMAP_MAX_PARTS];
	struct getter carry[PAIRING_MAX_CARRY];
};

/* Aggregates that get the time of each match, by values that the start has kept. */
struct into {
	struct aggregate *aggregate;
	uint8_t carried[KEYMAP_MAX_PARTS];
};

struct lua_pair {
	struct pairing *pairing; /* NULL once collected */
	unsigned int parts;
	unsigned int carry;
	unsigned int report; /* so many of the values are for the script */
	unsigned int stages;
	/* places of the script's functions in the list, or 0 */
	int on_match;
	int on_expired;
	int on_dropped;
	int on_unmatched;
	bool match_takes_record;
	bool match_takes_stages;
	bool dropped_takes_record;
	int names; /* place of the list of the values' names */
	unsigned int into_count;
	struct into into[MAX_INTO];
	unsigned int side_count;
	struct side *sides;
};

/* User values of a pair: what its places mean. */
enum {
	VALUE_PLACES = 1,
	VALUE_WHY, /* why it is here and not in the kernel, if that was a choice */
	VALUE_PLACES_COUNT = VALUE_WHY,
};

/* Pushes what has this place. @pair is the index of the pair. */
void pair_push_place(lua_State *L, int pair, int place);

/* Keeps the value on top of the stack; returns its place. */
int pair_keep(lua_State *L, int pair);

/* pair_make.c: pair(options) and pair:side(role, event, options) */
int core_pair(lua_State *L);
int pair_method_side(lua_State *L);

/* pair_deliver.c: the key of a start, and the table of what it has kept for the script, or nil. */
void pair_push_key(lua_State *L, const struct lua_pair *self, uint32_t number);
void pair_push_values(lua_State *L, const struct lua_pair *self, int pair, uint32_t number);

/* pair_deliver.c: by how a start has ended. */
extern const char *const pair_end_names[PAIRING_ENDS];

/* pair_deliver.c: the caller of functions that have the pair and its record as arguments. */
extern const struct pair_caller pair_argument_caller;

/*
 * pair_deliver.c: tells the script of the starts that have ended otherwise than by a match; the
 * caller's record is what ended them if it @has_record.
 */
void pair_tell_ends(lua_State *L, struct lua_pair *self, const struct pair_caller *caller,
		    bool has_record);

#endif
