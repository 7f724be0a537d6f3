/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_EVENT_CONTROL_H
#define LUATRACE_EVENT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "instance.h"
#include "strbuf.h"

/*
 * One event of an instance, by its exact system and name. Results are 0 or -1 unless
 * said otherwise.
 */
int instance_enable_event(struct instance *instance, const char *system, const char *name, bool on,
			  struct trace_error *error);
/* 1 or 0, or -1. */
int instance_event_is_enabled(struct instance *instance, const char *system, const char *name,
			      struct trace_error *error);

/*
 * A refused filter leaves the one that was there before; the kernel itself would leave
 * none. The error has the kernel's line with the caret, and the event's fields when it is
 * about a field.
 */
int instance_set_filter(struct instance *instance, const char *system, const char *name,
			const char *filter, struct trace_error *error);
/* Both the filter that is there and this one must hold, or with @either one of them. */
int instance_append_filter(struct instance *instance, const char *system, const char *name,
			   const char *filter, bool either, struct trace_error *error);
int instance_clear_filter(struct instance *instance, const char *system, const char *name,
			  struct trace_error *error);
/* 1 and the filter, 0 when there is none, or -1. */
int instance_get_filter(struct instance *instance, const char *system, const char *name,
			struct strbuf *filter, struct trace_error *error);

/* The rest is for what else can be set for an event. */

/* The path of the event's @file, malloc'd, or NULL and an error. */
char *event_control_file(struct instance *instance, const char *system, const char *name,
			 const char *file, struct trace_error *error);

/* Adds the fields that the event's format names, without the common ones. */
void event_control_add_fields(struct instance *instance, const char *system, const char *name,
			      struct strbuf *out);

/*
 * @text, malloc'd, with blanks for what would end or shift the line that the kernel shows with
 * its caret: in a script a filter may be written over several lines. Strings stay as they are.
 * NULL when memory is short.
 */
char *event_control_line(const char *text);

#endif
