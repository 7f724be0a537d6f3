/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_HOLDERS_H
#define LUATRACE_HOLDERS_H

#include "strbuf.h"

/*
 * Adds who has files of the instance @name open, as "pid 123 (cat): trace_pipe; ...";
 * nothing when no such process is found or visible.
 */
void holders_add(struct strbuf *out, const char *name);

#endif
