/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/comm.h"
#include "ahead.h"
#include "binding.h"
#include "pair.h"
#include "value.h"

static struct lua_stream *to_stream(lua_State *L, int arg)
{
	return luaL_checkudata(L, arg, STREAM_CLASS);
}

struct lua_stream *check_stream(lua_State *L, int arg)
{
	struct lua_stream *self = to_stream(L, arg);

	luaL_argcheck(L, self->stream != NULL, arg, "stream is closed");
	return self;
}

static uint64_t seconds_option(lua_State *L, int table, const char *name)
{
	lua_Number seconds;

	lua_getfield(L, table, name);
	seconds = luaL_checknumber(L, -1);
	lua_pop(L, 1);
	if (!(seconds >= 0 && seconds <= 1e6))
		luaL_error(L, "%s: %f is no sensible number of seconds", name, seconds);
	return (uint64_t)(seconds * 1e9);
}

static lua_Integer integer_option(lua_State *L, int table, const char *name)
{
	lua_Integer value;

	lua_getfield(L, table, name);
	value = luaL_checkinteger(L, -1);
	lua_pop(L, 1);
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

struct lua_stream *lua_stream_new(lua_State *L, int source, int catalog)
{
	struct lua_stream *self = lua_newuserdatauv(L, sizeof(*self), VALUE_COUNT);

	memset(self, 0, sizeof(*self));
	luaL_setmetatable(L, STREAM_CLASS);
	lua_pushvalue(L, source);
	lua_setiuservalue(L, -2, VALUE_SOURCE);
	lua_pushvalue(L, catalog);
	lua_setiuservalue(L, -2, VALUE_CATALOG);
	lua_newtable(L);
	lua_setiuservalue(L, -2, VALUE_LIST);
	self->catalog = check_catalog(L, catalog);
	return self;
}

/* stream(instance, catalog, options): everything in options must be there, see session.lua */
static int core_stream(lua_State *L)
{
	struct instance *instance = check_instance(L, 1);
	struct stream_options options = { 0 };
	struct trace_error error;
	struct lua_stream *self;

	check_catalog(L, 2);
	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 3);
	lua_getfield(L, 3, "clock"); /* stays on the stack for its string */
	options.clock = luaL_checkstring(L, -1);
	options.margin_ns = seconds_option(L, 3, "margin");
	options.interval_ns = seconds_option(L, 3, "interval");
	options.memory = (uint64_t)integer_option(L, 3, "memory_mb") << 20;
	options.buffer_percent = (unsigned int)integer_option(L, 3, "buffer_percent");
	options.overwrite = boolean_option(L, 3, "overwrite");
	options.keep_own = boolean_option(L, 3, "own_events");
	options.snapshot = boolean_option(L, 3, "snapshot");

	self = lua_stream_new(L, 1, 2);
	self->style.in_ns = boolean_option(L, 3, "clock_in_ns");
	self->style.has_migrate_column = boolean_option(L, 3, "migrate_column");
	self->style.cpu_digits = text_cpu_digits();
	self->stream = stream_open(instance, &options, &error);
	if (!self->stream)
		return push_error(L, &error);
	return 1;
}

void lua_stream_close(struct lua_stream *self)
{
	routes_free(&self->routes);
	stack_joiner_free(self->joiner);
	self->joiner = NULL;
	free(self->pairs);
	self->pairs = NULL;
	self->pair_count = 0;
	ahead_free(self->ahead);
	self->ahead = NULL;
	self->looks_ahead = false;
	stream_close(self->stream);
	self->stream = NULL;
}

/* close(): true, or false while a handler runs, whose wish is done when it has returned */
static int stream_method_close(lua_State *L)
{
	struct lua_stream *self = to_stream(L, 1);

	if (self->busy) {
		self->close_wanted = true;
		self->stopping = true;
	} else {
		lua_stream_close(self);
	}
	lua_pushboolean(L, self->stream == NULL);
	return 1;
}

/* close_files(): the instance's tracer can be changed then */
static int stream_method_close_files(lua_State *L)
{
	stream_close_files(check_stream(L, 1)->stream);
	return 0;
}

/* open_files() */
static int stream_method_open_files(lua_State *L)
{
	struct trace_error error;

	if (stream_open_files(check_stream(L, 1)->stream, &error) < 0)
		return push_error(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

/* add_top(ids) */
static int stream_method_add_top(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	uint16_t ids[STREAM_MAX_TOP_IDS];
	struct trace_error error;
	lua_Unsigned count;

	luaL_checktype(L, 2, LUA_TTABLE);
	count = lua_rawlen(L, 2);
	luaL_argcheck(L, count >= 1 && count <= STREAM_MAX_TOP_IDS, 2, "1 to 4 ids of events");
	for (lua_Unsigned i = 0; i < count; i++) {
		lua_Integer id;

		lua_rawgeti(L, 2, (lua_Integer)i + 1);
		id = luaL_checkinteger(L, -1);
		luaL_argcheck(L, id >= 0 && id <= UINT16_MAX, 2, "not an event id");
		ids[i] = (uint16_t)id;
		lua_pop(L, 1);
	}
	if (stream_add_top(self->stream, ids, (unsigned int)count, &error) < 0)
		return push_error(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

static int stream__gc(lua_State *L)
{
	lua_stream_close(to_stream(L, 1));
	return 0;
}

static int stream__tostring(lua_State *L)
{
	struct lua_stream *self = to_stream(L, 1);

	if (self->stream)
		lua_pushfstring(L, STREAM_CLASS ": %p", (void *)self);
	else
		lua_pushliteral(L, STREAM_CLASS " (closed)");
	return 1;
}

/* callbacks(resolve, pump) */
static int stream_method_callbacks(lua_State *L)
{
	check_stream(L, 1);
	luaL_checktype(L, 2, LUA_TFUNCTION);
	luaL_checktype(L, 3, LUA_TFUNCTION);
	lua_settop(L, 3);
	lua_setiuservalue(L, 1, VALUE_PUMP);
	lua_setiuservalue(L, 1, VALUE_RESOLVE);
	return 0;
}

/* Keeps the value on top of the stack in the stream's list; returns its place. */
static int keep(lua_State *L, int stream)
{
	int place;

	lua_getiuservalue(L, stream, VALUE_LIST); /* value, list */
	place = (int)lua_rawlen(L, -1) + 1;
	lua_insert(L, -2); /* list, value */
	lua_rawseti(L, -2, place);
	lua_pop(L, 1);
	return place;
}

struct route *stream_describe(lua_State *L, struct lua_stream *self, int stream, int id, int event)
{
	struct route *route = routes_get(&self->routes, id);
	const struct event_format *format = check_event(L, event);

	stream = lua_absindex(L, stream);
	if (!route)
		luaL_error(L, "not enough memory");
	if (route->format != format) {
		route->record_class = push_record_class(L, event, &self->style);
		route->class = keep(L, stream);
		route->format = format;
	}
	return route;
}

/* describe(id, event) */
static int stream_method_describe(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	int id = (int)luaL_checkinteger(L, 2);

	stream_describe(L, self, 1, id, 3);
	return 0;
}

void compile_getter(lua_State *L, const struct event_format *format, const char *name,
		    struct getter *getter)
{
	int index = format_field_index(format, name);

	if (index >= 0) {
		*getter = getter_for_field(format, &format->fields[index]);
		return;
	}
	for (int i = 0; i < COMMON_COUNT; i++) {
		if (strcmp(name, common_names[i]) == 0) {
			*getter = getter_for_common(i);
			return;
		}
	}
	luaL_error(L, "%s has no field '%s'", format->label, name);
}

/* handle(id, function [, event, fields]): a value handler when there are fields */
static int stream_method_handle(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	int id = (int)luaL_checkinteger(L, 2);
	struct handler *handler;
	struct route *route;
	int count = 0;

	luaL_checktype(L, 3, LUA_TFUNCTION);
	lua_settop(L, 5);
	if (!lua_isnil(L, 5)) {
		luaL_checktype(L, 5, LUA_TTABLE);
		count = (int)lua_rawlen(L, 5);
		luaL_argcheck(L, count >= 1 && count <= STREAM_MAX_FIELDS, 5, "1 to 64 fields");
		route = stream_describe(L, self, 1, id, 4);
	} else {
		route = routes_get(&self->routes, id);
	}
	handler = route ? route_add(route, (unsigned int)count) : NULL;
	if (!handler)
		return luaL_error(L, "not enough memory");
	for (int i = 0; i < count; i++) {
		lua_rawgeti(L, 5, i + 1);
		/* a field that is not there leaves a handler that is not counted yet */
		compile_getter(L, route->format, luaL_checkstring(L, -1), &handler->getters[i]);
		lua_pop(L, 1);
	}
	lua_pushvalue(L, 3);
	handler->function = keep(L, 1);
	route->handler_count++;
	route->unknown = false; /* who adds a handler may know by now */
	return 0;
}

/* Has the pair hear of losses; false when memory is short. */
static bool add_pair(struct lua_stream *self, struct lua_pair *pair)
{
	struct lua_pair **pairs;

	for (unsigned int i = 0; i < self->pair_count; i++) {
		if (self->pairs[i] == pair)
			return true;
	}
	pairs = realloc(self->pairs, (self->pair_count + 1) * sizeof(struct lua_pair *));
	if (!pairs)
		return false;
	self->pairs = pairs;
	pairs[self->pair_count++] = pair;
	return true;
}

/* pair(id, pair, side): the records of an event are one side of a pair */
static int stream_method_pair(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	int id = (int)luaL_checkinteger(L, 2);
	struct lua_pair *pair = check_pair(L, 3);
	lua_Integer side = luaL_checkinteger(L, 4);
	struct handler *handler;
	struct route *route;
	int place;

	luaL_argcheck(L, pair_has_side(pair, side), 4, "the pair has no such side");
	lua_settop(L, 4);
	pair_push_event(L, 3, (unsigned int)side);
	route = stream_describe(L, self, 1, id, 5);
	lua_pushvalue(L, 3);
	place = keep(L, 1);
	handler = route_add(route, 0);
	if (!handler || !add_pair(self, pair))
		return luaL_error(L, "not enough memory");
	handler->function = place;
	handler->pair = pair;
	handler->side = (unsigned int)side;
	route->handler_count++;
	route->unknown = false;
	return 0;
}

/* The format of the description at @arg, which is kept; NULL for nil. */
static const struct event_format *keep_event(lua_State *L, int arg)
{
	const struct event_format *format = NULL;

	if (!lua_isnil(L, arg)) {
		format = check_event(L, arg);
		lua_pushvalue(L, arg);
		keep(L, 1);
	}
	return format;
}

/* stacks(kernel_stack, user_stack): what their records look like; before the first join() */
static int stream_method_stacks(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	const struct event_format *kernel, *user;

	lua_settop(L, 3);
	luaL_argcheck(L, !self->joiner, 1, "stacks are joined already");
	kernel = keep_event(L, 2);
	user = keep_event(L, 3);
	self->joiner = stack_joiner_create(self->catalog, kernel, user);
	if (!self->joiner)
		return luaL_error(L, "not enough memory");
	return 0;
}

/* join(id, kernel, user): which stacks the events of an id come with */
static int stream_method_join(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	lua_Integer id = luaL_checkinteger(L, 2);

	luaL_argcheck(L, id >= 0 && id <= UINT16_MAX, 2, "not an event id");
	luaL_argcheck(L, self->joiner, 1, "stacks() comes first");
	stack_joiner_want(self->joiner, (uint16_t)id, lua_toboolean(L, 3), lua_toboolean(L, 4));
	return 0;
}

static int stream_method_stop(lua_State *L)
{
	check_stream(L, 1)->stopping = true;
	return 0;
}

/* resume(): a stop() that has not ended anything yet is forgotten */
static int stream_method_resume(lua_State *L)
{
	check_stream(L, 1)->stopping = false;
	return 0;
}

static int stream_method_finish(lua_State *L)
{
	stream_finish(check_stream(L, 1)->stream);
	return 0;
}

static int stream_method_fileno(lua_State *L)
{
	lua_pushinteger(L, stream_fd(check_stream(L, 1)->stream));
	return 1;
}

static int stream_method_kick(lua_State *L)
{
	stream_kick(check_stream(L, 1)->stream);
	return 0;
}

/* wait(seconds): true when there is something to do, false when the time has passed */
static int stream_method_wait(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	lua_Number seconds = luaL_checknumber(L, 2);
	struct pollfd descriptor = { .fd = stream_fd(self->stream), .events = POLLIN };
	int result;

	if (!(seconds > 0))
		seconds = 0;
	result = poll(&descriptor, 1, seconds > 2e6 ? -1 : (int)(seconds * 1000 + 0.999));
	lua_pushboolean(L, result > 0);
	return 1;
}

static int push_result(lua_State *L, int result, const char *what)
{
	int err = errno;

	if (result < 0)
		return push_errno(L, err, what);
	lua_pushboolean(L, 1);
	return 1;
}

/* watch(fd): fileno() is readable also while fd is */
static int stream_method_watch(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);

	return push_result(L, stream_watch(self->stream, (int)luaL_checkinteger(L, 2)),
			   "cannot watch this descriptor");
}

static int stream_method_unwatch(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);

	return push_result(L, stream_unwatch(self->stream, (int)luaL_checkinteger(L, 2)),
			   "cannot stop watching this descriptor");
}

/* delivered(): how many records have been handed out */
static int stream_method_delivered(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)check_stream(L, 1)->delivered);
	return 1;
}

/* set_tick(ns): in CLOCK_MONOTONIC, of a file in its own time; 0 for none */
static int stream_method_set_tick(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);

	stream_set_tick(self->stream, (uint64_t)luaL_checkinteger(L, 2));
	return 0;
}

/* keep(id): records of this event are handed out also when the tracer caused them */
static int stream_method_keep(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	lua_Integer id = luaL_checkinteger(L, 2);

	luaL_argcheck(
		L, id >= 0 && id <= UINT16_MAX && stream_keep(self->stream, (unsigned int)id) == 0,
		2, "not an event id, or too many");
	return 0;
}

/* Adds to a field of the table on top of the stack, which may not be there yet. */
static void add_integer(lua_State *L, const char *name, uint64_t value)
{
	lua_getfield(L, -1, name);
	value += (uint64_t)lua_tointeger(L, -1);
	lua_pop(L, 1);
	set_integer(L, name, value);
}

/* counts(): { [cpu] = counters }, late */
static int stream_method_counts(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	struct stream_counts counts;
	struct trace_error error;

	lua_newtable(L);
	for (unsigned int i = 0; i < stream_cpu_count(self->stream); i++) {
		if (stream_counts(self->stream, i, &counts, &error) < 0)
			return push_error(L, &error);
		/* several buffers of a file have a CPU of the same number */
		if (lua_rawgeti(L, -1, stream_cpu(self->stream, i)) == LUA_TNIL) {
			lua_pop(L, 1);
			lua_createtable(L, 0, 9);
		}
		add_integer(L, "produced", counts.produced);
		add_integer(L, "delivered", counts.delivered);
		add_integer(L, "lost", counts.lost);
		add_integer(L, "pending", counts.pending);
		add_integer(L, "own", counts.own);
		add_integer(L, "skipped", counts.skipped);
		add_integer(L, "overrun", counts.overrun);
		add_integer(L, "dropped", counts.dropped);
		add_integer(L, "commit_overrun", counts.commit_overrun);
		lua_rawseti(L, -2, stream_cpu(self->stream, i));
	}
	lua_pushinteger(L, (lua_Integer)stream_late(self->stream));
	return 2;
}

static const luaL_Reg methods[] = {
	{ "add_top", stream_method_add_top },
	{ "callbacks", stream_method_callbacks },
	{ "close", stream_method_close },
	{ "close_files", stream_method_close_files },
	{ "counts", stream_method_counts },
	{ "cut", stream_method_cut },
	{ "delivered", stream_method_delivered },
	{ "describe", stream_method_describe },
	{ "failed", stream_method_failed },
	{ "fileno", stream_method_fileno },
	{ "finish", stream_method_finish },
	{ "first_ts", stream_method_first_ts },
	{ "handle", stream_method_handle },
	{ "iterator", stream_method_iterator },
	{ "join", stream_method_join },
	{ "keep", stream_method_keep },
	{ "kick", stream_method_kick },
	{ "last_ts", stream_method_last_ts },
	{ "open_files", stream_method_open_files },
	{ "pair", stream_method_pair },
	{ "progress", stream_method_progress },
	{ "record", stream_method_record },
	{ "resume", stream_method_resume },
	{ "run_handlers", stream_method_run_handlers },
	{ "sample", stream_method_sample },
	{ "sampled", stream_method_sampled },
	{ "select", stream_method_select },
	{ "set_cpus", stream_method_set_cpus },
	{ "set_filter", stream_method_set_filter },
	{ "set_range", stream_method_set_range },
	{ "set_tick", stream_method_set_tick },
	{ "stacks", stream_method_stacks },
	{ "step", stream_method_step },
	{ "stop", stream_method_stop },
	{ "unwatch", stream_method_unwatch },
	{ "wait", stream_method_wait },
	{ "watch", stream_method_watch },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__close", stream_method_close },
	{ "__gc", stream__gc },
	{ "__tostring", stream__tostring },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "stream", core_stream },
	{ NULL, NULL },
};

void open_stream(lua_State *L)
{
	new_class(L, STREAM_CLASS, methods, meta);
	luaL_setfuncs(L, functions, 0);
}
