/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_RECORD_FILTER_H
#define LUATRACE_RECORD_FILTER_H

#include <stdbool.h>

#include "error.h"
#include "event.h"
#include "format.h"

/*
 * The kernel's filter language (Documentation/trace/events.rst, section 5), for records
 * that no kernel has filtered: the same text lets the same records through. What only the
 * kernel could look at when it happened (memory behind a pointer, the stack) is refused.
 */
struct record_filter;

/* NULL: what is wrong, with the kernel's caret line. "0" stands for no filter: @filter NULL. */
int record_filter_create(const struct event_format *format, const char *text,
			 struct record_filter **filter, struct trace_error *error);
void record_filter_free(struct record_filter *filter);

/* The format must still be there. */
bool record_filter_match(const struct record_filter *filter, const struct event *event);

#endif
