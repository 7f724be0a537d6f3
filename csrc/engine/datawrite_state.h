/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAWRITE_STATE_H
#define LUATRACE_DATAWRITE_STATE_H

#include "compress.h"
#include "datahead.h"
#include "datawrite.h"
#include "pagebuild.h"

/* What datawrite.c and datapack.c share of a writer. */

struct write_lane {
	uint64_t start;	   /* of its region */
	uint64_t size;	   /* bytes of whole pages in it */
	uint64_t reserved; /* bytes of it that have their place on the disk */
	struct page_build open;
	uint64_t open_at; /* where the open page belongs in the region */
	bool open_is_dirty;
};

struct datawrite {
	char *path;
	pid_t owner; /* a child of it has all of this too, and leaves the file alone */
	int fd;
	unsigned int version;
	bool compress;
	bool big_endian;
	struct own_filter own;
	bool cannot_reserve; /* this file system does not know how */
	bool broken;	     /* was never set up */
	bool finished;
	struct page_layout layout;
	struct data_head head;
	uint64_t region;
	uint64_t bytes;

	/* datapack.c: putting it together */
	char *out_path;
	int out_fd;
	uint64_t out_offset;
	uint64_t done;
	struct data_head out_head;
	struct data_cpu *out_cpus;
	unsigned int out_count;
	unsigned int out_index; /* of the CPU that is at work */
	uint64_t in_offset;	/* in its region */
	struct compressor *compressor;
	uint8_t *chunk;
	uint8_t *packed;
	struct page_build rebuilt; /* a page without the tracer's own records */
	uint64_t left_out;	   /* how many of those there were */

	unsigned int cpu_count;
	struct write_lane lanes[];
};

/* datawrite.c: writes all of it, or says why not. */
int datawrite_write_at(struct datawrite *writer, int fd, const void *bytes, size_t length,
		       uint64_t offset, struct trace_error *error);

/* datapack.c: gives the unfinished new file up. */
void datawrite_drop_output(struct datawrite *writer);

#endif
