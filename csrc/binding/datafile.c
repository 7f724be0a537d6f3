/* SPDX-License-Identifier: MIT */
#include "../engine/datafile.h"

#include <string.h>

#include "../engine/filestream.h"
#include "binding.h"
#include "stream.h"

#define DATAFILE_CLASS "tracefs.datafile"

struct datafile_object {
	struct datafile *file; /* NULL once closed */
};

struct datafile *check_datafile(lua_State *L, int arg)
{
	struct datafile_object *object = luaL_checkudata(L, arg, DATAFILE_CLASS);

	luaL_argcheck(L, object->file, arg, "the file is closed");
	return object->file;
}

/* datafile(path) */
static int core_datafile(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct datafile_object *object = lua_newuserdatauv(L, sizeof(*object), 0);
	struct trace_error error;

	object->file = NULL;
	luaL_setmetatable(L, DATAFILE_CLASS);
	object->file = datafile_open(path, &error);
	if (!object->file)
		return push_error(L, &error);
	return 1;
}

static int datafile_method_close(lua_State *L)
{
	struct datafile_object *object = luaL_checkudata(L, 1, DATAFILE_CLASS);

	datafile_put(object->file);
	object->file = NULL;
	return 0;
}

static int datafile__tostring(lua_State *L)
{
	struct datafile_object *object = luaL_checkudata(L, 1, DATAFILE_CLASS);

	lua_pushfstring(L, DATAFILE_CLASS " (%s)",
			object->file ? datafile_path(object->file) : "closed");
	return 1;
}

static void set_string(lua_State *L, const char *name, const char *value)
{
	lua_pushstring(L, value);
	lua_setfield(L, -2, name);
}

/* info(): what the file says about itself and the machine */
static int datafile_method_info(lua_State *L)
{
	const struct datafile_info *info = datafile_info(check_datafile(L, 1));

	lua_newtable(L);
	set_integer(L, "version", info->version);
	set_integer(L, "long_size", info->long_size);
	set_integer(L, "page_size", info->page_size);
	set_integer(L, "cpus", info->cpu_count);
	set_integer(L, "trace_id", info->trace_id);
	set_integer(L, "ts_offset", (uint64_t)info->ts_offset);
	lua_pushboolean(L, info->big_endian);
	lua_setfield(L, -2, "big_endian");
	set_string(L, "compression", codec_name(info->codec));
	set_string(L, "uname", info->uname);
	set_string(L, "written_by", info->written_by);
	return 1;
}

/* buffers(): { { name =, clock =, clock_in_ns =, is_text =, cpus = { N, ... } }, ... } */
static int datafile_method_buffers(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);

	lua_newtable(L);
	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		const struct datafile_buffer *buffer = datafile_buffer(file, i);
		lua_Integer count = 0;

		lua_newtable(L);
		set_string(L, "name", buffer->name);
		set_string(L, "clock", datafile_clock(file, buffer));
		lua_pushboolean(L, datafile_in_ns(file, buffer));
		lua_setfield(L, -2, "clock_in_ns");
		lua_pushboolean(L, buffer->is_text);
		lua_setfield(L, -2, "is_text");
		lua_newtable(L);
		for (unsigned int k = 0; k < buffer->cpu_count; k++) {
			if (!buffer->cpus[k].size)
				continue;
			lua_pushinteger(L, buffer->cpus[k].cpu);
			lua_rawseti(L, -2, ++count);
		}
		lua_setfield(L, -2, "cpus");
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

/* events(): { { system =, name =, id = }, ... }, the tracer's own first */
static int datafile_method_events(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	size_t count = datafile_event_count(file);

	lua_createtable(L, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		const struct datafile_event *event = datafile_event(file, i);

		lua_createtable(L, 0, 3);
		set_string(L, "system", event->system);
		set_string(L, "name", event->name);
		set_integer(L, "id", (uint64_t)event->id);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

/* format(system, name): the text of the event's format file */
static int datafile_method_format(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	const char *system = luaL_checkstring(L, 2), *name = luaL_checkstring(L, 3);
	const struct datafile_event *event = datafile_find_event(file, system, name);
	struct trace_error error;
	struct strbuf *text;

	if (!event) {
		lua_pushnil(L);
		lua_pushfstring(L, "%s has no event %s:%s", datafile_path(file), system, name);
		return 2;
	}
	text = new_strbuf(L);
	if (datafile_format_text(file, event, text, &error) < 0)
		return push_error(L, &error);
	return push_strbuf(L, text);
}

static int push_description(lua_State *L, struct datafile *file, const struct datafile_event *event,
			    int catalog)
{
	struct event_format *format;
	struct trace_error error;

	if (!event) {
		lua_pushnil(L);
		lua_pushfstring(L, "%s does not have it", datafile_path(file));
		return 2;
	}
	format = datafile_describe(file, event, check_catalog(L, catalog), &error);
	if (!format)
		return push_error(L, &error);
	push_event(L, catalog, format);
	return 1;
}

/* describe(catalog, system, name), or describe(catalog, id) */
static int datafile_method_describe(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	const struct datafile_event *event;

	check_catalog(L, 2);
	if (lua_isinteger(L, 3)) {
		lua_Integer id = lua_tointeger(L, 3);

		event = id >= 0 && id <= UINT16_MAX ? datafile_find_id(file, (int)id) : NULL;
	} else {
		event = datafile_find_event(file, luaL_checkstring(L, 3), luaL_checkstring(L, 4));
	}
	return push_description(L, file, event, 2);
}

/* catalog(): with the file's byte order, names and symbols */
static int datafile_method_catalog(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	const struct datafile_info *info = datafile_info(file);
	struct trace_error error;

	if (push_catalog(L, info->big_endian, info->long_size) < 0)
		return luaL_error(L, "not enough memory for a catalog");
	if (datafile_fill_catalog(file, check_catalog(L, -1), &error) < 0)
		return push_error(L, &error);
	return 1;
}

/* damage(): the first thing that is wrong with the file, as far as it has been read, or nil */
static int datafile_method_damage(lua_State *L)
{
	lua_pushstring(L, datafile_damage(check_datafile(L, 1)));
	return 1;
}

/* is_at(path): does the path lead to this very file? */
static int datafile_method_is_at(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);

	lua_pushboolean(L, datafile_is_at(file, luaL_checkstring(L, 2)));
	return 1;
}

static const char *string_option(lua_State *L, int table, const char *name)
{
	const char *value;

	lua_getfield(L, table, name);
	value = luaL_optstring(L, -1, NULL);
	lua_pop(L, 1); /* the table keeps it */
	return value;
}

static bool boolean_option(lua_State *L, int table, const char *name)
{
	bool value;

	lua_getfield(L, table, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

/* stream(catalog, { buffer =, partial =, clock_in_ns =, migrate_column = }) */
static int datafile_method_stream(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	struct filestream_options options = { 0 };
	struct lua_stream *self;
	struct trace_error error;

	check_catalog(L, 2);
	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 3);
	options.buffer = string_option(L, 3, "buffer");
	options.partial = boolean_option(L, 3, "partial");
	self = lua_stream_new(L, 1, 2);
	self->style.in_ns = boolean_option(L, 3, "clock_in_ns");
	self->style.has_migrate_column = boolean_option(L, 3, "migrate_column");
	self->stream = filestream_open(file, self->catalog, &options, &error);
	if (!self->stream)
		return push_error(L, &error);
	return 1;
}

/* text(buffer): of a latency tracer */
static int datafile_method_text(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	const char *name = luaL_checkstring(L, 2);
	struct strbuf *text;
	struct trace_error error;

	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		const struct datafile_buffer *buffer = datafile_buffer(file, i);

		if (!buffer->is_text || strcmp(buffer->name, name) != 0)
			continue;
		text = new_strbuf(L);
		if (datafile_read_text(file, buffer, text, &error) < 0)
			return push_error(L, &error);
		return push_strbuf(L, text);
	}
	lua_pushnil(L);
	lua_pushfstring(L, "%s has no text in a buffer '%s'", datafile_path(file), name);
	return 2;
}

static const luaL_Reg methods[] = {
	{ "buffers", datafile_method_buffers },
	{ "catalog", datafile_method_catalog },
	{ "close", datafile_method_close },
	{ "damage", datafile_method_damage },
	{ "describe", datafile_method_describe },
	{ "events", datafile_method_events },
	{ "format", datafile_method_format },
	{ "info", datafile_method_info },
	{ "is_at", datafile_method_is_at },
	{ "report", datafile_method_report },
	{ "stream", datafile_method_stream },
	{ "text", datafile_method_text },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__close", datafile_method_close },
	{ "__gc", datafile_method_close },
	{ "__tostring", datafile__tostring },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "datafile", core_datafile },
	{ NULL, NULL },
};

void open_datafile(lua_State *L)
{
	new_class(L, DATAFILE_CLASS, methods, meta);
	luaL_setfuncs(L, functions, 0);
}
