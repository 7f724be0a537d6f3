/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_FILESTREAM_H
#define LUATRACE_FILESTREAM_H

#include "datafile.h"
#include "record_filter.h"
#include "stream.h"

/*
 * The records of a trace file as a stream. Only those of selected events come, as if only
 * these had been turned on when the file was made, and of these what their filter lets
 * through; the others are in no count.
 *
 * Across CPUs the smaller timestamp comes first; of equal ones that of the buffer, then
 * the CPU, that stands first in the file. Time is the file's: ticks (stream_set_tick) are
 * asked for in its unit. stream_fd() is always readable.
 *
 * Damage: what can be read is handed out, then stream_fill() fails with what is wrong
 * where, once; where that is only to be told of, @partial ends the stream like any other.
 */
struct filestream_options {
	const char *buffer; /* name of the only one to read; NULL: all */
	bool partial;
};

/* Holds the file as long as it is open. NULL: no such buffer, or no memory. */
struct stream *filestream_open(struct datafile *file, const struct catalog *catalog,
			       const struct filestream_options *options, struct trace_error *error);

/* All ids, or one. -1: not an id. */
int filestream_select(struct stream *stream, int id, bool on);
void filestream_select_all(struct stream *stream);

/* Only records of @id that it lets through; the stream takes it over. NULL: no filter. */
int filestream_set_filter(struct stream *stream, int id, struct record_filter *filter);

/* Only what is in this range, ends included, in mapped time. */
void filestream_set_range(struct stream *stream, uint64_t from, uint64_t to);

/* Only CPUs for which @wanted is true; @count entries, the others are left out. */
void filestream_set_cpus(struct stream *stream, const bool *wanted, unsigned int count);

/* The time of the first record of the file; false when there is none. */
bool filestream_first_ts(struct stream *stream, uint64_t *ts);

/* The time of the record handed out last; 0 before the first. */
uint64_t filestream_last_ts(const struct stream *stream);

/* Bytes of records that have been read, and how many there are. */
void filestream_progress(const struct stream *stream, uint64_t *done, uint64_t *all);

/* The buffer of the CPU that an event came from, by its lane. */
const struct datafile_buffer *filestream_buffer(const struct stream *stream, unsigned int lane);

/* Is @stream one of these? */
bool filestream_is(const struct stream *stream);

#endif
