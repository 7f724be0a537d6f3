/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTFMT_H
#define LUATRACE_PRINTFMT_H

#include "printtree.h"
#include "strbuf.h"

/*
 * Evaluates a print format for one record. What only the kernel could tell (the
 * value of a variable, the string behind an address) is shown as "?" or as the address.
 */
void print_record(struct strbuf *out, const struct event_format *format, const uint8_t *data,
		  uint32_t size);

/*
 * The part of a probe event's print format behind its "(address)": the kernel prints that
 * itself, and "(fault)" for a string that it could not read.
 */
void print_probe_arguments(struct strbuf *out, const struct event_format *format,
			   const uint8_t *data, uint32_t size);

/*
 * How the print format shows @field: by a list of names for its values. False when it
 * has none; nothing is added then.
 */
bool print_field_symbol(struct strbuf *out, const struct event_format *format,
			const struct event_field *field, const uint8_t *data, uint32_t size);

#endif
