/* SPDX-License-Identifier: MIT */
#include "stream_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

/*
 * The top level's buffer beside the instance's, for what older kernels record only there: each of
 * its CPUs is one more lane of the merge, behind the instance's of the same number.
 */

static void close_lanes(struct lane_state *lanes, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		stream_close_lane(&lanes[i]);
}

/* The top level's lanes behind those that are there. */
static int open_top_lanes(struct live_stream *stream, struct instance *top,
			  struct lane_state *lanes, unsigned int count, struct trace_error *error)
{
	for (unsigned int i = 0; i < count; i++) {
		struct lane_state *lane = &lanes[count + i];

		*lane = (struct lane_state){ .reader.fd = -1,
					     .stats_fd = -1,
					     .instance = top,
					     .is_top = true };
		if (stream_open_lane(stream, lane, lanes[i].reader.cpu, error) < 0) {
			close_lanes(lanes, count, count + i);
			return -1;
		}
	}
	return 0;
}

static struct merge *make_merge(const struct live_stream *stream, const struct lane_state *lanes,
				unsigned int count)
{
	unsigned int *cpus = malloc(count * sizeof(*cpus));
	struct merge *merge = NULL;

	for (unsigned int i = 0; cpus && i < count; i++)
		cpus[i] = lanes[i].reader.cpu;
	if (cpus)
		merge = stream_make_merge(stream, cpus, count);
	for (unsigned int i = 0; merge && i < count; i++)
		merge_set_rank(merge, i, 2 * cpus[i] + lanes[i].is_top);
	free(cpus);
	return merge;
}

static int grow(struct live_stream *stream, struct instance *top, struct trace_error *error)
{
	unsigned int count = stream->lane_count;
	struct lane_state *lanes = calloc(2 * (size_t)count, sizeof(*lanes));
	struct merge *merge;

	if (!lanes)
		return error_set(error, ENOMEM, "out of memory");
	memcpy(lanes, stream->lanes, count * sizeof(*lanes));
	if (open_top_lanes(stream, top, lanes, count, error) < 0) {
		free(lanes);
		return -1;
	}
	merge = make_merge(stream, lanes, 2 * count);
	if (!merge) {
		close_lanes(lanes, count, 2 * count);
		free(lanes);
		return error_set(error, ENOMEM, "out of memory");
	}
	merge_free(stream->merge);
	stream->merge = merge;
	free(stream->lanes);
	stream->lanes = lanes;
	stream->lane_count = 2 * count;
	stream->top = top;
	for (unsigned int i = count; i < 2 * count; i++)
		stream_watch_lane(stream, i);
	return 0;
}

int stream_top_add(struct live_stream *stream, const uint16_t *ids, unsigned int count,
		   struct trace_error *error)
{
	struct instance *top;

	if (stream->top || count > STREAM_MAX_TOP_IDS || stream->watermark ||
	    !merge_is_empty(stream->merge))
		return error_set(error, EINVAL,
				 "the top level is added once, before the first record");
	top = instance_open_top(instance_tracing_dir(stream->instance), error);
	if (!top)
		return -1;
	if (grow(stream, top, error) < 0) {
		instance_free(top);
		return -1;
	}
	memcpy(stream->top_ids, ids, count * sizeof(*ids));
	stream->top_id_count = count;
	return 0;
}

bool stream_top_wants(const struct live_stream *stream, const struct event *event)
{
	uint16_t id;

	if (event->size < sizeof(id))
		return false;
	id = load_u16(event->data, false);
	for (unsigned int i = 0; i < stream->top_id_count; i++) {
		if (stream->top_ids[i] == id)
			return true;
	}
	return false;
}
