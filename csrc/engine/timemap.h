/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TIMEMAP_H
#define LUATRACE_TIMEMAP_H

#include <stdbool.h>
#include <stdint.h>

/* One measured distance between the clocks of a guest and its host. */
struct time_sample {
	uint64_t time;
	int64_t offset;
	uint64_t scaling;
	uint64_t fraction;
};

/*
 * How the timestamps of one CPU in a trace file become those that are shown: corrected
 * towards a host's clock, turned from TSC cycles into ns, moved by a fixed offset, in
 * this order, as trace-cmd does. All zeroes change nothing.
 */
struct time_map {
	const struct time_sample *samples; /* sorted by time; borrowed */
	unsigned int sample_count;
	bool interpolates;
	uint32_t mult; /* 0: no cycles */
	uint32_t shift;
	int64_t offset;
};

bool time_map_is_identity(const struct time_map *map);
uint64_t time_map_apply(const struct time_map *map, uint64_t ts);

#endif
