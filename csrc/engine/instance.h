/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_INSTANCE_H
#define LUATRACE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "strbuf.h"

/*
 * A tracefs instance: a private ring buffer with its own events, filters and clock.
 * One that we created is removed with it; one that was opened is left as it is.
 * tracedir.h finds the tracing directory, stale.h the instances of dead processes;
 * settings.h, event_control.h and trigger.h are what can be set in an instance.
 */
struct instance;

/*
 * Makes an instance that records nothing yet (tracing_on is 0). @name NULL: a name of
 * our own, see stale.h. An existing name is refused.
 */
struct instance *instance_create(const char *tracing_dir, const char *name,
				 struct trace_error *error);
struct instance *instance_open(const char *tracing_dir, const char *name,
			       struct trace_error *error);

/* The top level, which is everybody's, as if it were an instance: its name is empty. */
struct instance *instance_open_top(const char *tracing_dir, struct trace_error *error);

/*
 * Removes what was created; 0 or -1 (busy: who holds it). From then on only this and
 * instance_free() may be called; calling it again tries again. In a child of the process
 * that created the instance nothing is removed.
 */
int instance_destroy(struct instance *instance, struct trace_error *error);
/* Frees the memory; destroys first if that has not been done. */
void instance_free(struct instance *instance);

const char *instance_name(const struct instance *instance);
const char *instance_dir(const struct instance *instance); /* path */
const char *instance_tracing_dir(const struct instance *instance);
int instance_dir_fd(const struct instance *instance); /* O_PATH|O_DIRECTORY */
bool instance_is_ours(const struct instance *instance);

/*
 * Has a destroy leave an instance that was created here, for another process to go on with, or
 * remove one that was opened.
 */
void instance_set_ours(struct instance *instance, bool ours);

/*
 * Marks it as one that is to stay, so that another process can tell it from those of others:
 * its directory gets the sticky bit. Only the directory's owner can. 0 or -1.
 */
int instance_set_kept(struct instance *instance, struct trace_error *error);
bool instance_is_kept(const struct instance *instance);

/* @file, an event's trigger file, has a trigger that must go before the instance can. */
int instance_note_trigger(struct instance *instance, const char *file, struct trace_error *error);

/* Names of all instances, sorted, in one malloc'd list that ends with NULL. */
int instance_list(const char *tracing_dir, char ***names, struct trace_error *error);

/*
 * Files of the instance, by path below it. A write is one write(2), and goes on behind
 * what a file like set_event has taken of it; when the kernel refuses, the error holds
 * what the instance's error_log says, with its caret line. instance_write() clears first
 * what the file holds, as > does in a shell, instance_append() adds, as >> does.
 */
int instance_read(struct instance *instance, const char *file, struct strbuf *out,
		  struct trace_error *error);
int instance_write(struct instance *instance, const char *file, const char *text, size_t length,
		   struct trace_error *error);
int instance_append(struct instance *instance, const char *file, const char *text, size_t length,
		    struct trace_error *error);
bool instance_has(const struct instance *instance, const char *file);

/*
 * The errors of the calls above, for those who read and write on their own and were told
 * @code (an errno value). Both return -1.
 */
int instance_read_error(struct instance *instance, const char *file, int code,
			struct trace_error *error);
int instance_write_error(struct instance *instance, const char *file, const char *text,
			 size_t length, int code, struct trace_error *error);

/* One CPU's part of the buffer, from per_cpu/cpuN/stats. */
struct buffer_stats {
	uint64_t entries;
	uint64_t overrun;
	uint64_t commit_overrun;
	uint64_t bytes;
	uint64_t dropped;
	uint64_t read;
};

int instance_stats(struct instance *instance, unsigned int cpu, struct buffer_stats *stats,
		   struct trace_error *error);

/*
 * That file for who looks at it all the time and must not wait: opening it takes a lock of the
 * kernel that is held while anybody's instance is made or removed. The caller closes it. -1 where
 * it cannot be had, or descriptors are short: instance_stats() it is then.
 */
int instance_stats_open(struct instance *instance, unsigned int cpu);

/* What the open file says now; 0 or -1. */
int instance_stats_again(int fd, struct buffer_stats *stats);

/* CPUs that have a buffer directory, as a malloc'd ascending list; their count, or -1. */
int instance_cpus(struct instance *instance, unsigned int **cpus, struct trace_error *error);

/*
 * While a stream reads the instance, what would change the layout of its pages, the meaning
 * of its timestamps or the counts of its losses is refused. Each begin has its end.
 */
void instance_begin_reading(struct instance *instance);
void instance_end_reading(struct instance *instance);
int instance_check_unread(const struct instance *instance, const char *what,
			  struct trace_error *error);

#endif
