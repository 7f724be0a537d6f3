/* SPDX-License-Identifier: MIT */
#include "stream_state.h"

#include <errno.h>
#include <sys/epoll.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

/* The counters that no page reports are looked at this often. */
#define STATS_INTERVAL_NS (100 * NS_PER_MS)

/* After a finish the kernel has this long to give what its counters still show. */
#define FINISH_PATIENCE_NS (2 * NS_PER_S)

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
	if (stream_wants_tick(stream)) {
		uint64_t due = stream->tick_mono + (stream->clock.readable ? margin : 0);
		uint64_t tick = due > now_mono ? due - now_mono : 0;

		if (tick < wait)
			wait = tick;
	}
	return wait;
}

int stream_fill_live(struct live_stream *stream, struct trace_error *error)
{
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

	if (stream_wants_tick(stream) && !stream->clock.readable && now_mono >= stream->tick_mono)
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
	stream_arm(stream, stream->drained ? 0 : next_look(stream, now_mono, full));
	return 0;
}
