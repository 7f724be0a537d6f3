/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_COMM_H
#define LUATRACE_COMM_H

#include <stddef.h>

/*
 * Command names by pid, as the tracer knows them. Live, the names come from the
 * tracing directory's saved_cmdlines, read again when a name is asked for after
 * comm_expire(); a pid that is not there is looked up in /proc. Names returned
 * are interned: they stay valid as long as the table.
 */
struct comm_table;

struct comm_table *comm_create(void);
void comm_free(struct comm_table *table);

/* Makes the table live: @tracing_dir is the top of tracefs. */
int comm_set_live(struct comm_table *table, const char *tracing_dir);

/* New records have arrived: what saved_cmdlines said before may be out of date. */
void comm_expire(struct comm_table *table);

/* For names from a file. -1 when memory is short. */
int comm_set(struct comm_table *table, int pid, const char *name);

/* The text of a saved_cmdlines, lines of "PID NAME"; bad lines are skipped. 0 or -1. */
int comm_add_saved(struct comm_table *table, const char *text, size_t length);

/* "<idle>" for 0, "<...>" when nobody knows, as the kernel prints them. */
const char *comm_lookup(struct comm_table *table, int pid);

#endif
