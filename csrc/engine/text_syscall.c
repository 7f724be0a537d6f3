/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "printfmt.h"
#include "value.h"

#define ENTER "sys_enter_"
#define EXIT "sys_exit_"

/* The argument as it was in its register: all of it, whatever its type. */
static bool read_register(const struct text_record *record, const struct event_field *field,
			  uint64_t *number)
{
	if (field->kind != FIELD_INT || field->end > record->size)
		return false;
	*number = (uint64_t)load_int(record->data + field->offset, field->size, false,
				     record->format->swaps);
	return true;
}

/* The fields besides the arguments: the number of the call, and copies of memory. */
static bool is_argument(const struct event_field *field)
{
	return strncmp(field->name, "__", 2) != 0 && strcmp(field->name, "nr") != 0;
}

/* All bytes that a __data_loc field says are there, also those behind a NUL. */
static bool read_memory(const struct text_record *record, const struct event_field *field,
			const uint8_t **bytes, uint32_t *length)
{
	uint32_t where;

	if (field->place != FIELD_DATA_LOC || field->end > record->size)
		return false;
	where = load_u32(record->data + field->offset, record->format->swaps);
	*length = where >> 16;
	where &= 0xffff;
	if (where > record->size || *length > record->size - where)
		return false;
	*bytes = record->data + where;
	return true;
}

static bool is_printable(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f;
}

/* Of memory that is no text: its bytes, and what can be read in them. */
static void add_bytes(struct strbuf *out, const uint8_t *bytes, uint32_t length, bool is_cut)
{
	bool any = false;

	strbuf_add_string(out, " (");
	for (uint32_t i = 0; i < length; i++) {
		strbuf_addf(out, i ? ":%02x" : "%02x", bytes[i]);
		any = any || is_printable(bytes[i]);
	}
	strbuf_add_string(out, is_cut ? ", ...)" : ")");
	if (!any)
		return;
	strbuf_add_string(out, " \"");
	for (uint32_t i = 0; i < length; i++)
		strbuf_add_char(out, is_printable(bytes[i]) ? (char)bytes[i] : '.');
	strbuf_add_string(out, is_cut ? "\"..." : "\"");
}

/*
 * What kernels from 6.19 on copy from the memory that argument @index points to. That it is
 * bytes and not a string shows in the print format; the call's next argument is then their
 * number.
 */
static void add_memory(struct strbuf *out, const struct text_record *record, unsigned int index)
{
	const struct event_format *format = record->format;
	char copy[128], array[sizeof(copy) + 32];
	uint64_t asked = 0;
	const uint8_t *bytes;
	struct value value;
	uint32_t length;
	int at;

	snprintf(copy, sizeof(copy), "__%s_val", format->fields[index].name);
	at = format_field_index(format, copy);
	if (at < 0)
		return;
	snprintf(array, sizeof(array), "__print_dynamic_array(%s,", copy);
	if (strstr(format->print_fmt, array)) {
		if (!read_memory(record, &format->fields[at], &bytes, &length))
			return;
		if (index + 1 < format->field_count)
			read_register(record, &format->fields[index + 1], &asked);
		/* The kernel compares as int. */
		add_bytes(out, bytes, length, (int32_t)length < (int32_t)asked);
		return;
	}
	if (format->fields[at].kind != FIELD_STRING ||
	    value_read(format, &format->fields[at], record->data, record->size, &value))
		return;
	strbuf_add_string(out, " \"");
	text_add_safe(out, (const char *)value.bytes, value.length);
	strbuf_add_char(out, '"');
}

/*
 * openat() of the kernels that print its flags by name. False stands for: no argument behind
 * this one is shown.
 */
static bool add_openat(struct strbuf *out, const struct text_record *record,
		       const struct event_field *field, uint64_t number)
{
	if (!strcmp(field->name, "mode")) {
		strbuf_addf(out, "mode: 0%03o", (unsigned int)number);
		return true;
	}
	if (strcmp(field->name, "flags") != 0) {
		strbuf_addf(out, "%s: %llu", field->name, (unsigned long long)number);
		return true;
	}
	strbuf_add_string(out, "flags: ");
	print_field_symbol(out, record->format, field, record->data, record->size);
	return number & (O_CREAT | O_TMPFILE);
}

static void add_argument(struct strbuf *out, const struct text_record *record,
			 const struct event_field *field, uint64_t number)
{
	/* Before 6.18: hexadecimal, and nothing says so. */
	if (catalog_is_before(record->format->catalog, 6, 18))
		strbuf_addf(out, "%s: %llx", field->name, (unsigned long long)number);
	else
		strbuf_addf(out, number < 10 ? "%s: %llu" : "%s: 0x%llx", field->name,
			    (unsigned long long)number);
}

static void add_enter(struct strbuf *out, const struct text_record *record)
{
	const struct event_format *format = record->format;
	bool is_openat = !strcmp(format->name, ENTER "openat") &&
			 strstr(format->print_fmt, "__print_flags(REC->flags");
	bool is_first = true, goes_on = true;

	strbuf_addf(out, "sys_%s(", format->name + strlen(ENTER));
	for (unsigned int i = format->common_count; goes_on && i < format->field_count; i++) {
		const struct event_field *field = &format->fields[i];
		uint64_t number;

		if (!is_argument(field) || !read_register(record, field, &number))
			continue;
		if (!is_first)
			strbuf_add_string(out, ", ");
		is_first = false;
		if (is_openat)
			goes_on = add_openat(out, record, field, number);
		else
			add_argument(out, record, field, number);
		add_memory(out, record, i);
	}
	strbuf_add_char(out, ')');
}

static enum text_result add_exit(struct strbuf *out, const struct text_record *record)
{
	const struct event_format *format = record->format;
	int index = format_field_index(format, "ret");
	uint64_t number;

	if (index < 0 || !read_register(record, &format->fields[index], &number))
		return TEXT_NOT_MINE;
	strbuf_addf(out, "sys_%s -> 0x%llx", format->name + strlen(EXIT),
		    (unsigned long long)number);
	return TEXT_DONE;
}

enum text_result text_syscall(struct strbuf *out, const struct text_record *record)
{
	const char *name = record->format->name;

	if (!strncmp(name, EXIT, strlen(EXIT)))
		return add_exit(out, record);
	if (strncmp(name, ENTER, strlen(ENTER)) != 0)
		return TEXT_NOT_MINE;
	add_enter(out, record);
	return TEXT_DONE;
}
