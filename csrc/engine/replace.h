/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_REPLACE_H
#define LUATRACE_REPLACE_H

#include <stddef.h>

#include "error.h"

/*
 * Gives a file a new content, all at once: who opens it sees the old one or the new one. What is
 * no regular file (a pipe, /dev/stdout) is written to as it is. 0, or -1 and the file is as before.
 */
int file_replace(const char *path, const char *text, size_t length, struct trace_error *error);

#endif
