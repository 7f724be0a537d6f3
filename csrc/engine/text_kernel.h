/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TEXT_KERNEL_H
#define LUATRACE_TEXT_KERNEL_H

#include "text.h"

/*
 * Events that the kernel prints in C code of its own instead of by their print format:
 * the tracer's events, system calls, probes, synthetic events. Between the files of text only.
 */
struct text_record {
	const struct event_format *format;
	const uint8_t *data;
	uint32_t size;
	const struct event *event;	/* NULL when only the body is wanted */
	const struct text_style *style; /* NULL with it */
};

enum text_result {
	TEXT_NOT_MINE, /* nothing was added: use the print format */
	TEXT_DONE,
};

/* text_ftrace.c: system "ftrace". */
enum text_result text_ftrace(struct strbuf *out, const struct text_record *record);

/* text_graph.c: the function_graph tracer's. A line has no task and no time in front. */
bool text_graph_is_mine(const struct event_format *format);
void text_graph_line(struct strbuf *out, const struct text_record *record);
void text_graph_body(struct strbuf *out, const struct text_record *record);

/* text_syscall.c: system "syscalls". */
enum text_result text_syscall(struct strbuf *out, const struct text_record *record);

/* text_probe.c: probes. @with_name: with "name: " where the kernel has it. */
enum text_result text_probe(struct strbuf *out, const struct text_record *record, bool with_name);

/* text_synthetic.c: system "synthetic", which the kernel prints with other separators. */
enum text_result text_synthetic(struct strbuf *out, const struct text_record *record,
				bool with_name);

/* text.c: the kernel's " 1234.567890" or, for clocks that are not in ns, the number. */
void text_add_time(struct strbuf *out, uint64_t ts, const struct text_style *style);

/* An address as a symbol without offset, as it stands in stacks. */
void text_add_symbol(struct strbuf *out, const struct event_format *format, uint64_t address);

/* text_bprint.c: the format of a trace_printk() with its packed arguments. */
void text_add_bprintf(struct strbuf *out, const struct event_format *format, const char *text,
		      const uint8_t *args, uint32_t size);

/* A number of the record by its field's name; 0 when it has none. */
uint64_t text_number(const struct text_record *record, const char *name);

#endif
