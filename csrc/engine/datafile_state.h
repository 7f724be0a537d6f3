/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAFILE_STATE_H
#define LUATRACE_DATAFILE_STATE_H

#include "cursor.h"
#include "datafile.h"
#include "strbuf.h"

/* What the files named datafile*.c share. */

/* Some text in the file (or in a section's memory) that is read when it is asked for. */
struct datafile_text {
	bool is_there;
	uint64_t offset; /* version 6: of the text; 7: of the section */
	uint64_t length; /* version 6 only */
};

struct datafile_samples {
	struct time_sample *list;
	unsigned int count;
};

struct datafile {
	unsigned int holders;
	int fd;
	uint64_t size; /* when it was opened */
	char *path;
	bool swap;
	struct datafile_info info;
	struct page_layout layout;
	struct decoder *decoder;
	char *damage;

	char *clock; /* the file's own, for buffers that say nothing */
	struct datafile_buffer *buffers;
	unsigned int buffer_count;

	/* formats: texts lie in the file, or in @formats when their section was compressed */
	uint8_t *formats;
	size_t formats_length;
	uint8_t *ftrace_formats;
	size_t ftrace_formats_length;
	struct datafile_event *events;
	size_t event_count;
	size_t event_capacity;
	size_t ftrace_count; /* the first of @events are the tracer's own */
	int *by_id;	     /* index + 1 into @events */
	char **systems;
	size_t system_count;

	struct datafile_text kallsyms;
	struct datafile_text printk;
	struct datafile_text cmdlines;
	uint64_t header_section; /* version 7; 0: none */
	uint64_t ftrace_section;
	uint64_t formats_section;

	uint32_t tsc_mult;
	uint32_t tsc_shift;
	bool interpolates;
	struct datafile_samples *samples; /* by CPU */
	unsigned int sample_cpus;

	struct strbuf stats; /* texts of the CPU statistics, in their order */

	/* as they stand in the file, for others that are made of it */
	struct strbuf header_page;
	struct strbuf header_event;
	struct strbuf options;
};

#define DATAFILE_MAX_CPUS 65535
#define DATAFILE_MAX_BUFFERS 4096

/* Section and option numbers of version 7; those below 16 are version 6's too. */
enum {
	OPTION_DONE = 0,
	OPTION_DATE = 1,
	OPTION_CPUSTAT = 2,
	OPTION_BUFFER = 3,
	OPTION_TRACECLOCK = 4,
	OPTION_UNAME = 5,
	OPTION_HOOK = 6,
	OPTION_OFFSET = 7,
	OPTION_CPUCOUNT = 8,
	OPTION_VERSION = 9,
	OPTION_PROCMAPS = 10,
	OPTION_TRACEID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_TSC2NSEC = 14,
	OPTION_HEADER_INFO = 16,
	OPTION_FTRACE_EVENTS = 17,
	OPTION_EVENT_FORMATS = 18,
	OPTION_KALLSYMS = 19,
	OPTION_PRINTK = 20,
	OPTION_CMDLINES = 21,
	OPTION_BUFFER_TEXT = 22,
};

/* A section of version 7. */
struct section {
	uint16_t id;
	bool is_compressed;
	uint64_t offset; /* of what it holds */
	uint64_t size;	 /* in the file */
};

/* datafile_section.c: the section whose header is at @offset. -1: there is none. */
int section_find(struct datafile *file, uint64_t offset, struct section *section,
		 struct trace_error *error);

/*
 * datafile_section.c: a cursor over the content. @memory is what it has been decompressed
 * into, to be freed behind the cursor; NULL when it is read from the file.
 */
int section_open(struct datafile *file, const struct section *section, struct cursor *cursor,
		 uint8_t **memory, struct trace_error *error);

/* All options together; what says more is not believed. */
#define DATAFILE_OPTIONS_MAX (UINT32_C(64) << 20)

/*
 * datafile_options.c: reads an option's @size bytes and takes what they say. The cursor has failed
 * behind it when they are not all there, or too many. -1 when memory is short.
 */
int datafile_read_option(struct datafile *file, unsigned int id, uint32_t size,
			 struct cursor *cursor, struct trace_error *error);

/* datafile_options.c: another buffer with no CPUs; NULL when there are too many. */
struct datafile_buffer *datafile_add_buffer(struct datafile *file, const char *name,
					    struct trace_error *error);

/* datafile_options.c: gives the CPUs of the buffers what the statistics say. */
void datafile_spread_stats(struct datafile *file);

/* datafile_options.c: "[mono]" out of the text of trace_clock; "" if nothing stands there. */
void datafile_set_clock(struct datafile *file, const char *text, size_t length);

/* datafile_v6.c, datafile_v7.c: everything behind the first bytes. */
int datafile_read_v6(struct datafile *file, struct cursor *cursor, struct trace_error *error);
int datafile_read_v7(struct datafile *file, uint64_t options, struct trace_error *error);

/* datafile_meta.c: what both versions have, at the cursor. */
int datafile_read_header_info(struct datafile *file, struct cursor *cursor,
			      struct trace_error *error);
int datafile_read_ftrace_formats(struct datafile *file, struct cursor *cursor,
				 struct trace_error *error);
int datafile_read_formats(struct datafile *file, struct cursor *cursor, struct trace_error *error);
int datafile_index_events(struct datafile *file, struct trace_error *error);

/* datafile_copy.c: keeps an option for files that are made of this one. */
void datafile_keep_option(struct datafile *file, unsigned int id, const uint8_t *data,
			  uint32_t size);

/* datafile_meta.c: adds the text of symbols, printk formats, command names. 0 or -1. */
int datafile_load_text(struct datafile *file, const struct datafile_text *where, bool is_long,
		       struct strbuf *out);

/* datafile.c: cuts the places of records to what the file has; notes what is missing. */
void datafile_cut(struct datafile *file, uint64_t offset, uint64_t *size, const char *what,
		  unsigned int cpu);

#endif
