/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATACUT_H
#define LUATRACE_DATACUT_H

#include <stdbool.h>
#include <stdint.h>

#include "filestream.h"

/*
 * Makes a trace file of a part of another one: of the records that a file's stream hands out,
 * with everything that the file says about them. Each CPU is read once more, by itself, so the
 * stream may have been read or not.
 *
 * Losses stay where they are, when they lie in the stream's range of time. The new file gets
 * its name when it is complete; nothing is left of one that is not.
 */
struct datacut;

struct datacut_options {
	unsigned int version; /* 6 or 7 */
	bool compress;	      /* in version 7, where this build can */
	bool partial;	      /* damage of the file is no error */
	bool only_delivered;  /* of each CPU as many records as the stream has handed out */
};

/* @stream is one of a file and must outlive it. @path must not be that file. */
struct datacut *datacut_open(struct stream *stream, const char *path,
			     const struct datacut_options *options, struct trace_error *error);
void datacut_close(struct datacut *cut);

/* 1: there is more to do, 0: the file is complete, -1: it failed. */
int datacut_step(struct datacut *cut, struct trace_error *error);

/* Bytes of records that have been read, and how many there are. */
void datacut_progress(const struct datacut *cut, uint64_t *done, uint64_t *all);

/* How many records are in it. */
uint64_t datacut_records(const struct datacut *cut);

const char *datacut_path(const struct datacut *cut);

#endif
