/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_MERGE_H
#define LUATRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "page.h"
#include "timemap.h"

/*
 * Makes one stream in time order out of the sub-buffers of several CPUs. Records of
 * one CPU keep the kernel's order; across CPUs the smaller timestamp comes first, and
 * of equal ones the smaller CPU (or rank). Losses are items of the stream: each stands right behind
 * the record of its CPU that came before the gap.
 */
struct merge;

/* One sub-buffer on its way through the merge. Got from it, given back by it. */
struct page_buffer {
	struct page_buffer *next;
	uint64_t offset; /* in the file that it comes from, if any */
	size_t length;
	uint8_t bytes[];
};

enum item_kind {
	ITEM_NONE, /* nothing that may be handed out yet */
	ITEM_EVENT,
	ITEM_LOST,
	ITEM_TICK,
	ITEM_END,
};

enum loss_why {
	LOSS_OVERRUN,	     /* overwritten before they were read */
	LOSS_DROPPED,	     /* the buffer was full and does not overwrite */
	LOSS_COMMIT_OVERRUN, /* written in an interrupt while the buffer was full */
	LOSS_DAMAGED,	     /* a page that makes no sense from some point on */
};

struct loss {
	uint64_t count;	    /* PAGE_LOST_UNKNOWN when the kernel does not say */
	uint64_t after_ts;  /* of the CPU's record before the gap; 0 if there was none */
	uint64_t before_ts; /* of the record behind the gap; 0 if there is none (yet) */
	uint32_t cpu;
	uint16_t lane; /* the CPU's place in the list */
	enum loss_why why;
	bool is_placed;	 /* it stands where it happened; else it is told afterwards */
	uint64_t offset; /* of LOSS_DAMAGED: in the file, if it comes from one */
};

struct item {
	enum item_kind kind;
	union {
		struct event event;
		struct loss loss;
		uint64_t tick_ts; /* the records before it are not newer than that */
	};
};

/* @lane_pages bounds how many sub-buffers one CPU may have in the merge; at least 2. */
struct merge *merge_create(const struct page_layout *layout, const unsigned int *cpus,
			   unsigned int cpu_count, unsigned int lane_pages);
void merge_free(struct merge *merge);

/*
 * For records that need not be waited for: when a lane has run out @source gives its next
 * sub-buffer, got from the merge, or NULL for ever. Nothing is pushed then.
 */
typedef struct page_buffer *(*merge_source)(void *context, unsigned int lane);
void merge_set_source(struct merge *merge, merge_source source, void *context);

/* Asks the source for lanes that have run out, as merge_next() does too. */
void merge_feed(struct merge *merge);

/* The time of the oldest record that waits; false when there is none. */
bool merge_first_ts(const struct merge *merge, uint64_t *ts);

/* What decides between lanes with equal timestamps instead of the CPU's number. */
void merge_set_rank(struct merge *merge, unsigned int lane, uint32_t rank);

/* How the timestamps of a lane are to be read; @map must outlive the merge. */
void merge_set_time_map(struct merge *merge, unsigned int lane, const struct time_map *map);

/* An empty buffer of the layout's size; NULL when memory is short. */
struct page_buffer *merge_get_buffer(struct merge *merge);
void merge_put_buffer(struct merge *merge, struct page_buffer *buffer);

/* Adds what was read of one CPU (an index into the list of CPUs, not its number). */
void merge_push(struct merge *merge, unsigned int lane, struct page_buffer *buffer);
bool merge_is_full(const struct merge *merge, unsigned int lane);

/* The time at which the newest sub-buffer of a lane starts; 0 before the first. */
uint64_t merge_newest_start(const struct merge *merge, unsigned int lane);

/*
 * The next item not newer than @watermark, or ITEM_NONE. An event's data is valid
 * until the next call of any function here. An event older than one handed out before is marked late.
 */
enum item_kind merge_next(struct merge *merge, uint64_t watermark, struct item *item);

/*
 * A look at the records of a lane that come behind the one that was handed out last, without
 * taking them; good until anything is pushed, got or taken. @turned: the one that was given last
 * is in another sub-buffer than the one that the look began in.
 */
struct merge_peek {
	const struct page_buffer *buffer; /* NULL: nothing was looked at yet */
	struct page_walk walk;
	bool turned;
};

enum peek_result {
	PEEK_RECORD,
	PEEK_GAP, /* something is lost here */
	PEEK_END, /* nothing more has been pushed */
};

enum peek_result merge_peek(const struct merge *merge, unsigned int lane, struct merge_peek *peek,
			    struct page_record *record);

/*
 * A look that goes on from call to call while records are taken: at those of the sub-buffer that
 * the lane is in, in turn, the next one that has not been looked at. What it finds has no time that
 * counts, and its data is good until the next call of any function here. Starts as zeroes.
 */
struct merge_look {
	uint32_t turn; /* of the lane, when the walk began */
	struct page_walk walk;
};

/* False when there is none. @passed: the lane has come past the look, which begins anew. */
bool merge_look(const struct merge *merge, unsigned int lane, struct merge_look *look,
		struct page_record *record, bool *passed);

/* Is @data in the sub-buffer that the lane's next record is in? */
bool merge_is_in_first(const struct merge *merge, unsigned int lane, const uint8_t *data);

/*
 * Asks the source for one more sub-buffer of a lane; false when there is none, or no source. The
 * bytes of the record that was handed out last are gone then.
 */
bool merge_ask(struct merge *merge, unsigned int lane);

/* True when there is a record, or a loss before one, that is not newer than @watermark. */
bool merge_is_ready(const struct merge *merge, uint64_t watermark);

/* True when nothing at all waits in it. */
bool merge_is_empty(const struct merge *merge);

uint64_t merge_late(const struct merge *merge);

#endif
