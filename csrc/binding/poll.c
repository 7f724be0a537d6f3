/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"

#define TIMER "tracefs.timer"

/* More is as good as forever, and fits into a time_t of any size. */
#define LONGEST_WAIT 2e9

static struct pollfd *check_fds(lua_State *L, nfds_t *count)
{
	lua_Integer length;
	struct pollfd *fds;

	luaL_checktype(L, 1, LUA_TTABLE);
	length = luaL_len(L, 1);
	luaL_argcheck(L, length >= 0 && length <= 65536, 1, "too many descriptors");
	fds = lua_newuserdatauv(L, ((size_t)length + 1) * sizeof(*fds), 0);
	for (lua_Integer i = 0; i < length; i++) {
		lua_Integer fd;
		int is_integer;

		lua_rawgeti(L, 1, i + 1);
		fd = lua_tointegerx(L, -1, &is_integer);
		luaL_argcheck(L, is_integer && fd >= 0 && fd <= INT32_MAX, 1,
			      "a list of descriptors expected");
		fds[i] = (struct pollfd){ .fd = (int)fd, .events = POLLIN };
		lua_pop(L, 1);
	}
	*count = (nfds_t)length;
	return fds;
}

/* NULL: no limit. */
static const struct timespec *check_timeout(lua_State *L, int index, struct timespec *timeout)
{
	lua_Number seconds;
	lua_Number whole;

	if (lua_isnoneornil(L, index))
		return NULL;
	seconds = luaL_checknumber(L, index);
	luaL_argcheck(L, seconds >= 0, index, "a time in seconds expected");
	if (seconds > LONGEST_WAIT)
		return NULL;
	whole = floor(seconds);
	timeout->tv_sec = (time_t)whole;
	timeout->tv_nsec = (long)((seconds - whole) * 1e9);
	return timeout;
}

/* Waits until one of the descriptors has something to read, or has ended. */
static int core_poll(lua_State *L)
{
	struct timespec space;
	const struct timespec *timeout = check_timeout(L, 2, &space);
	nfds_t count;
	struct pollfd *fds = check_fds(L, &count);
	lua_Integer ready = 0;

	if (ppoll(fds, count, timeout, NULL) < 0 && errno != EINTR) {
		int err = errno;

		return push_errno(L, err, "cannot wait for descriptors");
	}

	/* A signal ends the wait early: its handler may want Lua code to run. */
	lua_newtable(L);
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL) {
			return push_errno(L, EBADF,
					  lua_pushfstring(L, "cannot wait for descriptor %d",
							  fds[i].fd));
		}
		if (fds[i].revents) {
			lua_pushinteger(L, fds[i].fd);
			lua_rawseti(L, -2, ++ready);
		}
	}
	return 1;
}

/* Is this file, or descriptor, a terminal? */
static int core_isatty(lua_State *L)
{
	int fd;

	if (lua_isinteger(L, 1)) {
		fd = (int)lua_tointeger(L, 1);
	} else {
		luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);

		luaL_argcheck(L, stream->closef, 1, "file is closed");
		fd = fileno(stream->f);
	}
	lua_pushboolean(L, isatty(fd));
	return 1;
}

/*
 * A program that is started with a standard descriptor closed would get it for the next file
 * that it opens, and print into that. What is missing becomes one that cannot be used: reading
 * from standard input and writing to the others fail as they did.
 */
static int core_hold_standard_fds(lua_State *L)
{
	int held = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd)
			held++;
	}
	lua_pushinteger(L, held);
	return 1;
}

/*
 * A descriptor that becomes readable after a time, once or again and again.
 */
struct timer {
	int fd; /* -1: closed */
};

static struct timer *to_timer(lua_State *L)
{
	return luaL_checkudata(L, 1, TIMER);
}

static struct timer *check_timer(lua_State *L)
{
	struct timer *timer = to_timer(L);

	if (timer->fd < 0)
		luaL_error(L, "timer is closed");
	return timer;
}

/* 0 would switch the timer off. */
static struct timespec check_seconds(lua_State *L, int index)
{
	struct timespec time = { .tv_nsec = 1 };
	lua_Number seconds = luaL_checknumber(L, index);
	lua_Number whole = floor(seconds);

	luaL_argcheck(L, seconds >= 0, index, "a time in seconds expected");
	if (seconds > LONGEST_WAIT) {
		time.tv_sec = (time_t)LONGEST_WAIT;
	} else if (seconds > 1e-9) {
		time.tv_sec = (time_t)whole;
		time.tv_nsec = (long)((seconds - whole) * 1e9);
	}
	return time;
}

static int timer_new(lua_State *L)
{
	struct itimerspec when = { .it_value = check_seconds(L, 1) };
	struct timer *timer;

	if (lua_toboolean(L, 2))
		when.it_interval = when.it_value;
	timer = lua_newuserdatauv(L, sizeof(*timer), 0);
	timer->fd = -1;
	luaL_setmetatable(L, TIMER);
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer->fd < 0 || timerfd_settime(timer->fd, 0, &when, NULL) < 0) {
		int err = errno;

		return push_errno(L, err, "cannot make a timer");
	}
	return 1;
}

static int timer_fileno(lua_State *L)
{
	lua_pushinteger(L, check_timer(L)->fd);
	return 1;
}

/* How often its time has passed since the last look; no longer readable then. */
static int timer_expired(lua_State *L)
{
	struct timer *timer = check_timer(L);
	uint64_t count = 0;

	if (read(timer->fd, &count, sizeof(count)) != sizeof(count))
		count = 0;
	lua_pushinteger(L, (lua_Integer)count);
	return 1;
}

static int timer_close(lua_State *L)
{
	struct timer *timer = to_timer(L);

	if (timer->fd >= 0)
		close(timer->fd);
	timer->fd = -1;
	return 0;
}

static const luaL_Reg timer_methods[] = {
	{ "fileno", timer_fileno },
	{ "expired", timer_expired },
	{ "close", timer_close },
	{ NULL, NULL },
};

static const luaL_Reg timer_meta[] = {
	{ "__gc", timer_close },
	{ "__close", timer_close },
	{ NULL, NULL },
};

static const luaL_Reg poll_functions[] = {
	{ "poll", core_poll },
	{ "isatty", core_isatty },
	{ "hold_standard_fds", core_hold_standard_fds },
	{ "timer", timer_new },
	{ NULL, NULL },
};

void open_poll(lua_State *L)
{
	new_class(L, TIMER, timer_methods, timer_meta);
	luaL_setfuncs(L, poll_functions, 0);
}
