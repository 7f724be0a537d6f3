/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_GUARD_H
#define LUATRACE_GUARD_H

#include <signal.h>
#include <stddef.h>
#include <termios.h>

/* How the terminal stands, for the process that has it and for its guard. */
struct taken {
	volatile sig_atomic_t is_taken;
	struct termios saved; /* as it was before, while it is taken */
};

/*
 * Starts a process that gives the terminal @fd back when this one is killed by what nobody can
 * catch, or could not do it: sets what is saved and writes @text, which has to stay. It ends with
 * this process, or by guard_stop(). Returns what it looks at; without a guard, where one cannot be
 * started, that is there, too.
 */
struct taken *guard_start(int fd, const char *text, size_t length);

/*
 * Ends it, or leaves it to give the terminal back when that can be done again. What guard_start()
 * returned stays valid.
 */
void guard_stop(void);

#endif
