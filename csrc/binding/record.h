/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_RECORD_H
#define LUATRACE_BINDING_RECORD_H

#include <lua.h>

#include "../engine/event.h"
#include "../engine/format.h"
#include "../engine/text.h"

/* What the records of one event description share; lives as long as their metatable. */
struct record_class;
struct record;

/*
 * Pushes the metatable that records of the event description at @event get. There is
 * one for each description: it keeps the format (and its catalog) alive, so that a
 * record needs nothing but its own bytes. @style is taken when the metatable is made.
 */
const struct record_class *push_record_class(lua_State *L, int event,
					     const struct text_style *style);

/*
 * Pushes the memory of a record of @size bytes, which record_size() tells; in two steps because
 * allocating may run finalizers, which may do away with what the event's bytes lie in. It is no
 * record before it has been filled and has got its metatable, the one that came with @class.
 */
struct record *new_record(lua_State *L, size_t size);
size_t record_size(const struct event *event);
void record_fill(struct record *record, const struct record_class *class,
		 const struct event *event);

/* The event of the record at @arg, and its format; or an argument error. */
const struct event *check_record_event(lua_State *L, int arg, const struct event_format **format);

#endif
