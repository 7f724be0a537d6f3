/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <string.h>

#include "bytes.h"
#include "kprintf.h"
#include "printeval.h"
#include "printtree.h"

/*
 * trace_printk() keeps the address of its format and the arguments as they are, one
 * behind the other: numbers at a multiple of their size (at most 4), strings with
 * their NUL. What a pointer points to was made text when the record was written.
 */
struct packed {
	const struct event_format *format;
	const uint8_t *bytes;
	uint32_t size;
	uint32_t at;
};

static bool take_number(struct packed *packed, unsigned int size, bool is_signed, uint64_t *number)
{
	uint32_t align = size > 4 ? 4 : size;
	uint32_t at = (packed->at + align - 1) & ~(align - 1);

	if (at > packed->size || size > packed->size - at)
		return false;
	*number = (uint64_t)load_int(packed->bytes + at, size, is_signed, packed->format->swaps);
	packed->at = at + size;
	return true;
}

static bool take_string(struct packed *packed, const char **text, size_t *length)
{
	const uint8_t *start = packed->bytes + packed->at, *nul;

	if (packed->at >= packed->size)
		return false;
	nul = memchr(start, '\0', packed->size - packed->at);
	if (!nul)
		return false;
	*text = (const char *)start;
	*length = (size_t)(nul - start);
	packed->at += (uint32_t)*length + 1;
	return true;
}

static bool take_counts(struct packed *packed, struct kspec *spec)
{
	uint64_t number;

	if (spec->width_argument & 1) {
		if (!take_number(packed, 4, true, &number))
			return false;
		kspec_set_width(spec, (int32_t)number);
	}
	if (spec->width_argument & 2) {
		if (!take_number(packed, 4, true, &number))
			return false;
		kspec_set_precision(spec, (int32_t)number);
	}
	return true;
}

static bool add_pointer(struct strbuf *out, struct packed *packed, const struct kspec *spec)
{
	const struct event_format *format = packed->format;
	const char *text;
	size_t length;
	uint64_t address;

	if (spec->extension[0] && !strchr("SsFfBxKe", spec->extension[0])) {
		if (!take_string(packed, &text, &length))
			return false;
		strbuf_add(out, text, length);
		return true;
	}
	if (!take_number(packed, format->long_size, false, &address))
		return false;
	if (spec->extension[0] && strchr("SFB", spec->extension[0]))
		print_symbol(out, format, address, true);
	else if (spec->extension[0] && strchr("sf", spec->extension[0]))
		print_symbol(out, format, address, false);
	else
		kprint_pointer(out, spec, address, format->long_size);
	return true;
}

static bool add_conversion(struct strbuf *out, struct packed *packed, struct kspec *spec)
{
	bool is_signed = spec->conversion == 'd' || spec->conversion == 'i';
	unsigned int size = spec->size ? spec->size : packed->format->long_size;
	const char *text;
	size_t length;
	uint64_t number;
	char c;

	if (!take_counts(packed, spec))
		return false;
	switch (spec->conversion) {
	case '%':
		strbuf_add_char(out, '%');
		return true;
	case 'c':
		if (!take_number(packed, 1, false, &number))
			return false;
		c = (char)number;
		kprint_string(out, spec, &c, 1);
		return true;
	case 's':
		if (!take_string(packed, &text, &length))
			return false;
		kprint_string(out, spec, text, length);
		return true;
	case 'p':
		return add_pointer(out, packed, spec);
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		if (!take_number(packed, size, is_signed, &number))
			return false;
		kprint_number(out, spec, number);
		return true;
	default:
		return false;
	}
}

void text_add_bprintf(struct strbuf *out, const struct event_format *format, const char *text,
		      const uint8_t *args, uint32_t size)
{
	struct packed packed = { .format = format, .bytes = args, .size = size };
	const char *at = text, *end = text + strlen(text);

	while (at < end) {
		const char *percent = strchr(at, '%');
		struct kspec spec;

		if (!percent)
			percent = end;
		strbuf_add(out, at, (size_t)(percent - at));
		if (percent == end)
			break;
		at = kspec_parse(percent, end, &spec);
		if (!add_conversion(out, &packed, &spec)) {
			/* The arguments have run out: what follows would be wrong too. */
			strbuf_add_char(out, '?');
			break;
		}
	}
}
