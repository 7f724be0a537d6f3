/* SPDX-License-Identifier: MIT */
/*
 * Runs one Lua script in several threads at once, each with a Lua state of its own: what
 * a host with a thread pool does. The script gets the thread's number, from 1. Exits 1
 * when any of them raised. With "alone" the first thread does not wait for the others: they go
 * on without it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define THREADS_MAX 64

struct runner {
	pthread_t thread;
	pthread_barrier_t *barrier;
	const char *script;
	int number;
	bool failed;
};

static int traceback(lua_State *L)
{
	luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
	return 1;
}

static int run_protected(lua_State *L)
{
	const struct runner *runner = lua_touserdata(L, 1);

	luaL_openlibs(L);
	lua_pushcfunction(L, traceback);
	if (luaL_loadfile(L, runner->script))
		return lua_error(L);
	lua_pushinteger(L, runner->number);
	if (lua_pcall(L, 1, 0, -3))
		return lua_error(L);
	return 0;
}

static void *run(void *argument)
{
	struct runner *runner = argument;
	lua_State *L = luaL_newstate();

	/* All at once: what they share is then touched at the same time, if ever. */
	pthread_barrier_wait(runner->barrier);
	if (!L) {
		fprintf(stderr, "threads: no memory for state %d\n", runner->number);
		runner->failed = true;
		return NULL;
	}
	lua_pushcfunction(L, run_protected);
	lua_pushlightuserdata(L, runner);
	if (lua_pcall(L, 1, 0, 0)) {
		fprintf(stderr, "threads: thread %d: %s\n", runner->number, lua_tostring(L, -1));
		runner->failed = true;
	}
	lua_close(L);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct runner runners[THREADS_MAX];
	static pthread_barrier_t barrier;
	bool is_alone = argc == 4 && strcmp(argv[3], "alone") == 0, failed = false;
	int count = argc == 3 || is_alone ? atoi(argv[1]) : 0;
	int i;

	if (count < 1 || count > THREADS_MAX) {
		fprintf(stderr, "usage: threads COUNT SCRIPT [alone]   (1 to %d threads)\n",
			THREADS_MAX);
		return 2;
	}
	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (i = 0; i < count; i++) {
		runners[i] = (struct runner){
			.barrier = &barrier,
			.script = argv[2],
			.number = i + 1,
		};
		if (pthread_create(&runners[i].thread, NULL, run, &runners[i])) {
			fprintf(stderr, "threads: cannot start thread %d\n", i + 1);
			return 1;
		}
	}
	if (is_alone)
		pthread_exit(NULL);
	for (i = 0; i < count; i++) {
		pthread_join(runners[i].thread, NULL);
		failed = failed || runners[i].failed;
	}
	return failed ? 1 : 0;
}
