/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BYTES_H
#define LUATRACE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Loads of unaligned integers from a page or a record. @swap is true when the
 * bytes were written by a machine of the other endianness.
 */
static inline uint16_t load_u16(const void *bytes, bool swap)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t load_u32(const void *bytes, bool swap)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t load_u64(const void *bytes, bool swap)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

/* @size is 1, 2, 4 or 8; the value comes sign-extended when @is_signed. */
static inline int64_t load_int(const void *bytes, unsigned int size, bool is_signed, bool swap)
{
	switch (size) {
	case 1:
		return is_signed ? (int64_t) * (const int8_t *)bytes :
				   (int64_t) * (const uint8_t *)bytes;
	case 2:
		return is_signed ? (int64_t)(int16_t)load_u16(bytes, swap) :
				   (int64_t)load_u16(bytes, swap);
	case 4:
		return is_signed ? (int64_t)(int32_t)load_u32(bytes, swap) :
				   (int64_t)load_u32(bytes, swap);
	default:
		return (int64_t)load_u64(bytes, swap);
	}
}

#endif
