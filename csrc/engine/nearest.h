/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_NEAREST_H
#define LUATRACE_NEAREST_H

#include "strbuf.h"

/*
 * Adds " Did you mean A or B?" for those of @names (words with blanks between) that differ from
 * @asked by little, at most three, the likeliest first; nothing when none does.
 */
void nearest_add(struct strbuf *out, const char *asked, const char *names);

#endif
