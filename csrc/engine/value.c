/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <string.h>

/* Reads a length << 16 | offset from @base; false when that lies outside the record. */
static bool value_follow(uint32_t location, uint32_t base, const uint8_t *data, uint32_t size,
			 struct value *value)
{
	uint32_t length = location >> 16, start = base + (location & 0xffff);

	if (start > size || length > size - start)
		return false;
	value->bytes = data + start;
	value->length = length;
	return true;
}

/* Where a field that is not FIXED has its bytes; false when they are not all there. */
static bool value_locate(const struct event_format *format, const struct event_field *field,
			 const uint8_t *data, uint32_t size, struct value *value)
{
	if (field->place == FIELD_TAIL) {
		if (field->offset > size)
			return false;
		value->bytes = data + field->offset;
		value->length = size - field->offset;
		return true;
	}
	if (field->end > size)
		return false;
	return value_follow(load_u32(data + field->offset, format->swaps),
			    field->place == FIELD_REL_LOC ? field->end : 0, data, size, value);
}

/* Arrays that another field counts end where that one says, if they reach so far. */
static void value_limit(const struct event_format *format, const struct event_field *field,
			const uint8_t *data, uint32_t size, struct value *value)
{
	int64_t count;

	if (value_read_int(format, &format->fields[field->count_field], data, size, &count))
		return;
	if (count < 0)
		count = 0;
	if ((uint64_t)count < value->length / field->element_size)
		value->length = (uint32_t)count * field->element_size;
}

/* Stacks end at the first 0; a number that is no address stands before the first address. */
static void value_strip_count(const struct event_format *format, const struct event_field *field,
			      struct value *value)
{
	uint32_t count = value->length / field->element_size;

	if (!count || (uint64_t)value_element(format, field, value, 0) >= 4096)
		return;
	value->bytes += field->element_size;
	value->length -= field->element_size;
}

/* Text ends at its first NUL. */
static void value_cut(struct value *value)
{
	const uint8_t *nul = value->length ? memchr(value->bytes, '\0', value->length) : NULL;

	if (nul)
		value->length = (uint32_t)(nul - value->bytes);
}

int value_read(const struct event_format *format, const struct event_field *field,
	       const uint8_t *data, uint32_t size, struct value *value)
{
	value->kind = field->kind;
	if (field->kind == FIELD_INT)
		return value_read_int(format, field, data, size, &value->number);

	value->number = 0;
	if (field->place == FIELD_FIXED) {
		if (field->end > size)
			return -1;
		value->bytes = data + field->offset;
		value->length = field->size;
	} else if (!value_locate(format, field, data, size, value)) {
		return -1;
	}
	switch (field->kind) {
	case FIELD_STRING:
		value_cut(value);
		break;
	case FIELD_ARRAY:
	case FIELD_BITMASK:
		value->length -= value->length % field->element_size;
		if (field->count_field >= 0)
			value_limit(format, field, data, size, value);
		else if (field->counts_itself)
			value_strip_count(format, field, value);
		break;
	default:
		break;
	}
	return 0;
}

uint32_t value_count(const struct event_field *field, const struct value *value)
{
	return value->length / field->element_size;
}

int64_t value_element(const struct event_format *format, const struct event_field *field,
		      const struct value *value, uint32_t index)
{
	return load_int(value->bytes + (size_t)index * field->element_size, field->element_size,
			field->is_signed, format->swaps);
}

int value_string(const struct event_format *format, const struct value *value, const uint8_t *data,
		 uint32_t size, uint32_t index, struct value *string)
{
	uint32_t location = load_u32(value->bytes + (size_t)index * 4, format->swaps);

	*string = (struct value){ .kind = FIELD_STRING };
	if (!value_follow(location, 0, data, size, string))
		return -1;
	value_cut(string);
	return 0;
}

bool value_bit(const struct event_format *format, const struct value *value, uint32_t bit)
{
	uint32_t byte = bit / 8;

	/* Bit 0 is the lowest of the first long, wherever that machine keeps it. */
	if (format->big_endian)
		byte = byte - byte % format->long_size + format->long_size - 1 -
		       byte % format->long_size;
	return byte < value->length && value->bytes[byte] >> bit % 8 & 1;
}

bool value_bits_get(void *context, unsigned int index)
{
	const struct value_bits *bits = context;

	return value_bit(bits->format, bits->value, index);
}
