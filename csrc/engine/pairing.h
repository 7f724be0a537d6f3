/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PAIRING_H
#define LUATRACE_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "keymap.h"
#include "merge.h"

/*
 * Pairs the starts and the stops of something by key, with stages in between if need be, in the
 * order of one stream and with its losses: a start whose stop may have been lost is given up
 * ("voided"), so that the next stop of a key that is used again does not make a false latency.
 */
struct pairing;

#define PAIRING_MAX_CARRY 16
#define PAIRING_MAX_STAGES 8

/* How a start ends. */
enum pairing_end {
	PAIRING_MATCHED,
	PAIRING_REPLACED, /* by another start of its key */
	PAIRING_CANCELLED,
	PAIRING_INCOMPLETE, /* its stop came before all stages had */
	PAIRING_EXPIRED,
	PAIRING_EVICTED, /* the oldest, for lack of room */
	PAIRING_VOIDED,	 /* by a loss, or by an event that came late */
	PAIRING_ENDS,
};

struct pairing_options {
	unsigned int parts;  /* of the key */
	unsigned int carry;  /* how many values a start keeps */
	unsigned int stages; /* between start and stop */
	uint32_t max;	     /* starts that are open at once */
	uint64_t timeout;    /* 0: none */
	bool same_cpu;
	bool keep_first;    /* a start of a key that is open changes nothing */
	bool wants_dropped; /* hand out ends other than matched and expired too */
	bool wants_expired;
};

struct pairing_counts {
	uint64_t starts;
	uint64_t ends[PAIRING_ENDS];
	uint64_t repeated;  /* starts that changed nothing */
	uint64_t unmatched; /* stops without a start */
	uint64_t late;	    /* events of it that came out of order */
	uint64_t doubtful;  /* of the matched: at a time of which a loss was told too late */
	uint64_t open;
};

/* One of the values that a start keeps. */
struct carried {
	uint8_t kind; /* of enum carried_kind */
	union {
		int64_t number;
		struct {
			const void *bytes; /* borrowed */
			uint32_t length;
		};
	};
};

enum carried_kind {
	CARRIED_NONE, /* the record had no such value */
	CARRIED_NUMBER,
	CARRIED_BYTES,
};

/* A start that has ended, as pairing_take_ended() shows it. */
struct pairing_ended {
	enum pairing_end how;
	unsigned int source; /* what was said of the start */
	uint64_t start_ts;
	uint64_t stop_ts; /* of a match */
	uint32_t cpu;	  /* of the start */
	uint32_t number;
};

struct pairing *pairing_create(const struct pairing_options *options);
void pairing_free(struct pairing *pairing);

/* To be called for each event before what it is: it counts what is late, and lets starts expire. */
void pairing_see(struct pairing *pairing, const struct event *event);

/*
 * The events. False when memory is short. @key has the parts of the options without the CPU; it
 * is hashed here. What ends is taken with pairing_take_ended().
 */
bool pairing_start(struct pairing *pairing, struct key *key, const struct event *event,
		   unsigned int source, const struct carried *values);

/* @next: the key under which the stages behind it come, or NULL. @stage counts from 0. */
bool pairing_pass(struct pairing *pairing, struct key *key, const struct event *event,
		  unsigned int stage, const struct key *next);
/* True when it was matched. */
bool pairing_stop(struct pairing *pairing, struct key *key, const struct event *event);
void pairing_cancel(struct pairing *pairing, struct key *key, const struct event *event);
void pairing_lose(struct pairing *pairing, const struct loss *loss);
void pairing_expire(struct pairing *pairing, uint64_t now);

/*
 * With very many open starts: what an event will touch can be fetched from memory ahead, when its
 * key is known some events before. @key as for the events; what is returned is for the three steps
 * of keymap_fetch().
 */
bool pairing_is_large(const struct pairing *pairing);
uint32_t pairing_hash(const struct pairing *pairing, struct key *key, uint32_t cpu);
void pairing_fetch(const struct pairing *pairing, uint32_t hash, enum keymap_fetch step);

/*
 * Takes the first start that has ended, in the order of their ends: matches, and others when they
 * are wanted. False when there is none. It is the caller's until it is released.
 */
bool pairing_take_ended(struct pairing *pairing, struct pairing_ended *ended);
bool pairing_has_ended(const struct pairing *pairing);
void pairing_release(struct pairing *pairing, uint32_t number);

/* Of an open or an ended start, by its number; what is borrowed lives until it is released. */
void pairing_key(const struct pairing *pairing, uint32_t number, struct key *key);
void pairing_carried(const struct pairing *pairing, uint32_t number, unsigned int index,
		     struct carried *value);
uint64_t pairing_stage_ts(const struct pairing *pairing, uint32_t number, unsigned int stage);

/* The open starts, oldest first; KEYMAP_NONE behind the last. */
uint32_t pairing_first_open(const struct pairing *pairing);
uint32_t pairing_next_open(const struct pairing *pairing, uint32_t number);
void pairing_open(const struct pairing *pairing, uint32_t number, struct pairing_ended *start);

void pairing_counts(const struct pairing *pairing, struct pairing_counts *counts);

#endif
