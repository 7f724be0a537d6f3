/*
 * A C program that runs Lua scripts with luatrace inside, in a state that may take so much memory
 * and no more, and reads what they return.
 *
 *	cc -o host host.c $(pkg-config --cflags --libs lua-tracefs lua5.4)
 *	./host SCRIPT [MEMORY_KB [ARG...]]
 *
 * The script gets the words behind the limit as its arguments. What it returns is printed; a
 * script that fails, be it for want of memory, costs the host nothing but the message.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lua-tracefs.h>
#include <lua.h>
#include <lualib.h>

struct budget {
	size_t used;
	size_t limit;
};

static void *allocate(void *data, void *block, size_t old_size, size_t size)
{
	struct budget *budget = data;
	size_t old = block ? old_size : 0; /* without a block it is the kind of what is made */
	void *grown;

	if (size == 0) {
		free(block);
		budget->used -= old;
		return NULL;
	}
	if (size > old && size - old > budget->limit - budget->used)
		return NULL;
	grown = realloc(block, size);
	if (grown)
		budget->used += size - old;
	return grown;
}

/* Only for errors outside of a protected call. Here there is none but run_script's. */
static int panic(lua_State *L)
{
	const char *message = lua_tostring(L, -1);

	fprintf(stderr, "host: Lua panics: %s\n", message ? message : "no message");
	return 0; /* and Lua calls abort() */
}

static int with_traceback(lua_State *L)
{
	luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
	return 1;
}

/* Everything that can raise: arguments argc, argv as the script's; returns what it returns. */
static int run_script(lua_State *L)
{
	int argc = (int)lua_tointeger(L, 1);
	char **argv = lua_touserdata(L, 2);

	luaL_openlibs(L);
	luaL_requiref(L, "tracefs", luaopen_tracefs, 0);
	lua_settop(L, 0);
	if (luaL_loadfile(L, argv[0]) != LUA_OK)
		return lua_error(L);
	luaL_checkstack(L, argc, "too many arguments");
	for (int i = 1; i < argc; i++)
		lua_pushstring(L, argv[i]);
	lua_call(L, argc - 1, 1);
	return 1;
}

int main(int argc, char **argv)
{
	struct budget budget = { .limit = (size_t)8 << 20 };
	int status = EXIT_FAILURE;
	lua_State *L;

	if (argc < 2) {
		fprintf(stderr, "usage: host SCRIPT [MEMORY_KB [ARG...]]\n");
		return 2;
	}
	if (argc > 2)
		budget.limit = (size_t)strtoul(argv[2], NULL, 10) << 10;
	if (argc > 3)
		argv[2] = argv[1]; /* the script's name stands before its arguments */

#if LUA_VERSION_NUM >= 505
	L = lua_newstate(allocate, &budget, luaL_makeseed(NULL));
#else
	L = lua_newstate(allocate, &budget);
#endif
	if (!L) {
		fprintf(stderr, "host: not enough memory for a Lua state\n");
		return EXIT_FAILURE;
	}
	lua_atpanic(L, panic);

	/* These need no memory: up to LUA_MINSTACK values there is room for. */
	lua_pushcfunction(L, with_traceback);
	lua_pushcfunction(L, run_script);
	lua_pushinteger(L, argc > 3 ? argc - 2 : 1);
	lua_pushlightuserdata(L, argc > 3 ? argv + 2 : argv + 1);
	if (lua_pcall(L, 2, 1, 1) != LUA_OK) {
		fprintf(stderr, "host: %s\n", lua_tostring(L, -1));
	} else if (lua_isinteger(L, -1)) {
		printf("the script returned %lld\n", (long long)lua_tointeger(L, -1));
		status = EXIT_SUCCESS;
	} else {
		printf("the script returned a %s\n", luaL_typename(L, -1));
		status = EXIT_SUCCESS;
	}
	/* Sessions that the script has left open end here. */
	lua_close(L);
	if (budget.used)
		fprintf(stderr, "host: %zu bytes of the state are left\n", budget.used);
	return status;
}
