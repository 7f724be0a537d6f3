/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <string.h>

#include "printeval.h"
#include "printfmt.h"

/* The upper half of the address space is the kernel's. */
static bool is_kernel_address(const struct event_format *format, uint64_t address)
{
	return address >> (8 * format->long_size - 1) & 1;
}

static void add_probe_address(struct strbuf *out, const struct event_format *format,
			      uint64_t address, bool with_offset)
{
	if (!is_kernel_address(format, address))
		strbuf_addf(out, "0x%llx", (unsigned long long)address);
	else if (with_offset)
		print_symbol(out, format, address, true);
	else
		text_add_symbol(out, format, address);
}

/* An event probe: where it is attached instead of an address. */
static void add_event_probe(struct strbuf *out, const struct text_record *record)
{
	strbuf_addf(out, "(%s)", record->format->attached);
	print_probe_arguments(out, record->format, record->data, record->size);
}

/* Where the probe hit: kernel probes by symbol, user probes by address. */
static bool add_probe(struct strbuf *out, const struct text_record *record)
{
	const struct event_format *format = record->format;
	bool is_return = format_field_index(format, "__probe_ret_ip") >= 0 &&
			 format_field_index(format, "__probe_func") >= 0;

	if (!is_return && format_field_index(format, "__probe_ip") < 0)
		return false;
	strbuf_add_char(out, '(');
	if (is_return) {
		add_probe_address(out, format, text_number(record, "__probe_ret_ip"), true);
		strbuf_add_string(out, " <- ");
		add_probe_address(out, format, text_number(record, "__probe_func"), false);
	} else {
		add_probe_address(out, format, text_number(record, "__probe_ip"), true);
	}
	strbuf_add_char(out, ')');
	print_probe_arguments(out, format, record->data, record->size);
	return true;
}

enum text_result text_probe(struct strbuf *out, const struct text_record *record, bool with_name)
{
	const struct event_format *format = record->format;
	size_t before = out->length;

	if (format->print && format->attached) {
		if (with_name)
			strbuf_addf(out, "%s: ", format->name);
		add_event_probe(out, record);
		return TEXT_DONE;
	}
	if (!format->print || format->field_count == format->common_count ||
	    strncmp(format->fields[format->common_count].name, "__probe_", strlen("__probe_")))
		return TEXT_NOT_MINE;
	if (with_name)
		strbuf_addf(out, "%s: ", format->name);
	if (add_probe(out, record))
		return TEXT_DONE;
	if (out->text)
		out->text[before] = '\0';
	out->length = before;
	return TEXT_NOT_MINE;
}
