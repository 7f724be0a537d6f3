/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a sub-buffer: nothing outside of them is read, records lie inside and one behind
 * the other, and what is made of the page anew says the same. The first byte chooses the layout.
 */
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "pagebuild.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
	if (!is_true)
		abort();
}

static size_t walk(const struct page_layout *layout, const uint8_t *page, size_t length,
		   uint64_t *last_ts)
{
	const uint8_t *before = page;
	struct page_record record;
	struct page_walk walk;
	size_t count = 0;

	page_walk_start(&walk, layout, page, length);
	while (page_walk_next(&walk, &record)) {
		check(record.data > before);
		check(record.data + record.size <= page + length);
		before = record.data;
		count++;
	}
	*last_ts = walk.ts;
	return count;
}

/* The records of a page in another one, one by one, until it is full. */
static void copy_records(struct page_build *build, const struct page_layout *layout,
			 const uint8_t *page, size_t length)
{
	struct page_record record;
	struct page_walk source;
	uint64_t last, expected;
	size_t count = 0;

	page_walk_start(&source, layout, page, length);
	page_build_start(build, source.ts, source.lost);
	expected = source.ts;
	while (page_walk_next(&source, &record)) {
		if (!page_build_record(build, record.ts, record.data, record.size))
			break;
		/* a time that goes back stays where it is: pages cannot say that */
		expected = record.ts > expected ? record.ts : expected;
		count++;
	}
	check(walk(layout, page_build_bytes(build), layout->size, &last) == count);
	check(last == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page_layout layout = { .commit_offset = 8 };
	struct page_build build;
	uint64_t last, again;
	uint8_t *page;
	size_t count;

	if (size < 1)
		return 0;
	layout.big_endian = data[0] & 1;
	layout.swap = layout.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	layout.long_size = data[0] & 2 ? 4 : 8;
	layout.data_offset = 8 + layout.long_size;
	layout.size = 4096;
	data++;
	size--;
	if (size > layout.size)
		size = layout.size;
	page = malloc(size ? size : 1); /* of its very size, for the sanitizer */
	check(page != NULL);
	memcpy(page, data, size);
	count = walk(&layout, page, size, &last);
	check(page_build_init(&build, &layout) == 0);
	copy_records(&build, &layout, page, size);
	if (page_build_take(&build, page, size)) {
		check(walk(&layout, page_build_bytes(&build), layout.size, &again) == count);
		check(again == last);
		if (page_build_append(&build, page, size))
			check(walk(&layout, page_build_bytes(&build), layout.size, &again) ==
			      2 * count);
	}
	page_build_free(&build);
	free(page);
	return 0;
}
