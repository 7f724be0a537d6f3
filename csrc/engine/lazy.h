/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_LAZY_H
#define LUATRACE_LAZY_H

#include "strbuf.h"

/*
 * Text that is fetched when it is first asked for, such as the symbols in a trace file:
 * megabytes that most runs do not need. Whoever holds one calls @drop once.
 */
struct lazy_text {
	void *context;
	int (*load)(void *context, struct strbuf *out); /* 0 or -1; NULL: there is none */
	void (*drop)(void *context);
};

#endif
