/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PAGE_H
#define LUATRACE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "error.h"

/* Bytes that a record can have whose length stands in the header's 5 bits. */
#define PAGE_SHORT_MAX (28 * 4)

/*
 * How the sub-buffers ("pages") of one ring buffer look: what its
 * events/header_page says.
 */
struct page_layout {
	uint32_t commit_offset;
	uint32_t long_size; /* of the commit word: 4 or 8 */
	uint32_t data_offset;
	uint32_t size; /* of a whole sub-buffer, header included */
	bool swap;     /* written by a machine of the other endianness */
	bool big_endian;
};

/* Parses the text of events/header_page. 0 or -1. */
int page_layout_parse(struct page_layout *layout, const char *text, size_t length, bool big_endian,
		      struct trace_error *error);

#define PAGE_LOST_UNKNOWN UINT64_MAX

/* One record as it lies in the page. @data is borrowed from the page. */
struct page_record {
	uint64_t ts;
	const uint8_t *data;
	uint32_t size;
};

/*
 * Walks the records of one sub-buffer. Nothing outside [@next, @end) is ever read,
 * whatever the bytes say.
 */
struct page_walk {
	const uint8_t *start;
	const uint8_t *next;
	const uint8_t *end;
	uint64_t ts;   /* of the record before @next */
	uint64_t lost; /* before the first record: a count or PAGE_LOST_UNKNOWN */
	bool swap;
	bool big_endian;
	bool is_plain;	    /* little-endian, the page and this machine */
	const char *damage; /* why the walk ended early; NULL if it did not */
};

/*
 * Starts a walk over the @length bytes of a sub-buffer. A header that cannot be true
 * leaves a walk that ends at once with @damage set.
 */
void page_walk_start(struct page_walk *walk, const struct page_layout *layout, const uint8_t *page,
		     size_t length);

/* Bytes from the start of the page to where the walk stands. */
size_t page_walk_offset(const struct page_walk *walk);

/* Everything of page_walk_next() but the most common case. */
bool page_walk_other(struct page_walk *walk, struct page_record *record);

/*
 * The next record: true, or false at the end (then look at @damage). Inline, because the
 * stream spends most of its time here: nearly all records are short ones in this
 * machine's byte order.
 */
static inline bool page_walk_next(struct page_walk *walk, struct page_record *record)
{
	const uint8_t *at = walk->next;
	size_t room = (size_t)(walk->end - at);

	if (walk->is_plain && room >= 4) {
		uint32_t header = load_u32(at, false);
		uint32_t size = (header & 31) * 4;

		if (size - 1 < PAGE_SHORT_MAX && size <= room - 4) {
			walk->ts += header >> 5;
			walk->next = at + 4 + size;
			record->ts = walk->ts;
			record->data = at + 4;
			record->size = size;
			return true;
		}
	}
	return page_walk_other(walk, record);
}

#endif
