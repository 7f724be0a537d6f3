/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "screen.h"

#define SIGNALS "tracefs.signals"

/*
 * Signals belong to the process and so does this state: one command per process has it,
 * the library never. The first SIGINT, SIGTERM or SIGHUP is a wish that the Lua code sees
 * when it looks; the second one stops the Lua code wherever it is; one that comes when even
 * that has not helped for a second gets the default action.
 */
static const int handled[] = { SIGINT, SIGTERM, SIGHUP };
/* Not handled, but set to what the command needs: see open_signals(). */
static const int adjusted[] = { SIGPIPE, SIGXFSZ, SIGCHLD };

#define HANDLED_COUNT (sizeof(handled) / sizeof(handled[0]))
#define ADJUSTED_COUNT (sizeof(adjusted) / sizeof(adjusted[0]))
#define SAVED_COUNT (HANDLED_COUNT + ADJUSTED_COUNT)

static struct {
	struct sigaction saved[SAVED_COUNT];
	bool is_open;
	int fd;					  /* eventfd: readable after a signal */
	volatile sig_atomic_t first;		  /* number of the first signal, 0 before it */
	volatile sig_atomic_t first_from_process; /* kill(2), not a key on the terminal */
	volatile sig_atomic_t second;
	volatile sig_atomic_t stopping; /* the guarded code is to end, at once */
	time_t second_at;
	lua_State *volatile running; /* the guarded code's current thread; NULL: none */
} state = { .fd = -1 };

struct signals {
	bool is_open;
};

static struct sigaction *saved_action(int number)
{
	for (size_t i = 0; i < HANDLED_COUNT; i++) {
		if (handled[i] == number)
			return &state.saved[i];
	}
	for (size_t i = 0; i < ADJUSTED_COUNT; i++) {
		if (adjusted[i] == number)
			return &state.saved[HANDLED_COUNT + i];
	}
	return NULL;
}

static int number_of(size_t index)
{
	return index < HANDLED_COUNT ? handled[index] : adjusted[index - HANDLED_COUNT];
}

/* ---- the guarded code's end ---- */

/* Stays set: an error that a pcall has caught is raised again by the next instruction. */
static void stop_hook(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	luaL_error(L, "interrupted");
}

/* Async-signal-safe, as lua_sethook is made to be. */
static void set_stop_hook(lua_State *L)
{
	lua_sethook(L, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

static void stop(void)
{
	lua_State *running = state.running;

	state.stopping = 1;
	if (running)
		set_stop_hook(running);
}

/* ---- the handler ---- */

static void wake(void)
{
	const uint64_t one = 1;
	ssize_t written = write(state.fd, &one, sizeof(one));

	/* Full is as good as written. */
	(void)written;
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void install(int number, int flags);

static void on_signal(int number, siginfo_t *info, void *context)
{
	int err = errno;

	(void)context;
	if (!state.first) {
		state.first = number;
		state.first_from_process = info->si_code <= 0;
		/* A read that blocks goes on after the first signal, not after the second. */
		for (size_t i = 0; i < HANDLED_COUNT; i++)
			install(handled[i], 0);
	} else if (!state.second) {
		state.second = number;
		state.second_at = seconds_now();
		stop();
	} else if (seconds_now() - state.second_at > 1) {
		/* Blocked while this runs, so it takes effect on return. */
		screen_restore();
		signal(number, SIG_DFL);
		raise(number);
	}
	wake();
	errno = err;
}

static bool is_ignored(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

static void install(int number, int flags)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };

	/* nohup stays nohup. Shells ignore SIGINT for background jobs, but then a
	 * SIGINT was sent on purpose. */
	if (number == SIGHUP && is_ignored(saved_action(SIGHUP)))
		return;
	for (size_t i = 0; i < HANDLED_COUNT; i++)
		sigaddset(&action.sa_mask, handled[i]);
	sigaction(number, &action, NULL);
}

void signals_restore_in_child(void)
{
	struct sigaction dflt = { .sa_handler = SIG_DFL };

	for (size_t i = 0; i < SAVED_COUNT; i++) {
		if (state.is_open)
			sigaction(number_of(i), &state.saved[i], NULL);
	}
	/* A host that ignores SIGPIPE does so for itself. */
	if (!state.is_open)
		sigaction(SIGPIPE, &dflt, NULL);
}

/* ---- the class ---- */

static struct signals *to_signals(lua_State *L)
{
	return luaL_checkudata(L, 1, SIGNALS);
}

static struct signals *check_signals(lua_State *L)
{
	struct signals *signals = to_signals(L);

	if (!signals->is_open)
		luaL_error(L, "signals object is closed");
	return signals;
}

static int signals_open(lua_State *L)
{
	struct signals *signals;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction dflt = { .sa_handler = SIG_DFL };

	if (state.is_open)
		return luaL_error(L, "this process has its signals object already");
	signals = lua_newuserdatauv(L, sizeof(*signals), 0);
	signals->is_open = false;
	luaL_setmetatable(L, SIGNALS);

	state.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.fd < 0) {
		int err = errno;

		return push_errno(L, err, "cannot make an event descriptor");
	}
	state.first = state.first_from_process = state.second = state.stopping = 0;
	state.running = NULL;
	for (size_t i = 0; i < SAVED_COUNT; i++)
		sigaction(number_of(i), NULL, &state.saved[i]);
	state.is_open = signals->is_open = true;

	for (size_t i = 0; i < HANDLED_COUNT; i++)
		install(handled[i], SA_RESTART);
	/* A closed pipe and a file above its limit are errors that the command cleans up after. */
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	/* Who ignores SIGCHLD never learns how a child ended. */
	sigaction(SIGCHLD, &dflt, NULL);
	return 1;
}

static int signals_close(lua_State *L)
{
	struct signals *signals = to_signals(L);

	if (!signals->is_open)
		return 0;
	signals->is_open = false;
	for (size_t i = 0; i < SAVED_COUNT; i++)
		sigaction(number_of(i), &state.saved[i], NULL);
	state.is_open = false;
	close(state.fd);
	state.fd = -1;
	return 0;
}

static int signals_fileno(lua_State *L)
{
	check_signals(L);
	lua_pushinteger(L, state.fd);
	return 1;
}

/* The first signal's number and where it came from; forgets that the descriptor is readable. */
static int signals_received(lua_State *L)
{
	uint64_t count;
	ssize_t got;

	check_signals(L);
	got = read(state.fd, &count, sizeof(count));
	(void)got;
	if (!state.first) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushinteger(L, state.first);
	lua_pushstring(L, state.first_from_process ? "process" : "terminal");
	return 2;
}

/* Number of the second signal, the one that stops. */
static int signals_second(lua_State *L)
{
	check_signals(L);
	if (state.second)
		lua_pushinteger(L, state.second);
	else
		lua_pushnil(L);
	return 1;
}

/* Stops the guarded code as a second signal does. */
static int signals_stop(lua_State *L)
{
	check_signals(L);
	stop();
	return 0;
}

/*
 * guard(fn, message_handler, ...): calls fn as xpcall does. Only what runs inside is
 * stopped; afterwards the caller can clean up undisturbed.
 */
static int signals_guard(lua_State *L)
{
	int status;

	check_signals(L);
	luaL_checktype(L, 2, LUA_TFUNCTION);
	luaL_checktype(L, 3, LUA_TFUNCTION);
	luaL_argcheck(L, !state.running, 1, "a guard is active already");

	lua_pushvalue(L, 2);
	lua_remove(L, 2);
	lua_insert(L, 3); /* signals, handler, fn, arguments */
	state.running = L;
	if (state.stopping)
		set_stop_hook(L);
	status = lua_pcall(L, lua_gettop(L) - 3, LUA_MULTRET, 2);
	state.running = NULL;
	lua_sethook(L, NULL, 0, 0);
	lua_pushboolean(L, status == LUA_OK);
	lua_insert(L, 3); /* signals, handler, ok, results */
	return lua_gettop(L) - 2;
}

/* ---- coroutines ----
 *
 * A hook belongs to one thread of a Lua state, so the handler has to know which one runs:
 * coroutine.resume and the functions that coroutine.wrap makes are called through these.
 */

/* Calls the function below the @count arguments, which resumes @thread. */
static int call_resuming(lua_State *L, lua_State *thread, int count)
{
	lua_State *outer = state.running;
	int status;

	if (outer && thread) {
		state.running = thread;
		if (state.stopping)
			set_stop_hook(thread);
	}
	status = lua_pcall(L, count, LUA_MULTRET, 0);
	if (outer && thread) {
		state.running = outer;
		if (state.stopping)
			set_stop_hook(outer);
	}
	return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* Upvalue: coroutine.resume, whose own argument errors are good enough. */
static int tracked_resume(lua_State *L)
{
	lua_State *thread = lua_tothread(L, 1);

	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	return call_resuming(L, thread, lua_gettop(L) - 1);
}

/* Upvalues: what coroutine.wrap returned, its thread. */
static int tracked_wrapped(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	return call_resuming(L, lua_tothread(L, lua_upvalueindex(2)), lua_gettop(L) - 1);
}

/* Upvalue: coroutine.wrap. */
static int tracked_wrap(lua_State *L)
{
	int count = lua_gettop(L);

	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, count, 1); /* wrapped */
	if (!lua_getupvalue(L, -1, 1))
		return 1;
	lua_pushcclosure(L, tracked_wrapped, 2);
	return 1;
}

/* track(coroutine): replaces resume and wrap in this table. */
static int signals_track(lua_State *L)
{
	check_signals(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_getfield(L, 2, "resume");
	lua_pushcclosure(L, tracked_resume, 1);
	lua_setfield(L, 2, "resume");
	lua_getfield(L, 2, "wrap");
	lua_pushcclosure(L, tracked_wrap, 1);
	lua_setfield(L, 2, "wrap");
	return 0;
}

static const luaL_Reg signals_methods[] = {
	{ "fileno", signals_fileno }, { "received", signals_received },
	{ "second", signals_second }, { "stop", signals_stop },
	{ "guard", signals_guard },   { "track", signals_track },
	{ "close", signals_close },   { NULL, NULL },
};

static const luaL_Reg signals_meta[] = {
	{ "__gc", signals_close },
	{ "__close", signals_close },
	{ NULL, NULL },
};

static const luaL_Reg signals_functions[] = {
	{ "signals", signals_open },
	{ NULL, NULL },
};

void open_signals(lua_State *L)
{
	new_class(L, SIGNALS, signals_methods, signals_meta);
	luaL_setfuncs(L, signals_functions, 0);
}
