/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DYNEVENT_H
#define LUATRACE_DYNEVENT_H

#include <stddef.h>

#include "error.h"
#include "stale.h"

/*
 * The dynamic events that one owner has made: probes of all kinds and synthetic events. They
 * are not an instance's but the whole tracer's, so their names say whose they are: in the
 * group ("p:luatrace_PID_STARTTIME_N/open ..."), or in the event where the kernel gives the
 * group ("s:luatrace_PID_STARTTIME_N_latency ..."). dynevents_free() frees it, and removes
 * what is left; what is in use cannot be removed, so the instance goes first.
 */
struct dynevents;

/* Nothing is made yet. NULL: out of memory. */
struct dynevents *dynevents_create(const char *tracing_dir);
void dynevents_free(struct dynevents *events);

/* A name of our own that no group of the kernel has, see stale.h. Another one each time. */
void dynevents_name(const struct dynevents *events, char name[OWN_NAME_SIZE]);

/*
 * Writes a command to dynamic_events: what makes an event of our naming, one line. When the
 * kernel refuses, the error holds what error_log says about this command, with its caret line.
 * Others write there too: the log is not cleared, and what it held before is not shown.
 */
int dynevents_add(struct dynevents *events, const char *command, struct trace_error *error);

size_t dynevents_count(const struct dynevents *events);
/* As it was written. */
const char *dynevents_command(const struct dynevents *events, size_t index);

/* Removes the one that was added last. 0 or -1, also when there is none. */
int dynevents_drop(struct dynevents *events, struct trace_error *error);

/*
 * Removes all, the last one first; 0 or -1 (who has it turned on). Calling it again tries
 * again. In a child of the process that made them nothing is removed.
 */
int dynevents_remove(struct dynevents *events, struct trace_error *error);

/*
 * Removes the dynamic events of dead processes, behind instance_remove_stale(): in an instance
 * they may be turned on. The number removed.
 */
unsigned int dynevents_remove_stale(const char *tracing_dir);

#endif
