/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KEYMAP_H
#define LUATRACE_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Entries by key: what pairs and aggregates are kept in. A key is a fixed number of parts, each
 * an integer or a string of bytes. Open addressing over entries that never move, so that an
 * operation costs the same whatever number there is; the entries are also a list in the order
 * in which they were added.
 */
#define KEYMAP_MAX_PARTS 8
#define KEYMAP_NONE UINT32_MAX

struct key_part {
	const void *bytes; /* NULL: the part is @number. Borrowed. */
	union {
		int64_t number;
		uint32_t length;
	};
};

struct key {
	uint32_t hash; /* set by keymap_hash() */
	unsigned int count;
	struct key_part parts[KEYMAP_MAX_PARTS];
};

/* An entry as it lies in memory; @words are the key's, what the user keeps is behind them. */
struct keymap_entry {
	uint32_t hash;
	uint32_t previous;
	uint32_t next;
	uint16_t strings; /* a bit for each part that is a string */
	uint16_t tag;	  /* the user's */
	uint8_t *text;	  /* the bytes of the strings; a word has where they end in it */
	int64_t words[];
};

#define KEYMAP_CHUNK_BITS 10

/* More slots than that are not held by the caches next to the CPU. */
#define KEYMAP_LARGE (1U << 14)

struct keymap_slot {
	uint32_t hash;
	uint32_t entry; /* number + 1; 0: nothing */
};

struct keymap {
	uint64_t seed;
	unsigned int parts;
	size_t stride;
	struct keymap_slot *slots;
	uint32_t mask;
	uint32_t count; /* in the table */
	uint32_t made;	/* entries that memory was taken for and that are or were in use */
	uint32_t chunk_count;
	uint8_t **chunks;
	uint32_t free; /* first of those that were given back */
	uint32_t first;
	uint32_t last;
	uint32_t ahead; /* the slots of those before it have been fetched */
	uint32_t lead;	/* how far it is behind the first at most */
};

/* @extra bytes of the user's in each entry, which begin as zeroes. NULL when memory is short. */
struct keymap *keymap_create(unsigned int parts, size_t extra);

/* The user lets go of what its part of the entries owns first. */
void keymap_free(struct keymap *map);

/* To be called once for a key before it is used. */
void keymap_hash(const struct keymap *map, struct key *key);

uint32_t keymap_find(const struct keymap *map, const struct key *key);

/*
 * Adds a key as the last one; KEYMAP_NONE when memory is short. One that is there already is not
 * to be looked for before one of the two has been unlinked.
 */
uint32_t keymap_add(struct keymap *map, const struct key *key);

/* Gives an entry of the table another key, which is not there; its place in the list stays. */
bool keymap_rekey(struct keymap *map, uint32_t number, const struct key *key);

/* Takes an entry out of the table and the list; it is the caller's until it is released. */
void keymap_unlink(struct keymap *map, uint32_t number);
void keymap_release(struct keymap *map, uint32_t number);

/*
 * For who knows keys some time before they are looked for, in a map that is large: has the CPU
 * fetch from memory what that will touch. What a step fetches is needed by the next one, which is
 * to come some operations later: the slot, the entry, the entries next to it in the list.
 */
enum keymap_fetch {
	KEYMAP_FETCH_SLOT,
	KEYMAP_FETCH_ENTRY,
	KEYMAP_FETCH_NEIGHBOURS,
};

void keymap_fetch(const struct keymap *map, uint32_t hash, enum keymap_fetch step);

static inline bool keymap_is_large(const struct keymap *map)
{
	return map->mask >= KEYMAP_LARGE;
}

/* The parts of an entry's key; strings are borrowed. */
void keymap_key(const struct keymap *map, uint32_t number, struct key *key);

static inline struct keymap_entry *keymap_entry(const struct keymap *map, uint32_t number)
{
	uint8_t *chunk = map->chunks[number >> KEYMAP_CHUNK_BITS];

	return (struct keymap_entry *)(chunk +
				       (number & ((1U << KEYMAP_CHUNK_BITS) - 1)) * map->stride);
}

static inline void *keymap_data(const struct keymap *map, uint32_t number)
{
	return keymap_entry(map, number)->words + map->parts;
}

#endif
