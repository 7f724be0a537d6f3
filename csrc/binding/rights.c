/* SPDX-License-Identifier: MIT */
#include "rights.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "../engine/descriptor.h"
#include "../engine/keeper.h"
#include "../engine/tracefile.h"
#include "binding.h"
#include "instance.h"

#define USER "tracefs.user"

const struct user *check_user(lua_State *L, int arg)
{
	return luaL_checkudata(L, arg, USER);
}

/* user(name) */
static int core_user(lua_State *L)
{
	const char *name = check_text(L, 1);
	struct user *user = lua_newuserdatauv(L, sizeof(*user), 0);
	struct trace_error error;

	luaL_setmetatable(L, USER);
	if (user_find(name, user, &error) < 0)
		return push_error(L, &error);
	return 1;
}

/* drop_rights(user, instance or nil) */
static int core_drop_rights(lua_State *L)
{
	const struct user *user = check_user(L, 1);
	struct instance *instance = lua_isnoneornil(L, 2) ? NULL : check_instance(L, 2);
	struct trace_error error;

	luaL_argcheck(L, !instance || instance_is_ours(instance), 2,
		      "the instance was not made by this process");
	return push_done(L, keeper_drop_rights(instance, user, &error), &error);
}

/* close_inherited(file or nil) */
static int core_close_inherited(lua_State *L)
{
	const luaL_Stream *kept = NULL;

	if (!lua_isnoneornil(L, 1))
		kept = luaL_checkudata(L, 1, LUA_FILEHANDLE);
	luaL_argcheck(L, !kept || kept->closef, 1, "the file is closed");
	descriptors_close_inherited(kept ? fileno(kept->f) : -1);
	return 0;
}

/* dropped_rights(): for whom, or nil */
static int core_dropped_rights(lua_State *L)
{
	lua_pushstring(L, keeper_user());
	return 1;
}

/* read_file(path) */
static int core_read_file(lua_State *L)
{
	const char *path = check_text(L, 1);
	struct strbuf *out = new_strbuf(L);
	int err = tracefile_read(AT_FDCWD, path, out);

	if (err)
		return push_errno(L, -err, path);
	return push_strbuf(L, out);
}

static int user__tostring(lua_State *L)
{
	lua_pushfstring(L, "tracefs.user (%s)", check_user(L, 1)->name);
	return 1;
}

static const luaL_Reg user_methods[] = {
	{ NULL, NULL },
};

static const luaL_Reg user_meta[] = {
	{ "__tostring", user__tostring },
	{ NULL, NULL },
};

static const luaL_Reg rights_functions[] = {
	{ "user", core_user },
	{ "drop_rights", core_drop_rights },
	{ "close_inherited", core_close_inherited },
	{ "dropped_rights", core_dropped_rights },
	{ "read_file", core_read_file },
	{ NULL, NULL },
};

void open_rights(lua_State *L)
{
	new_class(L, USER, user_methods, user_meta);
	luaL_setfuncs(L, rights_functions, 0);
}
