/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STREAM_STATE_H
#define LUATRACE_STREAM_STATE_H

#include "clock.h"
#include "cpu.h"
#include "own.h"
#include "stream.h"

/* What stream.c, stream_fill.c, stream_top.c and account.c share of a live stream. */

/* Losses of one CPU that only its stats tell: what has been reported, what waits. */
struct stat_loss {
	uint64_t reported;
	uint64_t waiting;
	uint64_t after_ts;
	uint64_t before_ts;
};

struct lane_state {
	struct cpu_reader reader;
	struct instance *instance; /* whose buffer it is */
	int stats_fd;		   /* its counters, open; or -1 */
	bool is_top;		   /* the top level's: only some events of it are wanted */
	bool is_watched;	   /* in the epoll set */
	bool is_muted;		   /* in it, but not waking anyone */
	bool is_full;		   /* no more of it could be taken in by the last look */
	bool has_unknown_loss;
	bool is_damaged;
	uint64_t delivered;
	uint64_t own;
	uint64_t skipped;
	uint64_t overrun_reported;
	struct stat_loss losses[LOSS_DAMAGED + 1]; /* by enum loss_why */
	struct buffer_stats base;		   /* when the stream was opened */
};

struct live_stream {
	struct stream base;
	struct instance *instance;
	struct instance *top; /* what is read beside it, or NULL */
	uint16_t top_ids[STREAM_MAX_TOP_IDS];
	unsigned int top_id_count;
	struct merge *merge;
	struct page_layout layout;
	struct trace_clock clock;
	struct trace_clock mono; /* what is called CLOCK_MONOTONIC here is the kernel's */
	struct stream_options options;
	unsigned int fill_pages;
	int epoll_fd;
	int timer_fd;
	struct own_filter own;
	struct stream_sink sink;
	uint64_t watermark;
	bool behind;
	bool finishing;
	bool drained;
	uint64_t finish_at; /* CLOCK_MONOTONIC */
	uint64_t tick_mono; /* 0: no tick asked for */
	uint64_t tick_ts;   /* the same in the trace clock; itself if that is unreadable */
	bool tick_due;
	uint64_t stats_at; /* CLOCK_MONOTONIC of the last look at the stats */
	uint64_t stats_ts; /* the same in the trace clock; 0 if it cannot be read */
	unsigned int losses_waiting;
	/* clocks that cannot be read: the newest record of a round, and when that was */
	uint64_t seen_ts;
	uint64_t round_ts;
	uint64_t round_at;
	unsigned int lane_count;
	struct lane_state *lanes;
};

/* Nothing is recorded behind a finish: ticks that were due later are not wanted any more. */
static inline bool stream_wants_tick(const struct live_stream *stream)
{
	return stream->tick_mono && (!stream->finishing || stream->tick_mono <= stream->finish_at);
}

/*
 * account.c: looks for losses that no page tells of. At the very end @last is true: then
 * overruns that no page told of count too. Returns the number of records still in the
 * kernel.
 */
uint64_t account_check(struct live_stream *stream, uint64_t now_mono, bool last);

/* stream.c: opens a CPU's part of the lane's buffer, and notes what its counters begin with. */
int stream_open_lane(struct live_stream *stream, struct lane_state *lane, unsigned int cpu,
		     struct trace_error *error);

/* stream.c: the other way; also of one that is closed. */
void stream_close_lane(struct lane_state *lane);

/* stream.c: has a lane wake the stream. */
void stream_watch_lane(struct live_stream *stream, unsigned int index);

/* stream.c: a merge for so many lanes. NULL when memory is short. */
struct merge *stream_make_merge(const struct live_stream *stream, const unsigned int *cpus,
				unsigned int count);

/* stream.c: when the stream is ready again, as a distance from now; 0: now. */
void stream_arm(struct live_stream *stream, uint64_t ns);

/* stream_fill.c: stream_fill() of a live stream. */
int stream_fill_live(struct live_stream *stream, struct trace_error *error);

/* stream_top.c: stream_add_top() of a live stream. */
int stream_top_add(struct live_stream *stream, const uint16_t *ids, unsigned int count,
		   struct trace_error *error);

/* stream_top.c: is this record of the top level one that was asked for? */
bool stream_top_wants(const struct live_stream *stream, const struct event *event);

/* account.c: what the lane's counters are now; 0 or -1. */
int account_read(const struct lane_state *lane, struct buffer_stats *stats,
		 struct trace_error *error);

/* account.c: notes a loss that a page told of. */
void account_loss(struct live_stream *stream, const struct loss *loss);

/* account.c: stream_counts() of a live stream. */
int account_counts(struct live_stream *stream, unsigned int index, struct stream_counts *counts,
		   struct trace_error *error);

/* account.c: hands out one loss that the stats told of, or ITEM_NONE. */
enum item_kind account_take(struct live_stream *stream, struct item *item);

#endif
