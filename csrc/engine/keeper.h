/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KEEPER_H
#define LUATRACE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "error.h"
#include "instance.h"
#include "strbuf.h"
#include "user.h"

/*
 * How a process gives up root's rights and goes on tracing (luatrace --user).
 *
 * Before it becomes an ordinary user it opens what cannot be asked for later, trace_pipe_raw of
 * every possible CPU, and forks one helper, the keeper, which stays root. The keeper knows one
 * instance, and has two tasks:
 *
 * - It removes the instance when it is told to, or when the process it works for has ended, by
 *   whatever means: it sees that at a pidfd, so that a copy of the socket in some child does not
 *   matter, and at the socket. It is in a session of its own and blocks all signals, so nothing
 *   but root's SIGKILL ends it before; then the next luatrace finds the instance (stale.h). An
 *   instance that is busy is turned off and tried again until it is gone.
 * - It reads and writes files for the process, one request at a time over a socket pair. The
 *   process is not trusted: whatever a script has made of it, a request can do no more than
 *   keeper_rules.c allows. That is a list of what may be written in this one instance (events,
 *   filters, triggers that stay in it, options, markers, clearing) and read (the instance, some
 *   texts of the top level, /proc/kallsyms). No descriptor is handed over: a descriptor of a
 *   directory would lead to other instances.
 *
 * Everything else that needs rights is refused by the kernel, as for any user: other instances,
 * probes and synthetic events, which are shared by all and could read any memory, and settings of
 * the top level.
 *
 * In the process the descriptor of the instance's directory is replaced by the socket. The
 * functions of tracefile.h ask keeper_serves() for the descriptor and send the request then, so
 * that everything above them works as it does for root.
 */

/* What is asked for; the order is part of nothing that is kept. */
enum keeper_call {
	KEEPER_READ,
	KEEPER_WRITE, /* one write(2) */
	KEEPER_WRITE_ALL,
	KEEPER_LIST,
	KEEPER_EXISTS,
	KEEPER_REMOVE, /* the instance */
};

/*
 * Forks the keeper of @instance (NULL: there is nothing to keep), then becomes @user. When this
 * fails behind the point of no return the process has no rights that matter, and the caller has
 * to end it. Once in a process.
 */
int keeper_drop_rights(struct instance *instance, const struct user *user,
		       struct trace_error *error);

/* The user's name once rights have been dropped, else NULL. */
const char *keeper_user(void);

/* The keeper's pid as the kernel's records have it; -1 when there is none or nobody can tell. */
pid_t keeper_thread(void);

/* Is @dir_fd with @file the keeper's to look at? AT_FDCWD for a path from the root. */
bool keeper_serves(int dir_fd, const char *file);

/*
 * Has the keeper do it. 0 or a negative errno value; what was read is added to @out (may be
 * NULL), names of a directory with a zero byte behind each; @taken (may be NULL) is how much of
 * the text the kernel took.
 */
int keeper_ask(enum keeper_call call, int dir_fd, const char *file, int flags, const char *text,
	       size_t length, struct strbuf *out, size_t *taken);

/*
 * Has the keeper remove the instance, and sees it end. 0, or -1 and why: then the keeper goes on
 * trying once this process has ended.
 */
int keeper_remove(struct trace_error *error);

#endif
