/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <stdlib.h>
#include <string.h>

#include "value.h"

void sampler_free(struct sampler *sampler)
{
	free(sampler->by_id);
	*sampler = (struct sampler){ 0 };
}

int sampler_set(struct sampler *sampler, int id, const struct sample *sample)
{
	if (id < 0 || id > UINT16_MAX)
		return -1;
	if ((unsigned int)id >= sampler->count) {
		unsigned int count = ((unsigned int)id | 255) + 1;
		struct sample *by_id = realloc(sampler->by_id, count * sizeof(*by_id));

		if (!by_id)
			return -1;
		memset(by_id + sampler->count, 0, (count - sampler->count) * sizeof(*by_id));
		sampler->by_id = by_id;
		sampler->count = count;
	}
	sampler->by_id[id] = *sample;
	return 0;
}

const struct sample *sampler_find(const struct sampler *sampler, int id)
{
	if (id < 0 || (unsigned int)id >= sampler->count || !sampler->by_id[id].scale)
		return NULL;
	return &sampler->by_id[id];
}

static bool is_chosen(const struct sample *sample, const struct event *event)
{
	int64_t number;

	if (sample->by_kernel)
		return true;
	if (!sample->field)
		return sample->seen % sample->scale == 0;
	/* a record that is too short for the field is none that anybody could choose by it */
	if (value_read_int(sample->format, sample->field, event->data, event->size, &number) < 0)
		return false;
	return ((uint64_t)number >> sample->shift) % sample->scale == 0;
}

bool sampler_takes(struct sampler *sampler, int id, struct event *event)
{
	struct sample *sample;

	if (id < 0 || (unsigned int)id >= sampler->count)
		return true;
	sample = &sampler->by_id[id];
	if (!sample->scale)
		return true;
	sample->seen++;
	if (!is_chosen(sample, event))
		return false;
	sample->taken++;
	event->scale = sample->scale;
	return true;
}
