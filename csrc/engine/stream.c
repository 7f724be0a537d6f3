/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stream_state.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bytes.h"

#define NS_PER_S UINT64_C(1000000000)

/*
 * What one fill takes of a CPU before the records are handed out. Few buffers go round: they
 * stay in the caches, and fewer are touched for the first time, which costs a page fault for
 * each 4 KiB (on a virtual machine more than reading the records in them).
 */
#define FILL_BYTES (UINT64_C(256) << 10)

static int read_layout(struct live_stream *stream, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result;

	result = instance_read(stream->instance, "events/header_page", &text, error);
	if (result == 0)
		result = page_layout_parse(&stream->layout, text.text ? text.text : "", text.length,
					   __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, error);
	strbuf_free(&text);
	return result;
}

/*
 * A CPU without a buffer (never online) answers with an error for ever: it is left out until a
 * record has come from it. One that is left out is still looked at with every interval.
 */
void stream_watch_lane(struct live_stream *stream, unsigned int index)
{
	struct lane_state *lane = &stream->lanes[index];
	struct pollfd now = { .fd = lane->reader.fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = index };

	if (poll(&now, 1, 0) > 0 && now.revents & (POLLERR | POLLHUP))
		return;
	lane->is_watched = epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, lane->reader.fd, &event) == 0;
}

static int open_waiting(struct live_stream *stream, struct trace_error *error)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };
	char percent[16];
	int length;

	/* epoll takes the threshold when a descriptor is added, so it is set first */
	length = snprintf(percent, sizeof(percent), "%u", stream->options.buffer_percent);
	if (!stream->options.snapshot && instance_has(stream->instance, "buffer_percent") &&
	    instance_write(stream->instance, "buffer_percent", percent, (size_t)length, error) < 0)
		return -1;

	stream->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	stream->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (stream->epoll_fd < 0 || stream->timer_fd < 0 ||
	    epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, stream->timer_fd, &event) < 0) {
		int err = errno;

		return error_set(error, err, "cannot wait for events: %s", strerror(err));
	}
	for (unsigned int i = 0; i < stream->lane_count; i++)
		stream_watch_lane(stream, i);
	return 0;
}

void stream_close_lane(struct lane_state *lane)
{
	cpu_reader_close(&lane->reader);
	if (lane->stats_fd >= 0)
		close(lane->stats_fd);
	lane->stats_fd = -1;
}

int stream_open_lane(struct live_stream *stream, struct lane_state *lane, unsigned int cpu,
		     struct trace_error *error)
{
	const char *file = stream->options.snapshot ? "snapshot_raw" : "trace_pipe_raw";

	if (cpu_reader_open(&lane->reader, instance_dir_fd(lane->instance), cpu, file, error) < 0)
		return -1;
	if (stream->options.snapshot)
		return 0;
	lane->stats_fd = instance_stats_open(lane->instance, cpu);
	if (account_read(lane, &lane->base, error) == 0)
		return 0;
	stream_close_lane(lane);
	return -1;
}

static int open_lanes(struct live_stream *stream, const unsigned int *cpus,
		      struct trace_error *error)
{
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		if (stream_open_lane(stream, &stream->lanes[i], cpus[i], error) < 0)
			return -1;
	}
	return 0;
}

/* Setting the timer also takes back that it has expired. */
void stream_arm(struct live_stream *stream, uint64_t ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = (time_t)(ns / NS_PER_S),
		.it_value.tv_nsec = (long)(ns % NS_PER_S),
	};

	if (ns == 0)
		when.it_value.tv_nsec = 1;
	timerfd_settime(stream->timer_fd, 0, &when, NULL);
}

static const struct stream_ops live_ops;

static struct live_stream *allocate(struct instance *instance, unsigned int count)
{
	struct live_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->lanes = calloc(count, sizeof(*stream->lanes));
	if (!stream->lanes) {
		free(stream);
		return NULL;
	}
	stream->base.ops = &live_ops;
	stream->epoll_fd = -1;
	stream->timer_fd = -1;
	stream->lane_count = count;
	for (unsigned int i = 0; i < count; i++)
		stream->lanes[i] = (struct lane_state){ .reader.fd = -1,
							.stats_fd = -1,
							.instance = instance };
	return stream;
}

struct merge *stream_make_merge(const struct live_stream *stream, const unsigned int *cpus,
				unsigned int count)
{
	uint64_t pages = stream->options.memory / stream->layout.size / count;

	return merge_create(&stream->layout, cpus, count,
			    pages > UINT32_MAX ? UINT32_MAX : (unsigned int)pages);
}

struct stream *stream_open(struct instance *instance, const struct stream_options *options,
			   struct trace_error *error)
{
	struct clock_offsets offsets;
	struct live_stream *stream = NULL;
	unsigned int *cpus = NULL;
	int count;

	count = instance_cpus(instance, &cpus, error);
	if (count < 0)
		return NULL;
	if (count == 0) {
		error_set(error, ENODEV, "%s/per_cpu has no CPUs", instance_dir(instance));
		goto fail;
	}
	stream = allocate(instance, (unsigned int)count);
	if (!stream)
		goto no_memory;
	stream->instance = instance;
	stream->options = *options;
	if (!options->snapshot)
		instance_begin_reading(instance);
	offsets = clock_offsets_read();
	stream->clock = trace_clock_find(options->clock, &offsets);
	stream->mono = trace_clock_find("mono", &offsets);
	stream->options.clock = NULL;
	stream->own = own_filter_here();
	if (read_layout(stream, error) < 0 || open_lanes(stream, cpus, error) < 0 ||
	    open_waiting(stream, error) < 0)
		goto fail;

	stream->merge = stream_make_merge(stream, cpus, (unsigned int)count);
	if (!stream->merge)
		goto no_memory;
	stream->fill_pages = (unsigned int)(FILL_BYTES / stream->layout.size);
	if (stream->fill_pages < 2)
		stream->fill_pages = 2;
	stream_arm(stream, 0);
	free(cpus);
	return &stream->base;

no_memory:
	error_set(error, ENOMEM, "no memory for the buffers of %d CPUs", count);
fail:
	free(cpus);
	stream_close(stream ? &stream->base : NULL);
	return NULL;
}

static void live_close(struct stream *base)
{
	struct live_stream *stream = (struct live_stream *)base;
	if (!stream)
		return;
	for (unsigned int i = 0; i < stream->lane_count; i++)
		stream_close_lane(&stream->lanes[i]);
	if (stream->timer_fd >= 0)
		close(stream->timer_fd);
	if (stream->epoll_fd >= 0)
		close(stream->epoll_fd);
	merge_free(stream->merge);
	sampler_free(&stream->base.sampler);
	if (stream->instance && !stream->options.snapshot)
		instance_end_reading(stream->instance);
	instance_free(stream->top);
	free(stream->lanes);
	free(stream);
}

static void live_close_files(struct stream *base)
{
	struct live_stream *stream = (struct live_stream *)base;

	/* Closing a descriptor takes it out of the epoll set. */
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		struct lane_state *lane = &stream->lanes[i];

		stream_close_lane(lane);
		lane->is_watched = false;
		lane->is_muted = false;
	}
}

static int live_open_files(struct stream *base, struct trace_error *error)
{
	struct live_stream *stream = (struct live_stream *)base;

	for (unsigned int i = 0; i < stream->lane_count; i++) {
		struct lane_state *lane = &stream->lanes[i];

		if (stream_open_lane(stream, lane, lane->reader.cpu, error) < 0)
			return -1;
		stream_watch_lane(stream, i);
	}
	stream_arm(stream, 0);
	return 0;
}

static int live_fd(const struct stream *base)
{
	const struct live_stream *stream = (const struct live_stream *)base;
	return stream->epoll_fd;
}

static int live_watch(struct stream *base, int fd)
{
	struct live_stream *stream = (struct live_stream *)base;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };

	return epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int live_unwatch(struct stream *base, int fd)
{
	struct live_stream *stream = (struct live_stream *)base;
	return epoll_ctl(stream->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void live_kick(struct stream *base)
{
	struct live_stream *stream = (struct live_stream *)base;
	stream_arm(stream, 0);
}

static bool live_is_behind(const struct stream *base)
{
	const struct live_stream *stream = (const struct live_stream *)base;
	return stream->behind;
}

static int live_keep(struct stream *base, unsigned int id)
{
	return own_keep(&((struct live_stream *)base)->own, id);
}

static int live_set_sink(struct stream *base, const struct stream_sink *sink)
{
	((struct live_stream *)base)->sink = sink ? *sink : (struct stream_sink){ 0 };
	return 0;
}

static void live_set_tick(struct stream *base, uint64_t mono_ns)
{
	struct live_stream *stream = (struct live_stream *)base;
	stream->tick_mono = mono_ns;
	stream->tick_due = false;
	stream->tick_ts = mono_ns;
	if (mono_ns && stream->clock.readable && stream->clock.id != CLOCK_MONOTONIC)
		stream->tick_ts =
			mono_ns - trace_clock_now(&stream->mono) + trace_clock_now(&stream->clock);
}

static void live_finish(struct stream *base)
{
	struct live_stream *stream = (struct live_stream *)base;
	if (stream->finishing)
		return;
	stream->finishing = true;
	stream->finish_at = trace_clock_now(&stream->mono);
	stream_arm(stream, 0);
}

static int live_fill(struct stream *base, struct trace_error *error)
{
	return stream_fill_live((struct live_stream *)base, error);
}

/* The merge has nothing more: a tick, a loss from the stats, the end? */
static enum item_kind next_other(struct live_stream *stream, bool tick, struct item *item)
{
	if (tick) {
		item->tick_ts = stream->tick_ts;
		stream->tick_mono = 0;
		stream->tick_due = false;
		return item->kind = ITEM_TICK;
	}
	if (stream->drained && !stream->losses_waiting)
		account_check(stream, stream->stats_at, true);
	if (stream->losses_waiting && account_take(stream, item) == ITEM_LOST)
		return ITEM_LOST;
	return item->kind = stream->drained ? ITEM_END : ITEM_NONE;
}

static bool takes(struct live_stream *stream, struct event *event)
{
	/* kernel: struct trace_entry, which begins with the id */
	if (!stream->base.sampler.count || event->size < sizeof(uint16_t))
		return true;
	return sampler_takes(&stream->base.sampler, load_u16(event->data, false), event);
}

static enum item_kind live_next(struct stream *base, struct item *item)
{
	struct live_stream *stream = (struct live_stream *)base;
	uint64_t limit = stream->watermark;
	bool tick = stream->tick_due;

	if (stream->clock.readable && stream_wants_tick(stream) && stream->tick_ts <= limit) {
		limit = stream->tick_ts;
		tick = true;
	}
	for (;;) {
		struct lane_state *lane;

		switch (merge_next(stream->merge, limit, item)) {
		case ITEM_EVENT:
			lane = &stream->lanes[item->event.lane];
			if ((!stream->options.keep_own &&
			     own_is(&stream->own, item->event.data, item->event.size)) ||
			    (lane->is_top && !stream_top_wants(stream, &item->event))) {
				lane->own++;
				continue;
			}
			if (!takes(stream, &item->event)) {
				lane->skipped++;
				continue;
			}
			lane->delivered++;
			return ITEM_EVENT;
		case ITEM_LOST:
			account_loss(stream, &item->loss);
			return ITEM_LOST;
		default:
			return next_other(stream, tick, item);
		}
	}
}

static struct merge *live_merge(const struct stream *base)
{
	return ((const struct live_stream *)base)->merge;
}

static enum stream_more live_more(struct stream *base, unsigned int index)
{
	(void)index;
	return ((const struct live_stream *)base)->drained ? MORE_NEVER : MORE_LATER;
}

static bool live_may_skip(const struct stream *base, unsigned int index)
{
	(void)index;
	return !((const struct live_stream *)base)->options.overwrite;
}

static uint64_t live_late(const struct stream *base)
{
	const struct live_stream *stream = (const struct live_stream *)base;
	return merge_late(stream->merge);
}

static int live_counts(struct stream *base, unsigned int index, struct stream_counts *counts,
		       struct trace_error *error)
{
	return account_counts((struct live_stream *)base, index, counts, error);
}

static int live_add_top(struct stream *base, const uint16_t *ids, unsigned int count,
			struct trace_error *error)
{
	return stream_top_add((struct live_stream *)base, ids, count, error);
}

static unsigned int live_cpu_count(const struct stream *base)
{
	return ((const struct live_stream *)base)->lane_count;
}

static unsigned int live_cpu(const struct stream *base, unsigned int index)
{
	return ((const struct live_stream *)base)->lanes[index].reader.cpu;
}

static const struct stream_ops live_ops = {
	.close = live_close,
	.close_files = live_close_files,
	.open_files = live_open_files,
	.add_top = live_add_top,
	.fd = live_fd,
	.watch = live_watch,
	.unwatch = live_unwatch,
	.fill = live_fill,
	.next = live_next,
	.merge = live_merge,
	.more = live_more,
	.may_skip = live_may_skip,
	.is_behind = live_is_behind,
	.kick = live_kick,
	.set_tick = live_set_tick,
	.finish = live_finish,
	.keep = live_keep,
	.set_sink = live_set_sink,
	.counts = live_counts,
	.cpu_count = live_cpu_count,
	.cpu = live_cpu,
	.late = live_late,
};
