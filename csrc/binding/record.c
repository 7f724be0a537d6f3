/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../engine/stackjoin.h"
#include "binding.h"
#include "route.h"
#include "value.h"

/*
 * A record: a copy of the kernel's bytes and what the page said about them. It has no
 * finalizer and no user value, so that making one is an allocation and little else.
 */
struct record {
	const void *magic; /* &record_magic: told from any other userdata */
	const struct record_class *class;
	struct event event; /* @data points at @bytes, and @stacks behind them */
	uint8_t bytes[];
};

static const char record_magic;

/*
 * What the records of one format share. The metatable keeps it, and the strings of the
 * field names, which are found by the address of Lua's interned string.
 */
struct record_class {
	const struct event_format *format;
	struct catalog *const *catalog; /* points to NULL once that is collected */
	struct text_style style;
	uint32_t mask;
	struct name_slot {
		const char *name;
		int index; /* of a field; -1 - n: common field n */
		struct getter getter;
	} slots[];
};

#define COMMON_INDEX(which) (-1 - (int)(which))

static const struct record *to_record(lua_State *L, int arg)
{
	const struct record *record = lua_touserdata(L, arg);

	if (!record || lua_rawlen(L, arg) < sizeof(*record) || record->magic != &record_magic)
		return NULL;
	return record;
}

static const struct record *check_record(lua_State *L, int arg)
{
	const struct record *record = to_record(L, arg);

	if (!record)
		luaL_typeerror(L, arg, "tracefs.record");
	return record;
}

/* At the end of the Lua state a finalizer may meet a record whose catalog is gone already. */
static const struct event_format *open_format(lua_State *L, const struct record *record)
{
	if (!*record->class->catalog)
		luaL_error(L, "the record's catalog is closed");
	return record->class->format;
}

const struct event *check_record_event(lua_State *L, int arg, const struct event_format **format)
{
	const struct record *record = check_record(L, arg);

	*format = open_format(L, record);
	return &record->event;
}

static uint32_t slot_hash(const char *name)
{
	uintptr_t bits = (uintptr_t)name;

	return (uint32_t)(bits >> 4) ^ (uint32_t)(bits >> 13);
}

static struct name_slot *find_slot(const struct record_class *class, const char *name)
{
	uint32_t at = slot_hash(name) & class->mask;

	while (class->slots[at].name && class->slots[at].name != name)
		at = (at + 1) & class->mask;
	return (struct name_slot *)&class->slots[at];
}

/* For names that are not interned (longer than 40 bytes) or not fields at all. */
static bool find_by_text(const struct event_format *format, const char *name, size_t length,
			 int *index)
{
	if (strlen(name) != length)
		return false;
	*index = format_field_index(format, name);
	if (*index >= 0)
		return true;
	for (int i = 0; i < COMMON_COUNT; i++) {
		if (strcmp(name, common_names[i]) == 0) {
			*index = COMMON_INDEX(i);
			return true;
		}
	}
	return false;
}

static void push_index(lua_State *L, const struct record *record, int index)
{
	const struct event_format *format = record->class->format;

	if (index < 0)
		push_common(L, format, (enum common_field)(-1 - index), &record->event);
	else
		push_field(L, format, &format->fields[index], &record->event);
}

/* Most of what a script asks of a record is a plain number of it. */
static int record__index(lua_State *L)
{
	const struct record *record = check_record(L, 1);
	const struct event_format *format = open_format(L, record);
	const struct name_slot *slot;
	int64_t number;
	const char *name;
	size_t length;
	int index;

	name = lua_tolstring(L, 2, &length);
	if (!name) {
		lua_pushnil(L);
		return 1;
	}
	slot = find_slot(record->class, name);
	if (slot->name && getter_read_integer(&slot->getter, &record->event, &number))
		lua_pushinteger(L, number);
	else if (slot->name)
		push_index(L, record, slot->index);
	else if (find_by_text(format, name, length, &index))
		push_index(L, record, index);
	else
		lua_pushnil(L);
	return 1;
}

static int record__newindex(lua_State *L)
{
	return luaL_error(L, "a record is what the kernel wrote and cannot be changed");
}

/* The order of pairs(): the format's common fields, ours, the event's own. */
static int nth_index(const struct event_format *format, lua_Integer n)
{
	lua_Integer common = format->common_count;

	if (n < common)
		return (int)n;
	if (n < common + COMMON_COUNT)
		return COMMON_INDEX(n - common);
	return (int)(n - COMMON_COUNT);
}

/* Upvalue: how many have been given. */
static int next_field(lua_State *L)
{
	const struct record *record = check_record(L, 1);
	const struct event_format *format = open_format(L, record);
	lua_Integer n = lua_tointeger(L, lua_upvalueindex(1));
	lua_Integer count = (lua_Integer)format->field_count + COMMON_COUNT;

	while (n < count) {
		int index = nth_index(format, n++);

		lua_settop(L, 1);
		lua_pushstring(L,
			       index < 0 ? common_names[-1 - index] : format->fields[index].name);
		push_index(L, record, index); /* record, name, value */
		if (!lua_isnil(L, -1)) {
			lua_pushinteger(L, n);
			lua_replace(L, lua_upvalueindex(1));
			return 2;
		}
	}
	return 0;
}

static int record__pairs(lua_State *L)
{
	check_record(L, 1);
	lua_pushinteger(L, 0);
	lua_pushcclosure(L, next_field, 1);
	lua_pushvalue(L, 1);
	return 2;
}

struct strbuf *new_strbuf(lua_State *L)
{
	struct strbuf *out = lua_newuserdatauv(L, sizeof(*out), 0);

	*out = (struct strbuf){ 0 };
	luaL_setmetatable(L, "tracefs.strbuf");
	return out;
}

int push_strbuf(lua_State *L, struct strbuf *out)
{
	if (out->failed) {
		strbuf_free(out);
		return luaL_error(L, "not enough memory for a text");
	}
	lua_pushlstring(L, out->text ? out->text : "", out->length);
	strbuf_free(out);
	return 1;
}

static int strbuf__gc(lua_State *L)
{
	strbuf_free(lua_touserdata(L, 1));
	return 0;
}

static int record__tostring(lua_State *L)
{
	const struct record *record = check_record(L, 1);
	const struct event_format *format = open_format(L, record);
	struct strbuf *out = new_strbuf(L);

	text_line(out, format, &record->event, &record->class->style);
	return push_strbuf(L, out);
}

/* Where the stacks lie in a record whose event is followed by them. */
static size_t stacks_offset(const struct event *event)
{
	const size_t align = _Alignof(struct event_stacks);

	return (offsetof(struct record, bytes) + event->size + align - 1) / align * align;
}

size_t record_size(const struct event *event)
{
	if (!event->stacks)
		return sizeof(struct record) + event->size;
	return stacks_offset(event) + sizeof(struct event_stacks) + event->stacks->kernel_size +
	       event->stacks->user_size;
}

struct record *new_record(lua_State *L, size_t size)
{
	return lua_newuserdatauv(L, size, 0);
}

static void fill_stacks(struct record *record, const struct event *event)
{
	struct event_stacks *stacks =
		(struct event_stacks *)((uint8_t *)record + stacks_offset(event));
	uint8_t *bytes = (uint8_t *)(stacks + 1);

	*stacks = *event->stacks;
	if (stacks->kernel)
		stacks->kernel = memcpy(bytes, stacks->kernel, stacks->kernel_size);
	if (stacks->user)
		stacks->user = memcpy(bytes + stacks->kernel_size, stacks->user, stacks->user_size);
	record->event.stacks = stacks;
}

void record_fill(struct record *record, const struct record_class *class, const struct event *event)
{
	record->magic = &record_magic;
	record->class = class;
	record->event = *event;
	record->event.data = record->bytes;
	memcpy(record->bytes, event->data, event->size);
	if (event->stacks)
		fill_stacks(record, event);
}

/* Adds a name to the class at the top of the stack and keeps its string in the table below. */
static void add_name(lua_State *L, struct record_class *class, const char *text, int index)
{
	struct name_slot *slot;

	lua_pushstring(L, text);
	slot = find_slot(class, lua_tostring(L, -1));
	if (slot->name) {
		lua_pop(L, 1);
		return;
	}
	slot->name = lua_tostring(L, -1);
	slot->index = index;
	slot->getter = index < 0 ? getter_for_common(-1 - index) :
				   getter_for_field(class->format, &class->format->fields[index]);
	lua_pushboolean(L, 1);
	lua_rawset(L, -4); /* names[text] = true */
}

static void new_record_class(lua_State *L, int event, const struct text_style *style)
{
	static const luaL_Reg meta[] = {
		{ "__index", record__index },
		{ "__newindex", record__newindex },
		{ "__pairs", record__pairs },
		{ "__tostring", record__tostring },
		{ NULL, NULL },
	};
	const struct event_format *format = check_event(L, event);
	struct record_class *class;
	uint32_t slots = 16;

	while (slots < 4 * (format->field_count + COMMON_COUNT))
		slots *= 2;

	lua_newtable(L); /* metatable */
	lua_newtable(L); /* metatable, names */
	class = lua_newuserdatauv(L, sizeof(*class) + slots * sizeof(class->slots[0]), 0);
	memset(class, 0, sizeof(*class) + slots * sizeof(class->slots[0]));
	class->format = format;
	class->catalog = event_catalog(L, event);
	class->style = *style;
	class->mask = slots - 1;
	for (unsigned int i = 0; i < format->field_count; i++)
		add_name(L, class, format->fields[i].name, (int)i);
	for (int i = 0; i < COMMON_COUNT; i++)
		add_name(L, class, common_names[i], COMMON_INDEX(i));

	lua_insert(L, -2);	      /* metatable, class, names */
	lua_setfield(L, -3, "names"); /* metatable, class */
	lua_setfield(L, -2, "class"); /* metatable */
	lua_pushvalue(L, event);
	lua_setfield(L, -2, "event");
	luaL_setfuncs(L, meta, 0);
	lua_pushliteral(L, "tracefs.record");
	lua_setfield(L, -2, "__name");
	lua_pushliteral(L, "tracefs.record");
	lua_setfield(L, -2, "__metatable");
}

const struct record_class *push_record_class(lua_State *L, int event,
					     const struct text_style *style)
{
	const struct record_class *class;

	event = lua_absindex(L, event);
	lua_getfield(L, LUA_REGISTRYINDEX, "tracefs.record"); /* metatables */
	lua_pushvalue(L, event);
	if (lua_rawget(L, -2) == LUA_TNIL) { /* metatables, metatable? */
		lua_pop(L, 1);
		new_record_class(L, event, style);
		lua_pushvalue(L, event);
		lua_pushvalue(L, -2); /* metatables, metatable, event, metatable */
		lua_rawset(L, -4);
	}
	lua_remove(L, -2); /* metatable */
	lua_getfield(L, -1, "class");
	class = lua_touserdata(L, -1);
	lua_pop(L, 1);
	return class;
}

/* text(record [, field]): the event's text, or one field's, as the kernel prints it */
static int core_text(lua_State *L)
{
	const struct record *record = check_record(L, 1);
	size_t length = 0;
	const char *name = luaL_optlstring(L, 2, NULL, &length);
	const struct event_format *format;
	struct strbuf *out;
	int index;

	format = open_format(L, record);
	out = new_strbuf(L);
	if (!name) {
		if (text_body(out, format, record->event.data, record->event.size))
			return push_strbuf(L, out);
		lua_pushnil(L);
		lua_pushfstring(L, "%s has no usable print format: %s; its fields can be read",
				format->label,
				format->no_text ? format->no_text : "it cannot be evaluated");
		return 2;
	}
	if (!find_by_text(format, name, length, &index)) {
		lua_pushnil(L);
		lua_pushfstring(L, "%s has no field '%s'", format->label, name);
		return 2;
	}
	if (index < 0) {
		push_common(L, format, (enum common_field)(-1 - index), &record->event);
		luaL_tolstring(L, -1, NULL);
		return 1;
	}
	if (text_field(out, format, &format->fields[index], record->event.data,
		       record->event.size) < 0) {
		lua_pushnil(L);
		lua_pushfstring(L, "field '%s' lies outside this %s record", name, format->label);
		return 2;
	}
	return push_strbuf(L, out);
}

/* is_record(value) */
static int core_is_record(lua_State *L)
{
	luaL_checkany(L, 1);
	lua_pushboolean(L, to_record(L, 1) != NULL);
	return 1;
}

static const luaL_Reg strbuf_methods[] = {
	{ NULL, NULL },
};

static const luaL_Reg strbuf_meta[] = {
	{ "__gc", strbuf__gc },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "text", core_text },
	{ "is_record", core_is_record },
	{ NULL, NULL },
};

void open_record(lua_State *L)
{
	new_class(L, "tracefs.strbuf", strbuf_methods, strbuf_meta);

	lua_newtable(L); /* classes */
	lua_newtable(L); /* classes, meta */
	lua_pushliteral(L, "k");
	lua_setfield(L, -2, "__mode");
	lua_setmetatable(L, -2);
	lua_setfield(L, LUA_REGISTRYINDEX, "tracefs.record");

	luaL_setfuncs(L, functions, 0);
}
