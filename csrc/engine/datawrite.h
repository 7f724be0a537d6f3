/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAWRITE_H
#define LUATRACE_DATAWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "datameta.h"
#include "error.h"
#include "own.h"
#include "page.h"

/*
 * Writes a trace.dat while its pages come in, in any order of CPUs.
 *
 * From the first page on the file is one that every reader can open: it has a sparse region
 * for each CPU, and its table of how long they are is written again with every checkpoint.
 * Whatever ends the writer leaves what was there at the last checkpoint. At the end the
 * regions are put together, compressed, in a new file that takes the place of this one.
 *
 * A child of the process that opened it writes nothing, whatever it calls.
 */
struct datawrite;

struct datawrite_options {
	unsigned int version;  /* 6 or 7 */
	bool compress;	       /* in version 7, where this build can */
	struct own_filter own; /* whose records are left out of the finished file */
};

/*
 * What is there under @path is replaced, unless it is no regular file or somebody is writing
 * it in this way. @meta is what is known now; both are the caller's.
 */
struct datawrite *datawrite_open(const char *path, const struct data_meta *meta,
				 const struct datawrite_options *options,
				 struct trace_error *error);
/* Ends it: what no finish has put together stays as it was at a last checkpoint. */
void datawrite_close(struct datawrite *writer);

/* A sub-buffer as it was read. Pages that are not full are put together. 0 or -1. */
int datawrite_page(struct datawrite *writer, unsigned int cpu, const uint8_t *page, size_t length,
		   struct trace_error *error);

/*
 * Makes sure that @bytes more of a CPU have room on the disk, where the file system can tell: for
 * those whose source gives nothing twice. 0 or -1.
 */
int datawrite_reserve(struct datawrite *writer, unsigned int cpu, size_t bytes,
		      struct trace_error *error);

/*
 * For those who move whole pages into the file themselves: where @length bytes of a CPU go, and
 * that they have arrived there. 0 or -1.
 */
int datawrite_begin_direct(struct datawrite *writer, unsigned int cpu, size_t length, int *fd,
			   off_t *offset, struct trace_error *error);
void datawrite_end_direct(struct datawrite *writer, unsigned int cpu, size_t bytes);

int datawrite_checkpoint(struct datawrite *writer, struct trace_error *error);

/*
 * Puts the file together with the final @meta, which is borrowed until the end: call step until
 * it gives 0. 1: there is more to do. -1: it failed, and the file stays as at a checkpoint.
 */
int datawrite_finish(struct datawrite *writer, const struct data_meta *meta,
		     struct trace_error *error);
int datawrite_step(struct datawrite *writer, struct trace_error *error);

/* Bytes of pages taken in, and how many of them a finish has dealt with. */
uint64_t datawrite_bytes(const struct datawrite *writer);
uint64_t datawrite_done(const struct datawrite *writer);
/* The tracer's own records in these, which are not in the file. */
uint64_t datawrite_left_out(const struct datawrite *writer);

const char *datawrite_path(const struct datawrite *writer);

#endif
