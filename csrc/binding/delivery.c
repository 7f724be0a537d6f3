/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include <string.h>
#include <time.h>

#include "../engine/comm.h"
#include "ahead.h"
#include "binding.h"
#include "pair.h"
#include "value.h"

/* A value handler's values and a few more: what a frame of the functions here may need. */
#define STACK_NEEDED (STREAM_MAX_FIELDS + 16)

/* Whether pairs have grown so large that it is worth looking ahead is asked every so many items. */
#define TURNS_A_QUESTION 1024

/*
 * Is the item of @turn still the current one? Lua code that runs in between, be it the finalizer
 * of something else, may close the stream, which takes the item's bytes with it. False then.
 */
static bool is_current(lua_State *L, const struct lua_stream *self, uint64_t turn)
{
	if (self->stream && self->turn != turn)
		luaL_error(L, "the stream was stepped while a record was handed out");
	return self->stream != NULL;
}

/*
 * Asks the Lua side for the description of an id; leaves the stack as it was. NULL when the
 * stream has been closed meanwhile.
 */
static struct route *resolve(lua_State *L, struct lua_stream *self, int stream, int id)
{
	struct route *route = routes_get(&self->routes, id);
	uint64_t turn = self->turn;

	if (!route)
		luaL_error(L, "not enough memory");
	lua_getiuservalue(L, stream, VALUE_RESOLVE);
	lua_pushinteger(L, id);
	lua_call(L, 1, 1); /* event or nil */
	if (!is_current(L, self, turn))
		route = NULL;
	else if (!lua_isnil(L, -1))
		route = stream_describe(L, self, stream, id, lua_gettop(L));
	else
		route->unknown = true;
	lua_pop(L, 1);
	return route;
}

static void push_values(lua_State *L, const struct route *route, const struct handler *handler,
			const struct event *event)
{
	for (unsigned int i = 0; i < handler->getter_count; i++) {
		const struct getter *getter = &handler->getters[i];
		int64_t number;

		if (getter_read_integer(getter, event, &number))
			lua_pushinteger(L, number);
		else if (getter->kind == GET_COMMON)
			push_common(L, route->format, (enum common_field)getter->common, event);
		else
			push_field(L, route->format, getter->field, event);
	}
}

/* Pushes the current event as a record; false when the stream has been closed meanwhile. */
static bool push_record(lua_State *L, const struct lua_stream *self, const struct route *route,
			int list)
{
	uint64_t turn = self->turn;
	struct record *record = new_record(L, record_size(&self->item.event));

	if (!is_current(L, self, turn))
		return false;
	record_fill(record, route->record_class, &self->item.event);
	lua_rawgeti(L, list, route->class);
	lua_setmetatable(L, -2);
	return true;
}

/* What a pair asks for, when it has a function to call. */
struct stream_caller {
	struct pair_caller caller;
	const struct lua_stream *stream;
	const struct route *route;
	int list;
	int place;
};

static void push_pair(lua_State *L, const struct pair_caller *caller)
{
	const struct stream_caller *self = (const struct stream_caller *)caller;

	lua_rawgeti(L, self->list, self->place);
}

static void push_pair_record(lua_State *L, const struct pair_caller *caller)
{
	const struct stream_caller *self = (const struct stream_caller *)caller;

	push_record(L, self->stream, self->route, self->list);
}

static void call_pair(lua_State *L, const struct lua_stream *self, const struct route *route,
		      const struct handler *handler, int list)
{
	const struct stream_caller caller = {
		.caller = { push_pair, push_pair_record },
		.stream = self,
		.route = route,
		.list = list,
		.place = handler->function,
	};

	pair_deliver(L, handler->pair, handler->side, &self->item.event, &caller.caller);
}

/*
 * Calls the handlers of the current event that have not been called. When one raises,
 * the next call goes on behind it.
 */
static void call_handlers(lua_State *L, struct lua_stream *self, const struct route *route,
			  int list)
{
	int record = 0;

	while (self->next_handler < route->handler_count) {
		/* a copy: a handler that is added meanwhile may move them */
		const struct handler handler = route->handlers[self->next_handler++];

		if (handler.pair) {
			call_pair(L, self, route, &handler, list);
			continue;
		}
		if (handler.getter_count) {
			lua_rawgeti(L, list, handler.function);
			push_values(L, route, &handler, &self->item.event);
			lua_call(L, (int)handler.getter_count, 0);
			continue;
		}
		/* one record for all handlers; it stays below them on the stack */
		if (!record) {
			push_record(L, self, route, list);
			record = lua_gettop(L);
		}
		lua_rawgeti(L, list, handler.function);
		lua_pushvalue(L, record);
		lua_call(L, 1, 0);
	}
	if (record)
		lua_settop(L, record - 1);
	self->next_handler = 0;
}

static const char *const loss_names[] = {
	[LOSS_OVERRUN] = "overrun",
	[LOSS_DROPPED] = "dropped",
	[LOSS_COMMIT_OVERRUN] = "commit_overrun",
	[LOSS_DAMAGED] = "damaged",
};

static void push_loss(lua_State *L, const struct loss *loss)
{
	lua_createtable(L, 0, 5);
	set_integer(L, "cpu", loss->cpu);
	if (loss->count != PAGE_LOST_UNKNOWN)
		set_integer(L, "count", loss->count);
	if (loss->after_ts)
		set_integer(L, "after_ts", loss->after_ts);
	if (loss->before_ts)
		set_integer(L, "before_ts", loss->before_ts);
	lua_pushstring(L, loss_names[loss->why]);
	lua_setfield(L, -2, "why");
}

/* What a step or the pump is told of the item: the time of a tick, a loss, or nil. */
static void push_what(lua_State *L, const struct lua_stream *self)
{
	switch (self->item.kind) {
	case ITEM_LOST:
		push_loss(L, &self->item.loss);
		break;
	case ITEM_TICK:
		lua_pushinteger(L, (lua_Integer)self->item.tick_ts);
		break;
	default:
		lua_pushnil(L);
		break;
	}
}

static int fill(lua_State *L, struct lua_stream *self)
{
	struct trace_error error;

	if (stream_fill(self->stream, &error) < 0)
		return luaL_error(L, "%s", error.message);
	self->looked = true;
	comm_expire(catalog_comms(self->catalog));
	return 0;
}

static int current_id(const struct lua_stream *self)
{
	return catalog_record_type(self->catalog, self->item.event.data, self->item.event.size);
}

/* The route of the current event, or NULL when nobody knows what it is. */
static struct route *current_route(lua_State *L, struct lua_stream *self, int stream)
{
	int id = current_id(self);
	struct route *route = routes_find(&self->routes, id);

	if (route && route->format)
		return route;
	if (id < 0 || (route && route->unknown))
		return NULL;
	route = resolve(L, self, stream, id);
	return route && route->format ? route : NULL;
}

static const char *item_name(enum item_kind kind)
{
	switch (kind) {
	case ITEM_LOST:
		return "lost";
	case ITEM_TICK:
		return "tick";
	case ITEM_END:
		return "end";
	default:
		return "idle";
	}
}

/*
 * After a look that found everything there was, the caller waits: under a load that never
 * rests a few records more are always there, and looking for them again and again costs
 * more than the records do.
 */
static bool wants_look(const struct lua_stream *self)
{
	return !self->looked || stream_is_behind(self->stream);
}

static void set_looks_ahead(struct lua_stream *self)
{
	self->looks_ahead = false;
	for (unsigned int i = 0; i < self->pair_count; i++)
		self->looks_ahead |= pair_is_large(self->pairs[i]);
	if (self->looks_ahead && !self->ahead)
		self->ahead = ahead_create(stream_cpu_count(self->stream));
	self->looks_ahead &= self->ahead != NULL;
}

static enum item_kind next_item(struct lua_stream *self)
{
	enum item_kind kind = self->joiner ?
				      stack_joiner_next(self->joiner, self->stream, &self->item) :
				      stream_next(self->stream, &self->item);

	if (self->turn++ % TURNS_A_QUESTION == 0)
		set_looks_ahead(self);
	self->delivered += kind == ITEM_EVENT;
	for (unsigned int i = 0; kind == ITEM_LOST && i < self->pair_count; i++)
		pair_lose(self->pairs[i], &self->item.loss);
	if (kind == ITEM_EVENT && self->looks_ahead)
		ahead_look(self->ahead, stream_merge(self->stream), self->catalog, &self->routes,
			   &self->item.event);
	return kind;
}

/* Everything that leaves the loop of a step comes through here, but for errors. */
static int step_result(lua_State *L, struct lua_stream *self, lua_Integer count, const char *why)
{
	self->busy = false;
	if (self->close_wanted)
		lua_stream_close(self);
	lua_pushinteger(L, count);
	lua_pushstring(L, why);
	push_what(L, self);
	return 3;
}

static int step_stopped(lua_State *L, struct lua_stream *self, lua_Integer count)
{
	self->stopping = false;
	return step_result(L, self, count, "stop");
}

static int64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * step(max, ns or nil): calls the handlers of up to max records, and begins none after that time. Returns the number of records and
 * why it ended: "more", "idle", "stop", "end", "tick" with its time, or "lost" with the
 * loss. After an error the next step goes on with the handler behind the one that raised.
 * busy stays set then, until failed() is called.
 */
int stream_method_step(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	lua_Integer max = luaL_optinteger(L, 2, 10000);
	lua_Integer budget = luaL_optinteger(L, 3, 0);
	int64_t deadline = budget > 0 ? monotonic_now() + budget : INT64_MAX;
	lua_Integer count = 0;
	struct route *route;

	if (self->busy)
		return luaL_error(L, "step called from inside a handler");
	lua_settop(L, 1);
	lua_getiuservalue(L, 1, VALUE_LIST); /* self, list */
	luaL_checkstack(L, STACK_NEEDED, NULL);
	self->busy = true;
	self->looked = false;
	while (count < max) {
		if (self->stopping)
			return step_stopped(L, self, count);
		if (self->next_handler == 0) {
			enum item_kind kind = next_item(self);

			if (kind == ITEM_NONE && wants_look(self)) {
				fill(L, self);
				kind = next_item(self);
			}
			if (kind == ITEM_NONE && stream_is_behind(self->stream)) {
				if (budget > 0 && monotonic_now() >= deadline)
					break;
				continue;
			}
			if (kind != ITEM_EVENT)
				return step_result(L, self, count, item_name(kind));
			count++;
		}
		route = current_route(L, self, 1);
		if (route && route->handler_count)
			call_handlers(L, self, route, 2);
		else
			self->next_handler = 0;
		if (budget > 0 && monotonic_now() >= deadline)
			break;
	}
	if (self->stopping)
		return step_stopped(L, self, count);
	stream_kick(self->stream);
	return step_result(L, self, count, "more");
}

/* Asks the pump; false ends the loop. */
static bool ask_pump(lua_State *L, struct lua_stream *self, const char *why)
{
	uint64_t turn = self->turn;
	bool go_on;

	lua_pushvalue(L, lua_upvalueindex(3));
	lua_pushstring(L, why);
	push_what(L, self);
	lua_call(L, 2, 1);
	go_on = lua_toboolean(L, -1) && self->stream;
	lua_pop(L, 1);
	if (go_on && self->turn != turn)
		luaL_error(L, "the stream of a loop was stepped while the loop waited");
	return go_on;
}

/* The loop's next record; false when the loop is to end. */
static bool next_in_loop(lua_State *L, struct lua_stream *self)
{
	enum item_kind kind;

	while (!self->stopping) {
		kind = next_item(self);
		if (kind == ITEM_NONE && wants_look(self)) {
			if (!ask_pump(L, self, "look"))
				return false;
			if (self->stopping)
				break;
			fill(L, self);
			kind = next_item(self);
		}
		if (kind == ITEM_EVENT)
			return true;
		if (kind == ITEM_NONE && stream_is_behind(self->stream))
			continue;
		self->looked = self->looked && kind != ITEM_NONE;
		if (!ask_pump(L, self, item_name(kind)))
			return false;
	}
	self->stopping = false;
	ask_pump(L, self, "stop");
	return false;
}

/*
 * The iterator of the loop; upvalues: the stream, its list, its pump. Returns the next
 * record. What comes between records is the pump's: it looks around before each fill,
 * waits, runs an event's handlers, and ends the loop by returning false. When a handler
 * has raised, the next call goes on with the handler behind it.
 */
static int next_record(lua_State *L)
{
	struct lua_stream *self = lua_touserdata(L, lua_upvalueindex(1));
	const struct route *route;

	if (!self->stream)
		return 0;
	if (self->busy)
		return luaL_error(L, "the loop's iterator was called from inside a handler");
	do {
		if (self->next_handler == 0 && !next_in_loop(L, self))
			return 0;
		route = current_route(L, self, lua_upvalueindex(1));
		if (!self->stream)
			return 0;
	} while (!route);
	if (route->handler_count && !ask_pump(L, self, "handlers"))
		return 0;
	return push_record(L, self, route, lua_upvalueindex(2));
}

/* iterator(): for the generic for */
int stream_method_iterator(lua_State *L)
{
	check_stream(L, 1);
	lua_settop(L, 1);
	lua_getiuservalue(L, 1, VALUE_LIST);
	lua_getiuservalue(L, 1, VALUE_PUMP);
	lua_pushcclosure(L, next_record, 3);
	return 1;
}

/* run_handlers(): those of the current event that have not run; busy as in step() */
int stream_method_run_handlers(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	const struct route *route;

	if (self->busy)
		return luaL_error(L, "run_handlers called from inside a handler");
	lua_settop(L, 1);
	lua_getiuservalue(L, 1, VALUE_LIST);
	luaL_checkstack(L, STACK_NEEDED, NULL);
	if (self->item.kind != ITEM_EVENT)
		return 0;
	self->busy = true;
	route = current_route(L, self, 1);
	if (route)
		call_handlers(L, self, route, 2);
	self->busy = false;
	return 0;
}

/*
 * failed(): after an error in step() or run_handlers(). The record of the handler that raised,
 * and whether it was a handler.
 */
int stream_method_failed(lua_State *L)
{
	struct lua_stream *self = luaL_checkudata(L, 1, STREAM_CLASS);
	bool in_handler = self->item.kind == ITEM_EVENT && self->next_handler != 0;
	struct route *route;

	self->busy = false;
	if (self->close_wanted)
		lua_stream_close(self);
	lua_settop(L, 1);
	lua_getiuservalue(L, 1, VALUE_LIST); /* self, list */
	route = self->stream && in_handler ? routes_find(&self->routes, current_id(self)) : NULL;
	if (!route || !route->format || !push_record(L, self, route, 2)) {
		lua_settop(L, 2);
		lua_pushnil(L);
	}
	lua_pushboolean(L, in_handler); /* self, list, record or nil, in_handler */
	return 2;
}
