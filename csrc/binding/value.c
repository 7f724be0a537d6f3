/* SPDX-License-Identifier: MIT */
#include "value.h"

#include "../engine/comm.h"
#include "../engine/stacknames.h"
#include "../engine/value.h"

const char *const common_names[COMMON_COUNT] = {
	[COMMON_TIMESTAMP] = "common_timestamp", [COMMON_CPU] = "common_cpu",
	[COMMON_COMM] = "common_comm",		 [COMMON_EVENT] = "common_event",
	[COMMON_LATE] = "common_late",		 [COMMON_SCALE] = "common_scale",
	[COMMON_STACK] = "common_stack",	 [COMMON_USER_STACK] = "common_user_stack",
};

static void push_array(lua_State *L, const struct event_format *format,
		       const struct event_field *field, const struct value *value)
{
	uint32_t count = value_count(field, value);

	lua_createtable(L, (int)count, 0); /* list */
	for (uint32_t i = 0; i < count; i++) {
		lua_pushinteger(L, value_element(format, field, value, i));
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
}

static void push_strings(lua_State *L, const struct event_format *format,
			 const struct event_field *field, const struct value *value,
			 const struct event *event)
{
	uint32_t count = value_count(field, value);
	struct value string;

	lua_createtable(L, (int)count, 0); /* list */
	for (uint32_t i = 0; i < count; i++) {
		/* A list has no holes: what is not in the record is an empty string. */
		if (value_string(format, value, event->data, event->size, i, &string))
			lua_pushliteral(L, "");
		else
			lua_pushlstring(L, (const char *)string.bytes, string.length);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
}

static void push_bits(lua_State *L, const struct event_format *format, const struct value *value)
{
	lua_Integer at = 0;

	lua_newtable(L); /* list */
	for (uint32_t bit = 0; bit < value->length * 8; bit++) {
		if (value_bit(format, value, bit)) {
			lua_pushinteger(L, bit);
			lua_rawseti(L, -2, ++at);
		}
	}
}

void push_field(lua_State *L, const struct event_format *format, const struct event_field *field,
		const struct event *event)
{
	struct value value;

	if (value_read(format, field, event->data, event->size, &value) < 0) {
		lua_pushnil(L);
		return;
	}
	switch (value.kind) {
	case FIELD_INT:
		lua_pushinteger(L, value.number);
		break;
	case FIELD_STRING:
	case FIELD_BYTES:
		lua_pushlstring(L, (const char *)value.bytes, value.length);
		break;
	case FIELD_ARRAY:
		push_array(L, format, field, &value);
		break;
	case FIELD_BITMASK:
		push_bits(L, format, &value);
		break;
	case FIELD_STRINGS:
		push_strings(L, format, field, &value, event);
		break;
	}
}

const struct strbuf *common_stack(const struct event_format *format, enum common_field which,
				  const struct event *event)
{
	return stack_names_text(catalog_stack_names(format->catalog), event->stacks,
				which == COMMON_STACK ? STACK_KERNEL : STACK_USER);
}

bool wants_common_stack(enum common_field which, const struct event *event)
{
	if (!event->stacks)
		return false;
	return which == COMMON_STACK ? event->stacks->wants_kernel : event->stacks->wants_user;
}

/* The text; false when there is none although it was asked for. */
static void push_stack(lua_State *L, const struct event_format *format, enum common_field which,
		       const struct event *event)
{
	const struct strbuf *text = NULL;

	if (!wants_common_stack(which, event)) {
		lua_pushnil(L);
		return;
	}
	text = common_stack(format, which, event);
	if (text)
		lua_pushlstring(L, text->text, text->length);
	else
		lua_pushboolean(L, 0);
}

void push_common(lua_State *L, const struct event_format *format, enum common_field which,
		 const struct event *event)
{
	int pid;

	switch (which) {
	case COMMON_TIMESTAMP:
		lua_pushinteger(L, (lua_Integer)event->ts);
		break;
	case COMMON_CPU:
		lua_pushinteger(L, event->cpu);
		break;
	case COMMON_COMM:
		pid = catalog_record_pid(format->catalog, event->data, event->size);
		lua_pushstring(L, comm_lookup(catalog_comms(format->catalog), pid));
		break;
	case COMMON_EVENT:
		lua_pushstring(L, format->label);
		break;
	case COMMON_LATE:
		if (event->late)
			lua_pushboolean(L, 1);
		else
			lua_pushnil(L);
		break;
	case COMMON_SCALE:
		if (event->scale)
			lua_pushinteger(L, event->scale);
		else
			lua_pushnil(L);
		break;
	case COMMON_STACK:
	case COMMON_USER_STACK:
		push_stack(L, format, which, event);
		break;
	default:
		lua_pushnil(L);
		break;
	}
}
