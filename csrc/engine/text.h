/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_TEXT_H
#define LUATRACE_TEXT_H

#include "event.h"
#include "format.h"
#include "strbuf.h"

/*
 * The text that the kernel's `trace` file would show. Control bytes inside strings
 * (a process can name itself anything) come as \xNN, so that a line is safe on a
 * terminal and stays one line where the kernel's is one.
 */

struct text_style {
	bool in_ns;		 /* the clock counts ns: seconds.microseconds, else the number */
	bool has_migrate_column; /* kernels that print migrate-disable depth (5 flag columns) */
	unsigned int cpu_digits; /* of the machine's highest CPU, for function graphs */
};

/* For cpu_digits: as many as the highest CPU has that this machine can have. */
unsigned int text_cpu_digits(void);

/* The whole line (or lines), without the last newline. */
void text_line(struct strbuf *out, const struct event_format *format, const struct event *event,
	       const struct text_style *style);

/* What stands behind "name: ". For an event without a usable print format the fields
 * as name=value, and false is returned. */
bool text_body(struct strbuf *out, const struct event_format *format, const uint8_t *data,
	       uint32_t size);

/* One field as the print format shows it (symbols, flags), else its plain value.
 * -1 when the field lies outside the record. */
int text_field(struct strbuf *out, const struct event_format *format,
	       const struct event_field *field, const uint8_t *data, uint32_t size);

/* Adds @length bytes with everything that a terminal could act on as \xNN. */
void text_add_safe(struct strbuf *out, const char *bytes, size_t length);

#endif
