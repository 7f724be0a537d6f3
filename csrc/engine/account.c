/* SPDX-License-Identifier: MIT */
#include "stream_state.h"

/* What a counter has grown by. Who clears the buffer meanwhile sets it back to 0. */
static uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static void note_stat_loss(struct live_stream *stream, struct lane_state *lane, enum loss_why why,
			   uint64_t total, uint64_t now_ts)
{
	struct stat_loss *loss = &lane->losses[why];

	if (total <= loss->reported + loss->waiting)
		return;
	if (!loss->waiting) {
		loss->after_ts = stream->stats_ts;
		stream->losses_waiting++;
	}
	loss->waiting = total - loss->reported;
	loss->before_ts = now_ts;
}

int account_read(const struct lane_state *lane, struct buffer_stats *stats,
		 struct trace_error *error)
{
	if (lane->stats_fd >= 0 && instance_stats_again(lane->stats_fd, stats) == 0)
		return 0;
	return instance_stats(lane->instance, lane->reader.cpu, stats, error);
}

uint64_t account_check(struct live_stream *stream, uint64_t now_mono, bool last)
{
	uint64_t now_ts = stream->clock.readable ? trace_clock_now(&stream->clock) : 0;
	uint64_t left = 0;

	/* The counters are those of the buffer that goes on. */
	if (stream->options.snapshot) {
		stream->stats_at = now_mono;
		return 0;
	}
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		struct lane_state *lane = &stream->lanes[i];
		struct buffer_stats now;

		if (account_read(lane, &now, NULL) < 0) {
			left++; /* who knows */
			continue;
		}
		left += now.entries;
		note_stat_loss(stream, lane, LOSS_DROPPED, since(lane->base.dropped, now.dropped),
			       now_ts);
		note_stat_loss(stream, lane, LOSS_COMMIT_OVERRUN,
			       since(lane->base.commit_overrun, now.commit_overrun), now_ts);
		if (last && now.entries == 0 && !lane->has_unknown_loss)
			note_stat_loss(stream, lane, LOSS_OVERRUN,
				       since(lane->base.overrun + lane->overrun_reported,
					     now.overrun),
				       now_ts);
	}
	stream->stats_at = now_mono;
	stream->stats_ts = now_ts;
	return left;
}

enum item_kind account_take(struct live_stream *stream, struct item *item)
{
	for (unsigned int i = 0; i < stream->lane_count; i++) {
		struct lane_state *lane = &stream->lanes[i];

		for (unsigned int why = 0; why <= LOSS_DAMAGED; why++) {
			struct stat_loss *loss = &lane->losses[why];

			if (!loss->waiting)
				continue;
			item->kind = ITEM_LOST;
			item->loss = (struct loss){
				.count = loss->waiting,
				.after_ts = loss->after_ts,
				.before_ts = loss->before_ts,
				.cpu = lane->reader.cpu,
				.lane = (uint16_t)i,
				.why = why,
			};
			loss->reported += loss->waiting;
			loss->waiting = 0;
			stream->losses_waiting--;
			return ITEM_LOST;
		}
	}
	stream->losses_waiting = 0;
	return ITEM_NONE;
}

void account_loss(struct live_stream *stream, const struct loss *loss)
{
	struct lane_state *lane = &stream->lanes[loss->lane];

	if (loss->why == LOSS_DAMAGED)
		lane->is_damaged = true;
	if (loss->count == PAGE_LOST_UNKNOWN)
		lane->has_unknown_loss = true;
	else
		lane->overrun_reported += loss->count;
}

/* Of a kind of loss: by the counter, or what has been told of if that is more. */
static uint64_t lost_by(const struct lane_state *lane, enum loss_why why, uint64_t before,
			uint64_t now)
{
	uint64_t told = lane->losses[why].reported;

	if (why == LOSS_OVERRUN)
		told += lane->overrun_reported;
	return since(before, now) > told ? since(before, now) : told;
}

int account_counts(struct live_stream *stream, unsigned int index, struct stream_counts *counts,
		   struct trace_error *error)
{
	const struct lane_state *lane = &stream->lanes[index];
	struct buffer_stats now;
	uint64_t all, gone = lane->own + lane->skipped + lane->delivered;

	if (account_read(lane, &now, error) < 0)
		return -1;
	*counts = (struct stream_counts){
		.delivered = lane->delivered,
		.own = lane->own,
		.skipped = lane->skipped,
		.overrun = lost_by(lane, LOSS_OVERRUN, lane->base.overrun, now.overrun),
		.dropped = lost_by(lane, LOSS_DROPPED, lane->base.dropped, now.dropped),
		.commit_overrun = lost_by(lane, LOSS_COMMIT_OVERRUN, lane->base.commit_overrun,
					  now.commit_overrun),
	};
	counts->lost = counts->overrun + counts->dropped + counts->commit_overrun;
	all = since(lane->base.read, now.read) + now.entries;
	/* the kernel's counters are not read at one instant while events come in */
	if (all > gone)
		counts->pending = all - gone;
	counts->produced = counts->delivered + counts->lost + counts->pending;
	if (stream->drained && lane->is_damaged && merge_is_empty(stream->merge)) {
		counts->lost += counts->pending;
		counts->pending = 0;
	}
	return 0;
}
