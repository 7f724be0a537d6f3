/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TRACEFILE_H
#define LUATRACE_TRACEFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "strbuf.h"

/*
 * Files of tracefs and /proc by their path below a directory descriptor (AT_FDCWD for
 * a path from the root). Results are 0 or a negative errno value. In a process that has given
 * up root's rights its keeper acts on the instance's files, see keeper.h.
 */

/*
 * The whole file behind what @out has already. Files that would block when they run
 * empty (trace_pipe) give what is there now.
 */
int tracefile_read(int dir_fd, const char *file, struct strbuf *out);

/* The same, but -EFBIG when there are more than @limit bytes; what was read by then is in @out. */
int tracefile_read_limited(int dir_fd, const char *file, size_t limit, struct strbuf *out);

/*
 * One open, one write(2), one close. @flags go to open(2): O_TRUNC clears what the file
 * stands for (events, pids, a buffer), O_APPEND adds to it. @taken is how many bytes
 * the kernel took.
 */
int tracefile_write(int dir_fd, const char *file, int flags, const char *text, size_t length,
		    size_t *taken);

/* The same, going on behind a short write until all is written: set_event takes one name at
 * a time. */
int tracefile_write_all(int dir_fd, const char *file, int flags, const char *text, size_t length);

/* The names in a directory, sorted, as one malloc'd list that ends with NULL. */
int tracefile_list(int dir_fd, const char *dir, char ***names);

bool tracefile_exists(int dir_fd, const char *file);

/* Relative, not empty, and no way out of the directory: no "..", no leading slash. */
bool tracefile_is_below(const char *file);

/* One component of a path: not empty, no slash, not "." or "..". */
bool tracefile_is_name(const char *name);

#endif
