/* SPDX-License-Identifier: MIT */
#include "keymap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define CHUNK_ENTRIES (1U << KEYMAP_CHUNK_BITS)
#define FIRST_SLOTS 64

/*
 * Entries tend to be taken out in the order in which they were added. In a large map the slots of
 * so many entries to come are fetched ahead: one that is waited for costs more than all the rest
 * of an operation.
 */
#define FETCHED_AHEAD 8
#define CACHE_LINE 64

struct keymap *keymap_create(unsigned int parts, size_t extra)
{
	struct keymap *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->parts = parts;
	map->stride = sizeof(struct keymap_entry) + parts * sizeof(int64_t) + ((extra + 7) & ~7UL);
	map->free = map->first = map->last = map->ahead = KEYMAP_NONE;
	/* keys come from other people's programs: nobody is to know which of them collide */
	if (getrandom(&map->seed, sizeof(map->seed), GRND_NONBLOCK) != sizeof(map->seed))
		map->seed = (uint64_t)time(NULL) ^ (uint64_t)(uintptr_t)map;
	map->slots = calloc(FIRST_SLOTS, sizeof(*map->slots));
	map->mask = FIRST_SLOTS - 1;
	if (!map->slots) {
		free(map);
		return NULL;
	}
	return map;
}

void keymap_free(struct keymap *map)
{
	if (!map)
		return;
	for (uint32_t i = 0; i < map->made; i++)
		free(keymap_entry(map, i)->text);
	for (uint32_t i = 0; i < map->chunk_count; i++)
		free(map->chunks[i]);
	free(map->chunks);
	free(map->slots);
	free(map);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a ^= b;
	a ^= a >> 32;
	a *= UINT64_C(0xd6e8feb86659fd93);
	a ^= a >> 32;
	a *= UINT64_C(0xd6e8feb86659fd93);
	return a ^ a >> 32;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, uint32_t length)
{
	uint64_t word;

	for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash, word);
	}
	word = UINT64_C(1) << 63; /* tells "a" from "a\0" */
	memcpy(&word, bytes, length);
	return mix(hash, word ^ (uint64_t)length << 56);
}

void keymap_hash(const struct keymap *map, struct key *key)
{
	uint64_t hash = map->seed;

	for (unsigned int i = 0; i < map->parts; i++) {
		const struct key_part *part = &key->parts[i];

		if (part->bytes)
			hash = mix_bytes(hash, part->bytes, part->length);
		else
			hash = mix(hash, (uint64_t)part->number);
	}
	key->hash = (uint32_t)hash;
}

/* Where the text of a string part lies: the word of each has where it ends. */
static const uint8_t *part_text(const struct keymap_entry *entry, unsigned int part,
				uint32_t *length)
{
	uint32_t start = 0;

	for (unsigned int i = 0; i < part; i++) {
		if (entry->strings >> i & 1)
			start = (uint32_t)entry->words[i];
	}
	*length = (uint32_t)entry->words[part] - start;
	return entry->text + start;
}

static bool has_key(const struct keymap *map, const struct keymap_entry *entry,
		    const struct key *key)
{
	for (unsigned int i = 0; i < map->parts; i++) {
		const struct key_part *part = &key->parts[i];
		uint32_t length;
		const uint8_t *text;

		if ((entry->strings >> i & 1) != (part->bytes != NULL))
			return false;
		if (!part->bytes) {
			if (entry->words[i] != part->number)
				return false;
			continue;
		}
		text = part_text(entry, i, &length);
		if (length != part->length || (length && memcmp(text, part->bytes, length) != 0))
			return false;
	}
	return true;
}

uint32_t keymap_find(const struct keymap *map, const struct key *key)
{
	for (uint32_t at = key->hash & map->mask; map->slots[at].entry; at = (at + 1) & map->mask) {
		const struct keymap_slot *slot = &map->slots[at];

		if (slot->hash == key->hash &&
		    has_key(map, keymap_entry(map, slot->entry - 1), key))
			return slot->entry - 1;
	}
	return KEYMAP_NONE;
}

void keymap_fetch(const struct keymap *map, uint32_t hash, enum keymap_fetch step)
{
	uint32_t at = hash & map->mask;
	const struct keymap_entry *entry;

	if (step == KEYMAP_FETCH_SLOT) {
		__builtin_prefetch(&map->slots[at], 1);
		return;
	}
	while (map->slots[at].entry && map->slots[at].hash != hash)
		at = (at + 1) & map->mask;
	if (!map->slots[at].entry)
		return;
	entry = keymap_entry(map, map->slots[at].entry - 1);
	if (step == KEYMAP_FETCH_ENTRY) {
		__builtin_prefetch(entry, 1);
		return;
	}
	if (entry->previous != KEYMAP_NONE)
		__builtin_prefetch(keymap_entry(map, entry->previous), 1);
	if (entry->next != KEYMAP_NONE)
		__builtin_prefetch(keymap_entry(map, entry->next), 1);
}

static void put_slot(struct keymap *map, struct keymap_slot slot)
{
	uint32_t at = slot.hash & map->mask;

	while (map->slots[at].entry)
		at = (at + 1) & map->mask;
	map->slots[at] = slot;
}

static bool grow_slots(struct keymap *map)
{
	struct keymap_slot *old = map->slots;
	uint32_t old_count = map->mask + 1;

	if (old_count > UINT32_MAX / 4)
		return false;
	map->slots = calloc(2 * (size_t)old_count, sizeof(*old));
	if (!map->slots) {
		map->slots = old;
		return false;
	}
	map->mask = 2 * old_count - 1;
	for (uint32_t i = 0; i < old_count; i++) {
		if (old[i].entry)
			put_slot(map, old[i]);
	}
	free(old);
	return true;
}

/* The entries behind a hole move up, so that a look-up never meets a hole in its way. */
static void remove_slot(struct keymap *map, uint32_t number)
{
	uint32_t hole = keymap_entry(map, number)->hash & map->mask;
	uint32_t at;

	while (map->slots[hole].entry != number + 1)
		hole = (hole + 1) & map->mask;
	for (at = (hole + 1) & map->mask; map->slots[at].entry; at = (at + 1) & map->mask) {
		uint32_t home = map->slots[at].hash & map->mask;

		if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
			map->slots[hole] = map->slots[at];
			hole = at;
		}
	}
	map->slots[hole].entry = 0;
}

/* The number of an entry that nobody has used. */
static uint32_t make_entry(struct keymap *map)
{
	if (map->made == UINT32_MAX - CHUNK_ENTRIES)
		return KEYMAP_NONE;
	if (map->made == map->chunk_count * CHUNK_ENTRIES) {
		uint8_t **chunks =
			realloc(map->chunks, (map->chunk_count + 1) * sizeof(*map->chunks));

		if (!chunks)
			return KEYMAP_NONE;
		map->chunks = chunks;
		/* the usual entry is as long as a cache line, and is to lie in one */
		chunks[map->chunk_count] = aligned_alloc(CACHE_LINE, CHUNK_ENTRIES * map->stride);
		if (!chunks[map->chunk_count])
			return KEYMAP_NONE;
		map->chunk_count++;
	}
	return map->made++;
}

/*
 * An entry nobody uses, as zeroes. Those of a chunk are not written to before they are taken: most
 * maps are small, and memory that nobody has touched is none.
 */
static uint32_t take_entry(struct keymap *map)
{
	uint32_t number = map->free;

	if (number == KEYMAP_NONE)
		number = make_entry(map);
	else
		map->free = keymap_entry(map, number)->next;
	if (number != KEYMAP_NONE)
		memset(keymap_entry(map, number), 0, map->stride);
	return number;
}

/* Writes the key into the entry; false when memory for its strings is short. */
static bool set_key(const struct keymap *map, struct keymap_entry *entry, const struct key *key)
{
	uint32_t length = 0;
	uint16_t strings = 0;
	uint8_t *text = NULL;

	for (unsigned int i = 0; i < map->parts; i++) {
		if (key->parts[i].bytes) {
			strings |= (uint16_t)(1U << i);
			length += key->parts[i].length;
		}
	}
	if (strings) {
		text = malloc(length ? length : 1);
		if (!text)
			return false;
	}
	length = 0;
	for (unsigned int i = 0; i < map->parts; i++) {
		const struct key_part *part = &key->parts[i];

		if (part->bytes) {
			memcpy(text + length, part->bytes, part->length);
			length += part->length;
			entry->words[i] = length;
		} else {
			entry->words[i] = part->number;
		}
	}
	free(entry->text);
	entry->text = text;
	entry->strings = strings;
	entry->hash = key->hash;
	return true;
}

static void give_back(struct keymap *map, uint32_t number)
{
	keymap_entry(map, number)->next = map->free;
	map->free = number;
}

uint32_t keymap_add(struct keymap *map, const struct key *key)
{
	struct keymap_entry *entry;
	uint32_t number;

	if (map->count >= map->mask / 2 && !grow_slots(map))
		return KEYMAP_NONE;
	number = take_entry(map);
	if (number == KEYMAP_NONE)
		return KEYMAP_NONE;
	entry = keymap_entry(map, number);
	if (!set_key(map, entry, key)) {
		give_back(map, number);
		return KEYMAP_NONE;
	}
	entry->previous = map->last;
	entry->next = KEYMAP_NONE;
	if (map->last == KEYMAP_NONE)
		map->first = number;
	else
		keymap_entry(map, map->last)->next = number;
	map->last = number;
	put_slot(map, (struct keymap_slot){ key->hash, number + 1 });
	map->count++;
	return number;
}

bool keymap_rekey(struct keymap *map, uint32_t number, const struct key *key)
{
	struct keymap_entry *entry = keymap_entry(map, number);

	remove_slot(map, number);
	if (!set_key(map, entry, key)) {
		put_slot(map, (struct keymap_slot){ entry->hash, number + 1 });
		return false;
	}
	put_slot(map, (struct keymap_slot){ key->hash, number + 1 });
	return true;
}

/* The first entry goes: the slot of one that is to follow is fetched, and what comes behind it. */
static void fetch_ahead(struct keymap *map)
{
	if (map->ahead == KEYMAP_NONE) {
		map->ahead = map->first;
		map->lead = 0;
	}
	/* one step keeps the distance, the second makes it grow */
	for (int step = 0; step < 2 && map->lead <= FETCHED_AHEAD; step++) {
		const struct keymap_entry *entry = keymap_entry(map, map->ahead);

		__builtin_prefetch(&map->slots[entry->hash & map->mask], 1);
		map->ahead = entry->next;
		if (map->ahead == KEYMAP_NONE)
			return;
		__builtin_prefetch(keymap_entry(map, map->ahead));
		map->lead++;
	}
	map->lead--;
}

void keymap_unlink(struct keymap *map, uint32_t number)
{
	struct keymap_entry *entry = keymap_entry(map, number);

	remove_slot(map, number);
	map->count--;
	if (number == map->first && keymap_is_large(map))
		fetch_ahead(map);
	if (number == map->ahead) {
		map->ahead = entry->next;
		map->lead = 0;
	}
	if (entry->previous == KEYMAP_NONE)
		map->first = entry->next;
	else
		keymap_entry(map, entry->previous)->next = entry->next;
	if (entry->next == KEYMAP_NONE)
		map->last = entry->previous;
	else
		keymap_entry(map, entry->next)->previous = entry->previous;
}

void keymap_release(struct keymap *map, uint32_t number)
{
	struct keymap_entry *entry = keymap_entry(map, number);

	free(entry->text);
	entry->text = NULL;
	give_back(map, number);
}

void keymap_key(const struct keymap *map, uint32_t number, struct key *key)
{
	const struct keymap_entry *entry = keymap_entry(map, number);

	key->hash = entry->hash;
	key->count = map->parts;
	for (unsigned int i = 0; i < map->parts; i++) {
		struct key_part *part = &key->parts[i];

		if (entry->strings >> i & 1) {
			part->bytes = part_text(entry, i, &part->length);
		} else {
			part->bytes = NULL;
			part->number = entry->words[i];
		}
	}
}
