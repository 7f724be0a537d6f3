/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_FORMAT_TEXT_H
#define LUATRACE_FORMAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* One "field:" line. */
struct format_line {
	char *name;
	char *type; /* the declaration without the name, brackets at its end */
	uint32_t offset;
	uint32_t size;
	bool is_signed;
	bool is_common; /* before the empty line */
};

/*
 * One format file, taken apart. format_text_free() releases all of it, also after a
 * failure.
 *
 * Not libtraceevent's parser: given one field that it does not understand it leaves out all
 * that follow without a word, it reports counts of fields that it does not have, and its
 * state is shared by all threads.
 */
struct format_text {
	char *name;
	int id;
	char *print_fmt; /* "" if the file has none */
	struct format_line *lines;
	unsigned int count;
};

int format_text_parse(struct format_text *parts, const char *text, size_t length,
		      struct trace_error *error);
void format_text_free(struct format_text *parts);

#endif
