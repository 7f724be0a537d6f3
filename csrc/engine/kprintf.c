/* SPDX-License-Identifier: MIT */
#include "kprintf.h"

#include <ctype.h>
#include <string.h>

/* Wider than any line; the kernel's own limits are of the same kind. */
#define WIDTH_MAX 4096

static int parse_count(const char **at, const char *end)
{
	int count = 0;

	while (*at < end && isdigit((unsigned char)**at)) {
		if (count < WIDTH_MAX)
			count = count * 10 + (**at - '0');
		(*at)++;
	}
	return count < WIDTH_MAX ? count : WIDTH_MAX;
}

static const char *parse_flags(const char *at, const char *end, struct kspec *spec)
{
	for (; at < end; at++) {
		switch (*at) {
		case '-':
			spec->left = true;
			break;
		case '+':
			spec->plus = true;
			break;
		case ' ':
			spec->space = true;
			break;
		case '#':
			spec->alternate = true;
			break;
		case '0':
			spec->zeros = true;
			break;
		default:
			return at;
		}
	}
	return at;
}

static const char *parse_size(const char *at, const char *end, struct kspec *spec)
{
	spec->size = 4;
	if (at == end)
		return at;
	switch (*at) {
	case 'h':
		at++;
		spec->size = 2;
		if (at < end && *at == 'h') {
			at++;
			spec->size = 1;
		}
		break;
	case 'l':
		at++;
		spec->size = 0;
		if (at < end && *at == 'l') {
			at++;
			spec->size = 8;
		}
		break;
	case 'L':
	case 'j':
		at++;
		spec->size = 8;
		break;
	case 'z':
	case 'Z':
	case 't':
		at++;
		spec->size = 0;
		break;
	default:
		break;
	}
	return at;
}

const char *kspec_parse(const char *at, const char *end, struct kspec *spec)
{
	size_t length = 0;

	*spec = (struct kspec){ .width = -1, .precision = -1 };
	at = parse_flags(at + 1, end, spec);
	if (at < end && *at == '*') {
		spec->width_argument |= 1;
		at++;
	} else if (at < end && isdigit((unsigned char)*at)) {
		spec->width = parse_count(&at, end);
	}
	if (at < end && *at == '.') {
		at++;
		if (at < end && *at == '*') {
			spec->width_argument |= 2;
			at++;
		} else {
			spec->precision = parse_count(&at, end);
		}
	}
	at = parse_size(at, end, spec);
	if (at == end)
		return at;
	spec->conversion = *at++;
	if (spec->conversion != 'p')
		return at;
	while (at < end && isalnum((unsigned char)*at)) {
		if (length < sizeof(spec->extension) - 1)
			spec->extension[length++] = *at;
		at++;
	}
	return at;
}

void kspec_set_width(struct kspec *spec, int32_t width)
{
	spec->left = spec->left || width < 0;
	spec->width = width < -WIDTH_MAX || width > WIDTH_MAX ? WIDTH_MAX :
		      width < 0				      ? -width :
								width;
}

void kspec_set_precision(struct kspec *spec, int32_t precision)
{
	spec->precision = precision < 0 ? 0 : precision > WIDTH_MAX ? WIDTH_MAX : precision;
}

static void add_repeated(struct strbuf *out, char c, int count)
{
	while (count-- > 0)
		strbuf_add_char(out, c);
}

void kprint_number(struct strbuf *out, const struct kspec *spec, uint64_t number)
{
	bool is_signed = spec->conversion == 'd' || spec->conversion == 'i';
	bool upper = spec->conversion == 'X';
	unsigned int base = spec->conversion == 'o'	     ? 8 :
			    spec->conversion == 'x' || upper ? 16 :
							       10;
	const char *figures = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	bool needs_base = spec->alternate && base != 10 && (number || base == 16);
	int width = spec->width, precision = spec->precision, digits = 0;
	char reversed[24], sign = 0;

	if (is_signed) {
		if ((int64_t)number < 0) {
			sign = '-';
			number = 0 - number;
		} else if (spec->plus) {
			sign = '+';
		} else if (spec->space) {
			sign = ' ';
		}
	}
	do {
		reversed[digits++] = figures[number % base];
		number /= base;
	} while (number);
	if (precision < digits)
		precision = digits;
	width -= precision + (sign ? 1 : 0) + (needs_base ? (base == 16 ? 2 : 1) : 0);
	if (!spec->left && !spec->zeros)
		add_repeated(out, ' ', width);
	if (sign)
		strbuf_add_char(out, sign);
	if (needs_base) {
		strbuf_add_char(out, '0');
		if (base == 16)
			strbuf_add_char(out, upper ? 'X' : 'x');
	}
	if (!spec->left && spec->zeros)
		add_repeated(out, '0', width);
	add_repeated(out, '0', precision - digits);
	while (digits)
		strbuf_add_char(out, reversed[--digits]);
	if (spec->left)
		add_repeated(out, ' ', width);
}

void kprint_string(struct strbuf *out, const struct kspec *spec, const char *text, size_t length)
{
	int width = spec->width;

	if (spec->precision >= 0 && (size_t)spec->precision < length)
		length = (size_t)spec->precision;
	if (width < 0 || (size_t)width < length)
		width = 0;
	else
		width -= (int)length;
	if (!spec->left)
		add_repeated(out, ' ', width);
	strbuf_add(out, text, length);
	if (spec->left)
		add_repeated(out, ' ', width);
}

void kprint_pointer(struct strbuf *out, const struct kspec *spec, uint64_t address,
		    unsigned int long_size)
{
	struct kspec number = *spec;

	number.conversion = 'x';
	if (number.width < 0) {
		number.width = (int)long_size * 2;
		number.zeros = true;
	}
	number.precision = -1;
	kprint_number(out, &number, address);
}

/* Most extensions write a short text that width and precision then apply to. */
struct short_text {
	char text[96];
	size_t length;
};

static void short_add(struct short_text *to, const char *text)
{
	size_t length = strlen(text);

	if (length < sizeof(to->text) - to->length) {
		memcpy(to->text + to->length, text, length + 1);
		to->length += length;
	}
}

static void short_number(struct short_text *to, unsigned int number, unsigned int base,
			 unsigned int digits)
{
	char text[12];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	do {
		text[--at] = "0123456789abcdef"[number % base];
		number /= base;
		if (digits)
			digits--;
	} while (number || digits);
	short_add(to, text + at);
}

static void ip4_text(struct short_text *to, const uint8_t *bytes, const char *format)
{
	bool zeros = format[0] == 'i';
	/* The letter behind the 4 tells the order of the bytes. */
	bool reversed = format[1] &&
			(format[2] == 'l' ||
			 (format[2] == 'h' && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__));

	for (int i = 0; i < 4; i++) {
		if (i)
			short_add(to, ".");
		short_number(to, bytes[reversed ? 3 - i : i], 10, zeros ? 3 : 1);
	}
}

static unsigned int ip6_word(const uint8_t *bytes, int index)
{
	return (unsigned int)bytes[2 * index] << 8 | bytes[2 * index + 1];
}

/* The longest run of zero words becomes "::"; of equal ones the first. */
static void ip6_longest_zeros(const uint8_t *bytes, int words, int *start, int *length)
{
	*start = -1;
	*length = 1;
	for (int i = 0; i < words; i++) {
		int run = 0;

		while (i + run < words && !ip6_word(bytes, i + run))
			run++;
		if (run > *length) {
			*start = i;
			*length = run;
		}
		i += run;
	}
}

static void ip6_compressed(struct short_text *to, const uint8_t *bytes)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	/* v4-mapped addresses, and ISATAP ones with their fixed middle. */
	bool has_ip4 = !memcmp(bytes, mapped, sizeof(mapped)) ||
		       ((ip6_word(bytes, 4) | 0x0200) == 0x0200 && ip6_word(bytes, 5) == 0x5efe);
	int words = has_ip4 ? 6 : 8, start, length;
	bool needs_colon = false;

	ip6_longest_zeros(bytes, words, &start, &length);
	for (int i = 0; i < words; i++) {
		if (i == start) {
			short_add(to, needs_colon || !i ? ":" : "");
			short_add(to, ":");
			needs_colon = false;
			i += length - 1;
			continue;
		}
		if (needs_colon)
			short_add(to, ":");
		short_number(to, ip6_word(bytes, i), 16, 1);
		needs_colon = true;
	}
	if (has_ip4) {
		if (needs_colon)
			short_add(to, ":");
		ip4_text(to, bytes + 12, "I4");
	}
}

static void ip6_text(struct short_text *to, const uint8_t *bytes, const char *format)
{
	if (format[0] == 'I' && format[1] && format[2] == 'c') {
		ip6_compressed(to, bytes);
		return;
	}
	for (int i = 0; i < 8; i++) {
		if (i && format[0] == 'I')
			short_add(to, ":");
		short_number(to, ip6_word(bytes, i), 16, 4);
	}
}

static void port_text(struct short_text *to, const uint8_t *bytes)
{
	short_add(to, ":");
	short_number(to, (unsigned int)bytes[0] << 8 | bytes[1], 10, 1);
}

/* %pIS: a struct sockaddr, its family in the machine's own byte order. */
static bool sockaddr_text(struct short_text *to, const uint8_t *bytes, size_t length,
			  const char *format, bool big_endian)
{
	const char *options = format + 2;
	bool has_port = strchr(options, 'p'), is_compressed = strchr(options, 'c');
	unsigned int family;

	if (length < 2)
		return false;
	family = big_endian ? (unsigned int)bytes[0] << 8 | bytes[1] :
			      (unsigned int)bytes[1] << 8 | bytes[0];
	if (family == 2 && length >= 8) {
		ip4_text(to, bytes + 4, format[0] == 'I' ? "I4" : "i4");
		if (has_port)
			port_text(to, bytes + 2);
		return true;
	}
	if (family == 10 && length >= 24) {
		bool brackets = has_port || strchr(options, 'f') || strchr(options, 's');

		if (brackets)
			short_add(to, "[");
		ip6_text(to, bytes + 8, format[0] == 'i' ? "i6" : is_compressed ? "I6c" : "I6");
		if (brackets)
			short_add(to, "]");
		if (has_port)
			port_text(to, bytes + 2);
		if (strchr(options, 'f')) {
			short_add(to, "/");
			short_number(to,
				     ((unsigned int)bytes[4] & 0x0f) << 24 |
					     (unsigned int)bytes[5] << 16 |
					     (unsigned int)bytes[6] << 8 | bytes[7],
				     10, 1);
		}
		if (strchr(options, 's') && length >= 28) {
			uint32_t scope;

			memcpy(&scope, bytes + 24, 4);
			if (big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
				scope = __builtin_bswap32(scope);
			short_add(to, "%");
			short_number(to, scope, 10, 1);
		}
		return true;
	}
	return false;
}

static void mac_text(struct short_text *to, const uint8_t *bytes, const char *format)
{
	bool reversed = format[1] == 'R';
	const char *separator = format[0] == 'm' ? "" : format[1] == 'F' ? "-" : ":";

	for (int i = 0; i < 6; i++) {
		if (i)
			short_add(to, separator);
		short_number(to, bytes[reversed ? 5 - i : i], 16, 2);
	}
}

static void uuid_text(struct short_text *to, const uint8_t *bytes, const char *format)
{
	static const uint8_t little[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	bool is_little = format[1] == 'l' || format[1] == 'L';
	bool upper = format[1] == 'L' || format[1] == 'B';

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			short_add(to, "-");
		short_number(to, bytes[is_little ? little[i] : i], 16, 2);
	}
	for (size_t i = 0; upper && i < to->length; i++)
		to->text[i] = (char)toupper((unsigned char)to->text[i]);
}

void kprint_hex(struct strbuf *out, const uint8_t *bytes, size_t length, char separator)
{
	static const char figures[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		if (i && separator)
			strbuf_add_char(out, separator);
		strbuf_add_char(out, figures[bytes[i] >> 4]);
		strbuf_add_char(out, figures[bytes[i] & 15]);
	}
}

static bool memory_hex(struct strbuf *out, const struct kspec *spec, const uint8_t *bytes,
		       size_t length)
{
	size_t count = spec->width < 0 ? 1 : (size_t)spec->width;

	if (count > 64)
		count = 64;
	if (count > length)
		return false;
	switch (spec->extension[1]) {
	case 'C':
		kprint_hex(out, bytes, count, ':');
		break;
	case 'D':
		kprint_hex(out, bytes, count, '-');
		break;
	case 'N':
		kprint_hex(out, bytes, count, 0);
		break;
	default:
		kprint_hex(out, bytes, count, ' ');
		break;
	}
	return true;
}

/* Physical and DMA addresses, network device features: a number behind a pointer. */
static bool memory_number(struct strbuf *out, const struct kspec *spec, const uint8_t *bytes,
			  size_t length, bool big_endian)
{
	struct kspec number = { .conversion = 'x',
				.alternate = true,
				.zeros = true,
				.precision = -1 };
	uint64_t value = 0;
	size_t size = length < 8 ? 4 : 8;

	if (length < size)
		return false;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes[i] << 8 * (big_endian ? size - 1 - i : i);
	number.width = 2 + 2 * (int)size;
	number.left = spec->left;
	kprint_number(out, &number, value);
	return true;
}

bool kprint_memory(struct strbuf *out, const struct kspec *spec, const uint8_t *bytes,
		   size_t length, bool big_endian)
{
	const char *format = spec->extension;
	struct short_text text = { .length = 0 };

	switch (format[0]) {
	case 'I':
	case 'i':
		if (format[1] == '4' && length >= 4)
			ip4_text(&text, bytes, format);
		else if (format[1] == '6' && length >= 16)
			ip6_text(&text, bytes, format);
		else if (format[1] != 'S' ||
			 !sockaddr_text(&text, bytes, length, format, big_endian))
			return false;
		break;
	case 'M':
	case 'm':
		if (length < 6)
			return false;
		mac_text(&text, bytes, format);
		break;
	case 'U':
		if (length < 16)
			return false;
		uuid_text(&text, bytes, format);
		break;
	case 'h':
		return memory_hex(out, spec, bytes, length);
	case 'a':
	case 'N':
		return memory_number(out, spec, bytes, length, big_endian);
	default:
		return false;
	}
	kprint_string(out, spec, text.text, text.length);
	return true;
}

void kprint_bitmap(struct strbuf *out, bool (*bit)(void *context, unsigned int index),
		   void *context, unsigned int count)
{
	unsigned int first = count & ~31u, width = count & 31;

	if (!count)
		return;
	if (!width) {
		first -= 32;
		width = 32;
	}
	for (;;) {
		uint32_t word = 0;

		for (unsigned int i = 0; i < width; i++)
			word |= (uint32_t)bit(context, first + i) << i;
		strbuf_addf(out, "%0*x", (int)(width + 3) / 4, word);
		if (!first)
			break;
		strbuf_add_char(out, ',');
		first -= 32;
		width = 32;
	}
}

void kprint_bitmap_list(struct strbuf *out, bool (*bit)(void *context, unsigned int index),
			void *context, unsigned int count)
{
	bool is_first = true;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int start = i;

		if (!bit(context, i))
			continue;
		while (i + 1 < count && bit(context, i + 1))
			i++;
		strbuf_addf(out, is_first ? "%u" : ",%u", start);
		if (i > start)
			strbuf_addf(out, "-%u", i);
		is_first = false;
	}
}
