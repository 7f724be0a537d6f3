/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_VALUE_H
#define LUATRACE_VALUE_H

#include "bytes.h"
#include "format.h"

/*
 * One field of one record. Pointers are borrowed from the record. FIELD_INT has
 * its value in @number; every other kind has its bytes, with FIELD_STRING already
 * cut at the first NUL.
 */
struct value {
	enum field_kind kind;
	int64_t number;
	const uint8_t *bytes;
	uint32_t length; /* in bytes; a whole number of elements */
};

/*
 * Reads @field of a record of @size bytes. Returns 0, or -1 when any part of the
 * field lies outside the record (nothing is read then).
 */
int value_read(const struct event_format *format, const struct event_field *field,
	       const uint8_t *data, uint32_t size, struct value *value);

/* value_read() for a field that is known to be FIELD_INT: a check and a load. */
static inline int value_read_int(const struct event_format *format, const struct event_field *field,
				 const uint8_t *data, uint32_t size, int64_t *number)
{
	if (field->end > size)
		return -1;
	*number = load_int(data + field->load_offset, field->element_size, field->is_signed,
			   format->swaps);
	return 0;
}

/* Elements of a FIELD_ARRAY; @index counts from 0 and must be below the count. */
uint32_t value_count(const struct event_field *field, const struct value *value);
int64_t value_element(const struct event_format *format, const struct event_field *field,
		      const struct value *value, uint32_t index);

/*
 * One string of a FIELD_STRINGS, as a FIELD_STRING; @index must be below the count. -1 when it
 * lies outside the record.
 */
int value_string(const struct event_format *format, const struct value *value, const uint8_t *data,
		 uint32_t size, uint32_t index, struct value *string);

/* Bits of a FIELD_BITMASK, whatever the byte order and long size of its machine. */
bool value_bit(const struct event_format *format, const struct value *value, uint32_t bit);

/* The same for who asks bit by bit without knowing of formats; @context is a value_bits. */
struct value_bits {
	const struct event_format *format;
	const struct value *value;
};

bool value_bits_get(void *context, unsigned int index);

#endif
