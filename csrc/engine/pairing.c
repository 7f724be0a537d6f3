/* SPDX-License-Identifier: MIT */
#include "pairing.h"

#include <stdlib.h>
#include <string.h>

/* How finely it is kept when matches were made, and for how far back. */
#define MARK_NS (UINT64_C(50) * 1000 * 1000)
#define MARKS 128

struct mark {
	uint64_t ts;	  /* of the first match behind it */
	uint64_t matched; /* before that */
};

struct pairing {
	struct pairing_options options;
	struct keymap *map;
	/*
	 * With keep_first, once something was lost: the keys whose end has been seen since. Of any
	 * other the next start may be the repetition of one that was lost.
	 */
	struct keymap *ends;
	bool has_lost;
	struct pairing_counts counts;
	uint64_t newest_ts;  /* of its events that came in order */
	uint64_t gap_until;  /* the stops of starts up to then may be lost */
	uint64_t matched_ts; /* of the newest match */
	uint64_t doubted;    /* of the matched, that a loss has been counted for */
	uint32_t first_ended;
	uint32_t last_ended;
	unsigned int marks_made;
	struct mark marks[MARKS];
};

/* What is kept of a start behind its key; then come the times of the stages and the values. */
struct open_start {
	uint64_t ts;
	uint64_t stop_ts;
	uint8_t *text; /* the bytes of its values */
	uint32_t cpu;
	uint16_t source;
	uint8_t stage; /* how many have been passed */
	uint8_t how;   /* enum pairing_end, once it has ended */
	bool unsure;   /* it may not be the first under its key */
};

struct value_word {
	int64_t word; /* of bytes: offset << 32 | length */
	uint64_t kind;
};

static struct open_start *open_start(const struct pairing *pairing, uint32_t number)
{
	return keymap_data(pairing->map, number);
}

static uint64_t *stage_times(const struct open_start *start)
{
	return (uint64_t *)(start + 1);
}

/* When it has come to where it is. */
static uint64_t reached_ts(const struct open_start *start)
{
	return start->stage ? stage_times(start)[start->stage - 1] : start->ts;
}

static struct value_word *values_of(const struct pairing *pairing, const struct open_start *start)
{
	return (struct value_word *)(stage_times(start) + pairing->options.stages);
}

struct pairing *pairing_create(const struct pairing_options *options)
{
	struct pairing *pairing = calloc(1, sizeof(*pairing));
	size_t extra = sizeof(struct open_start) + options->stages * sizeof(uint64_t) +
		       options->carry * sizeof(struct value_word);

	if (!pairing)
		return NULL;
	pairing->options = *options;
	pairing->first_ended = pairing->last_ended = KEYMAP_NONE;
	pairing->map = keymap_create(options->parts + options->same_cpu, extra);
	if (!pairing->map) {
		free(pairing);
		return NULL;
	}
	return pairing;
}

void pairing_free(struct pairing *pairing)
{
	if (!pairing)
		return;
	/* those that were taken and not released, too */
	for (uint32_t i = 0; i < pairing->map->made; i++)
		free(open_start(pairing, i)->text);
	keymap_free(pairing->map);
	keymap_free(pairing->ends);
	free(pairing);
}

static void complete_key(const struct pairing *pairing, struct key *key, uint32_t cpu)
{
	if (pairing->options.same_cpu)
		key->parts[pairing->options.parts] = (struct key_part){ .number = cpu };
	keymap_hash(pairing->map, key);
}

static void forget(struct pairing *pairing, uint32_t number)
{
	struct open_start *start = open_start(pairing, number);

	free(start->text);
	start->text = NULL;
	keymap_release(pairing->map, number);
}

static bool is_wanted(const struct pairing *pairing, enum pairing_end how)
{
	switch (how) {
	case PAIRING_MATCHED:
		return true;
	case PAIRING_EXPIRED:
		return pairing->options.wants_expired;
	default:
		return pairing->options.wants_dropped;
	}
}

static void end(struct pairing *pairing, uint32_t number, enum pairing_end how)
{
	pairing->counts.ends[how]++;
	keymap_unlink(pairing->map, number);
	if (!is_wanted(pairing, how)) {
		forget(pairing, number);
		return;
	}
	open_start(pairing, number)->how = (uint8_t)how;
	keymap_entry(pairing->map, number)->next = KEYMAP_NONE;
	if (pairing->last_ended == KEYMAP_NONE)
		pairing->first_ended = number;
	else
		keymap_entry(pairing->map, pairing->last_ended)->next = number;
	pairing->last_ended = number;
}

void pairing_expire(struct pairing *pairing, uint64_t now)
{
	uint32_t number;

	while (pairing->options.timeout && (number = pairing->map->first) != KEYMAP_NONE) {
		uint64_t ts = open_start(pairing, number)->ts;

		if (now < ts || now - ts <= pairing->options.timeout)
			break;
		end(pairing, number, PAIRING_EXPIRED);
	}
}

/* The order of one CPU is always right, so with same_cpu no event is late. */
static bool comes_late(const struct pairing *pairing, const struct event *event)
{
	return event->late && !pairing->options.same_cpu;
}

void pairing_see(struct pairing *pairing, const struct event *event)
{
	if (comes_late(pairing, event)) {
		pairing->counts.late++;
		return;
	}
	if (event->ts > pairing->newest_ts)
		pairing->newest_ts = event->ts;
	pairing_expire(pairing, pairing->newest_ts);
}

static bool keep_values(const struct pairing *pairing, struct open_start *start,
			const struct carried *values)
{
	struct value_word *words = values_of(pairing, start);
	uint64_t length = 0;

	for (unsigned int i = 0; i < pairing->options.carry; i++) {
		if (values[i].kind == CARRIED_BYTES)
			length += values[i].length;
	}
	if (length) {
		start->text = length <= UINT32_MAX ? malloc(length) : NULL;
		if (!start->text)
			return false;
	}
	length = 0;
	for (unsigned int i = 0; i < pairing->options.carry; i++) {
		words[i].kind = values[i].kind;
		if (values[i].kind == CARRIED_NUMBER) {
			words[i].word = values[i].number;
		} else if (values[i].kind == CARRIED_BYTES) {
			words[i].word = (int64_t)(length << 32 | values[i].length);
			if (values[i].length)
				memcpy(start->text + length, values[i].bytes, values[i].length);
			length += values[i].length;
		}
	}
	return true;
}

/* Without memory for it no start is sure, which is never wrong. */
static void forget_ends(struct pairing *pairing)
{
	if (!pairing->options.keep_first)
		return;
	pairing->has_lost = true;
	keymap_free(pairing->ends);
	pairing->ends = keymap_create(pairing->map->parts, 0);
	if (pairing->ends)
		pairing->ends->seed = pairing->map->seed;
}

/* Events that are not in order: nobody knows what came between the start and now. */
static void void_unordered(struct pairing *pairing, uint32_t number)
{
	end(pairing, number, PAIRING_VOIDED);
	forget_ends(pairing);
}

static void drop_end(struct pairing *pairing, uint32_t number)
{
	keymap_unlink(pairing->ends, number);
	keymap_release(pairing->ends, number);
}

/* Was the end of the key seen since the last loss? It is not known any more then. */
static bool take_end(struct pairing *pairing, const struct key *key)
{
	uint32_t number = pairing->ends ? keymap_find(pairing->ends, key) : KEYMAP_NONE;

	if (number == KEYMAP_NONE)
		return false;
	drop_end(pairing, number);
	return true;
}

static void note_end(struct pairing *pairing, const struct key *key, const struct event *event)
{
	struct keymap *ends = pairing->ends;

	/* a start that was lost may come behind it */
	if (!ends || comes_late(pairing, event) || event->ts <= pairing->gap_until)
		return;
	if (keymap_find(ends, key) != KEYMAP_NONE)
		return;
	if (ends->count >= pairing->options.max)
		drop_end(pairing, ends->first);
	keymap_add(ends, key);
}

/* KEYMAP_NONE when memory is short. */
static uint32_t open_new(struct pairing *pairing, const struct key *key, const struct event *event,
			 unsigned int source, const struct carried *values)
{
	uint32_t number = keymap_add(pairing->map, key);
	struct open_start *start;

	if (number == KEYMAP_NONE)
		return KEYMAP_NONE;
	start = open_start(pairing, number);
	start->ts = event->ts;
	start->cpu = event->cpu;
	start->source = (uint16_t)source;
	if (pairing->options.carry && !keep_values(pairing, start, values)) {
		keymap_unlink(pairing->map, number);
		forget(pairing, number);
		return KEYMAP_NONE;
	}
	return number;
}

/* A start that ends as it begins. The one that is open under its key, if any, stays. */
static bool refuse(struct pairing *pairing, const struct key *key, const struct event *event,
		   unsigned int source, const struct carried *values, enum pairing_end how)
{
	uint32_t number;

	if (!is_wanted(pairing, how)) {
		pairing->counts.ends[how]++;
		return true;
	}
	number = open_new(pairing, key, event, source, values);
	if (number == KEYMAP_NONE)
		return false;
	end(pairing, number, how);
	return true;
}

bool pairing_start(struct pairing *pairing, struct key *key, const struct event *event,
		   unsigned int source, const struct carried *values)
{
	bool late = comes_late(pairing, event);
	uint32_t other;
	uint32_t number;
	bool unsure;

	pairing->counts.starts++;
	complete_key(pairing, key, event->cpu);
	other = keymap_find(pairing->map, key);
	if (other != KEYMAP_NONE && pairing->options.keep_first && !late) {
		pairing->counts.repeated++;
		return true;
	}
	if (other != KEYMAP_NONE) {
		/* when a late one was the first of two, nobody knows since when the other counts */
		bool was_first = late && event->ts < open_start(pairing, other)->ts;

		if (pairing->options.keep_first) {
			void_unordered(pairing, other);
		} else if (!was_first)
			end(pairing, other, PAIRING_REPLACED);
		else
			return refuse(pairing, key, event, source, values, PAIRING_REPLACED);
	}
	/* what happened to its key between its time and now has been handed out unseen */
	if (late || event->ts <= pairing->gap_until)
		return refuse(pairing, key, event, source, values, PAIRING_VOIDED);
	if (pairing->map->count >= pairing->options.max)
		end(pairing, pairing->map->first, PAIRING_EVICTED);
	unsure = pairing->has_lost && !take_end(pairing, key);
	number = open_new(pairing, key, event, source, values);
	if (number == KEYMAP_NONE)
		return false;
	open_start(pairing, number)->unsure = unsure;
	return true;
}

bool pairing_pass(struct pairing *pairing, struct key *key, const struct event *event,
		  unsigned int stage, const struct key *next)
{
	bool late = comes_late(pairing, event);
	struct open_start *start;
	struct key moved;
	uint32_t number;
	uint32_t other;

	complete_key(pairing, key, event->cpu);
	number = keymap_find(pairing->map, key);
	if (number == KEYMAP_NONE)
		return true;
	start = open_start(pairing, number);
	if (start->stage != stage)
		return true;
	if (late || event->ts < reached_ts(start)) {
		void_unordered(pairing, number);
		return true;
	}
	if (next) {
		moved = *next;
		complete_key(pairing, &moved, event->cpu);
		other = keymap_find(pairing->map, &moved);
		if (other != KEYMAP_NONE && other != number)
			end(pairing, other, PAIRING_REPLACED);
		if (!keymap_rekey(pairing->map, number, &moved))
			return false;
	}
	stage_times(start)[stage] = event->ts;
	start->stage++;
	return true;
}

static void note_match(struct pairing *pairing, uint64_t ts)
{
	const struct mark *last = &pairing->marks[(pairing->marks_made - 1) % MARKS];

	if (!pairing->marks_made || ts > last->ts + MARK_NS)
		pairing->marks[pairing->marks_made++ % MARKS] =
			(struct mark){ ts, pairing->counts.ends[PAIRING_MATCHED] };
	if (ts > pairing->matched_ts)
		pairing->matched_ts = ts;
}

bool pairing_stop(struct pairing *pairing, struct key *key, const struct event *event)
{
	struct open_start *start;
	uint32_t number;

	complete_key(pairing, key, event->cpu);
	note_end(pairing, key, event);
	number = keymap_find(pairing->map, key);
	if (number == KEYMAP_NONE) {
		pairing->counts.unmatched++;
		return false;
	}
	start = open_start(pairing, number);
	if (event->ts < reached_ts(start)) {
		/* it belongs to a start before this one, or the clocks of two CPUs differ */
		pairing->counts.unmatched++;
		void_unordered(pairing, number);
		return false;
	}
	if (start->unsure) {
		pairing->counts.unmatched++;
		end(pairing, number, PAIRING_VOIDED);
		return false;
	}
	if (start->stage < pairing->options.stages) {
		pairing->counts.unmatched++;
		end(pairing, number, PAIRING_INCOMPLETE);
		return false;
	}
	start->stop_ts = event->ts;
	note_match(pairing, event->ts);
	end(pairing, number, PAIRING_MATCHED);
	return true;
}

void pairing_cancel(struct pairing *pairing, struct key *key, const struct event *event)
{
	uint32_t number;

	complete_key(pairing, key, event->cpu);
	note_end(pairing, key, event);
	number = keymap_find(pairing->map, key);
	if (number == KEYMAP_NONE)
		return;
	/* an earlier start's end says nothing of this one, if the clocks agree: who knows */
	if (event->ts < open_start(pairing, number)->ts) {
		void_unordered(pairing, number);
	} else {
		end(pairing, number, PAIRING_CANCELLED);
	}
}

/* How many matches had been made by the time; more rather than fewer came later. */
static uint64_t matched_before(const struct pairing *pairing, uint64_t ts)
{
	unsigned int first = pairing->marks_made > MARKS ? pairing->marks_made - MARKS : 0;
	uint64_t matched = 0;

	for (unsigned int i = first; i < pairing->marks_made; i++) {
		const struct mark *mark = &pairing->marks[i % MARKS];

		if (mark->ts > ts)
			break;
		matched = mark->matched;
	}
	return matched;
}

/*
 * What a loss spoils that is told afterwards may have been matched. Where nobody knows when it
 * was, that is any match.
 */
static void doubt_matches(struct pairing *pairing, const struct loss *loss)
{
	uint64_t matched = pairing->counts.ends[PAIRING_MATCHED];
	uint64_t before = 0;

	if (loss->is_placed)
		return;
	if (loss->before_ts && loss->after_ts) {
		if (loss->after_ts >= pairing->matched_ts)
			return;
		before = matched_before(pairing, loss->after_ts);
	}
	if (before < pairing->doubted)
		before = pairing->doubted;
	pairing->counts.doubtful += matched - before;
	pairing->doubted = matched;
}

void pairing_lose(struct pairing *pairing, const struct loss *loss)
{
	uint32_t number = pairing->map->first;

	/*
	 * Until the gap's end other CPUs' starts may lose their stops in it; starts of its own CPU
	 * too when only the statistics told of it, which know no place.
	 */
	if (loss->before_ts > pairing->gap_until &&
	    (!pairing->options.same_cpu || !loss->is_placed))
		pairing->gap_until = loss->before_ts;
	doubt_matches(pairing, loss);
	forget_ends(pairing);
	while (number != KEYMAP_NONE) {
		uint32_t next = keymap_entry(pairing->map, number)->next;

		if (!pairing->options.same_cpu || open_start(pairing, number)->cpu == loss->cpu)
			end(pairing, number, PAIRING_VOIDED);
		number = next;
	}
}

bool pairing_is_large(const struct pairing *pairing)
{
	return keymap_is_large(pairing->map);
}

uint32_t pairing_hash(const struct pairing *pairing, struct key *key, uint32_t cpu)
{
	complete_key(pairing, key, cpu);
	return key->hash;
}

void pairing_fetch(const struct pairing *pairing, uint32_t hash, enum keymap_fetch step)
{
	keymap_fetch(pairing->map, hash, step);
}

bool pairing_has_ended(const struct pairing *pairing)
{
	return pairing->first_ended != KEYMAP_NONE;
}

bool pairing_take_ended(struct pairing *pairing, struct pairing_ended *ended)
{
	uint32_t number = pairing->first_ended;

	if (number == KEYMAP_NONE)
		return false;
	pairing_open(pairing, number, ended);
	pairing->first_ended = keymap_entry(pairing->map, number)->next;
	if (pairing->first_ended == KEYMAP_NONE)
		pairing->last_ended = KEYMAP_NONE;
	return true;
}

void pairing_release(struct pairing *pairing, uint32_t number)
{
	forget(pairing, number);
}

void pairing_key(const struct pairing *pairing, uint32_t number, struct key *key)
{
	keymap_key(pairing->map, number, key);
	key->count = pairing->options.parts;
}

void pairing_carried(const struct pairing *pairing, uint32_t number, unsigned int index,
		     struct carried *value)
{
	const struct open_start *start = open_start(pairing, number);
	const struct value_word *word = &values_of(pairing, start)[index];

	value->kind = (uint8_t)word->kind;
	if (word->kind == CARRIED_BYTES) {
		value->bytes = (const uint8_t *)start->text + ((uint64_t)word->word >> 32);
		value->length = (uint32_t)word->word;
	} else {
		value->number = word->word;
	}
}

uint64_t pairing_stage_ts(const struct pairing *pairing, uint32_t number, unsigned int stage)
{
	return stage_times(open_start(pairing, number))[stage];
}

uint32_t pairing_first_open(const struct pairing *pairing)
{
	return pairing->map->first;
}

uint32_t pairing_next_open(const struct pairing *pairing, uint32_t number)
{
	return keymap_entry(pairing->map, number)->next;
}

void pairing_open(const struct pairing *pairing, uint32_t number, struct pairing_ended *start)
{
	const struct open_start *open = open_start(pairing, number);

	*start = (struct pairing_ended){
		.how = (enum pairing_end)open->how,
		.source = open->source,
		.start_ts = open->ts,
		.stop_ts = open->stop_ts,
		.cpu = open->cpu,
		.number = number,
	};
}

void pairing_counts(const struct pairing *pairing, struct pairing_counts *counts)
{
	*counts = pairing->counts;
	counts->open = pairing->map->count;
}
