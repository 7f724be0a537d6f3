/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_AGGREGATE_H
#define LUATRACE_AGGREGATE_H

#include "histogram.h"
#include "keymap.h"

/*
 * Histograms by key, at most @max of them; what comes for further keys is in one more, "other".
 * Without parts of a key there is one only.
 */
struct aggregate {
	struct histogram_shape shape;
	unsigned int parts;
	uint32_t max;
	struct keymap *map; /* NULL without parts */
	struct histogram single;
	struct histogram other;
	uint64_t refused; /* values that are no number in the range of the shape */
};

/* 0, or -1 when memory is short. */
int aggregate_init(struct aggregate *aggregate, const struct histogram_shape *shape,
		   unsigned int parts, uint32_t max);
void aggregate_free(struct aggregate *aggregate);

/* As if nothing had been added. -1 when memory is short; it is as before then. */
int aggregate_reset(struct aggregate *aggregate);

/* False when memory is short. Without parts the key may be NULL. */
bool aggregate_add(struct aggregate *aggregate, struct key *key, int64_t value);

/* Both of one shape and number of parts. False when memory is short. */
bool aggregate_merge(struct aggregate *into, const struct aggregate *from);

/* NULL when there is none of this key. */
const struct histogram *aggregate_find(const struct aggregate *aggregate, struct key *key);

#endif
