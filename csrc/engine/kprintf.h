/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KPRINTF_H
#define LUATRACE_KPRINTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strbuf.h"

/*
 * Conversions as the kernel's vsnprintf() does them, which is not quite as C does: an
 * added base of 0 is printed, zeros fill up in spite of a precision, and pointers have
 * formats of their own.
 */
struct kspec {
	bool left;	    /* '-' */
	bool plus;	    /* '+' */
	bool space;	    /* ' ' */
	bool alternate;	    /* '#' */
	bool zeros;	    /* '0' */
	int width;	    /* -1: none */
	int precision;	    /* -1: none */
	int width_argument; /* '*' stands for the width: 1, for the precision: 2, or both: 3 */
	uint8_t size;	    /* bytes of the number: 1, 2, 4, 8; 0 for a long */
	char conversion;    /* 'd', 'x', 's', 'c', 'p', '%' ...; 0 at the end of the format */
	char extension[8];  /* of 'p': the letters behind it, lower and upper case as they are */
};

/*
 * Reads the conversion behind the '%' that @at stands on; returns where the text goes on.
 * Extensions of %p are cut to what fits; the kernel takes every letter and digit too.
 */
const char *kspec_parse(const char *at, const char *end, struct kspec *spec);

/* A width or precision that is an argument: limited, because a record may say anything. */
void kspec_set_width(struct kspec *spec, int32_t width);
void kspec_set_precision(struct kspec *spec, int32_t precision);

/* @number already has the width and sign that the conversion asks for. */
void kprint_number(struct strbuf *out, const struct kspec *spec, uint64_t number);
void kprint_string(struct strbuf *out, const struct kspec *spec, const char *text, size_t length);
/* The address itself, with all its digits. */
void kprint_pointer(struct strbuf *out, const struct kspec *spec, uint64_t address,
		    unsigned int long_size);

/*
 * The formats of %p that show what the pointer points to: IPv4 and IPv6 addresses, MACs,
 * UUIDs, bytes. False when the extension is none of them or @length bytes are too few.
 */
bool kprint_memory(struct strbuf *out, const struct kspec *spec, const uint8_t *bytes,
		   size_t length, bool big_endian);

/* %*ph and its kind: at most 64 bytes as the kernel does. */
void kprint_hex(struct strbuf *out, const uint8_t *bytes, size_t length, char separator);

/* %*pb: words of 32 bits from the highest, separated by commas. @bit tells bits. */
void kprint_bitmap(struct strbuf *out, bool (*bit)(void *context, unsigned int index),
		   void *context, unsigned int count);
/* %*pbl: "0-3,7". */
void kprint_bitmap_list(struct strbuf *out, bool (*bit)(void *context, unsigned int index),
			void *context, unsigned int count);

#endif
