/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAFILE_H
#define LUATRACE_DATAFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec.h"
#include "error.h"
#include "format.h"
#include "page.h"
#include "strbuf.h"
#include "timemap.h"

/*
 * A trace.dat file, version 6 or 7: what stands before its records, and where they are.
 * Read with pread(2), nothing of it is mapped. Counted: datafile_put() of the last
 * holder closes it. One thread at a time.
 */
struct datafile;

/* Fails when nothing can be read of it: no such file, not a trace.dat, cut before its formats. */
struct datafile *datafile_open(const char *path, struct trace_error *error);
struct datafile *datafile_get(struct datafile *file);
void datafile_put(struct datafile *file);

/* Counters of a CPU's buffer when the file was written; false when it does not say. */
struct datafile_stats {
	bool is_known;
	uint64_t overrun;
	uint64_t commit_overrun;
	uint64_t dropped;
};

/* The records of one CPU: @size bytes at @offset of the file, compressed or not. */
struct datafile_cpu {
	uint32_t cpu;
	uint64_t offset;
	uint64_t size;
	struct datafile_stats stats;
};

/* One ring buffer: the top one or an instance. */
struct datafile_buffer {
	char *name;	    /* "" for the top one */
	char *clock;	    /* "" when the file does not say */
	bool is_text;	    /* a latency tracer's text instead of records */
	bool is_compressed; /* records, or the text */
	uint32_t page_size; /* of its sub-buffers */
	uint64_t text_offset;
	uint64_t text_size; /* in the file */
	unsigned int cpu_count;
	struct datafile_cpu *cpus; /* in ascending order */
};

struct datafile_info {
	unsigned int version;
	bool big_endian;
	unsigned int long_size; /* of the kernel */
	uint32_t page_size;
	unsigned int cpu_count; /* of the machine; 0 when the file does not say */
	enum codec codec;
	uint64_t trace_id;
	int64_t ts_offset; /* added to each timestamp, ns */
	char *uname;	   /* of the machine, NULL when the file does not say */
	char *written_by;
	char *date; /* the option as it stands in the file */
};

const char *datafile_path(const struct datafile *file);

/* Does @path lead to this very file, by whatever name? */
bool datafile_is_at(const struct datafile *file, const char *path);
const struct datafile_info *datafile_info(const struct datafile *file);
unsigned int datafile_buffer_count(const struct datafile *file);
const struct datafile_buffer *datafile_buffer(const struct datafile *file, unsigned int index);

/* The layout of sub-buffers; @size is that of the largest ones in the file. */
const struct page_layout *datafile_layout(const struct datafile *file);

/* How a CPU's timestamps are to be read. The samples belong to the file. */
void datafile_time_map(const struct datafile *file, unsigned int cpu, struct time_map *map);

/* The name of the buffer's clock, or of the file's; "" when neither says. */
const char *datafile_clock(const struct datafile *file, const struct datafile_buffer *buffer);

/* Do timestamps, once mapped, count ns? @buffer's clock says so, or a conversion. */
bool datafile_in_ns(const struct datafile *file, const struct datafile_buffer *buffer);

/* An event that the file has the format of. */
struct datafile_event {
	const char *system;
	const char *name;
	int id;
	uint64_t offset; /* of the text */
	uint32_t length;
};

size_t datafile_event_count(const struct datafile *file);
const struct datafile_event *datafile_event(const struct datafile *file, size_t index);
const struct datafile_event *datafile_find_event(const struct datafile *file, const char *system,
						 const char *name);
const struct datafile_event *datafile_find_id(const struct datafile *file, int id);

/* Adds the text of an event's format file. 0 or -1. */
int datafile_format_text(struct datafile *file, const struct datafile_event *event,
			 struct strbuf *out, struct trace_error *error);

/* Parses the format of an event into the catalog; NULL and why it is not usable. */
struct event_format *datafile_describe(struct datafile *file, const struct datafile_event *event,
				       struct catalog *catalog, struct trace_error *error);

/*
 * Tells the catalog, which must be made for the file's byte order and long size, what the
 * file knows: command names, symbols, printk formats, the kernel's release. It holds the
 * file as long as it lives.
 */
int datafile_fill_catalog(struct datafile *file, struct catalog *catalog,
			  struct trace_error *error);

/*
 * Everything that the file says beside its records, for a file that is made of it: formats,
 * names, symbols, clock, machine, what time is. What counts records is left out. @meta is all
 * zeroes; data_meta_free(), also of one that failed. 0 or -1.
 */
struct data_meta;
int datafile_copy_meta(struct datafile *file, struct data_meta *meta, struct trace_error *error);

/* Adds all the text of a latency tracer's buffer. */
int datafile_read_text(struct datafile *file, const struct datafile_buffer *buffer,
		       struct strbuf *out, struct trace_error *error);

/*
 * The first thing in the file that is not as it has to be, with its offset; NULL when there is
 * none, so far as it has been read.
 */
const char *datafile_damage(const struct datafile *file);
__attribute__((format(printf, 3, 4))) void
datafile_note_damage(struct datafile *file, uint64_t offset, const char *format, ...);

/*
 * The sub-buffers of one CPU, one after the other. What cannot be read ends them, and is
 * noted as the file's damage. The file must outlive it.
 */
struct datapages;

/* @block is how many bytes it may read at once. NULL when memory is short. */
struct datapages *datapages_open(struct datafile *file, const struct datafile_buffer *buffer,
				 unsigned int cpu_index, size_t block);
void datapages_close(struct datapages *pages);

/* Bytes of the next one, which starts at @offset of the file; 0 at the end. */
size_t datapages_next(struct datapages *pages, uint8_t *bytes, size_t room, uint64_t *offset);

/* How many bytes of the file have been taken in. */
uint64_t datapages_position(const struct datapages *pages);

#endif
