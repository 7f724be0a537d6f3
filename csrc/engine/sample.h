/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_SAMPLE_H
#define LUATRACE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "format.h"

/*
 * One in so many of an event's records: each @scale-th one, or those whose field, without its
 * lowest @shift bits, is a multiple of it. Where the kernel's filter has chosen already all that
 * comes is taken; it only gets the scale, and is counted.
 */
struct sample {
	uint32_t scale; /* 0: all records of the event */
	uint8_t shift;
	bool by_kernel;
	const struct event_format *format;
	const struct event_field *field; /* NULL: each scale-th */
	uint64_t seen;
	uint64_t taken;
};

/* By event id. Starts as zeroes; owned by the stream. */
struct sampler {
	struct sample *by_id;
	unsigned int count;
};

void sampler_free(struct sampler *sampler);

/* @field is a FIELD_INT of @format, which must stay there. 0, or -1: no id, or no memory. */
int sampler_set(struct sampler *sampler, int id, const struct sample *sample);

/* NULL when all records of the event are taken. */
const struct sample *sampler_find(const struct sampler *sampler, int id);

/* Is it one that is handed out? Notes the scale in it. */
bool sampler_takes(struct sampler *sampler, int id, struct event *event);

#endif
