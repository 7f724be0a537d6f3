/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KERNEL_FUNCTION_H
#define LUATRACE_KERNEL_FUNCTION_H

#include "strbuf.h"

/*
 * Is there a function @name in this kernel or its modules? 1, or 0 and what may have been
 * meant, " Did you mean A or B?", is added to @hint; a negative errno value when
 * /proc/kallsyms cannot be read or has no functions.
 */
int kernel_function_exists(const char *name, struct strbuf *hint);

#endif
