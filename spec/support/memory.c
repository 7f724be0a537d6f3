/* SPDX-License-Identifier: MIT */
/*
 * Runs a script with allocations that fail, the n-th for n = 1, 1 + STEP, ... until a run comes to
 * its end without a failure:
 *
 *	memory lua|collect|malloc|load STEP SCRIPT
 *
 *	lua       Lua's n-th allocation and all behind it, until the error comes out
 *	collect   Lua's n-th alone: Lua collects, and tries again
 *	malloc    the C library's n-th alone, called by the engine or by the C library itself
 *	load      as lua, but n counts from the beginning of a state, which is new each time
 *
 * The script returns two functions. The first one is what runs; the second one is called after
 * each run, when everything has been collected, and raises if something was left behind. Prints
 * how many runs there were and how many had an error; exits with 1 when the last one had one, or
 * memory was lost, and with 77 when the C library's calls cannot be had here.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "lua-tracefs.h"

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer)
#define HAS_MALLOC false
#else
#define HAS_MALLOC true
#endif

enum kind { KIND_LUA, KIND_COLLECT, KIND_MALLOC, KIND_LOAD };

static const char *const kind_names[] = { "lua", "collect", "malloc", "load" };

static struct {
	bool of_lua; /* whose calls are counted */
	bool of_c;
	bool stays; /* what comes behind the failure fails too */
	unsigned long until;
	bool is_failing;
	bool has_failed;
} plan;

static size_t lua_bytes;
static long c_blocks;

static void no_plan(void)
{
	plan.of_lua = false;
	plan.of_c = false;
}

static void make_plan(enum kind kind, unsigned long n)
{
	plan.stays = kind == KIND_LUA || kind == KIND_LOAD;
	plan.until = n;
	plan.is_failing = false;
	plan.has_failed = false;
	plan.of_c = kind == KIND_MALLOC;
	plan.of_lua = !plan.of_c;
}

static bool fails(void)
{
	if (plan.is_failing)
		return true;
	if (plan.until == 0 || --plan.until > 0)
		return false;
	plan.has_failed = true;
	plan.is_failing = plan.stays;
	return true;
}

#if HAS_MALLOC

/* The C library's own; the others are called by the whole program, the C library included. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

void *malloc(size_t size)
{
	void *block = plan.of_c && fails() ? NULL : __libc_malloc(size);

	c_blocks += block != NULL;
	return block;
}

void *calloc(size_t count, size_t size)
{
	void *block = plan.of_c && fails() ? NULL : __libc_calloc(count, size);

	c_blocks += block != NULL;
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block = plan.of_c && fails() ? NULL : __libc_realloc(old, size);

	c_blocks += !old && block;
	return block;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = plan.of_c && fails() ? NULL : __libc_memalign(alignment, size);

	c_blocks += block != NULL;
	return block;
}

void free(void *block)
{
	c_blocks -= block != NULL;
	__libc_free(block);
}

#else
#define __libc_realloc realloc
#define __libc_free free
#endif

static void *lua_allocate(void *data, void *block, size_t old_size, size_t size)
{
	size_t old = block ? old_size : 0; /* without a block it is the kind of what is made */
	void *grown;

	(void)data;
	if (size == 0) {
		__libc_free(block);
		lua_bytes -= old;
		return NULL;
	}
	/* Lua counts on it that what shrinks does not fail. */
	if (plan.of_lua && size > old && fails())
		return NULL;
	grown = __libc_realloc(block, size);
	if (grown)
		lua_bytes += size - old;
	return grown;
}

static int with_traceback(lua_State *L)
{
	luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
	return 1;
}

static int open_state(lua_State *L)
{
	const char *path = lua_touserdata(L, 1);

	luaL_openlibs(L);
	luaL_requiref(L, "tracefs", luaopen_tracefs, 0);
	lua_settop(L, 0);
	if (luaL_loadfile(L, path) != LUA_OK)
		return lua_error(L);
	lua_call(L, 0, 2);
	return 2;
}

static _Noreturn void die(const char *what, unsigned long n, const char *why)
{
	fprintf(stderr, "memory: %s, with failure %lu: %s\n", what, n, why);
	exit(EXIT_FAILURE);
}

/* A state with the script's two functions at 1 and 2, or NULL when there was no memory. */
static lua_State *new_state(const char *script)
{
#if LUA_VERSION_NUM >= 505
	/* The same tables in every run. */
	lua_State *L = lua_newstate(lua_allocate, NULL, 0);
#else
	lua_State *L = lua_newstate(lua_allocate, NULL);
#endif

	if (!L)
		return NULL;
	lua_pushcfunction(L, open_state);
	lua_pushlightuserdata(L, (void *)script);
	if (lua_pcall(L, 1, 2, 0) == LUA_OK)
		return L;
	if (!plan.has_failed)
		die("the script cannot be loaded", 0, lua_tostring(L, -1));
	no_plan();
	lua_close(L);
	return NULL;
}

/* Calls the function at @index; false with its error on the stack. */
static bool call(lua_State *L, int index)
{
	bool ok;

	lua_settop(L, 2);
	lua_pushcfunction(L, with_traceback);
	lua_pushvalue(L, index);
	ok = lua_pcall(L, 0, 0, plan.of_lua ? 0 : 3) == LUA_OK;
	no_plan();
	return ok;
}

static void check(lua_State *L, unsigned long n, long blocks)
{
	/* What finalizers have made free is free the second time. */
	lua_gc(L, LUA_GCCOLLECT);
	lua_gc(L, LUA_GCCOLLECT);
	if (!call(L, 2))
		die("left behind", n, lua_tostring(L, -1));
	lua_settop(L, 2);
	lua_gc(L, LUA_GCCOLLECT);
	lua_gc(L, LUA_GCCOLLECT);
	if (c_blocks != blocks) {
		fprintf(stderr, "memory: %ld blocks, before it were %ld\n", c_blocks, blocks);
		die("the engine lost memory", n, "see above");
	}
}

static void report(unsigned long runs, unsigned long errors)
{
	if (lua_bytes)
		die("the state was closed", 0, "and some of its memory is left");
	printf("%lu runs, %lu with an error\n", runs, errors);
}

static void run_in_one_state(enum kind kind, unsigned long step, const char *script)
{
	lua_State *L = new_state(script);
	unsigned long runs = 0, errors = 0;
	long blocks;

	/* Once without failures: what is made once and kept is there then. */
	for (int i = 0; i < 2; i++) {
		no_plan();
		if (!call(L, 1))
			die("a run without failures", 0, lua_tostring(L, -1));
		lua_settop(L, 2);
		lua_gc(L, LUA_GCCOLLECT);
		lua_gc(L, LUA_GCCOLLECT);
	}
	blocks = c_blocks;
	check(L, 0, blocks);
	for (unsigned long n = 1;; n += step) {
		bool ok;

		make_plan(kind, n);
		ok = call(L, 1);
		runs++;
		errors += !ok;
		if (!ok && !plan.has_failed)
			die("an error without a failure", n, lua_tostring(L, -1));
		check(L, n, blocks);
		if (!plan.has_failed)
			break;
	}
	lua_close(L);
	report(runs, errors);
}

static void run_in_new_states(unsigned long step, const char *script)
{
	unsigned long runs = 0, errors = 0;

	for (unsigned long n = 1;; n += step) {
		lua_State *L;

		make_plan(KIND_LOAD, n);
		L = new_state(script);
		no_plan();
		runs++;
		errors += L == NULL;
		if (!L)
			continue;
		lua_close(L);
		if (!plan.has_failed)
			break;
	}
	report(runs, errors);
}

int main(int argc, char **argv)
{
	unsigned long step = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	int kind = -1;

	for (int i = 0; step && i <= KIND_LOAD; i++) {
		if (strcmp(argv[1], kind_names[i]) == 0)
			kind = i;
	}
	if (kind < 0) {
		fprintf(stderr, "usage: memory lua|collect|malloc|load STEP SCRIPT\n");
		return 2;
	}
	if (kind == KIND_MALLOC && !HAS_MALLOC)
		return 77;
	if (kind == KIND_LOAD)
		run_in_new_states(step, argv[3]);
	else
		run_in_one_state((enum kind)kind, step, argv[3]);
	return EXIT_SUCCESS;
}
