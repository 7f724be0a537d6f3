/* SPDX-License-Identifier: MIT */
/*
 * A host for Lua that can fork, as a program around the library may:
 *
 *   fork SCRIPT
 *
 * Two globals beside Lua's own: fork() gives the child's pid, 0 in the child; wait(pid) gives
 * its exit status. Each process closes its Lua state at the end of the script.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static int host_fork(lua_State *L)
{
	pid_t pid;

	/* What is buffered would be written by both. */
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return luaL_error(L, "fork: %s", strerror(errno));
	lua_pushinteger(L, pid);
	return 1;
}

static int host_wait(lua_State *L)
{
	pid_t pid = (pid_t)luaL_checkinteger(L, 1);
	int status;

	if (waitpid(pid, &status, 0) < 0)
		return luaL_error(L, "waitpid: %s", strerror(errno));
	lua_pushinteger(L, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int status;

	if (!L || argc != 2) {
		fputs("usage: fork SCRIPT\n", stderr);
		return EXIT_FAILURE;
	}
	luaL_openlibs(L);
	lua_register(L, "fork", host_fork);
	lua_register(L, "wait", host_wait);
	status = luaL_dofile(L, argv[1]);
	if (status != LUA_OK)
		fprintf(stderr, "fork: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return status == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
