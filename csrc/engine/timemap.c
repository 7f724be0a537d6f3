/* SPDX-License-Identifier: MIT */
#include "timemap.h"

bool time_map_is_identity(const struct time_map *map)
{
	return !map->sample_count && !map->mult && !map->offset;
}

/* Numbers come from a file: they wrap around instead of overflowing. */
static uint64_t correct(uint64_t ts, bool interpolates, const struct time_sample *low,
			const struct time_sample *high)
{
	uint64_t offset = (uint64_t)low->offset;

	if (interpolates) {
		int64_t span = (int64_t)(high->time - low->time);
		int64_t part = (int64_t)((ts - low->time) *
					 ((uint64_t)high->offset - (uint64_t)low->offset));

		if (span > 0)
			offset +=
				(uint64_t)((int64_t)((uint64_t)part + (uint64_t)(span / 2)) / span);
	}
	return ((ts * low->scaling) >> (low->fraction & 63)) + offset;
}

/* The two samples around a time; the outermost ones for what lies outside. */
static uint64_t correct_by_samples(const struct time_map *map, uint64_t ts)
{
	const struct time_sample *samples = map->samples;
	unsigned int low = 0, high = map->sample_count - 1;

	if (map->sample_count == 1)
		return ts + (uint64_t)samples[0].offset;
	while (high - low > 1) {
		unsigned int middle = low + (high - low) / 2;

		if (ts < samples[middle].time)
			high = middle;
		else
			low = middle;
	}
	return correct(ts, map->interpolates, &samples[low], &samples[high]);
}

uint64_t time_map_apply(const struct time_map *map, uint64_t ts)
{
	if (map->sample_count)
		ts = correct_by_samples(map, ts);
	if (map->mult)
		ts = (uint64_t)(((unsigned __int128)ts * map->mult) >> (map->shift & 127));
	return ts + (uint64_t)map->offset;
}
