/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_ROUTE_H
#define LUATRACE_BINDING_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "../engine/bytes.h"
#include "../engine/event.h"
#include "../engine/format.h"

/* How a value handler gets one of its values. */
enum getter_kind {
	GET_INTEGER, /* native @size bytes at @offset */
	GET_FIELD,   /* any other field */
	GET_TIMESTAMP,
	GET_CPU,
	GET_COMMON, /* what else every record has beside its fields */
};

struct getter {
	uint8_t kind;
	uint8_t common;
	uint8_t size;
	bool is_signed;
	uint32_t offset;
	const struct event_field *field;
};

struct lua_pair;

/* @function is a place in the stream's list of Lua values. */
struct handler {
	int function;	       /* or the pair itself */
	struct lua_pair *pair; /* the records are its @side; NULL for functions */
	unsigned int side;
	unsigned int getter_count; /* 0: the handler takes a record */
	struct getter *getters;
};

/* Where the records of one event id go. */
struct route {
	const struct event_format *format; /* NULL until the first record or value handler */
	const struct record_class *record_class;
	int class;    /* place of the record metatable in the stream's list */
	bool unknown; /* nobody could describe the id */
	unsigned int handler_count;
	unsigned int handler_room;
	struct handler *handlers;
};

/* All routes by event id. Starts as zeroes; owned by the stream's userdata. */
struct routes {
	struct route **by_id;
	unsigned int count;
};

void routes_free(struct routes *routes);

static inline struct route *routes_find(const struct routes *routes, int id)
{
	return (unsigned int)id < routes->count ? routes->by_id[id] : NULL;
}

/* The route of an id, made if need be; NULL when memory is short or the id no u16. */
struct route *routes_get(struct routes *routes, int id);

/* Room for one more handler, behind those that count; the caller counts it when done. */
struct handler *route_add(struct route *route, unsigned int getters);

struct getter getter_for_field(const struct event_format *format, const struct event_field *field);
struct getter getter_for_common(int which);

/* True with the value, when it is a plain integer inside the record. */
static inline bool getter_read_integer(const struct getter *getter, const struct event *event,
				       int64_t *value)
{
	switch (getter->kind) {
	case GET_INTEGER:
		if ((uint64_t)getter->offset + getter->size > event->size)
			return false;
		*value = load_int(event->data + getter->offset, getter->size, getter->is_signed,
				  false);
		return true;
	case GET_TIMESTAMP:
		*value = (int64_t)event->ts;
		return true;
	case GET_CPU:
		*value = event->cpu;
		return true;
	default:
		return false;
	}
}

#endif
