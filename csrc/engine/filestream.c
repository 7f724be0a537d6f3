/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "filestream_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What is read ahead of all CPUs together, and of one at most. */
#define AHEAD_ALL ((size_t)32 << 20)
#define AHEAD_ONE ((size_t)256 << 10)

#define MAX_LANES UINT16_MAX

static const struct stream_ops file_ops;

bool filestream_is(const struct stream *stream)
{
	return stream->ops == &file_ops;
}

static struct page_buffer *next_page(void *context, unsigned int index)
{
	struct file_stream *stream = context;
	struct page_buffer *buffer;

	if (!stream->lanes[index].is_wanted)
		return NULL;
	buffer = merge_get_buffer(stream->merge);
	if (!buffer) {
		datafile_note_damage(stream->file, 0, "no memory for another sub-buffer");
		return NULL;
	}
	buffer->length = datapages_next(stream->lanes[index].pages, buffer->bytes,
					datafile_layout(stream->file)->size, &buffer->offset);
	if (!buffer->length) {
		merge_put_buffer(stream->merge, buffer);
		return NULL;
	}
	return buffer;
}

static bool is_wanted_buffer(const struct datafile_buffer *buffer, const char *name)
{
	return !buffer->is_text && (!name || strcmp(buffer->name, name) == 0);
}

/* Counts the CPUs of the wanted buffers; -1 when there is no such buffer. */
static int count_lanes(struct datafile *file, const char *name, struct trace_error *error)
{
	bool has_buffer = false;
	size_t count = 0;

	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		const struct datafile_buffer *buffer = datafile_buffer(file, i);

		if (!is_wanted_buffer(buffer, name))
			continue;
		has_buffer = true;
		count += buffer->cpu_count;
	}
	if (!has_buffer && name)
		return error_set(error, ENOENT, "%s has no buffer \"%s\" with records",
				 datafile_path(file), name);
	if (count > MAX_LANES)
		return error_set(error, E2BIG, "%s has records of %zu CPUs: too many",
				 datafile_path(file), count);
	return (int)count;
}

static void set_lanes(struct file_stream *stream, const char *name)
{
	struct datafile *file = stream->file;
	unsigned int lane = 0;

	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		const struct datafile_buffer *buffer = datafile_buffer(file, i);

		for (unsigned int k = 0; is_wanted_buffer(buffer, name) && k < buffer->cpu_count;
		     k++) {
			stream->lanes[lane].buffer = buffer;
			stream->lanes[lane].cpu = &buffer->cpus[k];
			stream->lanes[lane].cpu_index = k;
			stream->lanes[lane].is_wanted = true;
			datafile_time_map(file, buffer->cpus[k].cpu, &stream->lanes[lane].time);
			lane++;
		}
	}
}

/* Starts the reading of all CPUs. */
static int open_lanes(struct file_stream *stream)
{
	size_t ahead = AHEAD_ALL / (stream->lane_count ? stream->lane_count : 1);
	unsigned int *cpus;

	if (ahead > AHEAD_ONE)
		ahead = AHEAD_ONE;
	cpus = calloc(stream->lane_count + 1, sizeof(*cpus));
	if (!cpus)
		return -1;
	for (unsigned int i = 0; i < stream->lane_count; i++)
		cpus[i] = stream->lanes[i].cpu->cpu;
	stream->merge = merge_create(datafile_layout(stream->file), cpus, stream->lane_count, 2);
	free(cpus);
	if (!stream->merge)
		return -1;
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		struct file_lane *lane = &stream->lanes[i];

		lane->pages = datapages_open(stream->file, lane->buffer, lane->cpu_index, ahead);
		if (!lane->pages)
			return -1;
		merge_set_rank(stream->merge, i, i);
		if (!time_map_is_identity(&lane->time))
			merge_set_time_map(stream->merge, i, &lane->time);
	}
	merge_set_source(stream->merge, next_page, stream);
	return 0;
}

static int open_waiting(struct file_stream *stream)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };

	stream->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	stream->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stream->epoll_fd < 0 || stream->event_fd < 0)
		return -1;
	return epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, stream->event_fd, &event);
}

struct stream *filestream_open(struct datafile *file, const struct catalog *catalog,
			       const struct filestream_options *options, struct trace_error *error)
{
	struct file_stream *stream;
	int count;

	count = count_lanes(file, options->buffer, error);
	if (count < 0)
		return NULL;
	stream = calloc(1, sizeof(*stream) + (size_t)count * sizeof(stream->lanes[0]));
	if (!stream) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	stream->base.ops = &file_ops;
	stream->file = datafile_get(file);
	stream->catalog = catalog;
	stream->partial = options->partial;
	stream->epoll_fd = -1;
	stream->event_fd = -1;
	stream->to = UINT64_MAX;
	stream->lane_count = (unsigned int)count;
	set_lanes(stream, options->buffer);
	if (open_waiting(stream) < 0) {
		int err = errno;

		error_set(error, err, "cannot wait for events: %s", strerror(err));
		goto fail;
	}
	if (open_lanes(stream) < 0) {
		error_set(error, ENOMEM, "no memory for the records of %d CPUs", count);
		goto fail;
	}
	return &stream->base;

fail:
	stream_close(&stream->base);
	return NULL;
}

static void file_close(struct stream *base)
{
	struct file_stream *stream = to_file(base);

	for (unsigned int i = 0; i < stream->lane_count; i++)
		datapages_close(stream->lanes[i].pages);
	for (unsigned int id = 0; id <= UINT16_MAX; id++)
		record_filter_free(stream->filters[id]);
	if (stream->event_fd >= 0)
		close(stream->event_fd);
	if (stream->epoll_fd >= 0)
		close(stream->epoll_fd);
	merge_free(stream->merge);
	sampler_free(&stream->base.sampler);
	datafile_put(stream->file);
	free(stream);
}

static int file_fd(const struct stream *base)
{
	return to_const_file(base)->epoll_fd;
}

static int file_watch(struct stream *base, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };

	return epoll_ctl(to_file(base)->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int file_unwatch(struct stream *base, int fd)
{
	return epoll_ctl(to_file(base)->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Of all records, also those that are not selected; asked before the first is handed out. */
bool filestream_first_ts(struct stream *base, uint64_t *ts)
{
	struct file_stream *stream = to_file(base);

	merge_feed(stream->merge);
	if (!stream->has_first && merge_first_ts(stream->merge, &stream->first_ts))
		stream->has_first = true;
	*ts = stream->first_ts;
	return stream->has_first;
}

uint64_t filestream_last_ts(const struct stream *base)
{
	return to_const_file(base)->last_ts;
}

/* Does a part of the gap lie in the range? Of one that no record follows the end is not known. */
static bool is_in_range(const struct file_stream *stream, const struct loss *loss)
{
	return loss->after_ts <= stream->to &&
	       (!loss->is_placed || loss->before_ts >= stream->from);
}

/* False when it is not to be told of. */
static bool takes_loss(struct file_stream *stream, const struct loss *loss)
{
	struct file_lane *lane = &stream->lanes[loss->lane];

	if (loss->why == LOSS_DAMAGED)
		datafile_note_damage(stream->file, loss->offset,
				     "a sub-buffer of CPU %u makes no sense", loss->cpu);
	if (!is_in_range(stream, loss)) {
		if (loss->count != PAGE_LOST_UNKNOWN)
			lane->left_out += loss->count;
		return false;
	}
	if (loss->count == PAGE_LOST_UNKNOWN)
		lane->has_unknown_loss = true;
	else
		lane->lost_told += loss->count;
	return true;
}

/* By the statistics without what lies outside of the range, or by the pages if that is more. */
static uint64_t overrun_of(const struct file_lane *lane)
{
	uint64_t overrun = lane->cpu->stats.overrun;

	overrun -= overrun < lane->left_out ? overrun : lane->left_out;
	return overrun > lane->lost_told ? overrun : lane->lost_told;
}

/* What the file's statistics say was lost, and no page told of. */
static bool next_stat_loss(struct file_stream *stream, struct item *item)
{
	for (; stream->stat_lane < 3 * stream->lane_count; stream->stat_lane++) {
		unsigned int index = stream->stat_lane / 3;
		struct file_lane *lane = &stream->lanes[index];
		const struct datafile_stats *stats = &lane->cpu->stats;
		enum loss_why why = LOSS_OVERRUN;
		uint64_t count = 0;

		switch (stream->stat_lane % 3) {
		case 0:
			count = overrun_of(lane) - lane->lost_told;
			break;
		case 1:
			why = LOSS_DROPPED;
			count = stats->dropped;
			break;
		default:
			why = LOSS_COMMIT_OVERRUN;
			count = stats->commit_overrun;
			break;
		}
		if (!count || !lane->is_wanted)
			continue;
		lane->lost_at_end += count;
		*item = (struct item){
			.kind = ITEM_LOST,
			.loss = {
				.count = count,
				.after_ts = stream->last_ts,
				.cpu = lane->cpu->cpu,
				.lane = (uint16_t)index,
				.why = why,
			},
		};
		stream->stat_lane++;
		return true;
	}
	return false;
}

static enum item_kind hand_out(struct file_stream *stream, struct item *item)
{
	stream->lanes[item->event.lane].delivered++;
	stream->last_ts = item->event.ts;
	return ITEM_EVENT;
}

static enum item_kind end(struct file_stream *stream, struct item *item)
{
	stream->is_over = true;
	if (next_stat_loss(stream, item))
		return ITEM_LOST;
	/* the error is stream_fill()'s, which is called when there is nothing */
	if (datafile_damage(stream->file) && !stream->partial && !stream->is_failed)
		return item->kind = ITEM_NONE;
	return item->kind = ITEM_END;
}

static bool is_sampled(struct file_stream *stream, struct event *event)
{
	return sampler_takes(&stream->base.sampler,
			     catalog_record_type(stream->catalog, event->data, event->size), event);
}

static enum item_kind file_next(struct stream *base, struct item *item)
{
	struct file_stream *stream = to_file(base);

	if (stream->is_held) {
		stream->is_held = false;
		*item = (struct item){ .kind = ITEM_EVENT, .event = stream->held };
		if (!stream->tick_ts || stream->tick_ts >= item->event.ts)
			return hand_out(stream, item);
		goto tick;
	}
	while (!stream->is_over) {
		switch (merge_next(stream->merge, UINT64_MAX, item)) {
		case ITEM_EVENT:
			if (!filestream_takes(stream, &item->event))
				continue;
			if (!is_sampled(stream, &item->event)) {
				stream->lanes[item->event.lane].skipped++;
				continue;
			}
			if (!stream->tick_ts || stream->tick_ts >= item->event.ts)
				return hand_out(stream, item);
			goto tick;
		case ITEM_LOST:
			if (!takes_loss(stream, &item->loss))
				continue;
			return ITEM_LOST;
		default:
			stream->is_over = true;
			break;
		}
	}
	return end(stream, item);

tick:
	/* its bytes stay where they are until the merge is asked again */
	stream->held = item->event;
	stream->is_held = true;
	item->tick_ts = stream->tick_ts;
	stream->tick_ts = 0;
	return item->kind = ITEM_TICK;
}

static int file_fill(struct stream *base, struct trace_error *error)
{
	struct file_stream *stream = to_file(base);
	const char *damage = datafile_damage(stream->file);

	if (!stream->is_over || !damage || stream->partial || stream->is_failed)
		return 0;
	stream->is_failed = true;
	return error_set(error, EINVAL, "%s", damage);
}

static bool file_is_behind(const struct stream *base)
{
	(void)base;
	return false;
}

/* stream_fd() is readable as it is. */
static void file_kick(struct stream *base)
{
	(void)base;
}

static void file_set_tick(struct stream *base, uint64_t ts)
{
	to_file(base)->tick_ts = ts;
}

/* Nobody waits for what a file still has: it ends before the next record. */
static void file_finish(struct stream *base)
{
	struct file_stream *stream = to_file(base);

	stream->is_over = true;
	stream->is_held = false;
	stream->stat_lane = 3 * stream->lane_count;
}

static int file_keep(struct stream *base, unsigned int id)
{
	(void)base;
	return id > UINT16_MAX ? -1 : 0;
}

/* Counts what a whole reading delivers, with a look at all records. */
static int count_lane(struct file_stream *stream, unsigned int index)
{
	struct file_lane *lane = &stream->lanes[index];
	const struct page_layout *layout = datafile_layout(stream->file);
	struct datapages *pages;
	uint8_t *bytes = malloc(layout->size);
	uint64_t offset;
	size_t length;

	pages = datapages_open(stream->file, lane->buffer, lane->cpu_index, AHEAD_ONE);
	lane->total = 0;
	while (bytes && pages && lane->is_wanted &&
	       (length = datapages_next(pages, bytes, layout->size, &offset))) {
		struct page_record record;
		struct page_walk walk;

		page_walk_start(&walk, layout, bytes, length);
		while (page_walk_next(&walk, &record)) {
			struct event event = {
				.ts = time_map_apply(&lane->time, record.ts),
				.data = record.data,
				.size = record.size,
				.cpu = lane->cpu->cpu,
			};

			lane->total += filestream_takes(stream, &event);
		}
	}
	datapages_close(pages);
	free(bytes);
	return bytes && pages ? 0 : -1;
}

/*
 * What is still to come has to be counted. Once all has been read nothing is, but where
 * the file is damaged or the run was ended before; that is what has been lost.
 */
static int file_counts(struct stream *base, unsigned int index, struct stream_counts *counts,
		       struct trace_error *error)
{
	struct file_stream *stream = to_file(base);
	const struct file_lane *lane = &stream->lanes[index];
	bool is_ended = stream->is_over && merge_is_empty(stream->merge);

	if (!is_ended && !stream->is_counted) {
		for (unsigned int i = 0; i < stream->lane_count; i++)
			if (count_lane(stream, i) < 0)
				return error_set(error, ENOMEM, "out of memory");
		stream->is_counted = true;
	}
	*counts = (struct stream_counts){
		.delivered = lane->delivered,
		.skipped = lane->skipped,
	};
	if (lane->is_wanted) {
		counts->overrun = overrun_of(lane);
		counts->dropped = lane->cpu->stats.dropped;
		counts->commit_overrun = lane->cpu->stats.commit_overrun;
	}
	counts->lost = counts->overrun + counts->dropped + counts->commit_overrun;
	if (!is_ended && lane->total > lane->delivered + lane->skipped)
		counts->pending = lane->total - lane->delivered - lane->skipped;
	counts->produced = counts->delivered + counts->lost + counts->pending;
	return 0;
}

static unsigned int file_cpu_count(const struct stream *base)
{
	return to_const_file(base)->lane_count;
}

static unsigned int file_cpu(const struct stream *base, unsigned int index)
{
	return to_const_file(base)->lanes[index].cpu->cpu;
}

static struct merge *file_merge(const struct stream *base)
{
	return to_const_file(base)->merge;
}

static enum stream_more file_more(struct stream *base, unsigned int index)
{
	return merge_ask(to_file(base)->merge, index) ? MORE_NOW : MORE_NEVER;
}

static bool file_may_skip(const struct stream *base, unsigned int index)
{
	const struct datafile_stats *stats = &to_const_file(base)->lanes[index].cpu->stats;

	return stats->dropped || stats->commit_overrun;
}

static uint64_t file_late(const struct stream *base)
{
	return merge_late(to_const_file(base)->merge);
}

static const struct stream_ops file_ops = {
	.close = file_close,
	.fd = file_fd,
	.watch = file_watch,
	.unwatch = file_unwatch,
	.fill = file_fill,
	.next = file_next,
	.merge = file_merge,
	.more = file_more,
	.may_skip = file_may_skip,
	.is_behind = file_is_behind,
	.kick = file_kick,
	.set_tick = file_set_tick,
	.finish = file_finish,
	.keep = file_keep,
	.counts = file_counts,
	.cpu_count = file_cpu_count,
	.cpu = file_cpu,
	.late = file_late,
};
