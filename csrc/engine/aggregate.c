/* SPDX-License-Identifier: MIT */
#include "aggregate.h"

static void free_cells(struct keymap *map, const struct histogram_shape *shape)
{
	if (!map)
		return;
	for (uint32_t i = map->first; i != KEYMAP_NONE; i = keymap_entry(map, i)->next)
		histogram_free(keymap_data(map, i), shape);
	keymap_free(map);
}

int aggregate_init(struct aggregate *aggregate, const struct histogram_shape *shape,
		   unsigned int parts, uint32_t max)
{
	*aggregate = (struct aggregate){ .shape = *shape, .parts = parts, .max = max };
	if (!parts)
		return 0;
	aggregate->map = keymap_create(parts, sizeof(struct histogram));
	return aggregate->map ? 0 : -1;
}

void aggregate_free(struct aggregate *aggregate)
{
	free_cells(aggregate->map, &aggregate->shape);
	aggregate->map = NULL;
	histogram_free(&aggregate->single, &aggregate->shape);
	histogram_free(&aggregate->other, &aggregate->shape);
}

int aggregate_reset(struct aggregate *aggregate)
{
	struct aggregate fresh;

	if (aggregate_init(&fresh, &aggregate->shape, aggregate->parts, aggregate->max) < 0)
		return -1;
	aggregate_free(aggregate);
	*aggregate = fresh;
	return 0;
}

/* The histogram that values of a key go to; NULL when memory is short. */
static struct histogram *cell_of(struct aggregate *aggregate, struct key *key)
{
	struct keymap *map = aggregate->map;
	uint32_t number;

	if (!map)
		return &aggregate->single;
	keymap_hash(map, key);
	number = keymap_find(map, key);
	if (number == KEYMAP_NONE) {
		if (map->count >= aggregate->max)
			return &aggregate->other;
		number = keymap_add(map, key);
	}
	return number == KEYMAP_NONE ? NULL : keymap_data(map, number);
}

bool aggregate_add(struct aggregate *aggregate, struct key *key, int64_t value)
{
	struct histogram *cell = cell_of(aggregate, key);

	return cell && histogram_add(cell, &aggregate->shape, value);
}

bool aggregate_merge(struct aggregate *into, const struct aggregate *from)
{
	const struct keymap *map = from->map;
	struct key key;

	into->refused += from->refused;
	if (!map)
		return histogram_merge(&into->single, &from->single, &into->shape);
	for (uint32_t i = map->first; i != KEYMAP_NONE; i = keymap_entry(map, i)->next) {
		struct histogram *cell;

		keymap_key(map, i, &key);
		cell = cell_of(into, &key);
		if (!cell || !histogram_merge(cell, keymap_data(map, i), &into->shape))
			return false;
	}
	return histogram_merge(&into->other, &from->other, &into->shape);
}

const struct histogram *aggregate_find(const struct aggregate *aggregate, struct key *key)
{
	uint32_t number;

	if (!aggregate->map)
		return &aggregate->single;
	keymap_hash(aggregate->map, key);
	number = keymap_find(aggregate->map, key);
	return number == KEYMAP_NONE ? NULL : keymap_data(aggregate->map, number);
}
