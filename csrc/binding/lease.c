/* SPDX-License-Identifier: MIT */
#include "../engine/lease.h"

#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "instance.h"

#define LEASE "tracefs.lease"

struct lease_class {
	struct lease *lease; /* NULL: closed */
	pid_t owner;
	struct strbuf text; /* it lies here so that an error in Lua does not lose it */
};

static struct lease_class *to_lease(lua_State *L)
{
	return luaL_checkudata(L, 1, LEASE);
}

static struct lease_class *check_lease(lua_State *L)
{
	struct lease_class *self = to_lease(L);

	if (!self->lease)
		luaL_error(L, "the lease is closed");
	return self;
}

/* lease(path) */
static int core_lease(lua_State *L)
{
	const char *path = check_text(L, 1);
	struct lease_class *self = lua_newuserdatauv(L, sizeof(*self), 0);
	struct trace_error error;

	memset(self, 0, sizeof(*self));
	self->owner = getpid();
	luaL_setmetatable(L, LEASE);
	self->lease = lease_take(path, &error);
	if (!self->lease)
		return push_error(L, &error);
	return 1;
}

static int lease_method_read(lua_State *L)
{
	struct lease_class *self = check_lease(L);
	struct trace_error error;

	strbuf_reset(&self->text);
	if (lease_read(self->lease, &self->text, &error) < 0)
		return push_error(L, &error);
	lua_pushlstring(L, self->text.length ? self->text.text : "", self->text.length);
	return 1;
}

/* write(text) */
static int lease_method_write(lua_State *L)
{
	struct lease_class *self = check_lease(L);
	size_t length;
	const char *text = luaL_checklstring(L, 2, &length);
	struct trace_error error;

	return push_done(L, lease_write(self->lease, text, length, &error), &error);
}

/* is_ours(): asked of a closed one too */
static int lease_method_is_ours(lua_State *L)
{
	lua_pushboolean(L, to_lease(L)->owner == getpid());
	return 1;
}

static int lease_method_close(lua_State *L)
{
	struct lease_class *self = to_lease(L);

	strbuf_free(&self->text);
	lease_free(self->lease);
	self->lease = NULL;
	return 0;
}

static int lease__tostring(lua_State *L)
{
	lua_pushstring(L, to_lease(L)->lease ? LEASE : LEASE " (closed)");
	return 1;
}

static const luaL_Reg lease_methods[] = {
	{ "close", lease_method_close },
	{ "is_ours", lease_method_is_ours },
	{ "read", lease_method_read },
	{ "write", lease_method_write },
	{ NULL, NULL },
};

static const luaL_Reg lease_meta[] = {
	{ "__close", lease_method_close },
	{ "__gc", lease_method_close },
	{ "__tostring", lease__tostring },
	{ NULL, NULL },
};

static const luaL_Reg core_functions[] = {
	{ "lease", core_lease },
	{ NULL, NULL },
};

void open_lease(lua_State *L)
{
	new_class(L, LEASE, lease_methods, lease_meta);
	luaL_setfuncs(L, core_functions, 0);
}
