/* SPDX-License-Identifier: MIT */
#include "../engine/filestream.h"

#include <string.h>

#include "binding.h"
#include "stream.h"

struct lua_stream *check_filestream(lua_State *L, int arg)
{
	struct lua_stream *self = check_stream(L, arg);

	luaL_argcheck(L, filestream_is(self->stream), arg, "only the stream of a file can do this");
	return self;
}

/* first_ts(): of the first record in the file; nil when it has none */
int stream_method_first_ts(lua_State *L)
{
	struct lua_stream *self = check_filestream(L, 1);
	uint64_t ts;

	if (filestream_first_ts(self->stream, &ts))
		lua_pushinteger(L, (lua_Integer)ts);
	else
		lua_pushnil(L);
	return 1;
}

/* last_ts(): of the record handed out last; 0 before the first */
int stream_method_last_ts(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)filestream_last_ts(check_filestream(L, 1)->stream));
	return 1;
}

/* progress(): bytes of records that have been read, and of all */
int stream_method_progress(lua_State *L)
{
	uint64_t done, all;

	filestream_progress(check_filestream(L, 1)->stream, &done, &all);
	lua_pushinteger(L, (lua_Integer)done);
	lua_pushinteger(L, (lua_Integer)all);
	return 2;
}

static int check_id(lua_State *L, int arg)
{
	lua_Integer id = luaL_checkinteger(L, arg);

	luaL_argcheck(L, id >= 0 && id <= UINT16_MAX, arg, "not an event id");
	return (int)id;
}

/* select(id, on): are records of this event handed out? */
int stream_method_select(lua_State *L)
{
	struct lua_stream *self = check_filestream(L, 1);

	filestream_select(self->stream, check_id(L, 2), lua_toboolean(L, 3));
	return 0;
}

/* set_cpus({ [N] = true, ... }): only these */
int stream_method_set_cpus(lua_State *L)
{
	struct lua_stream *self = check_filestream(L, 1);
	bool *wanted;

	luaL_checktype(L, 2, LUA_TTABLE);
	wanted = lua_newuserdatauv(L, UINT16_MAX + 1, 0);
	memset(wanted, 0, UINT16_MAX + 1);
	lua_pushnil(L);
	while (lua_next(L, 2)) {
		lua_Integer cpu = lua_tointeger(L, -2);

		luaL_argcheck(L, lua_isinteger(L, -2) && cpu >= 0 && cpu <= UINT16_MAX, 2,
			      "CPUs are numbers from 0 to 65535");
		wanted[cpu] = true;
		lua_pop(L, 1);
	}
	filestream_set_cpus(self->stream, wanted, UINT16_MAX + 1);
	return 0;
}

/* set_filter(event [, text]): true, or nil and what is wrong with it */
int stream_method_set_filter(lua_State *L)
{
	struct lua_stream *self = check_filestream(L, 1);
	const struct event_format *format = check_event(L, 2);
	const char *text = luaL_optstring(L, 3, "0");
	struct record_filter *filter;
	struct trace_error error;

	if (record_filter_create(format, text, &filter, &error) < 0)
		return push_error(L, &error);
	filestream_set_filter(self->stream, format->id, filter);
	lua_pushboolean(L, 1);
	return 1;
}

/* set_range(from, to): only what was recorded between these times */
int stream_method_set_range(lua_State *L)
{
	struct lua_stream *self = check_filestream(L, 1);

	filestream_set_range(self->stream, (uint64_t)luaL_checkinteger(L, 2),
			     (uint64_t)luaL_optinteger(L, 3, -1));
	return 0;
}
