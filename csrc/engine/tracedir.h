/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TRACEDIR_H
#define LUATRACE_TRACEDIR_H

#include <stdbool.h>

#include "error.h"

/*
 * Where tracefs is: @override (or NULL), else the first tracefs in /proc/self/mounts
 * that can be used, else tracing/ below a debugfs there. Never mounts anything. NULL and
 * an error that tells not mounted from not permitted from locked down, and says what to
 * do. The result is malloc'd.
 */
char *tracing_dir_find(const char *override, struct trace_error *error);

/*
 * The error for "cannot @what @path" when the kernel said @code, with what helps against
 * it: who may use a directory, a lockdown, a read-only mount. Returns -1.
 */
int tracing_dir_refusal(struct trace_error *error, int code, const char *what, const char *path);

/* The kernel refuses tracing to everyone: lockdown in mode confidentiality. */
bool tracing_is_locked_down(void);

#endif
