/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PAGEBUILD_H
#define LUATRACE_PAGEBUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page.h"

/*
 * Makes sub-buffers as a kernel does, of any byte order and long size: for files that hold
 * other pages than the kernel's own. Starts as all zeroes; page_build_free().
 */
struct page_build {
	struct page_layout layout;
	uint8_t *bytes; /* of layout.size */
	size_t used;	/* behind the header */
	uint64_t ts;	/* of the last record */
	uint64_t lost;	/* before the first one */
	bool is_open;
};

/* 0 or -1 when memory is short. */
int page_build_init(struct page_build *build, const struct page_layout *layout);
void page_build_free(struct page_build *build);

/* An empty page that starts at @ts, behind a loss of @lost records (or PAGE_LOST_UNKNOWN). */
void page_build_start(struct page_build *build, uint64_t ts, uint64_t lost);

/* False when there is no room for it, or it is years behind the one before: start the next page. */
bool page_build_record(struct page_build *build, uint64_t ts, const uint8_t *data, uint32_t size);

/*
 * Adds all records of a page of the same layout behind those that are there. False, and
 * nothing done, when they do not fit, with the count of a loss before the first one, or a loss
 * lies between.
 */
bool page_build_append(struct page_build *build, const uint8_t *page, size_t length);

/* Begins with the records of a page that is not full; false when more cannot be added to it. */
bool page_build_take(struct page_build *build, const uint8_t *page, size_t length);

/* The page as it stands, of layout.size bytes, zeroes behind the records. */
const uint8_t *page_build_bytes(struct page_build *build);

#endif
