/* SPDX-License-Identifier: MIT */
#include "../engine/datacut.h"

#include "../engine/compress.h"
#include "binding.h"
#include "instance.h"
#include "stream.h"

#define CUT_CLASS "tracefs.cut"

struct lua_cut {
	struct datacut *cut; /* NULL once closed */
	struct lua_stream *stream;
};

static struct lua_cut *to_cut(lua_State *L, int arg)
{
	return luaL_checkudata(L, arg, CUT_CLASS);
}

static struct lua_cut *check_cut(lua_State *L, int arg)
{
	struct lua_cut *self = to_cut(L, arg);

	luaL_argcheck(L, self->cut != NULL, arg, "cut is closed");
	luaL_argcheck(L, self->stream->stream != NULL, arg, "the cut's stream is closed");
	return self;
}

static bool flag(lua_State *L, int table, const char *name)
{
	bool value;

	lua_getfield(L, table, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

/* cut(path, { version =, compress =, partial =, only_delivered = }) */
int stream_method_cut(lua_State *L)
{
	struct lua_stream *stream = check_filestream(L, 1);
	const char *path = check_text(L, 2);
	struct datacut_options options = { 0 };
	struct trace_error error;
	struct lua_cut *self;

	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 3);
	lua_getfield(L, 3, "version");
	options.version = (unsigned int)luaL_optinteger(L, -1, 7);
	luaL_argcheck(L, options.version == 6 || options.version == 7, 3, "version 6 or 7");
	options.compress = flag(L, 3, "compress") && compressor_is_there();
	options.partial = flag(L, 3, "partial");
	options.only_delivered = flag(L, 3, "only_delivered");
	self = lua_newuserdatauv(L, sizeof(*self), 1);
	self->cut = NULL;
	self->stream = stream;
	luaL_setmetatable(L, CUT_CLASS);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, 1);
	self->cut = datacut_open(stream->stream, path, &options, &error);
	if (!self->cut)
		return push_error(L, &error);
	return 1;
}

/* step(): true when there is more to do, false when the file is complete */
static int cut_step(lua_State *L)
{
	struct lua_cut *self = check_cut(L, 1);
	struct trace_error error;
	int result = datacut_step(self->cut, &error);

	if (result < 0)
		return push_error(L, &error);
	lua_pushboolean(L, result);
	return 1;
}

/* progress(): bytes of records that have been read, and of all */
static int cut_progress(lua_State *L)
{
	uint64_t done, all;

	datacut_progress(check_cut(L, 1)->cut, &done, &all);
	lua_pushinteger(L, (lua_Integer)done);
	lua_pushinteger(L, (lua_Integer)all);
	return 2;
}

static int cut_records(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)datacut_records(check_cut(L, 1)->cut));
	return 1;
}

static int cut_path(lua_State *L)
{
	lua_pushstring(L, datacut_path(check_cut(L, 1)->cut));
	return 1;
}

static int cut_close(lua_State *L)
{
	struct lua_cut *self = to_cut(L, 1);

	datacut_close(self->cut);
	self->cut = NULL;
	return 0;
}

static int cut__tostring(lua_State *L)
{
	struct lua_cut *self = to_cut(L, 1);

	if (self->cut)
		lua_pushfstring(L, CUT_CLASS " (%s)", datacut_path(self->cut));
	else
		lua_pushliteral(L, CUT_CLASS " (closed)");
	return 1;
}

static const luaL_Reg methods[] = {
	{ "close", cut_close },	    { "path", cut_path }, { "progress", cut_progress },
	{ "records", cut_records }, { "step", cut_step }, { NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__close", cut_close },
	{ "__gc", cut_close },
	{ "__tostring", cut__tostring },
	{ NULL, NULL },
};

void open_datacut(lua_State *L)
{
	new_class(L, CUT_CLASS, methods, meta);
}
