/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_FILESTREAM_STATE_H
#define LUATRACE_FILESTREAM_STATE_H

#include "filestream.h"
#include "merge.h"
#include "stream.h"

/* What the files named filestream*.c and datacut.c share. */

/* One CPU of one buffer. */
struct file_lane {
	struct datapages *pages;
	const struct datafile_buffer *buffer;
	const struct datafile_cpu *cpu;
	unsigned int cpu_index; /* in the buffer */
	struct time_map time;
	bool is_wanted;
	uint64_t delivered;
	uint64_t skipped;
	uint64_t lost_told;   /* by pages */
	uint64_t left_out;    /* of what pages tell of, as it is not in the range of time */
	uint64_t lost_at_end; /* by the statistics in the file */
	bool has_unknown_loss;
	uint64_t total; /* that a whole reading delivers; valid with is_counted */
};

struct file_stream {
	struct stream base;
	struct datafile *file;
	const struct catalog *catalog;
	struct merge *merge;
	bool partial;
	bool is_over;	/* nothing more is handed out */
	bool is_failed; /* the error has been given */
	bool is_counted;
	bool has_first;
	int epoll_fd;
	int event_fd;
	uint64_t from;
	uint64_t to;
	uint64_t first_ts;
	uint64_t last_ts;
	uint64_t tick_ts;  /* 0: none */
	struct event held; /* behind a tick that was due before it */
	bool is_held;
	unsigned int stat_lane; /* whose losses of the statistics are told next */
	bool selected[UINT16_MAX + 1];
	struct record_filter *filters[UINT16_MAX + 1];
	unsigned int lane_count;
	struct file_lane lanes[];
};

static inline struct file_stream *to_file(struct stream *stream)
{
	return (struct file_stream *)stream;
}

static inline const struct file_stream *to_const_file(const struct stream *stream)
{
	return (const struct file_stream *)stream;
}

/* filestream_choice.c: is it one of those that are handed out? Its lane is. */
bool filestream_takes(const struct file_stream *stream, const struct event *event);

#endif
