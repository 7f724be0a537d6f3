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
#define NS_PER_MS UINT64_C(1000000)

/*
 * What one fill takes of a CPU before the records are handed out. Few buffers go round: they
 * stay in the caches, and fewer are touched for the first time, which costs a page fault for
 * each 4 KiB (on a virtual machine more than reading the records in them).
 */
#define FILL_BYTES (UINT64_C(256) << 10)

/* The counters that no page reports are looked at this often. */
#define STATS_INTERVAL_NS (100 * NS_PER_MS)

/* After a finish the kernel has this long to give what its counters still show. */
#define FINISH_PATIENCE_NS (2 * NS_PER_S)

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

/*
 * A CPU of which no more can be taken in before time has passed: what it has must not wake
 * anyone until then.
 */
static void set_muted(struct live_stream *stream, unsigned int index, bool is_muted)
{
	struct lane_state *lane = &stream->lanes[index];
	struct epoll_event event = { .events = is_muted ? 0 : EPOLLIN, .data.u64 = index };

	if (!lane->is_watched || lane->is_muted == is_muted)
		return;
	if (epoll_ctl(stream->epoll_fd, EPOLL_CTL_MOD, lane->reader.fd, &event) == 0)
		lane->is_muted = is_muted;
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
static void arm(struct live_stream *stream, uint64_t ns)
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
	arm(stream, 0);
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
	arm(stream, 0);
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
	arm(stream, 0);
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
	arm(stream, 0);
}

/*
 * A CPU that writes all the time is never empty: each read finds a few more records. It
 * has been read far enough when a page starts behind the time of this round, because its
 * records are in order. Where that time is not known, a page that is half empty will do,
 * and nothing behind its last record may be handed out yet.
 */
static bool read_far_enough(struct live_stream *stream, uint64_t now_ts,
			    const struct page_buffer *buffer, uint64_t *bound)
{
	struct page_record record;
	struct page_walk walk;
	size_t used;

	page_walk_start(&walk, &stream->layout, buffer->bytes, buffer->length);
	if (stream->clock.readable)
		return walk.ts >= now_ts;
	used = (size_t)(walk.end - walk.start);
	while (page_walk_next(&walk, &record))
		;
	if (walk.ts > stream->seen_ts)
		stream->seen_ts = walk.ts;
	if (used >= stream->layout.size / 2)
		return false;
	if (walk.ts < *bound)
		*bound = walk.ts;
	return true;
}

enum drain_result {
	DRAIN_DONE, /* nothing older than this round is left */
	DRAIN_MORE, /* its share of the round is taken */
	DRAIN_FULL, /* no room until records are handed out */
	DRAIN_FAILED,
};

static enum drain_result read_pages(struct live_stream *stream, unsigned int index, uint64_t now_ts,
				    uint64_t *bound, struct trace_error *error)
{
	for (unsigned int pages = 0; pages < stream->fill_pages; pages++) {
		struct page_buffer *buffer;
		bool is_enough;
		long length;

		if (merge_is_full(stream->merge, index))
			return DRAIN_FULL;
		buffer = merge_get_buffer(stream->merge);
		if (!buffer) {
			error_set(error, ENOMEM, "no memory for another sub-buffer");
			return DRAIN_FAILED;
		}
		length = cpu_reader_read(&stream->lanes[index].reader, buffer->bytes,
					 stream->layout.size, error);
		if (length <= 0) {
			merge_put_buffer(stream->merge, buffer);
			return length < 0 ? DRAIN_FAILED : DRAIN_DONE;
		}
		if (!stream->lanes[index].is_watched)
			stream_watch_lane(stream, index);
		buffer->length = (size_t)length;
		if (stream->sink.page &&
		    stream->sink.page(stream->sink.arg, stream->lanes[index].reader.cpu,
				      buffer->bytes, buffer->length, error) < 0) {
			/* what was read is still handed out */
			merge_push(stream->merge, index, buffer);
			return DRAIN_FAILED;
		}
		is_enough = read_far_enough(stream, now_ts, buffer, bound);
		merge_push(stream->merge, index, buffer);
		if (is_enough)
			return DRAIN_DONE;
	}
	return DRAIN_MORE;
}

/* Lowers @bound when a CPU has more: nothing newer than that may be handed out. */
static enum drain_result drain_lane(struct live_stream *stream, unsigned int index, uint64_t now_ts,
				    uint64_t *bound, struct trace_error *error)
{
	enum drain_result result = read_pages(stream, index, now_ts, bound, error);

	if (result == DRAIN_MORE || result == DRAIN_FULL) {
		uint64_t start = merge_newest_start(stream->merge, index);

		if (start < *bound)
			*bound = start;
	}
	return result;
}

/* How far records may be handed out after a round that started at @now. */
static void advance_watermark(struct live_stream *stream, uint64_t now_ts, uint64_t now_mono,
			      uint64_t bound)
{
	uint64_t watermark;

	if (stream->clock.readable) {
		watermark = now_ts - stream->options.margin_ns;
	} else {
		watermark = 0;
		if (stream->round_at && now_mono - stream->round_at >= stream->options.margin_ns) {
			watermark = stream->round_ts;
			stream->round_at = 0;
		}
		if (!stream->round_at) {
			stream->round_ts = stream->seen_ts;
			stream->round_at = trace_clock_now(&stream->mono);
		}
	}
	if (watermark > bound)
		watermark = bound;
	if (watermark > stream->watermark)
		stream->watermark = watermark;
}

/* Nothing is recorded behind a finish: ticks that were due later are not wanted any more. */
static bool wants_tick(const struct live_stream *stream)
{
	return stream->tick_mono && (!stream->finishing || stream->tick_mono <= stream->finish_at);
}

/*
 * When the next look is due, as a distance from now. Records that are too young to be
 * handed out wait for the interval, unless the caller wants every event at once: a busy
 * buffer always has some, and waking for each would be a busy loop.
 */
static uint64_t next_look(const struct live_stream *stream, uint64_t now_mono, bool full)
{
	uint64_t margin = stream->options.margin_ns;
	uint64_t wait = stream->options.interval_ns;
	bool eager = stream->options.buffer_percent == 0 && !merge_is_empty(stream->merge);

	if (stream->behind)
		return 0;
	if ((eager || full || stream->finishing) && margin < wait)
		wait = margin;
	if (wants_tick(stream)) {
		uint64_t due = stream->tick_mono + (stream->clock.readable ? margin : 0);
		uint64_t tick = due > now_mono ? due - now_mono : 0;

		if (tick < wait)
			wait = tick;
	}
	return wait;
}

static int live_fill(struct stream *base, struct trace_error *error)
{
	struct live_stream *stream = (struct live_stream *)base;
	uint64_t now_mono = trace_clock_now(&stream->mono);
	uint64_t now_ts = stream->clock.readable ? trace_clock_now(&stream->clock) : 0;
	uint64_t bound = UINT64_MAX;
	bool full = false;

	if (stream->drained)
		return 0;
	if (stream->sink.look && stream->sink.look(stream->sink.arg, error) < 0)
		return -1;
	stream->behind = false;
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		stream->lanes[i].is_full = false;
		switch (drain_lane(stream, i, now_ts, &bound, error)) {
		case DRAIN_DONE:
			break;
		case DRAIN_MORE:
			stream->behind = true;
			break;
		case DRAIN_FULL:
			stream->lanes[i].is_full = true;
			full = true;
			break;
		case DRAIN_FAILED:
			return -1;
		}
	}
	advance_watermark(stream, now_ts, now_mono, bound);
	/* where nothing is old enough to be handed out and make room, only time helps */
	if (full && merge_is_ready(stream->merge, stream->watermark))
		stream->behind = true;
	for (unsigned int i = 0; i < stream->lane_count; i++)
		set_muted(stream, i, stream->lanes[i].is_full && !stream->behind);

	if (wants_tick(stream) && !stream->clock.readable && now_mono >= stream->tick_mono)
		stream->tick_due = true;
	if (now_mono - stream->stats_at >= STATS_INTERVAL_NS * (stream->options.overwrite ? 10 : 1))
		account_check(stream, now_mono, false);

	/* writers that were under way when tracing went off have committed after a margin */
	if (stream->finishing && !stream->behind && !full &&
	    now_mono >= stream->finish_at + stream->options.margin_ns &&
	    (account_check(stream, now_mono, false) == 0 ||
	     now_mono >= stream->finish_at + FINISH_PATIENCE_NS)) {
		stream->drained = true;
		stream->watermark = UINT64_MAX;
	}
	arm(stream, stream->drained ? 0 : next_look(stream, now_mono, full));
	return 0;
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

	if (stream->clock.readable && wants_tick(stream) && stream->tick_ts <= limit) {
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
