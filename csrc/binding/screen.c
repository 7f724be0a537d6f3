/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "binding.h"
#include "guard.h"

#define SCREEN_CLASS "tracefs.screen"

/*
 * The terminal of standard output as one page. It belongs to the process, and so does this
 * state: one command has it, the library never. Whatever ends or stops the process gives the
 * terminal back first: leave(), the end of the Lua state, exit(), every signal that would kill
 * or stop; and its guard when it is one that nobody can catch.
 */

/* The other page, no cursor, lines that are cut and not continued; and back. */
static const char enter_text[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char leave_text[] = "\033[?7h\033[?25h\033[?1049l";

/* Those that stop or kill where they stand. SIGINT, SIGTERM and SIGHUP are signals.c's. */
static const int deadly[] = {
	SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS,    SIGFPE,  SIGSEGV,	  SIGUSR1, SIGUSR2,
	SIGALRM, SIGSYS, SIGXCPU, SIGPROF, SIGVTALRM, SIGPOLL, SIGSTKFLT, SIGPWR,
};
static const int noted[] = { SIGTSTP, SIGCONT, SIGWINCH };

#define DEADLY_COUNT (sizeof(deadly) / sizeof(deadly[0]))
#define NOTED_COUNT (sizeof(noted) / sizeof(noted[0]))
#define SCREEN_FD STDOUT_FILENO

/* How long nothing may be taken by a terminal that is stopped (Ctrl-S), or whose other end hangs. */
#define PATIENCE_MS 200
#define LOOK_MS 10

static struct {
	bool is_open;
	bool has_exit_handler;
	bool takes_keys;
	int out; /* the terminal, for writing that does not block where it can be had so */
	int fd;	 /* eventfd: readable when it has to be drawn anew */
	struct taken *taken;
	struct termios ours;
	volatile sig_atomic_t is_stale; /* others may have used it since */
	volatile sig_atomic_t is_stuck; /* it took nothing the last time: not waited for again */
	struct sigaction old_noted[NOTED_COUNT];
	bool has_deadly[DEADLY_COUNT];
} state = { .out = SCREEN_FD, .fd = -1 };

struct screen {
	bool is_open;
};

/* ---- taking and giving back, also by signal handlers ---- */

/* False with errno; EAGAIN: it takes nothing at the moment. */
static bool write_all(const char *text, size_t length)
{
	int patience = state.is_stuck ? 0 : PATIENCE_MS;

	while (length) {
		ssize_t written = write(state.out, text, length);
		struct pollfd terminal = { .fd = state.out, .events = POLLOUT };

		if (written > 0) {
			text += written;
			length -= (size_t)written;
			patience = PATIENCE_MS;
			state.is_stuck = 0;
			continue;
		}
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (patience <= 0) {
			state.is_stuck = 1;
			errno = EAGAIN;
			return false;
		}
		patience -= LOOK_MS;
		poll(&terminal, 1, LOOK_MS);
	}
	return true;
}

/* Setting it from the background would stop the process, or disturb who has the terminal. */
static bool is_ours_to_use(void)
{
	pid_t group = tcgetpgrp(SCREEN_FD);

	return group < 0 || group == getpgrp();
}

/*
 * Not stopped half-way by the signal that the terminal has for those in the background. False: the
 * text has not been written.
 */
static bool set_terminal(const struct termios *modes, const char *text, size_t length)
{
	sigset_t stops, before;
	bool is_written;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stops, &before);
	if (is_ours_to_use())
		tcsetattr(SCREEN_FD, TCSANOW, modes);
	is_written = write_all(text, length);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return is_written;
}

void screen_restore(void)
{
	int err = errno;

	/*
	 * Noted when it is done: done again it does no harm, and half of it is not enough. When it
	 * cannot be done now, the guard does it later.
	 */
	state.is_stuck = 0;
	if (state.taken && state.taken->is_taken &&
	    set_terminal(&state.taken->saved, leave_text, sizeof(leave_text) - 1))
		state.taken->is_taken = 0;
	errno = err;
}

/* False: it is somebody else's at the moment, or takes nothing. */
static bool take(void)
{
	if (!is_ours_to_use())
		return false;
	if (!state.taken->is_taken) {
		/* as it is now: who had it meanwhile may have changed it */
		tcgetattr(SCREEN_FD, &state.taken->saved);
		state.ours = state.taken->saved;
	} else if (!state.is_stale) {
		return true;
	}
	if (state.takes_keys) {
		state.ours.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
		state.ours.c_cc[VMIN] = 0;
		state.ours.c_cc[VTIME] = 0;
	}
	state.taken->is_taken = 1;
	state.is_stale = 0;
	if (set_terminal(&state.ours, enter_text, sizeof(enter_text) - 1))
		return true;
	state.is_stale = 1;
	return false;
}

/* ---- signals ---- */

static void wake(void)
{
	const uint64_t one = 1;
	ssize_t written = write(state.fd, &one, sizeof(one));

	/* Full is as good as written. */
	(void)written;
}

static void on_noted(int number);

static void handle(int number)
{
	struct sigaction action = { .sa_handler = on_noted, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* Stops as it would have without us, with the terminal as it was. */
static void stop_here(void)
{
	sigset_t stops, before;

	screen_restore();
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stops, &before); /* here it stands still */
	sigprocmask(SIG_SETMASK, &before, NULL);
	handle(SIGTSTP);
}

static void on_noted(int number)
{
	int err = errno;

	if (number == SIGTSTP)
		stop_here();
	else if (number == SIGCONT)
		state.is_stale = 1;
	wake();
	errno = err;
}

/* Blocked while this runs, so that it takes effect on return. */
static void on_deadly(int number)
{
	screen_restore();
	signal(number, SIG_DFL);
	raise(number);
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = on_deadly }, old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NOTED_COUNT; i++) {
		sigaction(noted[i], NULL, &state.old_noted[i]);
		/* a shell without job control has its children ignore SIGTSTP */
		if (noted[i] != SIGTSTP || state.old_noted[i].sa_handler != SIG_IGN)
			handle(noted[i]);
	}
	for (size_t i = 0; i < DEADLY_COUNT; i++) {
		sigaction(deadly[i], NULL, &old);
		state.has_deadly[i] = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
		if (state.has_deadly[i])
			sigaction(deadly[i], &action, NULL);
	}
}

static void restore_signals(void)
{
	for (size_t i = 0; i < NOTED_COUNT; i++)
		sigaction(noted[i], &state.old_noted[i], NULL);
	for (size_t i = 0; i < DEADLY_COUNT; i++) {
		if (state.has_deadly[i])
			signal(deadly[i], SIG_DFL);
	}
}

/* ---- the class ---- */

static struct screen *check_screen(lua_State *L)
{
	struct screen *screen = luaL_checkudata(L, 1, SCREEN_CLASS);

	if (!screen->is_open)
		luaL_error(L, "the screen is closed");
	return screen;
}

/*
 * screen(takes_keys): of the terminal that standard output is; it is taken when something is
 * shown. What is typed is left as it is unless it is wanted, one key at a time.
 */
static int core_screen(lua_State *L)
{
	bool takes_keys = lua_toboolean(L, 1);
	struct screen *screen;

	if (state.is_open)
		return luaL_error(L, "this process has its screen already");
	screen = lua_newuserdatauv(L, sizeof(*screen), 0);
	screen->is_open = false;
	luaL_setmetatable(L, SCREEN_CLASS);
	if (!isatty(SCREEN_FD))
		return push_errno(L, ENOTTY, "standard output");
	state.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.fd < 0) {
		int err = errno;

		return push_errno(L, err, "cannot make an event descriptor");
	}
	state.out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (state.out < 0)
		state.out = SCREEN_FD;
	state.takes_keys = takes_keys;
	state.taken = guard_start(SCREEN_FD, leave_text, sizeof(leave_text) - 1);
	state.taken->is_taken = state.is_stale = state.is_stuck = 0;
	if (!state.has_exit_handler)
		state.has_exit_handler = atexit(screen_restore) == 0;
	state.is_open = screen->is_open = true;
	handle_signals();
	return 1;
}

static int screen_close(lua_State *L)
{
	struct screen *screen = luaL_checkudata(L, 1, SCREEN_CLASS);

	if (!screen->is_open)
		return 0;
	screen_restore();
	guard_stop();
	state.taken = NULL;
	restore_signals();
	close(state.fd);
	state.fd = -1;
	if (state.out != SCREEN_FD)
		close(state.out);
	state.out = SCREEN_FD;
	state.is_open = screen->is_open = false;
	return 0;
}

/*
 * show(text): true; false when the terminal is somebody else's or takes nothing; nil and why it
 * cannot be written
 */
static int screen_show(lua_State *L)
{
	size_t length;
	const char *text;

	check_screen(L);
	text = luaL_checklstring(L, 2, &length);
	if (!take()) {
		lua_pushboolean(L, 0);
		return 1;
	}
	if (!write_all(text, length)) {
		int err = errno;

		if (err == EAGAIN) {
			state.is_stale = 1;
			lua_pushboolean(L, 0);
			return 1;
		}
		return push_errno(L, err, "cannot write to the terminal");
	}
	lua_pushboolean(L, 1);
	return 1;
}

static int screen_leave(lua_State *L)
{
	check_screen(L);
	screen_restore();
	return 0;
}

/* size(): rows, columns; 24 and 80 where the terminal does not say */
static int screen_size(lua_State *L)
{
	struct winsize size = { 0 };

	check_screen(L);
	if (ioctl(SCREEN_FD, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col) {
		size.ws_row = 24;
		size.ws_col = 80;
	}
	lua_pushinteger(L, size.ws_row);
	lua_pushinteger(L, size.ws_col);
	return 2;
}

static int screen_fileno(lua_State *L)
{
	check_screen(L);
	lua_pushinteger(L, state.fd);
	return 1;
}

/* changed(): has it another size, or been somebody else's, since the last time? */
static int screen_changed(lua_State *L)
{
	uint64_t count;

	check_screen(L);
	lua_pushboolean(L, read(state.fd, &count, sizeof(count)) > 0);
	return 1;
}

/* keys(): what has been typed; nil at the end of the input */
static int screen_keys(lua_State *L)
{
	char keys[64];
	ssize_t got;

	check_screen(L);
	/* reading in the background would stop the process */
	if (!state.taken->is_taken || !is_ours_to_use()) {
		lua_pushliteral(L, "");
		return 1;
	}
	got = read(STDIN_FILENO, keys, sizeof(keys));
	if (got < 0 && errno != EINTR && errno != EAGAIN)
		lua_pushnil(L);
	else
		lua_pushlstring(L, keys, got > 0 ? (size_t)got : 0);
	return 1;
}

static const luaL_Reg screen_methods[] = {
	{ "changed", screen_changed }, { "close", screen_close },
	{ "fileno", screen_fileno },   { "keys", screen_keys },
	{ "leave", screen_leave },     { "show", screen_show },
	{ "size", screen_size },       { NULL, NULL },
};

static const luaL_Reg screen_meta[] = {
	{ "__gc", screen_close },
	{ "__close", screen_close },
	{ NULL, NULL },
};

static const luaL_Reg screen_functions[] = {
	{ "screen", core_screen },
	{ NULL, NULL },
};

void open_screen(lua_State *L)
{
	new_class(L, SCREEN_CLASS, screen_methods, screen_meta);
	luaL_setfuncs(L, screen_functions, 0);
}
