/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_RECORDER_H
#define LUATRACE_RECORDER_H

#include "datawrite.h"
#include "error.h"
#include "instance.h"

/*
 * Moves the sub-buffers of a live instance into a trace file, as they are: whole ones by
 * splice(2), which copies them once. Reading consumes, so it is this or a stream.
 */
struct recorder;

/* Both stay the caller's and must outlive it. */
struct recorder *recorder_open(struct instance *instance, struct datawrite *writer,
			       struct trace_error *error);
void recorder_close(struct recorder *recorder);

/* Readable when a CPU's buffer is a quarter full. */
int recorder_fd(const struct recorder *recorder);

/*
 * Moves the whole sub-buffers that are there, and from time to time those of quiet CPUs that
 * are not full. Never blocks. Bytes that were moved, or -1.
 */
long recorder_pump(struct recorder *recorder, struct trace_error *error);

/* Moves everything. */
long recorder_drain(struct recorder *recorder, struct trace_error *error);

#endif
