/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KERNEL_ERROR_H
#define LUATRACE_KERNEL_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "strbuf.h"

/*
 * The error_log of a tracing directory: what the kernel has to say about a refused
 * filter, trigger, histogram or probe, where the errno values mislead (a missing quote
 * is "No such process"). Its entries stay until they are cleared.
 */

/* Is the refusal of a write to @file explained in error_log? */
bool kernel_error_covers(const char *file);

/* Before such a write: an old entry must not be taken for its answer. */
void kernel_error_clear(int dir_fd);

/*
 * After the refusal. Adds all entries, without their timestamps, with the line that has
 * the caret and without the last newline. False when there is none.
 */
bool kernel_error_add(int dir_fd, struct strbuf *out);

/*
 * Where the log is shared with others and stays as it is: adds the entries that are not in
 * @before, what the file held before the write, and that are about a command beginning with
 * @start. False when there is none.
 */
bool kernel_error_add_new(int dir_fd, const struct strbuf *before, const char *start,
			  struct strbuf *out);

/* @text as a quoted line: control bytes as \n, \t or \xNN, cut when it is long. */
void kernel_error_quote(struct strbuf *out, const char *text, size_t length);

#endif
