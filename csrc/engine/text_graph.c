/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksym.h"
#include "tracefile.h"

/*
 * The function_graph tracer's records. The kernel's trace file has a layout of its own for
 * them, in which a line depends on what came before it: whether the function called another
 * one, whether its end came on the same CPU. Here each record is one line that stands alone,
 * an end with the name of what ends. tracefs.funcgraph has the memory that the kernel's layout
 * needs.
 */

/* The kernel allows 50 or 65535; an indentation beyond this is a damaged record. */
#define DEPTH_MAX 1024

#define INDENT 2

/* What stands for a function there: a module's has the module's name behind it. */
static void add_name(struct strbuf *out, const struct text_record *record)
{
	uint64_t address = text_number(record, "func");
	struct ksym symbol;

	if (ksym_lookup(catalog_ksyms(record->format->catalog), address, &symbol)) {
		strbuf_addf(out, "0x%" PRIx64, address);
		return;
	}
	strbuf_add_string(out, symbol.name);
	if (symbol.module)
		strbuf_addf(out, " [%s]", symbol.module);
}

static bool has_field(const struct text_record *record, const char *name)
{
	return format_field_index(record->format, name) >= 0;
}

/* Errors as the negative numbers that they are, also those that only fill an int. */
static void add_retval(struct strbuf *out, const struct text_record *record)
{
	uint64_t value = text_number(record, "retval");
	int64_t code = value >> 31 == 1 ? (int32_t)value : (int64_t)value;

	if (code < 0 && code >= -4095)
		strbuf_addf(out, " = %" PRId64, code);
	else
		strbuf_addf(out, " = 0x%" PRIx64, value);
}

static char duration_mark(uint64_t ns)
{
	static const struct {
		uint64_t above;
		char mark;
	} marks[] = {
		{ 1000000000, '$' }, { 100000000, '@' }, { 10000000, '*' },
		{ 1000000, '#' },    { 100000, '!' },	 { 10000, '+' },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (ns > marks[i].above)
			return marks[i].mark;
	return ' ';
}

/* At most seven digits, as many of them as fit behind the point. */
static void add_duration(struct strbuf *out, uint64_t ns)
{
	char digits[48], behind[4];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, ns / 1000);

	if (length < 7) {
		snprintf(behind, sizeof(behind), "%03u", (unsigned int)(ns % 1000));
		length += snprintf(digits + length, sizeof(digits) - (size_t)length, ".%.*s",
				   7 - length, behind);
	}
	strbuf_addf(out, "%c %s us %*s|  ", duration_mark(ns), digits, length < 8 ? 8 - length : 0,
		    "");
}

static void add_indent(struct strbuf *out, const struct text_record *record)
{
	uint64_t depth = text_number(record, "depth");

	strbuf_addf(out, "%*s", depth <= DEPTH_MAX ? (int)depth * INDENT : 0, "");
}

static void add_entry(struct strbuf *out, const struct text_record *record)
{
	add_name(out, record);
	strbuf_add_string(out, "() {");
}

static void add_exit(struct strbuf *out, const struct text_record *record)
{
	strbuf_add_string(out, "} /* ");
	add_name(out, record);
	if (has_field(record, "retval"))
		add_retval(out, record);
	strbuf_add_string(out, " */");
}

unsigned int text_cpu_digits(void)
{
	struct strbuf text = { 0 };
	unsigned int digits = 1;

	/* "0-127", "0,2-3": the last number is the highest. */
	if (!tracefile_read(AT_FDCWD, "/sys/devices/system/cpu/possible", &text)) {
		size_t end = text.length, start;

		while (end && !isdigit((unsigned char)text.text[end - 1]))
			end--;
		for (start = end; start && isdigit((unsigned char)text.text[start - 1]);)
			start--;
		if (end > start)
			digits = (unsigned int)(end - start);
	}
	strbuf_free(&text);
	return digits;
}

static bool is_entry(const struct event_format *format)
{
	return !strcmp(format->name, "funcgraph_entry") ||
	       !strcmp(format->name, "fgraph_retaddr_entry");
}

static bool is_exit(const struct event_format *format)
{
	return !strcmp(format->name, "funcgraph_exit");
}

bool text_graph_is_mine(const struct event_format *format)
{
	return !strcmp(format->system, "ftrace") && (is_entry(format) || is_exit(format));
}

void text_graph_line(struct strbuf *out, const struct text_record *record)
{
	strbuf_addf(out, " %*u) ", (int)record->style->cpu_digits, record->event->cpu);
	if (is_entry(record->format)) {
		strbuf_add_string(out, "              |  ");
	} else {
		add_duration(out, text_number(record, "rettime") - text_number(record, "calltime"));
	}
	add_indent(out, record);
	text_graph_body(out, record);
}

void text_graph_body(struct strbuf *out, const struct text_record *record)
{
	if (is_entry(record->format))
		add_entry(out, record);
	else
		add_exit(out, record);
}
