/* SPDX-License-Identifier: MIT */
#include "../engine/elfsym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/kernel_function.h"
#include "../engine/nearest.h"
#include "binding.h"
#include "instance.h"

/* elf_offset(path, symbol [, delta]): where a function is in the file */
static int core_elf_offset(lua_State *L)
{
	const char *path = check_text(L, 1), *symbol = check_text(L, 2);
	lua_Integer delta = luaL_optinteger(L, 3, 0);
	struct trace_error error;
	uint64_t offset;

	luaL_argcheck(L, delta >= 0, 3, "not negative");
	if (elfsym_find(path, symbol, (uint64_t)delta, &offset, &error) < 0)
		return push_error(L, &error);
	lua_pushinteger(L, (lua_Integer)offset);
	return 1;
}

/* elf_functions(path): a list of names */
static int core_elf_functions(lua_State *L)
{
	const char *path = check_text(L, 1), *at;
	void **memory = new_memory(L);
	struct strbuf names = { 0 };
	struct trace_error error;
	lua_Integer count = 0;
	int result;

	result = elfsym_functions(path, &names, &error);
	*memory = names.text;
	if (result < 0)
		return push_error(L, &error);
	lua_newtable(L);
	for (at = names.text; names.length && at < names.text + names.length;
	     at += strlen(at) + 1) {
		lua_pushstring(L, at);
		lua_rawseti(L, -2, ++count);
	}
	return 1;
}

/* nearest(asked, names): " Did you mean A or B?", or "" */
static int core_nearest(lua_State *L)
{
	const char *asked = check_text(L, 1), *names = check_text(L, 2);
	void **memory = new_memory(L);
	struct strbuf hint = { 0 };

	nearest_add(&hint, asked, names);
	*memory = hint.text;
	lua_pushlstring(L, hint.length ? hint.text : "", hint.length);
	return 1;
}

/* kernel_function(name): true; or false and a hint; nil when that cannot be known */
static int core_kernel_function(lua_State *L)
{
	const char *name = check_text(L, 1);
	void **memory = new_memory(L);
	struct strbuf hint = { 0 };
	int result;

	result = kernel_function_exists(name, &hint);
	*memory = hint.text;
	if (result < 0)
		return push_errno(L, -result, "/proc/kallsyms");
	lua_pushboolean(L, result);
	lua_pushlstring(L, hint.length ? hint.text : "", hint.length);
	return 2;
}

/* has_libelf(): was it there when this was built? */
static int core_has_libelf(lua_State *L)
{
	lua_pushboolean(L, elfsym_is_there());
	return 1;
}

/* real_path(path): absolute, without links */
static int core_real_path(lua_State *L)
{
	const char *path = check_text(L, 1);
	void **memory = new_memory(L);
	int err;

	*memory = realpath(path, NULL);
	if (!*memory) {
		err = errno;
		return push_errno(L, err, path);
	}
	lua_pushstring(L, *memory);
	return 1;
}

static const luaL_Reg core_functions[] = {
	{ "elf_functions", core_elf_functions },
	{ "elf_offset", core_elf_offset },
	{ "has_libelf", core_has_libelf },
	{ "kernel_function", core_kernel_function },
	{ "nearest", core_nearest },
	{ "real_path", core_real_path },
	{ NULL, NULL },
};

void open_elfsym(lua_State *L)
{
	luaL_setfuncs(L, core_functions, 0);
}
