/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_SETTINGS_H
#define LUATRACE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "instance.h"
#include "strbuf.h"

/* What can be set in an instance as a whole. Results are 0 or -1 unless said otherwise. */

/* Setting the clock empties the buffer. */
int instance_set_clock(struct instance *instance, const char *name, struct trace_error *error);

/* All clocks' names, with blanks between; @current (or NULL) gets the one that is set. */
int instance_clocks(struct instance *instance, struct strbuf *names, struct strbuf *current,
		    struct trace_error *error);

/*
 * KiB for each CPU. The kernel rounds, so read back what it has become. A size that the
 * machine has no memory for is refused, and the old one kept. When CPUs differ the
 * largest is given. -1 and an error instead of a size.
 */
int instance_set_buffer_kb(struct instance *instance, uint64_t kb, struct trace_error *error);
int64_t instance_get_buffer_kb(struct instance *instance, struct trace_error *error);

/* The same for one CPU, and the sum of all. */
int instance_set_cpu_buffer_kb(struct instance *instance, unsigned int cpu, uint64_t kb,
			       struct trace_error *error);
int64_t instance_get_cpu_buffer_kb(struct instance *instance, unsigned int cpu,
				   struct trace_error *error);
int64_t instance_get_buffer_total_kb(struct instance *instance, struct trace_error *error);

/* Size of one sub-buffer (page of the ring). From Linux 6.8 on; setting empties the buffer. */
int instance_set_subbuf_kb(struct instance *instance, uint64_t kb, struct trace_error *error);
int64_t instance_get_subbuf_kb(struct instance *instance, struct trace_error *error);

int instance_set_tracing(struct instance *instance, bool on, struct trace_error *error);
/* 1 or 0, or -1. */
int instance_is_tracing(struct instance *instance, struct trace_error *error);

/* A file of options/: overwrite, event-fork, hash-ptr... An unknown one is refused by name. */
int instance_set_option(struct instance *instance, const char *name, bool on,
			struct trace_error *error);
/* 1 or 0, or -1. */
int instance_get_option(struct instance *instance, const char *name, struct trace_error *error);

/* The names of all options, with blanks between. */
int instance_options(struct instance *instance, struct strbuf *names, struct trace_error *error);

/*
 * Whose events, whose functions are recorded: only those of these tasks (with none,
 * everyone's), or everyone's but theirs.
 */
enum task_list {
	TASKS_EVENT,
	TASKS_EVENT_NOT,
	TASKS_FUNCTION,
	TASKS_FUNCTION_NOT,
};

int instance_set_tasks(struct instance *instance, enum task_list list, const pid_t *pids,
		       size_t count, struct trace_error *error);
/* The pids in decimal, with blanks between. */
int instance_get_tasks(struct instance *instance, enum task_list list, struct strbuf *pids,
		       struct trace_error *error);
/* Do the tasks that those of the list start join it, and those that end leave it? */
int instance_follow_children(struct instance *instance, enum task_list list, bool follow,
			     struct trace_error *error);

/* The CPUs that record; @cpus NULL: all. One that is not there is refused. */
int instance_set_cpus(struct instance *instance, const unsigned int *cpus, size_t count,
		      struct trace_error *error);
/* Their numbers in decimal, with blanks between. */
int instance_get_cpus(struct instance *instance, struct strbuf *cpus, struct trace_error *error);

/* The tracers that this instance can have, with blanks between; and the one that it has. */
int instance_tracers(struct instance *instance, struct strbuf *names, struct trace_error *error);
int instance_get_tracer(struct instance *instance, struct strbuf *name, struct trace_error *error);
/* Empties the buffer. Refused while the buffer is read. */
int instance_set_tracer(struct instance *instance, const char *name, struct trace_error *error);

/*
 * The snapshot: a second buffer, which changes places with the first. Taking one gets memory
 * for it when it has none. @cpu -1: of all CPUs. Refused while a stream reads the instance,
 * but for clearing and giving the memory back.
 */
int instance_snapshot_take(struct instance *instance, int cpu, struct trace_error *error);
int instance_snapshot_clear(struct instance *instance, int cpu, struct trace_error *error);
int instance_snapshot_free(struct instance *instance, struct trace_error *error);
/* 1 when it has memory, 0, or -1. */
int instance_has_snapshot(struct instance *instance, struct trace_error *error);

/* Forgets what the buffer holds. */
int instance_clear(struct instance *instance, struct trace_error *error);

/*
 * Writes into the trace; the bytes that the kernel took, which may be fewer, or -1. Raw
 * ones begin with a number of 4 bytes, the id of ftrace:raw_data.
 */
ssize_t instance_marker(struct instance *instance, const char *text, size_t length,
			struct trace_error *error);
ssize_t instance_marker_raw(struct instance *instance, const char *bytes, size_t length,
			    struct trace_error *error);

/* For the files that share this header: the first number of @file, or -1. */
int64_t settings_read_number(struct instance *instance, const char *file,
			     struct trace_error *error);

#endif
