/* SPDX-License-Identifier: MIT */
#include "../engine/report.h"

#include "binding.h"
#include "stream.h"

#define REPORT_CLASS "tracefs.report"

/* User values: the file, the stream and the catalog, in that order. */
#define VALUES 3

struct report_object {
	struct report *report;
	struct lua_stream *stream; /* closed by somebody else? */
};

/* report(file, stream, catalog, { csv =, clock_in_ns =, nanoseconds =, buffers = }) */
int datafile_method_report(lua_State *L)
{
	struct datafile *file = check_datafile(L, 1);
	struct lua_stream *stream = check_stream(L, 2);
	struct catalog *catalog = check_catalog(L, 3);
	struct report_options options = { .format = REPORT_TEXT };
	struct report_object *self;

	luaL_argcheck(L, filestream_is(stream->stream), 2, "it is not the stream of a file");
	luaL_checktype(L, 4, LUA_TTABLE);
	lua_settop(L, 4);
	lua_getfield(L, 4, "csv");
	lua_getfield(L, 4, "clock_in_ns");
	lua_getfield(L, 4, "nanoseconds");
	lua_getfield(L, 4, "buffers");
	if (lua_toboolean(L, 5))
		options.format = REPORT_CSV;
	options.in_ns = lua_toboolean(L, 6);
	options.nanoseconds = lua_toboolean(L, 7);
	options.shows_buffer = lua_toboolean(L, 8);

	self = lua_newuserdatauv(L, sizeof(*self), VALUES);
	self->report = NULL;
	self->stream = stream;
	luaL_setmetatable(L, REPORT_CLASS);
	for (int i = 1; i <= VALUES; i++) {
		lua_pushvalue(L, i);
		lua_setiuservalue(L, -2, i);
	}
	self->report = report_open(stream->stream, file, catalog, &options);
	if (!self->report)
		return luaL_error(L, "not enough memory for a report");
	return 1;
}

/* run(): true, or false behind the last record, or nil; the next lines; what is wrong */
static int report_method_run(lua_State *L)
{
	struct report_object *self = luaL_checkudata(L, 1, REPORT_CLASS);
	struct trace_error error;
	struct strbuf *out;
	int result;

	luaL_argcheck(L, self->report && self->stream->stream, 1, "the stream is closed");
	out = new_strbuf(L);
	result = report_run(self->report, out, &error);
	if (result < 0)
		lua_pushnil(L);
	else
		lua_pushboolean(L, result);
	push_strbuf(L, out);
	if (result >= 0)
		return 2;
	lua_pushstring(L, error.message);
	return 3;
}

static int report__gc(lua_State *L)
{
	struct report_object *self = luaL_checkudata(L, 1, REPORT_CLASS);

	report_close(self->report);
	self->report = NULL;
	return 0;
}

static const luaL_Reg methods[] = {
	{ "run", report_method_run },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", report__gc },
	{ NULL, NULL },
};

void open_report(lua_State *L)
{
	new_class(L, REPORT_CLASS, methods, meta);
}
