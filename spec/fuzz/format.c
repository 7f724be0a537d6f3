/* SPDX-License-Identifier: MIT */
/*
 * Any text as a format file, and any bytes as a record of that event: 2 bytes say how long the
 * record is, the record follows, the text is the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "format.h"
#include "strbuf.h"
#include "text.h"
#include "value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(const struct event_format *format, const uint8_t *record, size_t length)
{
	struct event event = { .data = record, .size = (uint32_t)length };
	struct text_style style = { .in_ns = true, .cpu_digits = 1 };
	struct strbuf out = { 0 };

	text_line(&out, format, &event, &style);
	for (unsigned int i = 0; i < format->field_count; i++) {
		const struct event_field *field = &format->fields[i];

		text_field(&out, format, field, record, (uint32_t)length);
	}
	strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_error error;
	struct event_format *format;
	struct catalog *catalog;
	uint8_t *record;
	size_t length;

	if (size < 2)
		return 0;
	length = (size_t)(data[0] & 3) << 8 | data[1];
	data += 2;
	size -= 2;
	if (length > size)
		length = size;
	catalog = catalog_create(false, 8);
	record = malloc(length ? length : 1); /* of its very size, for the sanitizer */
	if (!catalog || !record)
		abort();
	memcpy(record, data, length);
	format = catalog_add(catalog, "fuzz", (const char *)data + length, size - length, &error);
	if (format)
		print(format, record, length);
	catalog_free(catalog);
	free(record);
	return 0;
}
