/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

/* include/linux/ring_buffer.h: the commit word */
#define COMMIT_SIZE_MASK ((UINT64_C(1) << 27) - 1)
#define COMMIT_LOST_STORED (UINT64_C(1) << 30)
#define COMMIT_LOST (UINT64_C(1) << 31)

/* include/linux/ring_buffer.h: enum ring_buffer_type */
enum {
	TYPE_LONG_DATA = 0,
	TYPE_PADDING = 29,
	TYPE_TIME_EXTEND = 30,
	TYPE_TIME_STAMP = 31,
};

#define DELTA_BITS 27
#define DELTA_MASK ((UINT32_C(1) << DELTA_BITS) - 1)
#define ABSOLUTE_BITS 59
#define ABSOLUTE_MASK ((UINT64_C(1) << ABSOLUTE_BITS) - 1)

/* Finds "NAME; offset:N; size:N;" of one field line. */
static bool header_field(const char *text, const char *name, uint32_t *offset, uint32_t *size)
{
	size_t length = strlen(name);

	for (const char *at = text; (at = strstr(at, name)) != NULL; at += length) {
		unsigned int o, s;

		if (at == text || !isspace((unsigned char)at[-1]) || at[length] != ';')
			continue;
		if (sscanf(at + length, ";%*[ \t]offset:%u;%*[ \t]size:%u;", &o, &s) != 2)
			return false;
		*offset = o;
		*size = s;
		return true;
	}
	return false;
}

int page_layout_parse(struct page_layout *layout, const char *text, size_t length, bool big_endian,
		      struct trace_error *error)
{
	uint32_t ts_offset, ts_size, commit_offset, commit_size, data_offset, data_size;
	char copy[2048];

	if (length >= sizeof(copy) || memchr(text, '\0', length))
		return error_set(error, EINVAL, "header_page: %zu bytes that are no format file",
				 length);
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (!header_field(copy, "timestamp", &ts_offset, &ts_size) ||
	    !header_field(copy, "commit", &commit_offset, &commit_size) ||
	    !header_field(copy, "data", &data_offset, &data_size))
		return error_set(error, EINVAL,
				 "header_page: no timestamp, commit and data fields in it");
	if (ts_offset != 0 || ts_size != 8 || commit_offset != 8 ||
	    (commit_size != 4 && commit_size != 8) || data_offset < 8 + commit_size ||
	    data_offset > 64 || data_size < 64 || data_size > COMMIT_SIZE_MASK)
		return error_set(error, EINVAL,
				 "header_page: unknown layout (commit %u+%u, data %u+%u)",
				 commit_offset, commit_size, data_offset, data_size);
	layout->commit_offset = commit_offset;
	layout->long_size = commit_size;
	layout->data_offset = data_offset;
	layout->size = data_offset + data_size;
	layout->big_endian = big_endian;
	layout->swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	return 0;
}

static uint64_t load_long(const struct page_layout *layout, const uint8_t *bytes)
{
	return layout->long_size == 8 ? load_u64(bytes, layout->swap) :
					load_u32(bytes, layout->swap);
}

void page_walk_start(struct page_walk *walk, const struct page_layout *layout, const uint8_t *page,
		     size_t length)
{
	uint64_t commit, used;

	*walk = (struct page_walk){
		.start = page,
		.next = page,
		.end = page,
		.swap = layout->swap,
		.big_endian = layout->big_endian,
		.is_plain = !layout->big_endian && !layout->swap,
	};
	if (length < layout->data_offset) {
		walk->damage = "shorter than a page header";
		return;
	}
	walk->ts = load_u64(page, layout->swap);
	commit = load_long(layout, page + layout->commit_offset);
	used = commit & COMMIT_SIZE_MASK;
	walk->next = walk->end = page + layout->data_offset;
	if (used > length - layout->data_offset) {
		walk->damage = "commits more bytes than the page has";
		return;
	}
	walk->end += used;
	if (commit & COMMIT_LOST) {
		walk->lost = PAGE_LOST_UNKNOWN;
		/* the count stands behind the records, where the page had room for it */
		if ((commit & COMMIT_LOST_STORED) &&
		    length - layout->data_offset - used >= layout->long_size &&
		    load_long(layout, walk->end) != 0)
			walk->lost = load_long(layout, walk->end);
	}
}

size_t page_walk_offset(const struct page_walk *walk)
{
	return (size_t)(walk->next - walk->start);
}

static bool damaged(struct page_walk *walk, const char *why)
{
	walk->damage = why;
	walk->end = walk->next;
	return false;
}

/* The top bits of an absolute stamp come from the time before it. */
static uint64_t absolute_time(uint64_t stamp, uint64_t before)
{
	uint64_t top = before & ~ABSOLUTE_MASK;

	if (top && (stamp | top) < before)
		top += UINT64_C(1) << ABSOLUTE_BITS;
	return stamp | top;
}

bool page_walk_other(struct page_walk *walk, struct page_record *record)
{
	while ((size_t)(walk->end - walk->next) >= 4) {
		const uint8_t *at = walk->next;
		size_t room = (size_t)(walk->end - at) - 4;
		uint32_t header = load_u32(at, walk->swap);
		uint32_t delta, type, word;
		size_t size;

		/* the bit-field's first member is at the low end only on little-endian machines */
		if (walk->big_endian) {
			type = header >> DELTA_BITS;
			delta = header & DELTA_MASK;
		} else {
			type = header & 31;
			delta = header >> 5;
		}

		if (type != TYPE_LONG_DATA && type < TYPE_PADDING) {
			size = (size_t)type * 4;
			if (size > room)
				return damaged(walk, "a record reaches behind the page's data");
			walk->ts += delta;
			walk->next = at + 4 + size;
			*record = (struct page_record){ walk->ts, at + 4, (uint32_t)size };
			return true;
		}

		if (type == TYPE_PADDING && delta == 0) { /* nothing behind it */
			walk->next = walk->end;
			return false;
		}
		if (room < 4)
			return damaged(walk, "a record header is cut");
		word = load_u32(at + 4, walk->swap);

		switch (type) {
		case TYPE_TIME_EXTEND:
			walk->ts += ((uint64_t)word << DELTA_BITS) + delta;
			walk->next = at + 8;
			continue;
		case TYPE_TIME_STAMP:
			walk->ts = absolute_time(((uint64_t)word << DELTA_BITS) + delta, walk->ts);
			walk->next = at + 8;
			continue;
		}

		/* data or a discarded record, with its length (this word included) in the word */
		size = ((size_t)word + 3) & ~(size_t)3;
		if (word < 4 || size > room)
			return damaged(walk, "a record's length is not possible");
		walk->next = at + 4 + size;
		/* kernel/trace/ring_buffer.c, check_buffer(): here 1 stands for 0, which is taken */
		if (type != TYPE_PADDING || delta != 1)
			walk->ts += delta;
		if (type == TYPE_PADDING)
			continue;
		*record = (struct page_record){ walk->ts, at + 8, (uint32_t)size - 4 };
		return true;
	}
	if (walk->next != walk->end)
		return damaged(walk, "bytes left over behind the last record");
	return false;
}
