/* SPDX-License-Identifier: MIT */
#include "route.h"

#include <stdlib.h>
#include <string.h>

#include "value.h"

static void handler_free(struct handler *handler)
{
	free(handler->getters);
	*handler = (struct handler){ 0 };
}

void routes_free(struct routes *routes)
{
	for (unsigned int id = 0; id < routes->count; id++) {
		struct route *route = routes->by_id[id];

		if (!route)
			continue;
		for (unsigned int i = 0; i < route->handler_room; i++)
			handler_free(&route->handlers[i]);
		free(route->handlers);
		free(route);
	}
	free(routes->by_id);
	*routes = (struct routes){ 0 };
}

struct route *routes_get(struct routes *routes, int id)
{
	if (id < 0 || id > UINT16_MAX)
		return NULL;
	if ((unsigned int)id >= routes->count) {
		unsigned int count = ((unsigned int)id | 1023) + 1;
		struct route **by_id = realloc(routes->by_id, count * sizeof(*by_id));

		if (!by_id)
			return NULL;
		memset(by_id + routes->count, 0, (count - routes->count) * sizeof(*by_id));
		routes->by_id = by_id;
		routes->count = count;
	}
	if (!routes->by_id[id])
		routes->by_id[id] = calloc(1, sizeof(struct route));
	return routes->by_id[id];
}

struct handler *route_add(struct route *route, unsigned int getters)
{
	struct handler *handler;

	if (route->handler_count == route->handler_room) {
		unsigned int room = route->handler_room ? 2 * route->handler_room : 2;
		struct handler *handlers = realloc(route->handlers, room * sizeof(*handlers));

		if (!handlers)
			return NULL;
		memset(handlers + route->handler_room, 0,
		       (room - route->handler_room) * sizeof(*handlers));
		route->handlers = handlers;
		route->handler_room = room;
	}
	handler = &route->handlers[route->handler_count];
	handler_free(handler); /* one that was begun and not counted */
	if (getters) {
		handler->getters = calloc(getters, sizeof(*handler->getters));
		if (!handler->getters)
			return NULL;
		handler->getter_count = getters;
	}
	return handler;
}

struct getter getter_for_field(const struct event_format *format, const struct event_field *field)
{
	struct getter getter = { .kind = GET_FIELD, .field = field };

	if (field->kind == FIELD_INT && field->place == FIELD_FIXED && !format->swaps) {
		getter.kind = GET_INTEGER;
		getter.offset = field->load_offset;
		getter.size = field->element_size;
		getter.is_signed = field->is_signed;
	}
	return getter;
}

struct getter getter_for_common(int which)
{
	struct getter getter = { .kind = GET_COMMON, .common = (uint8_t)which };

	if (which == COMMON_TIMESTAMP)
		getter.kind = GET_TIMESTAMP;
	else if (which == COMMON_CPU)
		getter.kind = GET_CPU;
	return getter;
}
