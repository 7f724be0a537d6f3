/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "datacut_state.h"

/* The records of one CPU, of which some go into new pages. */

#define READ_BYTES ((size_t)256 << 10)

static uint64_t add_loss(uint64_t sum, uint64_t lost)
{
	return sum == PAGE_LOST_UNKNOWN || lost == PAGE_LOST_UNKNOWN ? PAGE_LOST_UNKNOWN :
								       sum + lost;
}

int cut_lane_begin(struct datacut *cut, unsigned int index, uint32_t page_size,
		   struct trace_error *error)
{
	const struct file_lane *from = &cut->stream->lanes[index];
	struct cut_lane *lane = &cut->lane;

	lane->layout = *datafile_layout(cut->file);
	lane->layout.size = page_size;
	if (page_build_init(&lane->page, &lane->layout) < 0)
		return error_set(error, ENOMEM, "no memory for a page of CPU %u", from->cpu->cpu);
	lane->pages = datapages_open(cut->file, from->buffer, from->cpu_index, READ_BYTES);
	if (!lane->pages)
		return error_set(error, ENOMEM, "no memory for the pages of CPU %u",
				 from->cpu->cpu);
	return 0;
}

static int flush_page(struct datacut *cut, struct trace_error *error)
{
	struct cut_lane *lane = &cut->lane;

	if (!lane->page.is_open)
		return 0;
	lane->page.is_open = false;
	return datacut_put_page(cut, page_build_bytes(&lane->page), lane->layout.size, error);
}

static void start_page(struct cut_lane *lane, uint64_t ts)
{
	page_build_start(&lane->page, ts, lane->lost);
	if (lane->lost != PAGE_LOST_UNKNOWN)
		lane->told += lane->lost;
	lane->lost = 0;
}

/* The count of a loss stands behind the records: they must leave room for it. */
static bool leaves_room(const struct page_build *page, uint32_t size)
{
	size_t room = page->layout.size - page->layout.data_offset - page->used;

	return !page->lost || page->lost == PAGE_LOST_UNKNOWN || !page->used ||
	       size + 20u + page->layout.long_size <= room;
}

static int take(struct datacut *cut, const struct page_record *record, struct trace_error *error)
{
	struct cut_lane *lane = &cut->lane;

	lane->taken++;
	cut->records++;
	if (lane->page.is_open && !lane->lost && leaves_room(&lane->page, record->size) &&
	    page_build_record(&lane->page, record->ts, record->data, record->size))
		return 0;
	if (flush_page(cut, error) < 0)
		return -1;
	start_page(lane, record->ts);
	if (page_build_record(&lane->page, record->ts, record->data, record->size))
		return 0;
	return error_set(error, EINVAL, "cannot cut %s: a record of %u bytes fits into no page",
			 datafile_path(cut->file), record->size);
}

/* A gap that ends at @ts, if it ends, is told of where a part of it lies in the range. */
static void settle_gap(const struct datacut *cut, struct cut_lane *lane, uint64_t ts)
{
	if (!lane->gap)
		return;
	if (ts >= cut->stream->from && lane->last_ts <= cut->stream->to)
		lane->lost = add_loss(lane->lost, lane->gap);
	else if (lane->gap != PAGE_LOST_UNKNOWN)
		lane->left_out += lane->gap;
	lane->gap = 0;
}

int cut_lane_step(struct datacut *cut, unsigned int index, uint64_t *bytes,
		  struct trace_error *error)
{
	const struct file_lane *from = &cut->stream->lanes[index];
	struct cut_lane *lane = &cut->lane;
	struct page_record record;
	struct page_walk walk;
	uint64_t offset;
	size_t length;

	length = datapages_next(lane->pages, cut->in, datafile_layout(cut->file)->size, &offset);
	if (!length)
		return 0;
	*bytes += length;
	page_walk_start(&walk, &lane->layout, cut->in, length);
	lane->gap = add_loss(lane->gap, walk.lost);
	while (page_walk_next(&walk, &record)) {
		struct event event = {
			.ts = time_map_apply(&from->time, record.ts),
			.data = record.data,
			.size = record.size,
			.cpu = from->cpu->cpu,
			.lane = (uint16_t)index,
		};

		if (cut->options.only_delivered && lane->taken == from->delivered)
			return 0;
		settle_gap(cut, lane, event.ts);
		lane->last_ts = event.ts;
		if (filestream_takes(cut->stream, &event) && take(cut, &record, error) < 0)
			return -1;
	}
	if (walk.damage) {
		datafile_note_damage(cut->file, offset, "a sub-buffer of CPU %u makes no sense",
				     from->cpu->cpu);
		lane->gap = PAGE_LOST_UNKNOWN;
	}
	return 1;
}

int cut_lane_end(struct datacut *cut, unsigned int index, struct trace_error *error)
{
	const struct datafile_stats *stats = &cut->stream->lanes[index].cpu->stats;
	struct datafile_stats *left = &cut->stats[index];
	struct cut_lane *lane = &cut->lane;
	uint64_t told;

	if (flush_page(cut, error) < 0)
		return -1;
	if (!cut->options.only_delivered)
		settle_gap(cut, lane, UINT64_MAX);
	/* no page tells of what was lost behind the last record: the count does */
	told = lane->told + (lane->lost == PAGE_LOST_UNKNOWN ? 0 : lane->lost);
	*left = *stats;
	left->overrun = 0;
	if (!cut->options.only_delivered && stats->overrun > lane->left_out)
		left->overrun = stats->overrun - lane->left_out;
	if (left->overrun < told) {
		left->overrun = told;
		left->is_known = true;
	}
	return 0;
}
