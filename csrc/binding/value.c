/* SPDX-License-Identifier: MIT */
#include "value.h"

#include "../engine/comm.h"
#include "../engine/value.h"

const char *const common_names[COMMON_COUNT] = {
	[COMMON_TIMESTAMP] = "common_timestamp", [COMMON_CPU] = "common_cpu",
	[COMMON_COMM] = "common_comm",		 [COMMON_EVENT] = "common_event",
	[COMMON_LATE] = "common_late",		 [COMMON_SCALE] = "common_scale",
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
	default:
		lua_pushnil(L);
		break;
	}
}
