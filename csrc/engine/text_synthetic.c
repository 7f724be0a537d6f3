/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <inttypes.h>
#include <string.h>

#include "printeval.h"
#include "printfmt.h"
#include "value.h"

/* Numbers of one and two bytes are printed as unsigned, whatever their type. */
static void add_number(struct strbuf *out, const struct event_field *field, int64_t number)
{
	if (!strcmp(field->type, "gfp_t"))
		strbuf_addf(out, "%x", (unsigned int)number);
	else if (field->element_size == 1)
		strbuf_addf(out, "%u", (unsigned int)(uint8_t)number);
	else if (field->element_size == 2)
		strbuf_addf(out, "%u", (unsigned int)(uint16_t)number);
	else if (field->is_signed)
		strbuf_addf(out, "%" PRId64, number);
	else
		strbuf_addf(out, "%" PRIu64, (uint64_t)number);
}

static void add_stack(struct strbuf *out, const struct event_format *format,
		      const struct event_field *field, const struct value *value)
{
	strbuf_add_string(out, "STACK:\n");
	for (uint32_t i = 0; i < value_count(field, value); i++) {
		uint64_t address = (uint64_t)value_element(format, field, value, i);

		if (!address)
			break;
		strbuf_add_string(out, "=> ");
		print_symbol(out, format, address, true);
		strbuf_add_char(out, '\n');
	}
}

static bool add_field(struct strbuf *out, const struct text_record *record,
		      const struct event_field *field, bool is_last)
{
	const struct event_format *format = record->format;
	struct value value;

	if (value_read(format, field, record->data, record->size, &value))
		return false;
	strbuf_addf(out, "%s=", field->name);
	if (value.kind == FIELD_ARRAY) {
		add_stack(out, format, field, &value);
		return true;
	}
	if (value.kind == FIELD_STRING)
		text_add_safe(out, (const char *)value.bytes, value.length);
	else if (value.kind == FIELD_INT)
		add_number(out, field, value.number);
	else
		return false;
	if (!is_last)
		strbuf_add_char(out, ' ');
	/* Behind the blank, and with one more before the bracket. */
	if (!strcmp(field->type, "gfp_t")) {
		strbuf_add_string(out, " (");
		/* The names of its flags stand in formats of other events only. */
		if (!format->print ||
		    !print_field_symbol(out, format, field, record->data, record->size))
			strbuf_add_char(out, '?');
		strbuf_add_char(out, ')');
	}
	return true;
}

enum text_result text_synthetic(struct strbuf *out, const struct text_record *record,
				bool with_name)
{
	const struct event_format *format = record->format;
	size_t before = out->length;

	if (with_name)
		strbuf_addf(out, "%s: ", format->name);
	for (unsigned int i = format->common_count; i < format->field_count; i++) {
		if (add_field(out, record, &format->fields[i], i + 1 == format->field_count))
			continue;
		if (out->text)
			out->text[before] = '\0';
		out->length = before;
		return TEXT_NOT_MINE;
	}
	return TEXT_DONE;
}
