/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "filestream_state.h"

/* Which records of a file are handed out. */

int filestream_select(struct stream *base, int id, bool on)
{
	if (id < 0 || id > UINT16_MAX)
		return -1;
	to_file(base)->selected[id] = on;
	to_file(base)->is_counted = false;
	return 0;
}

void filestream_select_all(struct stream *base)
{
	struct file_stream *stream = to_file(base);

	memset(stream->selected, true, sizeof(stream->selected));
	stream->is_counted = false;
}

int filestream_set_filter(struct stream *base, int id, struct record_filter *filter)
{
	struct file_stream *stream = to_file(base);

	if (id < 0 || id > UINT16_MAX)
		return -1;
	record_filter_free(stream->filters[id]);
	stream->filters[id] = filter;
	stream->is_counted = false;
	return 0;
}

void filestream_set_range(struct stream *base, uint64_t from, uint64_t to)
{
	struct file_stream *stream = to_file(base);

	stream->from = from;
	stream->to = to;
	stream->is_counted = false;
}

void filestream_set_cpus(struct stream *base, const bool *wanted, unsigned int count)
{
	struct file_stream *stream = to_file(base);

	for (unsigned int i = 0; i < stream->lane_count; i++) {
		unsigned int cpu = stream->lanes[i].cpu->cpu;

		stream->lanes[i].is_wanted = cpu < count && wanted[cpu];
	}
	stream->is_counted = false;
}

bool filestream_takes(const struct file_stream *stream, const struct event *event)
{
	int id = catalog_record_type(stream->catalog, event->data, event->size);

	if (id < 0 || id > UINT16_MAX || !stream->selected[id] || event->ts < stream->from ||
	    event->ts > stream->to)
		return false;
	return !stream->filters[id] || record_filter_match(stream->filters[id], event);
}

void filestream_progress(const struct stream *base, uint64_t *done, uint64_t *all)
{
	const struct file_stream *stream = to_const_file(base);

	*done = *all = 0;
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		*done += datapages_position(stream->lanes[i].pages);
		*all += stream->lanes[i].cpu->size;
	}
}

const struct datafile_buffer *filestream_buffer(const struct stream *base, unsigned int lane)
{
	return to_const_file(base)->lanes[lane].buffer;
}
