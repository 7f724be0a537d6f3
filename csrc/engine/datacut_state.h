/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATACUT_STATE_H
#define LUATRACE_DATACUT_STATE_H

#include <sys/types.h>

#include "compress.h"
#include "datacut.h"
#include "datahead.h"
#include "filestream_state.h"
#include "pagebuild.h"

/* What datacut.c and datacut_lane.c share. */

/* One buffer of the new file. */
struct cut_buffer {
	const struct datafile_buffer *source;
	uint32_t page_size;
	uint64_t section; /* version 7: of its header */
	unsigned int first_lane;
	unsigned int lane_count; /* of the stream */
	struct data_cpu *cpus;	 /* by lane; in version 6 by number */
	unsigned int cpu_count;
};

/* The CPU that is at work. */
struct cut_lane {
	struct datapages *pages; /* NULL: none is */
	struct page_layout layout;
	struct page_build page;
	struct data_cpu *cpu;
	uint64_t taken;
	uint64_t last_ts;  /* of the record before, taken or not, as it is shown */
	uint64_t gap;	   /* lost since then; PAGE_LOST_UNKNOWN */
	uint64_t lost;	   /* to be told of before the next record that is taken */
	uint64_t told;	   /* of losses that are in the new file */
	uint64_t left_out; /* of those that are not */
	uint64_t count_at; /* of the number of chunks, when compressed */
	uint32_t chunks;
	bool is_begun; /* something of it is in the file */
};

struct datacut {
	struct file_stream *stream;
	struct datafile *file;
	char *path;
	char *out_path;
	pid_t owner; /* a child of it leaves the new file alone */
	int fd;
	uint64_t limit; /* of the size of a file */
	struct datacut_options options;
	struct data_meta meta;
	size_t options_length; /* of the file's own */
	struct data_head head;
	struct compressor *compressor;
	struct cut_buffer *buffers;
	unsigned int buffer_count;
	unsigned int buffer_index; /* that is at work */
	unsigned int lane_index;   /* in that */
	struct cut_lane lane;
	struct datafile_stats *stats; /* of the new file, by lane */
	uint8_t *in;		      /* a sub-buffer */
	uint8_t *chunk;
	size_t chunk_room;
	size_t chunk_length;
	uint8_t *packed;
	uint64_t offset; /* in the new file */
	uint64_t done_before;
	uint64_t records;
};

/* datacut.c: a whole page of the lane at work. 0 or -1. */
int datacut_put_page(struct datacut *cut, const uint8_t *page, size_t size,
		     struct trace_error *error);

/* datacut_lane.c: begins a lane of the stream. 0 or -1. */
int cut_lane_begin(struct datacut *cut, unsigned int lane, uint32_t page_size,
		   struct trace_error *error);

/* datacut_lane.c: takes what is wanted of the next sub-buffer. 1, 0 behind the last one, -1. */
int cut_lane_step(struct datacut *cut, unsigned int lane, uint64_t *bytes,
		  struct trace_error *error);

/* datacut_lane.c: its last page, and what it counts. 0 or -1. */
int cut_lane_end(struct datacut *cut, unsigned int lane, struct trace_error *error);

#endif
