/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_VALUE_H
#define LUATRACE_BINDING_VALUE_H

#include <lua.h>
#include <stdbool.h>

#include "../engine/event.h"
#include "../engine/format.h"
#include "../engine/strbuf.h"

/* What every record has beside the fields of its format. */
enum common_field {
	COMMON_TIMESTAMP,
	COMMON_CPU,
	COMMON_COMM,
	COMMON_EVENT,
	COMMON_LATE,
	COMMON_SCALE,
	COMMON_STACK,
	COMMON_USER_STACK,
	COMMON_COUNT,
};

extern const char *const common_names[COMMON_COUNT];

/*
 * Pushes one field as a Lua value: integer, string, list of integers or (bitmasks) list
 * of bit numbers; nil when it lies outside the record.
 */
void push_field(lua_State *L, const struct event_format *format, const struct event_field *field,
		const struct event *event);

void push_common(lua_State *L, const struct event_format *format, enum common_field which,
		 const struct event *event);

/* Was this stack asked for? And its text, good until the next one; NULL when there is none. */
bool wants_common_stack(enum common_field which, const struct event *event);
const struct strbuf *common_stack(const struct event_format *format, enum common_field which,
				  const struct event *event);

#endif
