/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TRIGGER_H
#define LUATRACE_TRIGGER_H

#include "error.h"
#include "instance.h"
#include "strbuf.h"

/*
 * Triggers: what the kernel does when an event of an instance happens, as the text that its
 * trigger file takes: COMMAND[:ARGUMENTS][:COUNT] [if FILTER]. Results are 0 or -1 unless said
 * otherwise. Those of an instance that was created here go away with it.
 */

/* Adds one. A refusal has the kernel's line with the caret where it gave one. */
int instance_set_trigger(struct instance *instance, const char *system, const char *name,
			 const char *text, struct trace_error *error);

/*
 * Removes one: its text as it was set or as the kernel lists it; the count and, but for hist
 * triggers, the condition may be left out. One that is not there is an error.
 */
int instance_remove_trigger(struct instance *instance, const char *system, const char *name,
			    const char *text, struct trace_error *error);

/* The triggers of an event as the kernel lists them, a line each, without a last newline. */
int instance_triggers(struct instance *instance, const char *system, const char *name,
		      struct strbuf *lines, struct trace_error *error);

/* Removes all triggers of one event. */
int instance_clear_triggers(struct instance *instance, const char *system, const char *name,
			    struct trace_error *error);

/* The commands that this kernel's triggers know, with blanks between. */
int instance_trigger_commands(struct instance *instance, struct strbuf *commands,
			      struct trace_error *error);

/*
 * Removes all triggers of all events in the instance that @dir_fd is the directory of, as far
 * as the kernel lets it. Some hold the instance and make rmdir fail.
 */
void triggers_sweep(int dir_fd);

/* The same for trigger files that are known: @files has one a line. */
void triggers_clear_listed(int dir_fd, char *files);

#endif
