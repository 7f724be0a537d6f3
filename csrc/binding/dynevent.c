/* SPDX-License-Identifier: MIT */
#include "../engine/dynevent.h"

#include <string.h>

#include "binding.h"
#include "instance.h"

#define DYNEVENTS "tracefs.dynevents"

struct dynevents_object {
	struct dynevents *events; /* NULL once closed */
};

static struct dynevents_object *to_dynevents(lua_State *L)
{
	return luaL_checkudata(L, 1, DYNEVENTS);
}

static struct dynevents *check_dynevents(lua_State *L)
{
	struct dynevents_object *self = to_dynevents(L);

	if (!self->events)
		luaL_error(L, "the dynamic events are closed");
	return self->events;
}

/* dynevents(tracing_dir) */
static int core_dynevents(lua_State *L)
{
	const char *tracing_dir = check_text(L, 1);
	struct dynevents_object *self = lua_newuserdatauv(L, sizeof(*self), 0);

	self->events = NULL;
	luaL_setmetatable(L, DYNEVENTS);
	self->events = dynevents_create(tracing_dir);
	if (!self->events)
		return luaL_error(L, "not enough memory for dynamic events");
	return 1;
}

/* name(): for a group, or for an event of a group that the kernel gives */
static int dynevents_method_name(lua_State *L)
{
	char name[OWN_NAME_SIZE];

	dynevents_name(check_dynevents(L), name);
	lua_pushstring(L, name);
	return 1;
}

/* add(command) */
static int dynevents_method_add(lua_State *L)
{
	struct dynevents *events = check_dynevents(L);
	const char *command = check_text(L, 2);
	struct trace_error error;

	return push_done(L, dynevents_add(events, command, &error), &error);
}

/* drop(): takes the last add() back */
static int dynevents_method_drop(lua_State *L)
{
	struct trace_error error;

	return push_done(L, dynevents_drop(check_dynevents(L), &error), &error);
}

/* commands(): a list */
static int dynevents_method_commands(lua_State *L)
{
	struct dynevents *events = check_dynevents(L);
	size_t count = dynevents_count(events);

	lua_newtable(L);
	for (size_t i = 0; i < count; i++) {
		lua_pushstring(L, dynevents_command(events, i));
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

/* close(): open it stays when something cannot be removed, so that it can be tried again */
static int dynevents_method_close(lua_State *L)
{
	struct dynevents_object *self = to_dynevents(L);
	struct trace_error error;

	if (self->events) {
		if (dynevents_remove(self->events, &error) < 0)
			return push_error(L, &error);
		dynevents_free(self->events);
		self->events = NULL;
	}
	lua_pushboolean(L, 1);
	return 1;
}

static int dynevents__close(lua_State *L)
{
	dynevents_method_close(L);
	return 0;
}

static int dynevents__gc(lua_State *L)
{
	struct dynevents_object *self = to_dynevents(L);

	dynevents_free(self->events);
	self->events = NULL;
	return 0;
}

static int dynevents__tostring(lua_State *L)
{
	struct dynevents_object *self = to_dynevents(L);

	if (self->events)
		lua_pushfstring(L, DYNEVENTS " (%I)", (LUAI_UACINT)dynevents_count(self->events));
	else
		lua_pushliteral(L, DYNEVENTS " (closed)");
	return 1;
}

/* remove_stale_dynevents(tracing_dir): the number removed */
static int core_remove_stale_dynevents(lua_State *L)
{
	lua_pushinteger(L, dynevents_remove_stale(check_text(L, 1)));
	return 1;
}

static const luaL_Reg dynevents_methods[] = {
	{ "add", dynevents_method_add },	   { "close", dynevents_method_close },
	{ "commands", dynevents_method_commands }, { "drop", dynevents_method_drop },
	{ "name", dynevents_method_name },	   { NULL, NULL },
};

static const luaL_Reg dynevents_meta[] = {
	{ "__close", dynevents__close },
	{ "__gc", dynevents__gc },
	{ "__tostring", dynevents__tostring },
	{ NULL, NULL },
};

static const luaL_Reg core_functions[] = {
	{ "dynevents", core_dynevents },
	{ "remove_stale_dynevents", core_remove_stale_dynevents },
	{ NULL, NULL },
};

void open_dynevent(lua_State *L)
{
	new_class(L, DYNEVENTS, dynevents_methods, dynevents_meta);
	luaL_setfuncs(L, core_functions, 0);
	open_elfsym(L); /* where their uprobes are */
}
