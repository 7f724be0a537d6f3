/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STALE_H
#define LUATRACE_STALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Names that say whose they are: "luatrace-PID-STARTTIME-N". A pid alone is not enough,
 * it is used again; with the start time it is one process. Processes of a pid namespace
 * other than the first write "luatrace-nsINODE-PID-STARTTIME-N", as their pids mean
 * nothing outside.
 */

/* Of the calling process, as large as needed for any N. */
#define OWN_NAME_SIZE 96
void stale_own_name(char name[OWN_NAME_SIZE], unsigned int n);

/*
 * The same as an identifier, for what may have no dash in its name: "luatrace_PID_STARTTIME_N".
 * Those whose group is not theirs to choose append "_NAME" to it.
 */
void stale_own_identifier(char name[OWN_NAME_SIZE], unsigned int n);

/* Is @name of this naming, whoever's? */
bool stale_is_ours(const char *name);
bool stale_is_our_identifier(const char *name);

/*
 * Is @name of this naming and its process gone? False also when nobody can tell from
 * here: a pid of another namespace is only known from the first one.
 */
bool stale_is_dead(const char *name);
bool stale_is_dead_identifier(const char *name);

/* Removes instances of dead processes. The number removed. */
unsigned int instance_remove_stale(const char *tracing_dir);

#endif
