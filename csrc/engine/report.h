/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_REPORT_H
#define LUATRACE_REPORT_H

#include "filestream.h"

/*
 * The records of a file's stream as lines, laid out as trace-cmd report does, with the
 * kernel's own text behind the event's name. A loss has its line before the record behind it.
 */
struct report;

enum report_format {
	REPORT_TEXT,
	REPORT_CSV, /* timestamp,cpu,pid,comm,event,text */
};

struct report_options {
	enum report_format format;
	bool in_ns;	   /* what timestamps count */
	bool nanoseconds;  /* all digits; else microseconds */
	bool shows_buffer; /* instances have their name before each line */
};

/* All three stay the caller's and must outlive the report. NULL when memory is short. */
struct report *report_open(struct stream *stream, struct datafile *file, struct catalog *catalog,
			   const struct report_options *options);
void report_close(struct report *report);

/*
 * Adds the lines of the next records to @out, some 64 KiB of them. 1: there are more, 0: that was
 * the last one, -1: the file is damaged, and all that could be read has been given.
 */
int report_run(struct report *report, struct strbuf *out, struct trace_error *error);

#endif
