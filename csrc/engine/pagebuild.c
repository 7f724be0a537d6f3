/* SPDX-License-Identifier: MIT */
#include "pagebuild.h"

#include <stdlib.h>
#include <string.h>

#define TYPE_TIME_EXTEND 30
#define DELTA_BITS 27
#define DELTA_MAX ((UINT64_C(1) << DELTA_BITS) - 1)

/* What a time extend can hold; further on only a page's own start reaches. */
#define EXTEND_MAX ((UINT64_C(1) << (DELTA_BITS + 32)) - 1)

#define COMMIT_MISSED (UINT64_C(1) << 31)
#define COMMIT_COUNTED (UINT64_C(1) << 30)

static void store(const struct page_build *build, uint8_t *at, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		at[build->layout.big_endian ? size - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

static uint8_t *end_of(const struct page_build *build)
{
	return build->bytes + build->layout.data_offset + build->used;
}

static size_t room(const struct page_build *build)
{
	return build->layout.size - build->layout.data_offset - build->used;
}

int page_build_init(struct page_build *build, const struct page_layout *layout)
{
	memset(build, 0, sizeof(*build));
	build->layout = *layout;
	build->bytes = calloc(1, layout->size);
	return build->bytes ? 0 : -1;
}

void page_build_free(struct page_build *build)
{
	free(build->bytes);
	memset(build, 0, sizeof(*build));
}

void page_build_start(struct page_build *build, uint64_t ts, uint64_t lost)
{
	memset(build->bytes, 0, build->layout.size);
	store(build, build->bytes, ts, 8);
	build->used = 0;
	build->ts = ts;
	build->lost = lost;
	build->is_open = true;
}

static void put_header(struct page_build *build, uint32_t type, uint64_t delta)
{
	uint32_t header = build->layout.big_endian ? type << DELTA_BITS | (uint32_t)delta :
						     (uint32_t)delta << 5 | type;

	store(build, end_of(build), header, 4);
	build->used += 4;
}

/* Moves the time on by more than a record's own header can hold. */
static void put_extend(struct page_build *build, uint64_t delta)
{
	put_header(build, TYPE_TIME_EXTEND, delta & DELTA_MAX);
	store(build, end_of(build), delta >> DELTA_BITS, 4);
	build->used += 4;
}

bool page_build_record(struct page_build *build, uint64_t ts, const uint8_t *data, uint32_t size)
{
	uint32_t whole = (size + 3) & ~UINT32_C(3);
	uint64_t delta = ts > build->ts ? ts - build->ts : 0;
	bool is_long = whole > PAGE_SHORT_MAX || whole == 0;

	if (size > build->layout.size || delta > EXTEND_MAX)
		return false;
	if (whole + 4u + (is_long ? 4u : 0u) + (delta > DELTA_MAX ? 8u : 0u) > room(build))
		return false;
	if (delta > DELTA_MAX) {
		put_extend(build, delta);
		delta = 0;
	}
	put_header(build, is_long ? 0 : whole / 4, delta);
	if (is_long) {
		store(build, end_of(build), whole + 4, 4);
		build->used += 4;
	}
	if (size)
		memcpy(end_of(build), data, size);
	build->used += whole;
	build->ts += ts > build->ts ? ts - build->ts : 0;
	return true;
}

/*
 * How a page is filled. False also when something else than a record is the last thing in it:
 * what follows a padding is not read.
 */
static bool look_at(const struct page_build *build, const uint8_t *page, size_t length,
		    struct page_walk *start, uint64_t *last_ts)
{
	const uint8_t *last_end = NULL;
	struct page_record record;
	struct page_walk walk;

	page_walk_start(start, &build->layout, page, length);
	walk = *start;
	while (page_walk_next(&walk, &record))
		last_end = walk.next;
	*last_ts = walk.ts;
	return !walk.damage && last_end == walk.end;
}

/* The count of what was lost stands behind the records. */
static size_t count_size(const struct page_build *build)
{
	return build->lost && build->lost != PAGE_LOST_UNKNOWN ? build->layout.long_size : 0;
}

bool page_build_append(struct page_build *build, const uint8_t *page, size_t length)
{
	struct page_walk walk;
	uint64_t last_ts;
	size_t size;

	if (!build->is_open || !look_at(build, page, length, &walk, &last_ts) || walk.lost)
		return false;
	size = (size_t)(walk.end - walk.next);
	if (walk.ts < build->ts || walk.ts - build->ts > EXTEND_MAX ||
	    size + 8 + count_size(build) > room(build))
		return false;
	if (walk.ts > build->ts)
		put_extend(build, walk.ts - build->ts);
	memcpy(end_of(build), walk.next, size);
	build->used += size;
	build->ts = last_ts;
	return true;
}

bool page_build_take(struct page_build *build, const uint8_t *page, size_t length)
{
	struct page_walk walk;
	uint64_t last_ts;

	build->is_open = false;
	if (!look_at(build, page, length, &walk, &last_ts))
		return false;
	page_build_start(build, walk.ts, walk.lost);
	memcpy(end_of(build), walk.next, (size_t)(walk.end - walk.next));
	build->used = (size_t)(walk.end - walk.next);
	build->ts = last_ts;
	return true;
}

const uint8_t *page_build_bytes(struct page_build *build)
{
	uint64_t commit = build->used;

	if (build->lost) {
		commit |= COMMIT_MISSED;
		if (build->lost != PAGE_LOST_UNKNOWN && room(build) >= build->layout.long_size) {
			commit |= COMMIT_COUNTED;
			store(build, end_of(build), build->lost, build->layout.long_size);
		}
	}
	store(build, build->bytes + build->layout.commit_offset, commit, build->layout.long_size);
	return build->bytes;
}
