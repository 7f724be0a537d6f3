/* SPDX-License-Identifier: MIT */
#include "merge.h"

#include <stdlib.h>

/* One CPU's sub-buffers, oldest first, and where its walk stands. */
struct lane {
	struct page_buffer *first;
	struct page_buffer **last;
	unsigned int pages;
	uint32_t cpu;
	uint32_t rank;
	uint64_t newest_start;
	uint64_t last_ts;  /* of the record handed out last; 0 before the first */
	uint64_t position; /* where it stands in the heap, see set_position() */
	uint64_t lost;	   /* before @record */
	uint64_t damaged_at;
	enum loss_why lost_why;
	const struct time_map *time; /* NULL: timestamps are what they are */
	struct lane *next_starved;
	bool started;  /* the walk belongs to @first */
	uint32_t turn; /* counts the sub-buffers that were begun; not 0 once one was */
	struct page_walk walk;
	struct page_record record; /* the next one, while the lane is in the heap */
};

struct merge {
	struct page_layout layout;
	unsigned int lane_pages;
	unsigned int lane_count;
	unsigned int heap_size;
	uint64_t newest_ts; /* of all records handed out */
	uint64_t late;
	struct page_buffer *spare;
	merge_source source; /* NULL: sub-buffers are pushed */
	void *source_context;
	struct lane *starved; /* lanes that have run out and not asked the source yet */
	struct lane *lanes;
	struct lane *heap[]; /* lanes with a record, the oldest at the top */
};

struct merge *merge_create(const struct page_layout *layout, const unsigned int *cpus,
			   unsigned int cpu_count, unsigned int lane_pages)
{
	struct merge *merge = calloc(1, sizeof(*merge) + cpu_count * sizeof(merge->heap[0]));

	if (!merge)
		return NULL;
	merge->layout = *layout;
	merge->lane_pages = lane_pages < 2 ? 2 : lane_pages;
	merge->lane_count = cpu_count;
	merge->lanes = calloc(cpu_count ? cpu_count : 1, sizeof(*merge->lanes));
	if (!merge->lanes) {
		free(merge);
		return NULL;
	}
	for (unsigned int i = 0; i < cpu_count; i++) {
		merge->lanes[i].cpu = cpus[i];
		merge->lanes[i].rank = cpus[i];
		merge->lanes[i].last = &merge->lanes[i].first;
	}
	return merge;
}

static void free_buffers(struct page_buffer *buffer)
{
	while (buffer) {
		struct page_buffer *next = buffer->next;

		free(buffer);
		buffer = next;
	}
}

void merge_free(struct merge *merge)
{
	if (!merge)
		return;
	for (unsigned int i = 0; i < merge->lane_count; i++)
		free_buffers(merge->lanes[i].first);
	free_buffers(merge->spare);
	free(merge->lanes);
	free(merge);
}

struct page_buffer *merge_get_buffer(struct merge *merge)
{
	struct page_buffer *buffer = merge->spare;

	if (buffer)
		merge->spare = buffer->next;
	else
		buffer = malloc(sizeof(*buffer) + merge->layout.size);
	if (buffer) {
		buffer->next = NULL;
		buffer->offset = 0;
		buffer->length = 0;
	}
	return buffer;
}

void merge_put_buffer(struct merge *merge, struct page_buffer *buffer)
{
	buffer->next = merge->spare;
	merge->spare = buffer;
}

void merge_set_rank(struct merge *merge, unsigned int lane, uint32_t rank)
{
	merge->lanes[lane].rank = rank;
}

void merge_set_time_map(struct merge *merge, unsigned int lane, const struct time_map *map)
{
	merge->lanes[lane].time = map;
}

bool merge_is_full(const struct merge *merge, unsigned int lane)
{
	return merge->lanes[lane].pages >= merge->lane_pages;
}

uint64_t merge_newest_start(const struct merge *merge, unsigned int lane)
{
	return merge->lanes[lane].newest_start;
}

static bool older(const struct lane *a, const struct lane *b)
{
	if (a->position != b->position)
		return a->position < b->position;
	return a->rank < b->rank;
}

static void heap_down(struct merge *merge, unsigned int at)
{
	struct lane *lane = merge->heap[at];

	for (;;) {
		unsigned int child = 2 * at + 1;

		if (child >= merge->heap_size)
			break;
		if (child + 1 < merge->heap_size &&
		    older(merge->heap[child + 1], merge->heap[child]))
			child++;
		if (!older(merge->heap[child], lane))
			break;
		merge->heap[at] = merge->heap[child];
		at = child;
	}
	merge->heap[at] = lane;
}

static void heap_add(struct merge *merge, struct lane *lane)
{
	unsigned int at = merge->heap_size++;

	while (at > 0) {
		unsigned int parent = (at - 1) / 2;

		if (!older(lane, merge->heap[parent]))
			break;
		merge->heap[at] = merge->heap[parent];
		at = parent;
	}
	merge->heap[at] = lane;
}

/*
 * A loss stands right behind the record before the gap: who hears of it then has seen
 * nothing yet, of any CPU, that is later than the start of the gap.
 */
static void set_position(struct lane *lane)
{
	lane->position = lane->lost ? lane->last_ts : lane->record.ts;
}

static void add_loss(struct lane *lane, uint64_t lost, enum loss_why why)
{
	if (!lost)
		return;
	/* damage explains records that nothing else accounts for: it must not be hidden */
	if (!lane->lost || why == LOSS_DAMAGED)
		lane->lost_why = why;
	if (lost == PAGE_LOST_UNKNOWN || lane->lost == PAGE_LOST_UNKNOWN)
		lane->lost = PAGE_LOST_UNKNOWN;
	else
		lane->lost += lost;
}

/*
 * Moves a lane to its next record, in the next page if need be. A page that is used up
 * goes to the spare ones with its bytes untouched: the item handed out last may point into
 * it until one is asked for.
 */
static bool lane_next_page(struct merge *merge, struct lane *lane)
{
	while (lane->first) {
		struct page_buffer *buffer = lane->first;

		if (!lane->started) {
			page_walk_start(&lane->walk, &merge->layout, buffer->bytes, buffer->length);
			add_loss(lane, lane->walk.lost, LOSS_OVERRUN);
			lane->started = true;
			lane->turn++;
		}
		if (page_walk_next(&lane->walk, &lane->record)) {
			if (lane->time)
				lane->record.ts = time_map_apply(lane->time, lane->record.ts);
			set_position(lane);
			return true;
		}
		if (lane->walk.damage) {
			lane->damaged_at = buffer->offset + page_walk_offset(&lane->walk);
			add_loss(lane, PAGE_LOST_UNKNOWN, LOSS_DAMAGED);
		}

		lane->first = buffer->next;
		if (!lane->first)
			lane->last = &lane->first;
		lane->pages--;
		lane->started = false;
		merge_put_buffer(merge, buffer);
	}
	return false;
}

/* The same for a lane whose loss, if it had one, has been handed out. */
static inline bool lane_advance(struct merge *merge, struct lane *lane)
{
	if (!page_walk_next(&lane->walk, &lane->record))
		return lane_next_page(merge, lane);
	if (lane->time)
		lane->record.ts = time_map_apply(lane->time, lane->record.ts);
	lane->position = lane->record.ts;
	return true;
}

void merge_push(struct merge *merge, unsigned int index, struct page_buffer *buffer)
{
	struct lane *lane = &merge->lanes[index];
	bool was_empty = !lane->first;
	struct page_walk walk;

	buffer->next = NULL;
	*lane->last = buffer;
	lane->last = &buffer->next;
	lane->pages++;
	page_walk_start(&walk, &merge->layout, buffer->bytes, buffer->length);
	if (walk.ts > lane->newest_start)
		lane->newest_start = walk.ts;
	if (was_empty && lane_next_page(merge, lane))
		heap_add(merge, lane);
}

static void starve(struct merge *merge, struct lane *lane)
{
	lane->next_starved = merge->starved;
	merge->starved = lane;
}

void merge_set_source(struct merge *merge, merge_source source, void *context)
{
	merge->source = source;
	merge->source_context = context;
	for (unsigned int i = 0; i < merge->lane_count; i++)
		starve(merge, &merge->lanes[i]);
}

/*
 * Asks for what lanes have run out of. Not done when they do, because the item that was
 * handed out then lies in the last sub-buffer, which is used again here.
 */
void merge_feed(struct merge *merge)
{
	while (merge->starved) {
		struct lane *lane = merge->starved;
		unsigned int index = (unsigned int)(lane - merge->lanes);
		struct page_buffer *buffer = NULL;

		merge->starved = lane->next_starved;
		do {
			buffer = merge->source(merge->source_context, index);
			if (buffer)
				merge_push(merge, index, buffer);
		} while (buffer && !lane->first);
	}
}

/* A loss at the very end of what a CPU has: no record comes behind it. */
static struct lane *lane_with_trailing_loss(const struct merge *merge)
{
	for (unsigned int i = 0; i < merge->lane_count; i++) {
		if (merge->lanes[i].lost && !merge->lanes[i].first)
			return &merge->lanes[i];
	}
	return NULL;
}

static enum item_kind take_loss(const struct merge *merge, struct lane *lane, uint64_t before_ts,
				struct item *item)
{
	item->kind = ITEM_LOST;
	item->loss = (struct loss){
		.count = lane->lost,
		.after_ts = lane->last_ts,
		.before_ts = before_ts,
		.cpu = lane->cpu,
		.lane = (uint16_t)(lane - merge->lanes),
		.why = lane->lost_why,
		.offset = lane->damaged_at,
		.is_placed = before_ts != 0,
	};
	lane->lost = 0;
	return ITEM_LOST;
}

bool merge_is_ready(const struct merge *merge, uint64_t watermark)
{
	return merge->heap_size > 0 && merge->heap[0]->position <= watermark;
}

enum item_kind merge_next(struct merge *merge, uint64_t watermark, struct item *item)
{
	struct lane *lane;
	uint64_t ts;

	if (merge->starved)
		merge_feed(merge);
	if (!merge_is_ready(merge, watermark)) {
		if (watermark == UINT64_MAX) {
			lane = lane_with_trailing_loss(merge);
			if (lane)
				return take_loss(merge, lane, 0, item);
		}
		return item->kind = ITEM_NONE;
	}
	lane = merge->heap[0];
	ts = lane->record.ts;
	if (lane->lost) {
		take_loss(merge, lane, ts, item);
		set_position(lane);
		heap_down(merge, 0);
		return ITEM_LOST;
	}

	item->kind = ITEM_EVENT;
	item->event = (struct event){
		.ts = ts,
		.data = lane->record.data,
		.size = lane->record.size,
		.cpu = lane->cpu,
		.lane = (uint16_t)(lane - merge->lanes),
		.late = ts < merge->newest_ts,
	};
	lane->last_ts = ts;
	if (item->event.late)
		merge->late++;
	else
		merge->newest_ts = ts;
	if (!lane_advance(merge, lane)) {
		merge->heap[0] = merge->heap[--merge->heap_size];
		if (merge->source)
			starve(merge, lane);
	}
	if (merge->heap_size > 1)
		heap_down(merge, 0);
	return ITEM_EVENT;
}

enum peek_result merge_peek(const struct merge *merge, unsigned int index, struct merge_peek *peek,
			    struct page_record *record)
{
	const struct lane *lane = &merge->lanes[index];

	if (!peek->buffer) {
		if (lane->lost)
			return PEEK_GAP;
		if (!lane->first)
			return PEEK_END;
		peek->buffer = lane->first;
		peek->walk = lane->walk;
		*record = lane->record;
		return PEEK_RECORD;
	}
	while (!page_walk_next(&peek->walk, record)) {
		if (peek->walk.damage)
			return PEEK_GAP;
		if (!peek->buffer->next)
			return PEEK_END;
		peek->buffer = peek->buffer->next;
		peek->turned = true;
		page_walk_start(&peek->walk, &merge->layout, peek->buffer->bytes,
				peek->buffer->length);
		if (peek->walk.lost)
			return PEEK_GAP;
	}
	return PEEK_RECORD;
}

bool merge_look(const struct merge *merge, unsigned int index, struct merge_look *look,
		struct page_record *record, bool *passed)
{
	const struct lane *lane = &merge->lanes[index];

	if (!lane->first || !lane->started)
		return false;
	*passed = look->turn != lane->turn || look->walk.next < lane->walk.next;
	if (*passed) {
		look->turn = lane->turn;
		look->walk = lane->walk;
	}
	return page_walk_next(&look->walk, record);
}

bool merge_is_in_first(const struct merge *merge, unsigned int index, const uint8_t *data)
{
	const struct page_buffer *first = merge->lanes[index].first;

	return first && (uintptr_t)data - (uintptr_t)first->bytes < merge->layout.size;
}

bool merge_ask(struct merge *merge, unsigned int index)
{
	struct lane *lane = &merge->lanes[index];
	struct page_buffer *buffer;

	if (!merge->source)
		return false;
	if (!lane->first) {
		merge_feed(merge);
		return lane->first != NULL;
	}
	buffer = merge->source(merge->source_context, index);
	if (buffer)
		merge_push(merge, index, buffer);
	return buffer != NULL;
}

bool merge_is_empty(const struct merge *merge)
{
	return merge->heap_size == 0 && !lane_with_trailing_loss(merge);
}

bool merge_first_ts(const struct merge *merge, uint64_t *ts)
{
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < merge->heap_size; i++)
		if (merge->heap[i]->record.ts < first)
			first = merge->heap[i]->record.ts;
	*ts = first;
	return merge->heap_size > 0;
}

uint64_t merge_late(const struct merge *merge)
{
	return merge->late;
}
