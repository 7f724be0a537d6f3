/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAMETA_H
#define LUATRACE_DATAMETA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"
#include "strbuf.h"

/* Ids of a trace.dat's options; the sections of version 7 have those of their options. */
enum data_option {
	DATA_OPTION_DONE = 0,
	DATA_OPTION_CPUSTAT = 2,
	DATA_OPTION_BUFFER = 3,
	DATA_OPTION_TRACECLOCK = 4,
	DATA_OPTION_UNAME = 5,
	DATA_OPTION_CPUCOUNT = 8,
	DATA_OPTION_VERSION = 9,
	DATA_OPTION_TRACEID = 11,
	DATA_OPTION_STRINGS = 15,
	DATA_OPTION_HEADER_INFO = 16,
	DATA_OPTION_FTRACE_EVENTS = 17,
	DATA_OPTION_EVENT_FORMATS = 18,
	DATA_OPTION_KALLSYMS = 19,
	DATA_OPTION_PRINTK = 20,
	DATA_OPTION_CMDLINES = 21,
};

/* One event's format file. */
struct data_format {
	char *system;
	char *name;
	struct strbuf text;
};

/*
 * What a trace.dat holds beside the pages of its CPUs: all that is needed to make sense of
 * them on another machine. Starts as all zeroes; data_meta_free().
 */
struct data_meta {
	bool big_endian;
	unsigned int long_size; /* of user space: 4 or 8 */
	uint32_t page_size;	/* of a sub-buffer, header included */
	unsigned int cpu_count; /* of the machine: the highest number + 1 */
	uint64_t trace_id;	/* 0: none yet */
	char clock[64];
	struct strbuf header_page;
	struct strbuf header_event;
	struct data_format *formats; /* in the order of their systems; ftrace's are among them */
	size_t format_count;
	size_t format_capacity;
	struct strbuf kallsyms;
	struct strbuf printk;
	struct strbuf cmdlines;
	/* What the CPUs had counted when the recording began, in the order of their numbers. */
	struct buffer_stats *before;
	unsigned int before_count;
	/* Options as they stand in a file: id, size, bytes, in the file's byte order. */
	struct strbuf options;
};

void data_meta_free(struct data_meta *meta);

/* Appends an option. */
void data_meta_add_option(struct data_meta *meta, enum data_option id, const void *bytes,
			  size_t length);

/* Adds a format, unless the very same is there. 0 or -1 when memory is short. */
int data_meta_add_format(struct data_meta *meta, const char *system, const char *name,
			 const char *text, size_t length);

/*
 * Gathers it from a live instance: the formats of what is on there and of ftrace's own
 * events, symbols, command names, clock. Gathering again keeps formats that are there already
 * and takes everything else anew. 0 or -1.
 */
int data_meta_gather(struct data_meta *meta, struct instance *instance, struct trace_error *error);

/*
 * Losses up to now are none of the recording's, as it begins while the instance has been traced
 * already. 0 or -1.
 */
int data_meta_begin_here(struct data_meta *meta, struct instance *instance,
			 struct trace_error *error);

/* The format of one event of the instance besides those; an unknown one is passed over. */
int data_meta_gather_event(struct data_meta *meta, struct instance *instance, const char *system,
			   const char *name, struct trace_error *error);

#endif
