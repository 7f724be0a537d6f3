/* SPDX-License-Identifier: MIT */
#include "ahead.h"

#include <stdlib.h>

#include "../engine/format.h"
#include "pair.h"

/* So many records are looked at before they come. */
#define DISTANCE 8

/* A key leads to three things in turn, and each takes about as long as two records do. */
#define RING 8
#define ENTRY_AFTER 3
#define NEIGHBOURS_AFTER 6

struct found {
	const struct lua_pair *pair; /* NULL: nothing */
	uint32_t hash;
};

struct lane_ahead {
	struct merge_look look;
	unsigned int looked_at; /* records that have not come yet, at most */
	struct found ring[RING];
	unsigned int count; /* of what was put into the ring */
};

struct ahead {
	unsigned int cpus;
	struct lane_ahead lanes[];
};

struct ahead *ahead_create(unsigned int cpus)
{
	struct ahead *ahead = calloc(1, sizeof(*ahead) + cpus * sizeof(ahead->lanes[0]));

	if (ahead)
		ahead->cpus = cpus;
	return ahead;
}

void ahead_free(struct ahead *ahead)
{
	free(ahead);
}

static void fetch(const struct lane_ahead *lane, unsigned int before, enum keymap_fetch step)
{
	const struct found *found = &lane->ring[(lane->count - before) % RING];

	if (found->pair)
		pair_fetch(found->pair, found->hash, step);
}

static void see(struct lane_ahead *lane, const struct route *route, const struct event *event)
{
	for (unsigned int i = 0; i < route->handler_count; i++) {
		const struct handler *handler = &route->handlers[i];
		struct found found = { .pair = handler->pair };

		if (!handler->pair || !pair_hash(handler->pair, handler->side, event, &found.hash))
			continue;
		lane->ring[lane->count % RING] = found;
		fetch(lane, 0, KEYMAP_FETCH_SLOT);
		fetch(lane, ENTRY_AFTER, KEYMAP_FETCH_ENTRY);
		fetch(lane, NEIGHBOURS_AFTER, KEYMAP_FETCH_NEIGHBOURS);
		lane->count++;
	}
}

void ahead_look(struct ahead *ahead, const struct merge *merge, const struct catalog *catalog,
		const struct routes *routes, const struct event *event)
{
	struct lane_ahead *lane;
	struct page_record record;
	bool passed;

	if (event->lane >= ahead->cpus)
		return;
	lane = &ahead->lanes[event->lane];
	if (lane->looked_at)
		lane->looked_at--;
	while (lane->looked_at < DISTANCE &&
	       merge_look(merge, event->lane, &lane->look, &record, &passed)) {
		struct event coming = { .data = record.data,
					.size = record.size,
					.cpu = event->cpu };
		const struct route *route =
			routes_find(routes, catalog_record_type(catalog, record.data, record.size));

		lane->looked_at = passed ? 1 : lane->looked_at + 1;
		if (route)
			see(lane, route, &coming);
	}
}
