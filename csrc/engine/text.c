/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <inttypes.h>
#include <string.h>

#include "comm.h"
#include "enums.h"
#include "kprintf.h"
#include "ksym.h"
#include "printfmt.h"
#include "text_kernel.h"
#include "value.h"

/* The kernel's bits in common_flags. */
enum {
	FLAG_IRQS_OFF = 0x01,
	FLAG_NEED_RESCHED_LAZY = 0x02,
	FLAG_NEED_RESCHED = 0x04,
	FLAG_HARDIRQ = 0x08,
	FLAG_SOFTIRQ = 0x10,
	FLAG_PREEMPT_RESCHED = 0x20,
	FLAG_NMI = 0x40,
	FLAG_BH_OFF = 0x80,
};

/* How many bytes of valid UTF-8 stand at @text; 0 when they are none. */
static size_t utf8_length(const unsigned char *text, size_t length)
{
	size_t count;
	uint32_t code;

	if (text[0] < 0x80)
		return 1;
	if (text[0] >= 0xc2 && text[0] < 0xe0)
		count = 2;
	else if (text[0] >= 0xe0 && text[0] < 0xf0)
		count = 3;
	else if (text[0] >= 0xf0 && text[0] < 0xf5)
		count = 4;
	else
		return 0;
	if (count > length)
		return 0;
	code = text[0] & (0x7f >> count);
	for (size_t i = 1; i < count; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if ((count == 3 && code < 0x800) || (count == 4 && code < 0x10000) || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return count;
}

/*
 * Control characters, those of 8 bits too, and the marks that make a terminal show text
 * in another order than it has.
 */
static bool is_unsafe(const unsigned char *text, size_t length)
{
	if (length == 1)
		return (text[0] < 0x20 && text[0] != '\t') || text[0] == 0x7f;
	if (length == 2)
		return text[0] == 0xc2 && text[1] < 0xa0;
	/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
	return length == 3 && text[0] == 0xe2 &&
	       ((text[1] == 0x80 &&
		 (text[2] == 0x8e || text[2] == 0x8f || (text[2] >= 0xa8 && text[2] <= 0xae))) ||
		(text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9));
}

void text_add_safe(struct strbuf *out, const char *bytes, size_t length)
{
	const unsigned char *text = (const unsigned char *)bytes;
	size_t done = 0, at = 0;

	while (at < length) {
		size_t count = utf8_length(text + at, length - at);

		if (count && !is_unsafe(text + at, count)) {
			at += count;
			continue;
		}
		strbuf_add(out, bytes + done, at - done);
		if (!count)
			count = 1;
		for (done = at + count; at < done; at++)
			strbuf_addf(out, "\\x%02x", text[at]);
	}
	strbuf_add(out, bytes + done, length - done);
}

void text_add_symbol(struct strbuf *out, const struct event_format *format, uint64_t address)
{
	struct ksym symbol;

	if (!address)
		strbuf_add_char(out, '0');
	else if (!ksym_lookup(catalog_ksyms(format->catalog), address, &symbol))
		strbuf_add_string(out, symbol.name);
	else
		strbuf_addf(out, "0x%08llx", (unsigned long long)address);
}

void text_add_time(struct strbuf *out, uint64_t ts, const struct text_style *style)
{
	uint64_t us = (ts + 500) / 1000;

	if (style->in_ns)
		strbuf_addf(out, " %5" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
	else
		strbuf_addf(out, " %12" PRIu64, ts);
}

/*
 * Some kernels fill the flags of uprobe events with ones, also where a bit has no meaning for
 * them: then it is not printed either. BTF has the names of those that have one.
 */
static unsigned int known_flags(const struct event_format *format, unsigned int flags)
{
	struct enum_table *enums = catalog_enums(format->catalog);
	int64_t value;

	if (flags != 0xff || enum_lookup(enums, "TRACE_FLAG_NEED_RESCHED", &value) < 0)
		return flags;
	if (enum_lookup(enums, "TRACE_FLAG_NEED_RESCHED_LAZY", &value) < 0)
		flags &= ~(unsigned int)FLAG_NEED_RESCHED_LAZY;
	if (enum_lookup(enums, "TRACE_FLAG_BH_OFF", &value) < 0)
		flags &= ~(unsigned int)FLAG_BH_OFF;
	return flags;
}

/* Interrupts and bottom halves, reschedule, context, preemption, migration. */
static void add_flags(struct strbuf *out, unsigned int flags, unsigned int preempt,
		      bool has_migrate)
{
	/* By lazy, immediate and preempt need, in this order of bits. */
	static const char need[] = ".lnbpLNB";
	unsigned int resched = (flags & FLAG_NEED_RESCHED_LAZY ? 1 : 0) |
			       (flags & FLAG_NEED_RESCHED ? 2 : 0) |
			       (flags & FLAG_PREEMPT_RESCHED ? 4 : 0);
	bool hardirq = flags & FLAG_HARDIRQ, softirq = flags & FLAG_SOFTIRQ;

	if (flags & FLAG_IRQS_OFF)
		strbuf_add_char(out, flags & FLAG_BH_OFF ? 'D' : 'd');
	else
		strbuf_add_char(out, flags & FLAG_BH_OFF ? 'b' : '.');
	strbuf_add_char(out, need[resched]);
	if (flags & FLAG_NMI)
		strbuf_add_char(out, hardirq ? 'Z' : 'z');
	else if (hardirq)
		strbuf_add_char(out, softirq ? 'H' : 'h');
	else
		strbuf_add_char(out, softirq ? 's' : '.');
	if (preempt & 0xf)
		strbuf_addf(out, "%x", preempt & 0xf);
	else
		strbuf_add_char(out, '.');
	if (!has_migrate)
		return;
	if (preempt & 0xf0)
		strbuf_addf(out, "%x", preempt >> 4);
	else
		strbuf_add_char(out, '.');
}

static void add_prefix(struct strbuf *out, const struct text_record *record)
{
	int pid = (int)text_number(record, "common_pid");
	const char *comm = comm_lookup(catalog_comms(record->format->catalog), pid);
	size_t length = strlen(comm);

	strbuf_addf(out, "%*s", length < 16 ? (int)(16 - length) : 0, "");
	text_add_safe(out, comm, length);
	strbuf_addf(out, "-%-7d [%03u] ", pid, record->event->cpu);
	add_flags(out,
		  known_flags(record->format, (unsigned int)text_number(record, "common_flags")),
		  (unsigned int)text_number(record, "common_preempt_count"),
		  record->style->has_migrate_column);
	text_add_time(out, record->event->ts, record->style);
	strbuf_add_string(out, ": ");
}

/* All of the event's own fields, for want of something better. */
static void add_fields(struct strbuf *out, const struct text_record *record)
{
	const struct event_format *format = record->format;

	for (unsigned int i = format->common_count; i < format->field_count; i++) {
		const struct event_field *field = &format->fields[i];

		if (i > format->common_count)
			strbuf_add_char(out, ' ');
		strbuf_addf(out, "%s=", field->name);
		if (text_field(out, format, field, record->data, record->size))
			strbuf_add_char(out, '?');
	}
}

/* With @with_name as it stands in a line, behind the time. */
static bool add_body(struct strbuf *out, const struct text_record *record, bool with_name)
{
	const struct event_format *format = record->format;
	enum text_result result = TEXT_NOT_MINE;

	if (text_graph_is_mine(format)) {
		text_graph_body(out, record);
		return true;
	}
	if (!strcmp(format->system, "ftrace"))
		result = text_ftrace(out, record);
	else if (!strcmp(format->system, "syscalls"))
		result = text_syscall(out, record);
	else if (!strcmp(format->system, "synthetic"))
		result = text_synthetic(out, record, with_name);
	if (result == TEXT_NOT_MINE)
		result = text_probe(out, record, with_name);
	if (result == TEXT_DONE)
		return true;
	if (with_name)
		strbuf_addf(out, "%s: ", format->name);
	if (!format->print) {
		add_fields(out, record);
		return false;
	}
	print_record(out, format, record->data, record->size);
	return true;
}

void text_line(struct strbuf *out, const struct event_format *format, const struct event *event,
	       const struct text_style *style)
{
	const struct text_record record = {
		.format = format,
		.data = event->data,
		.size = event->size,
		.event = event,
		.style = style,
	};

	if (text_graph_is_mine(format)) {
		text_graph_line(out, &record);
		return;
	}
	add_prefix(out, &record);
	add_body(out, &record, true);
	if (out->length && out->text[out->length - 1] == '\n')
		out->text[--out->length] = '\0';
}

bool text_body(struct strbuf *out, const struct event_format *format, const uint8_t *data,
	       uint32_t size)
{
	const struct text_record record = { .format = format, .data = data, .size = size };
	bool has_text = add_body(out, &record, false);

	if (out->length && out->text[out->length - 1] == '\n')
		out->text[--out->length] = '\0';
	return has_text;
}

static void add_number(struct strbuf *out, const struct event_field *field, int64_t number)
{
	if (field->is_pointer)
		strbuf_addf(out, "0x%" PRIx64, (uint64_t)number);
	else if (field->is_signed)
		strbuf_addf(out, "%" PRId64, number);
	else
		strbuf_addf(out, "%" PRIu64, (uint64_t)number);
}

/* As the kernel prints a probe's array of strings. */
static void add_strings(struct strbuf *out, const struct event_format *format,
			const struct event_field *field, const struct value *value,
			const struct text_record *record)
{
	struct value string;

	strbuf_add_char(out, '{');
	for (uint32_t i = 0; i < value_count(field, value); i++) {
		strbuf_add_string(out, i ? ",\"" : "\"");
		if (!value_string(format, value, record->data, record->size, i, &string))
			text_add_safe(out, (const char *)string.bytes, string.length);
		strbuf_add_char(out, '"');
	}
	strbuf_add_char(out, '}');
}

static void add_plain(struct strbuf *out, const struct event_format *format,
		      const struct event_field *field, const struct value *value,
		      const struct text_record *record)
{
	struct value_bits bits = { format, value };

	switch (value->kind) {
	case FIELD_INT:
		add_number(out, field, value->number);
		break;
	case FIELD_STRING:
		text_add_safe(out, (const char *)value->bytes, value->length);
		break;
	case FIELD_BYTES:
		kprint_hex(out, value->bytes, value->length, ' ');
		break;
	case FIELD_ARRAY:
		strbuf_add_char(out, '{');
		for (uint32_t i = 0; i < value_count(field, value); i++) {
			if (i)
				strbuf_add_char(out, ',');
			add_number(out, field, value_element(format, field, value, i));
		}
		strbuf_add_char(out, '}');
		break;
	case FIELD_STRINGS:
		add_strings(out, format, field, value, record);
		break;
	case FIELD_BITMASK:
		kprint_bitmap_list(out, value_bits_get, &bits, value->length * 8);
		break;
	}
}

int text_field(struct strbuf *out, const struct event_format *format,
	       const struct event_field *field, const uint8_t *data, uint32_t size)
{
	const struct text_record record = { .format = format, .data = data, .size = size };
	struct value value;

	if (value_read(format, field, data, size, &value))
		return -1;
	if (!format->print || !print_field_symbol(out, format, field, data, size))
		add_plain(out, format, field, &value, &record);
	return 0;
}
