/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "../engine/compress.h"
#include "../engine/datameta.h"
#include "../engine/datawrite.h"
#include "../engine/recorder.h"
#include "binding.h"
#include "instance.h"
#include "stream.h"

#define RECORDING_CLASS "tracefs.recording"

/* A recording's user value: its instance. */
#define VALUE_OF_INSTANCE 1

#define CHECKPOINT_NS UINT64_C(1000000000)

struct lua_recording {
	struct instance *instance;
	struct datawrite *writer; /* NULL once closed */
	struct recorder *recorder;
	struct data_meta meta;
	uint64_t checkpoint_at;
	bool finishing;
};

static struct lua_recording *to_recording(lua_State *L, int arg)
{
	return luaL_checkudata(L, arg, RECORDING_CLASS);
}

static struct lua_recording *check_recording(lua_State *L, int arg)
{
	struct lua_recording *self = to_recording(L, arg);

	luaL_argcheck(L, self->writer != NULL, arg, "recording is closed");
	return self;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void close_recording(struct lua_recording *self)
{
	recorder_close(self->recorder);
	self->recorder = NULL;
	datawrite_close(self->writer);
	self->writer = NULL;
	data_meta_free(&self->meta);
}

/* The formats of the events in the list of { system, name } at @arg. */
static int gather(lua_State *L, struct lua_recording *self, int arg, struct trace_error *error)
{
	int result = data_meta_gather(&self->meta, self->instance, error);
	lua_Integer count = lua_istable(L, arg) ? (lua_Integer)lua_rawlen(L, arg) : 0;

	for (lua_Integer i = 1; result == 0 && i <= count; i++) {
		lua_rawgeti(L, arg, i);
		luaL_checktype(L, -1, LUA_TTABLE);
		lua_rawgeti(L, -1, 1);
		lua_rawgeti(L, -2, 2);
		result = data_meta_gather_event(&self->meta, self->instance, check_text(L, -2),
						check_text(L, -1), error);
		lua_pop(L, 3);
	}
	return result;
}

static void read_options(lua_State *L, int arg, struct datawrite_options *options)
{
	lua_getfield(L, arg, "version");
	options->version = (unsigned int)luaL_optinteger(L, -1, 7);
	luaL_argcheck(L, options->version == 6 || options->version == 7, arg, "version 6 or 7");
	lua_getfield(L, arg, "compress");
	options->compress = lua_toboolean(L, -1) && compressor_is_there();
	lua_getfield(L, arg, "own_events");
	options->own = own_filter_here();
	if (lua_toboolean(L, -1))
		options->own.pid = -1;
	lua_getfield(L, arg, "kept");
	luaL_checktype(L, -1, LUA_TTABLE);
	for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
		lua_Integer id = luaL_checkinteger(L, -1);

		luaL_argcheck(L, id >= 0 && own_keep(&options->own, (unsigned int)id) == 0, arg,
			      "kept: not an event id, or too many");
		lua_pop(L, 1);
	}
	lua_pop(L, 5);
}

/* recording(instance, path, options [, events]): everything in options must be there */
static int core_recording(lua_State *L)
{
	struct instance *instance = check_instance(L, 1);
	const char *path = check_text(L, 2);
	struct datawrite_options options = { 0 };
	struct trace_error error;
	struct lua_recording *self;

	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 4);
	read_options(L, 3, &options);
	self = lua_newuserdatauv(L, sizeof(*self), 1);
	memset(self, 0, sizeof(*self));
	luaL_setmetatable(L, RECORDING_CLASS);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, VALUE_OF_INSTANCE);
	self->instance = instance;
	self->checkpoint_at = now_ns();
	if (gather(L, self, 4, &error) < 0)
		return push_error(L, &error);
	self->writer = datawrite_open(path, &self->meta, &options, &error);
	if (!self->writer)
		return push_error(L, &error);
	return 1;
}

/* can_compress(): whether this build has libzstd */
static int core_can_compress(lua_State *L)
{
	lua_pushboolean(L, compressor_is_there());
	return 1;
}

/* direct(): moves the instance's sub-buffers by itself, with pump() and drain() */
static int recording_direct(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);
	struct trace_error error;

	luaL_argcheck(L, !self->recorder, 1, "recording is direct already");
	self->recorder = recorder_open(self->instance, self->writer, &error);
	return push_done(L, self->recorder ? 0 : -1, &error);
}

static struct recorder *check_recorder(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);

	luaL_argcheck(L, self->recorder, 1, "direct() was not called");
	return self->recorder;
}

static int recording_fileno(lua_State *L)
{
	lua_pushinteger(L, recorder_fd(check_recorder(L)));
	return 1;
}

static int push_moved(lua_State *L, long moved, const struct trace_error *error)
{
	if (moved < 0)
		return push_error(L, error);
	lua_pushinteger(L, moved);
	return 1;
}

static int recording_pump(lua_State *L)
{
	struct trace_error error;
	long moved = recorder_pump(check_recorder(L), &error);

	return push_moved(L, moved, &error);
}

static int recording_drain(lua_State *L)
{
	struct trace_error error;
	long moved = recorder_drain(check_recorder(L), &error);

	return push_moved(L, moved, &error);
}

static int recording_checkpoint(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);
	struct trace_error error;

	return push_done(L, datawrite_checkpoint(self->writer, &error), &error);
}

/* finish([events]): no more pages come; step() does the work that is left */
static int recording_finish(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);
	struct trace_error error;

	lua_settop(L, 2);
	luaL_argcheck(L, !self->finishing, 1, "recording is finished already");
	self->finishing = true;
	recorder_close(self->recorder);
	self->recorder = NULL;
	if (gather(L, self, 2, &error) < 0)
		return push_error(L, &error);
	return push_done(L, datawrite_finish(self->writer, &self->meta, &error), &error);
}

/* step(): true when there is more to do, false when the file is complete */
static int recording_step(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);
	struct trace_error error;
	int result;

	luaL_argcheck(L, self->finishing, 1, "finish() was not called");
	result = datawrite_step(self->writer, &error);
	if (result < 0)
		return push_error(L, &error);
	lua_pushboolean(L, result);
	return 1;
}

/* bytes(): of pages taken in, how many of them step() has dealt with, own records in those */
static int recording_bytes(lua_State *L)
{
	struct lua_recording *self = check_recording(L, 1);

	lua_pushinteger(L, (lua_Integer)datawrite_bytes(self->writer));
	lua_pushinteger(L, (lua_Integer)datawrite_done(self->writer));
	lua_pushinteger(L, (lua_Integer)datawrite_left_out(self->writer));
	return 3;
}

static int recording_path(lua_State *L)
{
	lua_pushstring(L, datawrite_path(check_recording(L, 1)->writer));
	return 1;
}

static int recording_close(lua_State *L)
{
	close_recording(to_recording(L, 1));
	return 0;
}

static int recording__tostring(lua_State *L)
{
	struct lua_recording *self = to_recording(L, 1);

	if (self->writer)
		lua_pushfstring(L, RECORDING_CLASS " (%s)", datawrite_path(self->writer));
	else
		lua_pushliteral(L, RECORDING_CLASS " (closed)");
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Beside the handlers of a stream                                            */
/* ------------------------------------------------------------------------- */

static int sink_page(void *arg, unsigned int cpu, const uint8_t *bytes, size_t length,
		     struct trace_error *error)
{
	struct lua_recording *self = arg;

	if (!self->writer || self->finishing)
		return 0;
	return datawrite_page(self->writer, cpu, bytes, length, error);
}

static int sink_look(void *arg, struct trace_error *error)
{
	struct lua_recording *self = arg;
	uint64_t now = now_ns();

	if (!self->writer || self->finishing || now - self->checkpoint_at < CHECKPOINT_NS)
		return 0;
	self->checkpoint_at = now;
	return datawrite_checkpoint(self->writer, error);
}

/* stream:record(recording): every sub-buffer goes into it too; nil: no more */
int stream_method_record(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	struct stream_sink sink = { .page = sink_page, .look = sink_look };
	struct lua_recording *recording;
	struct trace_error error;

	lua_settop(L, 2);
	if (lua_isnil(L, 2)) {
		stream_set_sink(self->stream, NULL);
	} else {
		recording = check_recording(L, 2);
		if (data_meta_begin_here(&recording->meta, recording->instance, &error) < 0)
			return luaL_error(L, "%s", error.message);
		sink.arg = recording;
		stream_set_sink(self->stream, &sink);
	}
	lua_setiuservalue(L, 1, VALUE_RECORDING);
	return 0;
}

static const luaL_Reg methods[] = {
	{ "bytes", recording_bytes },
	{ "checkpoint", recording_checkpoint },
	{ "close", recording_close },
	{ "direct", recording_direct },
	{ "drain", recording_drain },
	{ "fileno", recording_fileno },
	{ "finish", recording_finish },
	{ "path", recording_path },
	{ "pump", recording_pump },
	{ "step", recording_step },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__close", recording_close },
	{ "__gc", recording_close },
	{ "__tostring", recording__tostring },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "can_compress", core_can_compress },
	{ "recording", core_recording },
	{ NULL, NULL },
};

void open_recording(lua_State *L)
{
	new_class(L, RECORDING_CLASS, methods, meta);
	luaL_setfuncs(L, functions, 0);
}
